"""The events of a streamed reply: the chat stream event protocol, and three events of our own.

Every event is a small frozen value. Its fields have the wire's names in snake case; `to_dict` writes the wire form
and `from_dict` reads it, in today's spelling or an older one. `choice` distinguishes alternative replies of one
stream; the wire form omits it where it is 0.
"""

from rxdelta.core._event_fields import Index
from rxdelta.core._event_reading import from_dict
from rxdelta.core._events import (
    EVENT_TYPES,
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    Event,
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
    "ToolUpdate",
    "MessageInterrupted",
    "AttemptReset",
]
