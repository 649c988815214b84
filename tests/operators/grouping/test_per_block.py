"""`per_block` in virtual time, on threads, and at the end of a real pipeline."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import Observable, operators as ops
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.subject import Subject
from support.lines import through

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import marbles

if TYPE_CHECKING:
    from collections.abc import Callable

BOOM = ValueError("boom")

CALL = {"type": "tool_call_chunk", "id": "c1", "name": "look", "args": ""}
MARKS: dict[str, Any] = {
    "M": ev.MessageStart(id="m1"),
    "S": ev.BlockStart(0, {"type": "text"}),
    **{mark: ev.TextDelta(0, mark) for mark in "abc"},
    "F": ev.BlockFinish(0),
    "T": ev.BlockStart(1, {"type": "text"}),
    **{mark: ev.TextDelta(1, mark) for mark in "xyz"},
    "G": ev.BlockFinish(1),
    "C": ev.BlockStart(2, CALL),
    "i": ev.ToolUpdate("c1", "identified"),
    "H": ev.BlockFinish(2),
    "d": ev.ToolUpdate("c1", "completed"),
    "E": ev.MessageFinish("stop"),
    "R": ev.AttemptReset(1),
    "!": ev.StreamError("overloaded", "overloaded_error"),
}


def said(block: rd.Block) -> str:
    if isinstance(block, rd.ContentPart):
        return f"{block.key}{block.text or ''}"
    return f"{block.key}{block.metadata.get('execution_status', '')}"


def whole(block: rd.types.BlockStream) -> Observable[rd.Block]:
    return block


def paced(block: rd.types.BlockStream) -> Observable[rd.Block]:
    return block.pipe(rd.throttle_latest(3))


def last(block: rd.types.BlockStream) -> Observable[rd.Block]:
    return block.pipe(ops.last())


def first(block: rd.types.BlockStream) -> Observable[rd.Block]:
    return block.pipe(ops.take(1))


def picky(block: rd.types.BlockStream) -> Observable[rd.Block]:
    """`fn` raises for block 0."""
    if block.index == 0:
        raise BOOM
    return block


def failing(block: rd.types.BlockStream) -> Observable[rd.Block]:
    """The pipeline fails when block 0 says b."""

    def check(value: rd.Block) -> rd.Block:
        if said(value) == "0ab":
            raise BOOM
        return value

    return block.pipe(ops.map(check))


def forgiving(block: rd.types.BlockStream) -> Observable[rd.Block]:
    return block.pipe(ops.catch(lambda error, _: rx.empty()))


def lasting(block: rd.types.BlockStream) -> Observable[Any]:
    """Goes on for four ticks when its block is cut off."""
    return block.pipe(
        ops.catch(lambda error, _: rx.timer(4).pipe(ops.map(lambda _: rd.ContentPart("text", "more"))))
    )


def told(records: list[marbles.Record]) -> str:
    shown: dict[str, Any] = {
        "next": said,
        "completed": lambda _: "|",
        "error": lambda error: type(error).__name__,
    }
    return " ".join(f"{time:g}:{shown[kind](value)}" for time, kind, value in records)


def show(
    source: str, fn: Callable[[rd.types.BlockStream], Observable[Any]], until: float | None = None
) -> tuple[str, list[Any]]:
    """What comes of a line, as "time:key+text …", and when its source was read."""
    records, reads = through(source, rd.per_block(fn), values=MARKS, error=BOOM, until=until)
    return told(records), reads


def push(source: Subject[Any], marks: str) -> None:
    for mark in marks:
        source.on_next(MARKS[mark])


@pytest.mark.parametrize(
    ("source", "fn", "expected"),
    [
        pytest.param("STaxbGyF|", whole, "0:0 1:1 2:0a 3:1x 4:0ab 5:1x 7:0ab 8:|", id="merged as they come"),
        pytest.param("SabcF|", paced, "0:0 3:0abc 4:0abc 5:|", id="paced, and flushed at the block's end"),
        pytest.param("STaxbF---|", paced, "0:0 1:1 3:0a 4:1x 5:0ab 9:StreamInterrupted", id="each by itself"),
        pytest.param("STaxGbFE|", last, "4:1x 6:0ab 8:|", id="only the last of each"),
        pytest.param("SaTxFG|", first, "0:0 2:1 6:|", id="pipelines that end early"),
        pytest.param("CiHd-|", whole, "0:2 1:2identified 2:2identified 3:2completed 5:|", id="until the tool has ended"),
        pytest.param("SaETx|", whole, "0:0 1:0a 2:0a 5:|", id="the message's finish"),
        pytest.param("[STaxE|]", whole, "0:0 0:1 0:0a 0:1x 0:0a 0:1x 0:|", id="all at once"),
        pytest.param("M-|", whole, "2:|", id="no block"),
        pytest.param("|", whole, "0:|", id="empty"),
        pytest.param("Sa-", whole, "0:0 1:0a", id="a source that goes silent"),
        pytest.param("SaF|", lambda _: rx.empty(), "3:|", id="pipelines of nothing"),
        pytest.param("SaF|", lambda _: rx.of(rd.ContentPart("text", "!")), "0:None! 3:|", id="pipelines of something else"),
        pytest.param("SF|", lambda _: rx.timer(9).pipe(ops.ignore_elements()), "9:|", id="one that outlives the source"),
        pytest.param("SF|", lambda _: rx.never(), "", id="one that never ends"),
    ],
)  # fmt: skip
def test_each_block_goes_through_its_own_pipeline(source: str, fn: Any, expected: str) -> None:
    shown, reads = show(source, fn)
    assert shown == expected
    assert len(reads) == 1


@pytest.mark.parametrize(
    ("source", "fn", "expected"),
    [
        pytest.param("STax#", whole, "0:0 1:1 2:0a 3:1x 4:ValueError", id="the source's own comes once"),
        pytest.param("Sab#", paced, "0:0 3:0ab 3:ValueError", id="flushed first"),
        pytest.param("STa!", whole, "0:0 1:1 2:0a 3:ProviderError", id="an error event"),
        pytest.param("#", whole, "0:ValueError", id="at once"),
        pytest.param("Sa#", forgiving, "0:0 1:0a 2:ValueError", id="also where the pipelines caught it"),
        pytest.param("Sa#", lasting, "0:0 1:0a 6:Nonemore 6:ValueError", id="when the last pipeline has ended"),
        pytest.param("STa|", whole, "0:0 1:1 2:0a 3:StreamInterrupted", id="a cut stream"),
        pytest.param("Sa|", forgiving, "0:0 1:0a 2:|", id="which the pipeline caught"),
        pytest.param("Sa|", lasting, "0:0 1:0a 6:Nonemore 6:|", id="and went on"),
        pytest.param("STRSaF|", whole, "0:0 1:1 3:0 4:0a 5:0a 6:|", id="an attempt that was given up is no failure"),
        pytest.param("STRSa|", whole, "0:0 1:1 3:0 4:0a 5:StreamInterrupted", id="but its successor may be cut"),
        pytest.param("STaxFG-|", picky, "1:1 3:1x 5:1x 7:ValueError", id="fn raises"),
        pytest.param("STabxcGF|", failing, "0:0 1:1 2:0a 4:1x 6:1x 8:ValueError", id="a pipeline fails"),
        pytest.param("STabx|", failing, "0:0 1:1 2:0a 4:1x 5:ValueError", id="and the stream is cut"),
    ],
)  # fmt: skip
def test_errors_come_once_and_last(source: str, fn: Any, expected: str) -> None:
    shown, reads = show(source, fn)
    assert shown == expected
    assert len(reads) == 1


def test_a_cut_stream_says_which_block_was_open() -> None:
    records, _ = through("SFT|", rd.per_block(whole), values=MARKS)
    assert str(records[-1][2]) == "the stream ended while block 1 (text) was open"


def test_nothing_is_swallowed(caplog: pytest.LogCaptureFixture) -> None:
    source, errors = Subject[Any](), list[Any]()

    def fail(block: rd.types.BlockStream) -> Observable[Any]:
        raise ValueError(str(block.index))

    source.pipe(rd.per_block(fail)).subscribe(on_error=errors.append)
    push(source, "STC")
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["1", "2"]
    assert errors == []
    source.on_error(BOOM)
    assert errors == [BOOM]
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["1", "2", "0"]


@pytest.mark.parametrize("result", [None, 5, "text"])
def test_a_function_that_returns_no_observable_is_told_so(result: Any) -> None:
    ((time, _, error),), _ = through("SF|", rd.per_block(lambda _: result), values=MARKS)
    assert (time, type(error)) == (2, rd.InvalidValueError)
    assert "must return an Observable" in str(error)


def test_a_value_that_is_no_event_is_refused_by_name() -> None:
    records, _ = through("?|", rd.per_block(whole), values={"?": rd.Snapshot()})
    assert str(records[-1][2]).startswith("per_block() reads events, and got a Snapshot")


def test_limits_of_decode_reach_the_blocks_and_what_is_behind_them() -> None:
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hello"}}]}
    errors: list[Any] = []
    seen: list[Any] = []

    def fn(block: rd.types.BlockStream) -> Observable[Any]:
        return rd.building.lift("mine", lambda sink: seen.append(sink) or sink)(block)

    events = rx.of(chunk, chunk).pipe(rd.decode("openai-chat"), rd.with_limits(rd.Limits(block_chars=7)))
    events.pipe(rd.per_block(fn)).subscribe(on_error=errors.append)
    events.pipe(rd.group_by_block()).subscribe(lambda block: fn(block).subscribe(on_error=errors.append))
    assert [(type(error), error.limit) for error in errors] == [
        (rd.errors.LimitExceededError, "block_chars")
    ] * 2
    assert [sink.limits.block_chars for sink in seen] == [7, 7]


def test_the_source_is_left_when_only_ended_pipelines_remain_and_it_is_disposed() -> None:
    source = Subject[Any]()
    subscription = source.pipe(rd.per_block(first)).subscribe()
    push(source, "STab")
    assert len(source.observers) == 1
    subscription.dispose()
    assert source.observers == []


def test_the_subscribers_scheduler_goes_upstream_and_into_the_pipelines() -> None:
    source = rx.timer(5).pipe(ops.map(lambda _: MARKS["S"]), ops.concat(rx.never()))
    records = marbles.records(source.pipe(rd.per_block(lambda _: rx.timer(7))), VirtualTimeScheduler())
    assert [time for time, _, _ in records] == [12]


def test_51_an_observer_that_raises_ends_the_subscription(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source, got = Subject[Any](), list[Any]()

    def draw(value: rd.Block) -> None:
        got.append(said(value))
        if said(value) == "0a":
            raise BOOM

    source.pipe(rd.per_block(whole)).subscribe(draw, got.append, lambda: got.append("|"))
    with caplog.at_level(logging.ERROR, "rxdelta"):
        push(source, "STaxbyFG")
        source.on_completed()
    assert got == ["0", "1", "0a"]
    assert source.observers == []
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [BOOM]


def test_51_all_of_a_pipeline_is_left_when_the_observer_raises(caplog: pytest.LogCaptureFixture) -> None:
    source, other, left = Subject[Any](), Subject[Any](), list[int | str]()

    def fail(_: Any) -> None:
        raise BOOM

    def fn(block: rd.types.BlockStream) -> Observable[Any]:
        return rx.merge(block, other).pipe(ops.finally_action(lambda: left.append(block.index)))

    source.pipe(rd.per_block(fn)).subscribe(fail)
    push(source, "S")
    assert left == [0]
    assert other.observers == []
    assert len(caplog.records) == 1


def test_pipelines_on_threads_of_their_own_are_serialised() -> None:
    source, got = Subject[Any](), list[str]()
    inside, ended = threading.Lock(), threading.Event()

    def draw(value: rd.Block) -> None:
        assert inside.acquire(blocking=False)
        got.append(said(value))
        inside.release()

    source.pipe(rd.per_block(lambda block: block.pipe(rd.throttle_latest(0.0001)))).subscribe(
        draw, on_completed=ended.set
    )
    for index in range(4):
        source.on_next(ev.BlockStart(index, {"type": "text"}))
    for _ in range(1000):
        for index in range(4):
            source.on_next(ev.TextDelta(index, "."))
    for index in range(4):
        source.on_next(ev.BlockFinish(index))
    source.on_completed()
    assert ended.wait(10)
    for index in range(4):
        texts = [one for one in got if one[0] == str(index)]
        assert texts[-1] == f"{index}{'.' * 1000}"
        assert texts == sorted(texts, key=len)
