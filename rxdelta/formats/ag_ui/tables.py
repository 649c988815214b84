"""The events of AG-UI that are known by their names alone."""

from __future__ import annotations

from rxdelta.formats.ag_ui.data import EVENTS

__all__ = ["AFTER_A_MESSAGE", "CHUNKS", "OPENERS", "OTHERS"]

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
