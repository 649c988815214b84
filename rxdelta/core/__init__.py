"""Replies as values, and how they grow. Pure: no I/O, no clock, no reactivex."""

from rxdelta.core import events
from rxdelta.core._apply import apply_event, merge_delta, merge_deltas
from rxdelta.core._block_fold import BlockFold, grows_by
from rxdelta.core._block_key import message_order
from rxdelta.core._block_wire import block_from_wire, block_to_wire
from rxdelta.core._blocks import Block
from rxdelta.core._call_index import CallIndex, call_id_of
from rxdelta.core._content_part import ContentPart, raw_text
from rxdelta.core._errors import (
    BufferOverflowError,
    EmptyStreamError,
    IncompleteMessageError,
    InvalidToolCallError,
    InvalidValueError,
    LimitExceededError,
    MalformedChunkError,
    MergeError,
    ProtocolError,
    ProviderError,
    RxDeltaError,
    StallTimeoutError,
    StreamInterrupted,
    ToolError,
    UnknownWireFormatError,
    as_exception,
    described,
    quote,
)
from rxdelta.core._events import Event, reasoning_delta, text_delta, tool_call_delta
from rxdelta.core._events_so_far import EventsSoFar
from rxdelta.core._execution_status import TERMINAL
from rxdelta.core._fold import Fold
from rxdelta.core._frozen import FrozenDict, FrozenList, freeze, is_mapping, thaw
from rxdelta.core._joined import JOINABLE, PIECE_FIELDS, Joined
from rxdelta.core._limits import DEFAULT_LIMITS, ByChoice, ByRun, Limits, check_place
from rxdelta.core._literals import (
    FINISH_REASONS,
    CallStatus,
    CallType,
    ExecutionStatus,
    FinishReason,
    MessageRole,
    MessageStatus,
    SnapshotRole,
    SnapshotStatus,
    finish_reason,
)
from rxdelta.core._message import Message
from rxdelta.core._partial_json_parser import PartialJsonParser
from rxdelta.core._protocol_checker import ProtocolChecker
from rxdelta.core._redact import redact
from rxdelta.core._refusal import Reads, is_readable, refusal, wrong_value
from rxdelta.core._runs import PerRun, another_run, concerns_any_run, in_run
from rxdelta.core._scripts import SPACELESS
from rxdelta.core._snapshot import MessageDelta, Snapshot, is_over, is_settled
from rxdelta.core._strict_json import InvalidJson, clean_text, parse_json, parse_object
from rxdelta.core._text import GrowingText, extend, join_when_read, read_text
from rxdelta.core._to_events import to_events
from rxdelta.core._tool_call import (
    CompleteToolCall,
    InvalidToolCall,
    ToolCall,
    raw_arguments,
    real_id,
    with_news,
)
from rxdelta.core._values import Citation, TokenUsage, ToolResult
from rxdelta.core._walk import Change, Walk, Walks

__all__ = [
    "DEFAULT_LIMITS",
    "FINISH_REASONS",
    "JOINABLE",
    "PIECE_FIELDS",
    "SPACELESS",
    "TERMINAL",
    "Block",
    "BlockFold",
    "BufferOverflowError",
    "ByChoice",
    "ByRun",
    "CallIndex",
    "CallStatus",
    "CallType",
    "Change",
    "Citation",
    "CompleteToolCall",
    "ContentPart",
    "EmptyStreamError",
    "Event",
    "EventsSoFar",
    "ExecutionStatus",
    "FinishReason",
    "Fold",
    "FrozenDict",
    "FrozenList",
    "GrowingText",
    "IncompleteMessageError",
    "InvalidJson",
    "InvalidToolCall",
    "InvalidToolCallError",
    "InvalidValueError",
    "Joined",
    "LimitExceededError",
    "Limits",
    "MalformedChunkError",
    "MergeError",
    "Message",
    "MessageDelta",
    "MessageRole",
    "MessageStatus",
    "PartialJsonParser",
    "PerRun",
    "ProtocolChecker",
    "ProtocolError",
    "ProviderError",
    "Reads",
    "RxDeltaError",
    "Snapshot",
    "SnapshotRole",
    "SnapshotStatus",
    "StallTimeoutError",
    "StreamInterrupted",
    "TokenUsage",
    "ToolCall",
    "ToolError",
    "ToolResult",
    "UnknownWireFormatError",
    "Walk",
    "Walks",
    "apply_event",
    "another_run",
    "as_exception",
    "block_from_wire",
    "block_to_wire",
    "call_id_of",
    "check_place",
    "clean_text",
    "concerns_any_run",
    "described",
    "events",
    "extend",
    "finish_reason",
    "freeze",
    "grows_by",
    "in_run",
    "is_mapping",
    "is_over",
    "is_settled",
    "is_readable",
    "join_when_read",
    "merge_delta",
    "message_order",
    "merge_deltas",
    "parse_json",
    "parse_object",
    "quote",
    "raw_arguments",
    "raw_text",
    "read_text",
    "real_id",
    "reasoning_delta",
    "redact",
    "refusal",
    "text_delta",
    "thaw",
    "to_events",
    "tool_call_delta",
    "with_news",
    "wrong_value",
]
