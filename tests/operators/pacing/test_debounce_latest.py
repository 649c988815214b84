"""`debounce_latest` in virtual time."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given
from hypothesis import strategies as st
from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable
from reactivex.subject import Subject
from reactivex.testing import ReactiveTest, TestScheduler
from support import loops
from support.lines import line_of, through, whole

import rxdelta as rd
from rxdelta.runtime import clocks
from rxdelta.testing import marbles

BOOM = ValueError("boom")

on_next = ReactiveTest.on_next


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("-a-----b-----|", "---a-----b---|", id="a slow source is late by the rest"),
        pytest.param("-abc------d---|", "-----c------d-|", id="a burst gives its newest"),
        pytest.param("abcdefghijklm|", "-----f-----l-[m|]", id="one that never rests is shown all the same"),
        pytest.param("[abc]-------|", "--c-----|", id="what comes at once is a burst"),
        pytest.param("-ab|", "---[b|]", id="completion flushes"),
        pytest.param("-ab#", "---[b#]", id="an error flushes"),
        pytest.param("-a----|", "---a--|", id="completion with nothing held"),
        pytest.param("-a----#", "---a--#", id="an error with nothing held"),
        pytest.param("-a-b----|", "-----b--|", id="a value on the edge of the rest begins it anew"),
        pytest.param(
            "-ab-c-d-e-f-----|", "------d-----f---|", id="a value on the edge of the wait is the newest"
        ),
        pytest.param("-a-|", "---[a|]", id="completion on the edge"),
        pytest.param("-a-#", "---[a#]", id="an error on the edge"),
        pytest.param("-ab", "----b", id="a source that goes silent"),
        pytest.param("a|", "-[a|]", id="one value"),
        pytest.param("[a|]", "[a|]", id="one value and the end"),
        pytest.param("[ab|]", "[b|]", id="all at once"),
        pytest.param("--|", "--|", id="empty"),
        pytest.param("#", "#", id="only an error"),
        pytest.param("------", "------", id="never"),
    ],
)
def test_the_newest_after_two_ticks_of_rest_or_five_in_all(source: str, expected: str) -> None:
    marbles.check(source, rd.debounce_latest(2, 5), gives=expected, values=str, frame=1, reads=whole(source))


class Counting(TestScheduler):
    """Virtual time that notes when timers fired."""

    def __init__(self) -> None:
        super().__init__()
        self.fired: list[float] = []

    def schedule_relative(self, duetime: Any, action: Any, state: Any = None) -> abc.DisposableBase:
        def noted(scheduler: abc.SchedulerBase, state: Any = None) -> Any:
            self.fired.append(self.clock)
            return action(scheduler, state)

        return super().schedule_relative(duetime, noted, state)


def test_without_a_longest_wait_it_is_five_times_the_rest() -> None:
    marbles.check(
        "abcdefghijklmnop---|", rd.debounce_latest(2), gives="----------k------p-|", values=str, frame=1
    )


def test_a_longest_wait_shorter_than_the_rest_holds_too() -> None:
    marbles.check("-a-b-----|", rd.debounce_latest(5, 3), gives="----b----|", values=str, frame=1)


def test_a_timer_is_not_moved_with_each_value() -> None:
    scheduler = Counting()
    hot = scheduler.create_hot_observable(
        *(on_next(201 + at, mark) for at, mark in enumerate("abcdefghijklmnopqrs")),
        ReactiveTest.on_completed(220),
    )
    scheduler.start(lambda: hot.pipe(rd.debounce_latest(5, 10)))
    assert scheduler.fired == [206, 211, 217]  # it looks, shows, and looks at the next


def test_disposal_stops_the_source_and_the_timer() -> None:
    scheduler = Counting()
    hot = scheduler.create_hot_observable(on_next(201, "a"), on_next(202, "b"))
    results = scheduler.start(lambda: hot.pipe(rd.debounce_latest(4, 9)), disposed=203)
    assert results.messages == []
    assert hot.subscriptions == [ReactiveTest.subscribe(200, 203)]
    assert scheduler.fired == []


def test_the_time_is_the_operators_own_or_the_subscribers_and_that_goes_upstream() -> None:
    mine, theirs = TestScheduler(), TestScheduler()
    source = Subject[str]()
    seen: list[Any] = []
    got: list[str] = []

    def subscribe(observer: abc.ObserverBase[str], scheduler: abc.SchedulerBase | None = None) -> Any:
        seen.append(scheduler)
        return source.subscribe(observer)

    Observable(subscribe).pipe(rd.debounce_latest(4, scheduler=mine)).subscribe(got.append, scheduler=theirs)
    Observable(subscribe).pipe(rd.debounce_latest(4)).subscribe(
        lambda value: got.append(value.upper()), scheduler=theirs
    )
    source.on_next("a")
    mine.advance_to(4)
    assert got == ["a"]
    theirs.advance_to(4)
    assert got == ["a", "A"]
    assert seen == [theirs, theirs]


def test_an_observer_may_emit_inside_on_next() -> None:
    scheduler = TestScheduler()
    source = Subject[int]()
    got: list[tuple[float, int]] = []

    def draw(value: int) -> None:
        got.append((scheduler.clock, value))
        if value < 3:
            source.on_next(value + 1)
            assert got[-1][1] == value

    source.pipe(rd.debounce_latest(4)).subscribe(draw, scheduler=scheduler)
    source.on_next(0)
    scheduler.advance_to(100)
    assert got == [(4, 0), (8, 1), (12, 2), (16, 3)]


def test_52_an_observer_may_dispose_inside_on_next() -> None:
    scheduler = Counting()
    source = Subject[str]()
    got: list[str] = []
    subscription = SerialDisposable()

    def draw(value: str) -> None:
        got.append(value)
        source.on_next("held")
        subscription.dispose()

    subscription.disposable = source.pipe(rd.debounce_latest(4)).subscribe(draw, scheduler=scheduler)
    source.on_next("a")
    scheduler.advance_to(100)
    source.on_completed()
    assert (got, scheduler.fired) == (["a"], [4])


def test_51_an_observer_that_raises_in_a_timer_ends_the_subscription(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = TestScheduler()
    source = Subject[str]()

    def draw(value: str) -> None:
        raise BOOM

    source.pipe(rd.debounce_latest(4)).subscribe(draw, scheduler=scheduler)
    source.on_next("a")
    scheduler.advance_to(4)
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [BOOM]
    assert source.observers == []


def test_a_synchronous_source_gives_its_last() -> None:
    got: list[Any] = []
    rx.from_iterable(range(10_000)).pipe(rd.debounce_latest(1000)).subscribe(got.append)
    assert got == [9_999]


def test_a_source_that_goes_on_after_its_end_is_not_heard_again() -> None:
    def subscribe(observer: abc.ObserverBase[int], _: abc.SchedulerBase | None = None) -> Disposable:
        observer.on_next(1)
        observer.on_error(BOOM)
        observer.on_next(2)
        observer.on_completed()
        return Disposable()

    got: list[Any] = []
    Observable(subscribe).pipe(rd.debounce_latest(1000)).subscribe(got.append, got.append)
    assert got == [1, BOOM]


def test_two_subscriptions_know_nothing_of_each_other() -> None:
    scheduler = TestScheduler()
    debounced = marbles.cold("ab|", scheduler, values=str, frame=1).pipe(rd.debounce_latest(4))
    first, second = scheduler.create_observer(), scheduler.create_observer()
    debounced.subscribe(first, scheduler=scheduler)
    scheduler.schedule_absolute(1, lambda *_: debounced.subscribe(second, scheduler=scheduler))
    scheduler.start()
    assert line_of(first.messages) == line_of(second.messages, start=1) == "--[b|]"


def test_the_first_event_is_refused() -> None:
    events = dict(zip("ab", [rd.events.TextDelta(0, mark) for mark in "ab"]))
    scheduler = TestScheduler()
    source = scheduler.create_cold_observable(on_next(1, events["a"]), on_next(10, events["b"]))
    ((_, _, error),) = marbles.records(source.pipe(rd.debounce_latest(4)), scheduler)
    assert type(error) is rd.InvalidValueError
    assert "debounce_latest" in str(error)
    assert "compact_deltas()" in str(error)
    assert error.value is events["a"]


@pytest.mark.parametrize("wrong", [0, -1, float("nan"), float("inf"), True, "1"])
def test_57_times_that_are_none_are_refused_at_once(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="seconds: must be a positive number"):
        rd.debounce_latest(wrong)
    with pytest.raises(rd.InvalidValueError, match="max_wait: must be a positive number"):
        rd.debounce_latest(1, wrong)


def test_a_slow_observer_on_the_timer_does_not_hold_the_source_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(clocks, "monotonic", lambda: now[0])
    source = Subject[int]()
    entered, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    got: list[int] = []

    def draw(value: int) -> None:
        entered.set()
        assert go_on.wait(10)
        got.append(value)

    source.pipe(rd.debounce_latest(0.001)).subscribe(draw, on_completed=ended.set)
    source.on_next(1)
    now[0] = 0.001
    assert entered.wait(10)
    for value in (2, 3):
        source.on_next(value)  # returns while the timer's thread is inside draw
    source.on_completed()
    go_on.set()
    assert ended.wait(10)
    assert got == [1, 3]


def test_the_time_is_that_of_the_running_loop() -> None:
    async def main() -> list[int]:
        source = Subject[int]()
        drawn = rd.to_async_iterable(source.pipe(rd.debounce_latest(0.001)), overflow="buffer")
        async with drawn as values:
            source.on_next(1)
            source.on_next(2)
            assert await anext(values) == 2  # the source is silent, so it was the timer
            source.on_next(3)
            source.on_completed()
            return [value async for value in values]

    assert loops.run(main) == [3]


@given(
    gaps=st.lists(st.integers(0, 12), max_size=60),
    rest=st.integers(1, 9),
    longest=st.integers(1, 20),
    error=st.booleans(),
)
def test_nothing_waits_too_long_and_the_last_value_always_arrives(
    gaps: list[int], rest: int, longest: int, error: bool
) -> None:
    times = [sum(gaps[: count + 1]) for count in range(len(gaps))]
    end = (times[-1] if times else 0) + 1
    source: list[marbles.Record] = [(time, "next", count) for count, time in enumerate(times)]
    source.append((end, "error", BOOM) if error else (end, "completed", None))
    records, _ = through(source, rd.debounce_latest(rest, longest))
    emitted = [(time, value) for time, kind, value in records if kind == "next"]
    assert [kind for _, kind, _ in records[len(emitted) :]] == ["error" if error else "completed"]
    assert [value for _, value in emitted] == sorted({value for _, value in emitted})
    assert [value for _, value in emitted[-1:]] == [len(times) - 1][: len(times)]
    for count, time in enumerate(times):
        assert any(time <= shown <= time + longest and value >= count for shown, value in emitted)
    for shown, value in emitted:  # never while the source goes on, unless something has waited long enough
        since = next(time for time, count in zip(times, range(len(times))) if count > _before(emitted, value))
        assert shown in (end, since + longest) or shown - times[value] >= rest


def _before(emitted: list[tuple[float, int]], value: int) -> int:
    return max((other for _, other in emitted if other < value), default=-1)
