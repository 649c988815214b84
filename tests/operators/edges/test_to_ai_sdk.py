"""`to_ai_sdk` as an operator: when its frames come, and how it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import BehaviorSubject, Subject
from support.ai_sdk import read
from support.lines import through

import rxdelta as rd

BOOM = ValueError("boom")

ev = rd.events
EVENTS = {
    "s": ev.MessageStart("m1"),
    "b": ev.BlockStart(0, {"type": "text"}),
    "x": ev.TextDelta(0, "Hi"),
    "f": ev.BlockFinish(0),
    "e": ev.MessageFinish("stop"),
    "i": ev.MessageInterrupted("user"),
    "p": ev.ProviderEvent("x", "ping"),
}


def name(frame: Any) -> str:
    return "DONE" if frame is rd.wire.DONE else str(frame["type"])


def told(line: str) -> list[tuple[float, str]]:
    """(tick, what) for a source of these events."""
    records, _ = through(line, rd.to_ai_sdk(on_error=lambda error: "no"), values=EVENTS)
    return [(time, name(value) if kind == "next" else kind) for time, kind, value in records]


def test_each_frame_comes_with_its_event_and_the_end_with_the_sources() -> None:
    assert told("sb-x-f-e---|") == [
        (0, "start"),
        (0, "start-step"),
        (1, "text-start"),
        (3, "text-delta"),
        (7, "text-end"),  # other text might have gone on with it
        (7, "finish-step"),
        (11, "finish"),
        (11, "DONE"),
        (11, "completed"),
    ]


def test_a_reader_of_a_silent_source_sees_that_it_has_begun() -> None:
    assert told("-----") == [(0, "start")]


def test_what_comes_at_once_has_what_the_request_says_and_the_model_follows() -> None:
    asked = [{"id": "a1", "role": "assistant", "parts": []}]
    source: Subject[Any] = Subject()
    seen: list[Any] = []
    with source.pipe(rd.to_ai_sdk(messages=asked, metadata={"mine": 1})).subscribe(seen.append):
        assert seen == [{"type": "start", "messageId": "a1", "messageMetadata": {"mine": 1}}]
        source.on_next(ev.MessageStart("m1", "small"))
    assert seen[1:] == [
        {"type": "message-metadata", "messageMetadata": {"model": "small"}},
        {"type": "start-step"},
    ]


def test_a_source_that_emits_while_it_is_subscribed_comes_behind_the_start() -> None:
    source = BehaviorSubject(EVENTS["s"])
    seen: list[Any] = []
    source.pipe(rd.to_ai_sdk()).subscribe(seen.append).dispose()
    assert [name(one) for one in seen] == ["start", "start-step"]


def test_a_reader_who_leaves_at_the_start_stops_the_source() -> None:
    seen: list[Any] = []
    emitted: list[Any] = []
    source = rx.from_iterable([EVENTS[one] for one in "sbxfe"]).pipe(ops.do_action(emitted.append))
    source.pipe(rd.to_ai_sdk(), ops.take(1)).subscribe(seen.append)
    assert ([name(one) for one in seen], emitted) == (["start"], [])


def test_the_limits_of_the_pipeline_hold() -> None:
    chunks: list[Any] = [EVENTS["s"], EVENTS["b"], ev.TextDelta(0, "x" * 20)]
    limits = rd.Limits(block_chars=10)
    for pipe in (
        rx.from_iterable(chunks).pipe(rd.to_ai_sdk(), rd.with_limits(limits)),
        rx.from_iterable([one.to_dict() for one in chunks]).pipe(
            rd.decode("langchain"), rd.with_limits(limits), rd.to_ai_sdk()
        ),
    ):
        seen: list[Any] = []
        pipe.subscribe(seen.append)
        assert name(seen[-2]) == "error"


def test_an_error_becomes_a_frame_and_the_output_completes() -> None:
    assert [what for _, what in told("sbx#")][-6:] == [
        "text-end",
        "finish-step",
        "message-metadata",
        "error",
        "DONE",
        "completed",
    ]


def test_an_error_of_the_source_is_what_may_be_told_of() -> None:
    seen: list[Exception] = []
    rx.throw(BOOM).pipe(rd.to_ai_sdk(on_error=lambda error: seen.append(error) or "no")).subscribe()
    assert seen == [BOOM]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"message_id": ""}, "message_id"),
        ({"message_id": 1}, "message_id"),
        ({"sdk_version": 4}, "sdk_version"),
        ({"sdk_version": "7"}, "sdk_version"),
        ({"metadata": {"a": object()}}, "metadata"),
        ({"metadata": []}, "metadata"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_at_once(wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=field):
        rd.to_ai_sdk(**wrong)


def test_tools_run_on_the_server_show_their_results() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "add", "args": {"a": 1, "b": 2}}
    events = [EVENTS["s"], ev.BlockStart(0, call), ev.BlockFinish(0), EVENTS["e"]]
    frames = rx.from_iterable(events).pipe(rd.run_tools({"add": lambda a, b: a + b}), rd.to_ai_sdk())

    async def collect() -> list[Any]:
        return [frame async for frame in rd.iterate(frames)]

    (part,) = [part for part in read(asyncio.run(collect())).parts if "toolCallId" in part]
    assert (part["state"], part["output"]) == ("output-available", 3)
