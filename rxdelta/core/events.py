"""The events, for this package and those above it. A program imports `rxdelta.events`, which has the same names."""

from rxdelta.core.event_classes import (
    EVENT_TYPES,
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    DataDelta,
    Event,
    Index,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
    UsageUpdate,
    reasoning_delta,
    text_delta,
    tool_call_delta,
)
from rxdelta.core.event_reading import from_dict

__all__ = [
    # any event
    "Event",
    "EVENT_TYPES",
    "Index",
    "from_dict",
    # the message begins
    "MessageStart",
    # its blocks
    "BlockStart",
    "TextDelta",
    "ReasoningDelta",
    "DataDelta",
    "ToolCallDelta",
    "BlockDelta",
    "BlockFinish",
    "text_delta",
    "reasoning_delta",
    "tool_call_delta",
    # the message ends
    "UsageUpdate",
    "MessageFinish",
    "StreamError",
    # outside the message
    "ProviderEvent",
    # ours
    "Custom",
    "ToolUpdate",
    "MessageInterrupted",
    "AttemptReset",
]
