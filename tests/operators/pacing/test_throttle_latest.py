"""`throttle_latest` in virtual time, and on the threads that it starts by itself."""

from __future__ import annotations

import gc
import threading
import weakref
from itertools import pairwise
from time import sleep
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st
from reactivex import Observable, abc
from reactivex.disposable import Disposable, SerialDisposable
from reactivex.subject import Subject
from reactivex.testing import ReactiveTest, TestScheduler
from support.lines import through, whole

import rxdelta as rd
from rxdelta.runtime import clocks
from rxdelta.testing import marbles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BOOM = ValueError("boom")

on_next, on_completed = ReactiveTest.on_next, ReactiveTest.on_completed


@pytest.fixture(autouse=True)
def no_thread_is_left() -> Iterator[None]:
    yield
    for thread in timers():
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """The own thread's time stands still but for this many seconds at a time."""
    now = [0.0]
    monkeypatch.setattr(clocks, "monotonic", lambda: now[0])
    return lambda seconds: now.append(now.pop() + seconds)


def timers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "rxdelta-timer"]


class Noting(TestScheduler):
    """Virtual time that notes when timers fired."""

    def __init__(self) -> None:
        super().__init__()
        self.fired: list[float] = []

    def schedule_relative(self, duetime: Any, action: Any, state: Any = None) -> abc.DisposableBase:
        def noted(scheduler: abc.SchedulerBase, state: Any = None) -> Any:
            self.fired.append(self.clock)
            return action(scheduler, state)

        return super().schedule_relative(duetime, noted, state)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("-a--------b---|", "-a--------b---|", id="a slow source is untouched"),
        pytest.param("-abc------d---|", "-a---c----d---|", id="a burst keeps its first and its newest"),
        pytest.param("abcdefghijkl|", "a---e---i---[l|]", id="a steady source is paced"),
        pytest.param("[abc]-------|", "a---c---|", id="what comes at once is a burst"),
        pytest.param("-ab|", "-a-[b|]", id="completion flushes"),
        pytest.param("-ab#", "-a-[b#]", id="an error flushes"),
        pytest.param("-a--|", "-a--|", id="completion with nothing held"),
        pytest.param("-a--#", "-a--#", id="an error with nothing held"),
        pytest.param("-a--------|", "-a--------|", id="completion long after the window"),
        pytest.param("-ab--c----|", "-a---c----|", id="a value on the edge is the newest"),
        pytest.param("-a---b---|", "-a---b---|", id="a value on the edge of a silent window goes at once"),
        pytest.param("-a----b--|", "-a----b--|", id="after a silent window a value goes at once"),
        pytest.param("-ab---c--|", "-a---b---[c|]", id="a flush at the edge opens the next window"),
        pytest.param("-ab--|", "-a---[b|]", id="completion on the edge"),
        pytest.param("-ab--#", "-a---[b#]", id="an error on the edge"),
        pytest.param("-ab", "-a---b", id="a source that goes silent"),
        pytest.param("a|", "a|", id="one value"),
        pytest.param("[a|]", "[a|]", id="one value and the end"),
        pytest.param("[ab|]", "[ab|]", id="all at once"),
        pytest.param("--|", "--|", id="empty"),
        pytest.param("#", "#", id="only an error"),
        pytest.param("------", "------", id="never"),
    ],
)
def test_at_most_one_value_in_four_ticks(source: str, expected: str) -> None:
    marbles.check(source, rd.throttle_latest(4), gives=expected, values=str, frame=1, reads=whole(source))


def test_no_timer_runs_in_silence_or_after_the_end() -> None:
    scheduler = Noting()
    hot = scheduler.create_hot_observable(
        on_next(201, "a"), on_next(202, "b"), on_next(211, "c"), on_completed(212)
    )
    scheduler.start(lambda: hot.pipe(rd.throttle_latest(4)))
    assert scheduler.fired == [205, 209]


def test_an_observer_may_emit_inside_on_next() -> None:
    scheduler = TestScheduler()
    source = Subject[int]()
    got: list[tuple[float, int]] = []

    def draw(value: int) -> None:
        got.append((scheduler.clock, value))
        if value < 3:
            source.on_next(value + 1)
            assert got[-1][1] == value  # it waits its turn

    source.pipe(rd.throttle_latest(4)).subscribe(draw, scheduler=scheduler)
    source.on_next(0)
    scheduler.advance_to(100)
    assert got == [(0, 0), (4, 1), (8, 2), (12, 3)]


def test_57_the_own_thread_goes_by_a_clock_that_never_jumps(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, owned = clocks.clock(None, None)
    monkeypatch.setattr(clocks, "monotonic", lambda: 1000.0)
    before = scheduler.now
    monkeypatch.setattr(clocks, "monotonic", lambda: 1002.5)
    assert (scheduler.now - before).total_seconds() == 2.5
    owned.dispose()


def test_events_pass_if_the_user_says_which_replaces_which() -> None:
    events = {mark: rd.events.TextDelta(index, mark) for index, mark in enumerate("abcd")}
    by_parity = rd.throttle_latest(4, key=lambda event: event.index % 2)
    marbles.check("abcd-----|", by_parity, gives="a---[cd]----|", values=events, frame=1)


def test_51_an_observer_that_raises_on_the_own_thread_ends_the_subscription(
    caplog: pytest.LogCaptureFixture, passes: Callable[[float], None]
) -> None:
    raised = threading.Event()

    def draw(value: str) -> None:
        if value == "b":
            raised.set()
            raise BOOM

    source = Subject[str]()
    source.pipe(rd.throttle_latest(0.001)).subscribe(draw)
    source.on_next("a")
    source.on_next("b")
    passes(0.001)
    assert raised.wait(10)
    while not caplog.records:
        sleep(0.001)
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [BOOM]
    assert source.observers == []


def test_51_an_observer_that_raises_inside_subscribe_leaves_no_thread() -> None:
    def subscribe(observer: abc.ObserverBase[int], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        observer.on_next(1)  # opens a window, and so starts the thread
        observer.on_completed()
        return Disposable()

    def fail() -> None:
        raise BOOM

    with pytest.raises(ValueError, match="boom"):
        Observable(subscribe).pipe(rd.throttle_latest(1000)).subscribe(on_completed=fail)


def test_without_a_loop_the_time_is_that_of_one_thread_which_ends_with_the_subscription(
    passes: Callable[[float], None],
) -> None:
    source = Subject[int]()
    drawn: dict[int, str] = {}
    came = {value: threading.Event() for value in range(4)}

    def draw(value: int) -> None:
        drawn[value] = threading.current_thread().name
        came[value].set()

    subscription = source.pipe(rd.throttle_latest(0.001)).subscribe(draw)
    source.on_next(0)
    (thread,) = timers()
    for value in (1, 2):
        source.on_next(value)
        assert not came[value].is_set()
        passes(0.001)
        assert came[value].wait(10)
    assert timers() == [thread]
    assert drawn == {0: threading.current_thread().name, 1: thread.name, 2: thread.name}
    subscription.dispose()
    source.on_next(3)
    thread.join(10)
    assert not thread.is_alive()
    assert not came[3].is_set()


@pytest.mark.parametrize("seconds", [0.001, 3600])
def test_52_the_thread_also_ends_when_the_observer_disposes_inside_on_next(
    seconds: float, passes: Callable[[float], None]
) -> None:
    source = Subject[int]()
    subscription = SerialDisposable()
    left = threading.Event()

    def draw(value: int) -> None:
        if value == 1 or seconds > 1:
            subscription.dispose()
            left.set()

    subscription.disposable = source.pipe(rd.throttle_latest(seconds)).subscribe(draw)
    source.on_next(0)
    source.on_next(1)
    passes(0.001)
    assert left.wait(10)


def test_what_was_held_is_let_go_when_disposed() -> None:
    class Value:
        pass

    source = Subject[Value]()
    subscription = source.pipe(rd.throttle_latest(4)).subscribe(scheduler=TestScheduler())
    source.on_next(Value())
    held = Value()
    known = weakref.ref(held)
    source.on_next(held)
    del held
    assert known() is not None
    subscription.dispose()
    gc.collect()
    assert known() is None


@given(gaps=st.lists(st.integers(0, 12), max_size=60), window=st.integers(1, 9), error=st.booleans())
def test_gaps_hold_nothing_waits_too_long_and_the_last_value_always_arrives(
    gaps: list[int], window: int, error: bool
) -> None:
    times = [sum(gaps[: count + 1]) for count in range(len(gaps))]
    end = (times[-1] if times else 0) + 1
    source: list[marbles.Record] = [(time, "next", count) for count, time in enumerate(times)]
    source.append((end, "error", BOOM) if error else (end, "completed", None))
    records, _ = through(source, rd.throttle_latest(window))
    emitted = [(time, value) for time, kind, value in records if kind == "next"]
    assert [kind for _, kind, _ in records[len(emitted) :]] == ["error" if error else "completed"]
    assert all(after - before >= window for (before, _), (after, _) in pairwise(emitted) if after != end)
    assert all(one < other for (_, one), (_, other) in pairwise(emitted))
    assert [value for _, value in emitted[:1]] == [0][: len(times)]
    assert [value for _, value in emitted[-1:]] == [len(times) - 1][: len(times)]
    for count, time in enumerate(times):  # each value is shown, or a newer one, within the window
        assert any(time <= shown <= time + window and value >= count for shown, value in emitted)
