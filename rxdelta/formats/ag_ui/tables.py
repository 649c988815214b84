"""The events of AG-UI that are known by their names alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.formats.ag_ui.data import EVENTS

__all__ = ["AFTER_A_MESSAGE", "CHUNKS", "OPENERS", "OTHERS", "SHOWN_BY", "may_begin"]

OTHERS = frozenset(["ACTIVITY_DELTA", "SUBAGENT_ERROR", "SUBAGENT_STARTED"])
"""The events that are passed on."""

CHUNKS = frozenset(["TEXT_MESSAGE_CHUNK", "REASONING_MESSAGE_CHUNK", "TOOL_CALL_CHUNK"])
"""The events that stand for start, content and end."""

OPENERS = frozenset([
    "TEXT_MESSAGE_START", "REASONING_START", "REASONING_MESSAGE_START", "TOOL_CALL_START", *CHUNKS,
])  # fmt: skip
"""The events with which a message may begin."""

AFTER_A_MESSAGE = frozenset(["TOOL_CALL_RESULT", "RUN_ERROR", "RUN_FINISHED", *EVENTS])
"""The events that concern a run, its calls or the application, after the end of a message."""

SHOWN_BY: Mapping[str, str] = {
    **dict.fromkeys(["RUN_STARTED", "RUN_FINISHED"], "runId"),
    **dict.fromkeys(["TEXT_MESSAGE_START", "REASONING_START", "REASONING_MESSAGE_START"], "messageId"),
    **dict.fromkeys(["TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"], "delta"),
    **dict.fromkeys(["TOOL_CALL_START", "TOOL_CALL_RESULT"], "toolCallId"),
    "THINKING_TEXT_MESSAGE_CONTENT": "delta",
    "MESSAGES_SNAPSHOT": "messages",
    "RUN_ERROR": "message",
}
"""The field that tells an event from those of other protocols."""

_OF_CHUNKS = frozenset([
    "type", "messageId", "role", "name", "toolCallId", "toolCallName", "parentMessageId", "delta", "metadata",
    "subagentRunId", "timestamp", "rawEvent", "_event",
])  # fmt: skip
"""The fields of the events that stand for start, content and end."""


def may_begin(chunk: Mapping[str, Any]) -> bool:
    """Whether such an event without content only begins something. One with unknown fields may have the content there."""
    return _OF_CHUNKS.issuperset(chunk)
