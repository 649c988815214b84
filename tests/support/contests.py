"""Scenes of several sources for one reply, in virtual time, for `fallback` and `race`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactivex.scheduler import VirtualTimeScheduler

import rxdelta as rd
from rxdelta.testing import marbles

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

__all__ = ["CONTENT", "ERRORS", "MARKS", "NO_CONTENT", "contest"]

ev = rd.events

ERRORS = [ConnectionError(f"source {number}") for number in (1, 2, 3, 4)]
"""What `#` is in each source, in their order."""

MARKS: dict[str, Any] = {
    **{mark: ev.MessageStart(mark) for mark in "stw"},
    **{mark: ev.BlockStart(0, {"type": "text", "text": "", "id": mark}) for mark in "klm"},
    **{mark: ev.TextDelta(0, mark) for mark in "abcdefg"},
    "_": ev.TextDelta(0, ""),
    "p": ev.ProviderEvent("house", "ping", {}),
    "u": ev.UsageUpdate(rd.TokenUsage(1, 0)),
    "n": ev.Custom("note", "Asking"),
    "x": ev.MessageFinish("content_filter"),
    "y": ev.MessageFinish("stop"),
    "E": ev.StreamError("Overloaded", "overloaded_error"),
}

CONTENT: dict[str, rd.Event] = {
    "text": ev.TextDelta(0, " "),
    "reasoning": ev.ReasoningDelta(0, "Hm"),
    "arguments": ev.ToolCallDelta(0, "{"),
    "data": ev.DataDelta(0, "aGk="),
    "a block that begins with text": ev.BlockStart(0, {"type": "text", "text": "Hi"}),
    "a block without a type": ev.BlockStart(0, {"text": "Hi"}),
    "a block that begins with thinking": ev.BlockStart(0, {"type": "thinking", "thinking": "Hm"}),
    "a block that begins with a refusal": ev.BlockStart(0, {"type": "refusal", "refusal": "No"}),
    "a call's name": ev.BlockStart(0, {"type": "tool_call_chunk", "name": "look", "args": ""}),
    "a provider's call": ev.BlockStart(0, {"type": "server_tool_call", "id": "c1", "name": "search"}),
    "the result of a provider's tool": ev.BlockStart(0, {"type": "server_tool_result", "output": "calm"}),
    "an image": ev.BlockStart(0, {"type": "image", "mime_type": "image/png"}),
    "what has no standard form": ev.BlockStart(0, {"type": "non_standard", "value": {"map": 1}}),
    "a whole text": ev.BlockDelta(0, {"text": "Hi"}),
    "whole arguments": ev.BlockDelta(0, {"args": {"a": 1}}),
    "a finish with all": ev.BlockFinish(0, {"type": "text", "text": "Hi"}),
    "a tool at work": ev.ToolUpdate("c1", "executing"),
    "another choice": ev.TextDelta(0, "Hi", choice=2),
    "another run": ev.TextDelta(0, "Hi", run_id="agent"),
}
NO_CONTENT: dict[str, rd.Event] = {
    "a start": ev.MessageStart("m1", "small", metadata={"system": "x"}),
    "a block that has only begun": ev.BlockStart(0, {"type": "text", "text": "", "id": "msg_1"}),
    "a reasoning that has only begun": ev.BlockStart(0, {"type": "reasoning", "id": "rs_1"}),
    "a block of which only the type is known": ev.BlockStart(0, {"type": "image", "index": 3}),
    "an empty text": ev.TextDelta(0, ""),
    "an empty reasoning": ev.ReasoningDelta(0, ""),
    "empty arguments": ev.ToolCallDelta(0, ""),
    "no data": ev.DataDelta(0, ""),
    "a signature": ev.BlockDelta(0, {"signature": "s", "text": None}),
    "a finish": ev.BlockFinish(0),
    "a finish without text": ev.BlockFinish(0, {"type": "reasoning", "signature": "s"}),
    "usage": ev.UsageUpdate(rd.TokenUsage(5, 0)),
    "the end": ev.MessageFinish("content_filter", metadata={"why": "refused"}),
    "a ping": ev.ProviderEvent("house", "ping", {}),
    "an event of the provider": ev.ProviderEvent("house", "response.queued", {"place": 3}),
    "the application's own": ev.Custom("note", "Asking"),
    "another attempt": ev.AttemptReset(1, "Overloaded"),
    "a stop": ev.MessageInterrupted("stopped"),
}


def contest(
    make: Callable[..., Observable[Any]], *sources: str, error: int = 1
) -> tuple[str, list[list[tuple[float, float | None]]]]:
    """What is emitted, as a line in which `#` is the error of this source, and when each source was read."""
    time = VirtualTimeScheduler()
    cold = [
        marbles.cold(source, time, values=MARKS, frame=1, error=error)
        for source, error in zip(sources, ERRORS)
    ]
    records = marbles.records(make(*cold), time, until=1_000)
    assert all(value in ERRORS for *_, value in records if isinstance(value, ConnectionError))  # not copies
    line = marbles.draw(records, values=MARKS, frame=1, error=ERRORS[error - 1])
    return line, [source.subscriptions for source in cold]
