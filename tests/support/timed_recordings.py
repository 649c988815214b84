"""Recordings with times of one's own."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import rxdelta as rd
from rxdelta.events import (
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageStart,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
    UsageUpdate,
)

__all__ = ["HEAD", "agents", "reply", "timed", "write"]

HEAD = {"rxdelta": "recording", "version": 1}

Timed = Iterable[tuple[float, Any]]


def write(path: Path, values: Timed, *, end: bool = True) -> str:
    """A recording of events and chunks with their times; without `end` it broke off after the last one."""
    lines: list[dict[str, Any]] = [HEAD]
    at = 0.0
    for at, value in values:
        is_event = type(value) in rd.events.EVENT_TYPES
        lines.append(
            {
                "t": at,
                **(
                    {"event": value.to_dict()}
                    if is_event
                    else {"chunk": "[DONE]" if value is rd.wire.DONE else value}
                ),
            }
        )
    if end:
        lines.append({"t": at, "end": True})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return str(path)


def timed(values: Iterable[Any], gap: float = 0.1, begin: float = 0.5) -> list[tuple[float, Any]]:
    """Each value `gap` seconds after the one before."""
    return [(round(begin + place * gap, 6), value) for place, value in enumerate(values)]


def reply(text: str = "Hello there", **more: Any) -> list[Any]:
    """The events of a reply with a reasoning and a text, word by word."""
    pieces = [f"{word} " for word in text.split()]
    return [
        MessageStart("m1", "model-1", **more),
        BlockStart(0, {"type": "reasoning"}, **more),
        ReasoningDelta(0, "Hm.", **more),
        BlockFinish(0, **more),
        BlockStart(1, {"type": "text"}, **more),
        *(TextDelta(1, piece, **more) for piece in pieces),
        BlockFinish(1, **more),
        UsageUpdate(rd.TokenUsage(20, 10, cache_read_tokens=7, reasoning_tokens=3), **more),
        MessageFinish("stop", "end_turn", **more),
    ]


def agents() -> list[tuple[float, Any]]:
    """Two runs at once: one calls a tool, which the other one is."""
    call = {"type": "tool_call_chunk", "id": "c1", "name": "ask"}
    planner = [
        (0.2, MessageStart("p1", "model-1", run_id="planner")),
        (0.3, BlockStart(0, call, run_id="planner")),
        (0.4, ToolCallDelta(0, '{"topic": "walks"}', run_id="planner")),
        (0.5, BlockFinish(0, run_id="planner")),
        (0.5, MessageFinish("tool_use", run_id="planner")),
        (0.6, ToolUpdate("c1", "executing", run_id="planner")),
        (3.0, ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "found"), run_id="planner")),
    ]
    inner = timed(reply("Three walks", run_id="helper"), begin=1.0)
    inner[0] = (1.0, MessageStart("h1", "model-2", run_id="helper", parent_run_id="planner"))
    return sorted([*planner, *inner], key=lambda one: one[0])
