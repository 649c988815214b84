"""Types for annotations: what operators and readers make, and programs read but never construct."""

from rxdelta.aio import BlockingReply, ReaderMetrics, Reply
from rxdelta.core import CompleteToolCall, InvalidToolCall
from rxdelta.operators import (
    Answers,
    Approve,
    BlockStream,
    ChoiceStream,
    LogEntry,
    MessageStream,
    PartialValue,
    RunStream,
    StableMarkdown,
    StreamMetrics,
    StreamOutcome,
)

__all__ = [
    "Answers",
    "Approve",
    "BlockStream",
    "BlockingReply",
    "ChoiceStream",
    "CompleteToolCall",
    "InvalidToolCall",
    "LogEntry",
    "MessageStream",
    "PartialValue",
    "ReaderMetrics",
    "Reply",
    "RunStream",
    "StableMarkdown",
    "StreamMetrics",
    "StreamOutcome",
]
