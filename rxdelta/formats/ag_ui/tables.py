"""The events of AG-UI that are known by their names alone."""

from __future__ import annotations

__all__ = ["AFTER_A_MESSAGE", "CHUNKS", "OPENERS", "OTHERS"]

OTHERS = frozenset([
    "ACTIVITY_DELTA", "STATE_DELTA", "STATE_SNAPSHOT", "STEP_FINISHED", "STEP_STARTED", "SUBAGENT_ERROR",
    "SUBAGENT_STARTED",
])  # fmt: skip
"""The events that are passed on."""

CHUNKS = frozenset(["TEXT_MESSAGE_CHUNK", "REASONING_MESSAGE_CHUNK", "TOOL_CALL_CHUNK"])
"""The events that stand for start, content and end."""

OPENERS = frozenset([
    "TEXT_MESSAGE_START", "REASONING_START", "REASONING_MESSAGE_START", "TOOL_CALL_START", *CHUNKS,
])  # fmt: skip
"""The events with which a message may begin."""

AFTER_A_MESSAGE = frozenset(["TOOL_CALL_RESULT", "CUSTOM", "RUN_ERROR", "RUN_FINISHED"])
"""The events that concern a run, or its calls, after the end of a message."""
