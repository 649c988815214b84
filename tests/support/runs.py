"""Replies of several runs, and one stream of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random
from typing import Any

import rxdelta as rd
from rxdelta.core import in_run

__all__ = ["Events", "answer", "call", "messages", "said", "text", "thought", "turn", "within", "woven"]

ev = rd.events
Events = list[rd.Event]


def text(index: int, said: str) -> Events:
    return [
        ev.BlockStart(index, {"type": "text"}),
        *(ev.TextDelta(index, one) for one in said),
        ev.BlockFinish(index),
    ]


def thought(index: int, said: str) -> Events:
    return [
        ev.BlockStart(index, {"type": "reasoning"}),
        ev.ReasoningDelta(index, said),
        ev.BlockFinish(index),
    ]


def call(index: int, call_id: str, at: str) -> Events:
    start = ev.BlockStart(index, {"type": "tool_call", "id": call_id, "name": "look"})
    return [
        start,
        ev.ToolCallDelta(index, '{"at": '),
        ev.ToolCallDelta(index, f'"{at}"}}'),
        ev.BlockFinish(index),
    ]


def answer(call_id: str, content: str) -> rd.Event:
    return ev.ToolUpdate(call_id, "completed", result=rd.ToolResult(call_id, content))


def turn(*blocks: Events, id: str | None = "m1", reason: str = "stop", used: int = 1) -> Events:
    finish = ev.MessageFinish(reason, usage=rd.TokenUsage(used, used))
    return [ev.MessageStart(id, "small"), *(event for block in blocks for event in block), finish]


def within(run_id: str, events: Iterable[rd.Event], parent: str | None = None) -> Events:
    return [in_run(event, run_id, parent) for event in events]


def woven(*streams: Events, seed: int | None = None) -> Events:
    """The events of all streams, each in its own order: by turns, or by chance."""
    rest, chance, woven = [list(stream) for stream in streams], Random(seed), []
    at = -1
    while rest := [stream for stream in rest if stream]:
        at = at + 1 if seed is None else chance.randrange(len(rest))
        woven.append(rest[at % len(rest)].pop(0))
    return woven


def messages(events: Iterable[rd.Event], run_id: str | None) -> Iterator[rd.Snapshot]:
    """The messages of one run, each with its tools' results."""
    folds = [rd.Fold()]
    for event in events:
        if event.run_id != run_id:
            continue
        if isinstance(event, ev.ToolUpdate):
            for fold in folds:
                fold.step(event)
            continue
        try:
            folds[-1].step(event)
        except rd.ProtocolError:
            folds.append(rd.Fold())
            folds[-1].step(event)
    return (fold.snapshot for fold in folds)


def said(found: Iterable[rd.Snapshot | rd.Message]) -> list[Any]:
    """What a run says, in order: each protocol cuts it into messages in its own way, and gives calls another id."""
    told: list[Any] = []
    for snapshot in found:
        for block in snapshot.blocks:
            if isinstance(block, rd.ToolCall):
                result = None if block.result is None else block.result.content
                told.append((block.type, block.name, rd.core.thaw(block.arguments), result))
            elif told and told[-1][0] == block.type and block.type in ("text", "reasoning"):
                told[-1] = (block.type, (told[-1][1] or "") + (block.text or ""))
            else:
                told.append((block.type, block.text))
    return told
