"""`to_langchain_events` as an operator; what it writes is held in tests/formats/langchain/test_encoder.py."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from support.lines import through

import rxdelta as rd
from rxdelta import events as ev

START, FINISH = ev.MessageStart("m"), ev.MessageFinish("stop")
BLOCK = ev.BlockStart(0, {"type": "text", "text": ""})
EVENTS: dict[str, Any] = {
    "s": START,
    "b": BLOCK,
    "t": ev.TextDelta(0, "Hi"),
    "e": ev.BlockFinish(0),
    "f": FINISH,
}


def name(frame: Any) -> str:
    return str(frame["params"]["data"]["event"])


def told(line: str) -> list[tuple[float, str]]:
    """(tick, what) for a source of events."""
    records, _ = through(line, rd.to_langchain_events(), values=EVENTS)
    return [(time, name(frame) if kind == "next" else kind) for time, kind, frame in records]


def test_each_frame_comes_with_its_event_and_the_output_completes_with_the_source() -> None:
    assert told("s-b-t-e-f-|") == [
        (0, "message-start"),
        (2, "content-block-start"),
        (4, "content-block-delta"),
        (6, "content-block-finish"),
        (8, "message-finish"),
        (10, "completed"),
    ]


def test_an_error_becomes_frames_and_the_output_completes() -> None:
    assert told("sb-#") == [
        (0, "message-start"),
        (1, "content-block-start"),
        (3, "content-block-finish"),
        (3, "error"),
        (3, "completed"),
    ]


def test_there_are_a_time_and_made_up_ids() -> None:
    frames: list[Any] = []
    silent = rx.of(ev.MessageStart(), FINISH)
    silent.pipe(rd.to_langchain_events()).subscribe(frames.append)
    silent.pipe(rd.to_langchain_events()).subscribe(frames.append)
    assert len({frame["params"]["data"].get("id") for frame in frames[::2]}) == 2
    assert frames[0]["params"]["timestamp"] > 1_600_000_000_000


def test_a_wrong_argument_is_refused_at_once() -> None:
    with pytest.raises(rd.InvalidValueError, match="namespace"):
        rd.to_langchain_events(namespace="agent")


def test_it_goes_over_the_wire_and_comes_back() -> None:
    reply = rd.Message.of("assistant", "Hi")
    body = rx.from_iterable(rd.to_events(reply)).pipe(rd.to_langchain_events(), rd.to_sse())
    back: list[Any] = []
    body.pipe(rd.parse_sse(), rd.decode("langchain"), rd.scan_deltas(), rd.to_message()).subscribe(
        back.append
    )
    assert [message.text for message in back] == ["Hi"]
