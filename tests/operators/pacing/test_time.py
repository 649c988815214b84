"""What holds for each operator that lets values go when a time is up: whose time it is, and who waits for whom."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support import loops

import rxdelta as rd
from rxdelta.runtime import clocks

BOOM = ValueError("boom")
ev = rd.events


@attrs.frozen
class Timed:
    """An operator, two bursts, and what is let go of each: at once, and when this time is up."""

    make: Callable[..., Any]
    bursts: tuple[list[Any], list[Any]]
    at_once: list[Any]
    timed: tuple[list[Any], list[Any]]


def text(piece: str) -> rd.Event:
    return ev.TextDelta(0, piece)


TIMED = {
    "compact_deltas": Timed(
        rd.compact_deltas,
        ([text("a"), text("b")], [text("c"), text("d")]),
        [text("a")],
        ([text("b")], [text("cd")]),
    ),
    "debounce_latest": Timed(rd.debounce_latest, ([1, 2], [3, 4]), [], ([2], [4])),
    "throttle_latest": Timed(rd.throttle_latest, ([1, 2], [3, 4]), [1], ([2], [4])),
    "smooth": Timed(
        lambda seconds, **options: rd.smooth(rate=1 / seconds, max_lag=seconds, **options),
        ([text("a b ")], [text("c"), text("d ")]),
        [text("a ")],
        ([text("b ")], [text("cd ")]),
    ),
}
each = pytest.mark.parametrize("case", TIMED.values(), ids=TIMED.keys())


def push(source: Subject[Any], values: list[Any]) -> None:
    for value in values:
        source.on_next(value)


@each
def test_an_explicit_scheduler_wins_over_the_subscribers(case: Timed) -> None:
    mine, theirs = TestScheduler(), TestScheduler()
    source, got = Subject[Any](), list[Any]()
    source.pipe(case.make(4, scheduler=mine)).subscribe(got.append, scheduler=theirs)
    push(source, case.bursts[0])
    theirs.advance_to(100)
    assert got == case.at_once
    mine.advance_to(100)
    assert got == case.at_once + case.timed[0]


@each
def test_51_an_observer_that_raises_in_a_timer_ends_the_subscription(
    case: Timed, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler, source = TestScheduler(), Subject[Any]()

    def draw(value: Any) -> None:
        if value in case.timed[0]:
            raise BOOM

    source.pipe(case.make(4)).subscribe(draw, scheduler=scheduler)
    push(source, case.bursts[0])
    scheduler.advance_to(4)
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [BOOM]
    assert source.observers == []


@each
def test_a_slow_observer_on_the_timer_does_not_hold_the_source_up(
    case: Timed, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(clocks, "monotonic", lambda: now[0])
    source, got = Subject[Any](), list[Any]()
    entered, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def draw(value: Any) -> None:
        got.append(value)
        if value in case.timed[0]:
            entered.set()
            assert go_on.wait(10)

    source.pipe(case.make(0.001)).subscribe(draw, on_error=lambda _: ended.set())
    push(source, case.bursts[0])
    now[0] = 0.001
    assert entered.wait(10)
    push(source, case.bursts[1])  # returns while the timer's thread is inside draw
    source.on_error(BOOM)
    assert got == case.at_once + case.timed[0]
    go_on.set()
    assert ended.wait(10)
    assert got == case.at_once + case.timed[0] + case.timed[1]


@each
def test_the_time_is_that_of_the_running_loop(case: Timed) -> None:
    wanted = case.at_once + case.timed[0]

    async def main() -> list[Any]:
        source = Subject[Any]()
        async with rd.to_async_iterable(source.pipe(case.make(0.001)), overflow="buffer") as values:
            push(source, case.bursts[0])
            return [await anext(values) for _ in wanted]  # the source is silent, so it was the timer

    assert loops.run(main) == wanted
