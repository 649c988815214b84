"""`compact_deltas` in virtual time."""

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
from reactivex.testing import TestScheduler
from support import loops
from support.lines import line_of, through, whole

import rxdelta as rd
from rxdelta.runtime import clocks
from rxdelta.testing import marbles

BOOM = ValueError("boom")

ev = rd.events
TOOL = ev.ToolUpdate("c", "executing")


def one(mark: str) -> Any:
    """Small letters are text of block 0, digits arguments of block 1, `!` is a tool's update."""
    if mark == "!":
        return TOOL
    return ev.ToolCallDelta(1, mark) if mark[0].isdigit() else ev.TextDelta(0, mark)


EVENTS = {mark: one(mark) for mark in "abcdefghijklmnopqrstuvwxyz0123456789!"}


def joined(**words: str) -> dict[str, Any]:
    """Capitals stand for what several deltas have become."""
    return EVENTS | {capital: one(word) for capital, word in words.items()}


@pytest.mark.parametrize(
    ("source", "expected", "words"),
    [
        pytest.param("-a--------b---|", "-a--------b---|", {}, id="a slow source is untouched"),
        pytest.param("-abc------d---|", "-a---B----d---|", {"B": "bc"}, id="a burst is two deltas"),
        pytest.param(
            "abcdefghijkl|", "a---B---F---[J|]", {"B": "bcde", "F": "fghi", "J": "jkl"}, id="steady"
        ),
        pytest.param("[abc]-------|", "a---B---|", {"B": "bc"}, id="what comes at once is a burst"),
        pytest.param("-abc|", "-a--[B|]", {"B": "bc"}, id="completion flushes"),
        pytest.param("-abc#", "-a--[B#]", {"B": "bc"}, id="an error flushes"),
        pytest.param("-a--|", "-a--|", {}, id="completion with nothing held"),
        pytest.param("-a--#", "-a--#", {}, id="an error with nothing held"),
        pytest.param("-ab--c----|", "-a---B----|", {"B": "bc"}, id="a delta on the edge is in"),
        pytest.param("-a---b---|", "-a---b---|", {}, id="on the edge of a silent window it goes at once"),
        pytest.param("-ab--|", "-a---[b|]", {}, id="completion on the edge"),
        pytest.param("-abc", "-a---B", {"B": "bc"}, id="a source that goes silent"),
        pytest.param("-abc!---d--|", "-a--[B!]---d--|", {"B": "bc"}, id="another event flushes"),
        pytest.param("[ab1c2|]", "[ab1c2|]", {}, id="no neighbours"),
        pytest.param("[ab12cd|]", "[abTC|]", {"T": "12", "C": "cd"}, id="neighbours of two blocks"),
        pytest.param("!---!|", "!---!|", {}, id="no deltas at all"),
        pytest.param("--|", "--|", {}, id="empty"),
        pytest.param("#", "#", {}, id="only an error"),
        pytest.param("------", "------", {}, id="never"),
    ],
)
def test_neighbours_within_four_ticks_are_one(source: str, expected: str, words: dict[str, str]) -> None:
    compact, values = rd.compact_deltas(4), joined(**words)
    marbles.check(source, compact, gives=expected, values=values, frame=1, reads=whole(source))


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (ev.TextDelta(0, "a"), ev.TextDelta(0, "b"), ev.TextDelta(0, "ab")),
        (ev.ReasoningDelta(0, "a"), ev.ReasoningDelta(0, "b"), ev.ReasoningDelta(0, "ab")),
        (ev.ToolCallDelta("k", "a"), ev.ToolCallDelta("k", "b"), ev.ToolCallDelta("k", "ab")),
        (ev.DataDelta(0, "a"), ev.DataDelta(0, "b"), ev.DataDelta(0, "ab")),
        (ev.TextDelta(0, "a", choice=1), ev.TextDelta(0, "b", choice=1), ev.TextDelta(0, "ab", choice=1)),
        (ev.TextDelta(0, "a"), ev.TextDelta(1, "b"), None),
        (ev.TextDelta(0, "a"), ev.TextDelta("0", "b"), None),
        (ev.TextDelta(0, "a"), ev.TextDelta(0, "b", choice=1), None),
        (ev.TextDelta(0, "a"), ev.ReasoningDelta(0, "b"), None),
        (ev.BlockDelta(0, {"a": 1}), ev.BlockDelta(0, {"b": 1}), None),
        (ev.UsageUpdate(rd.TokenUsage(1, 1)), ev.UsageUpdate(rd.TokenUsage(1, 2)), None),
    ],
)
def test_only_deltas_of_one_kind_block_and_choice_are_joined(first: Any, second: Any, both: Any) -> None:
    got: list[Any] = []
    lead = ev.TextDelta(9, "lead")
    compact = rd.compact_deltas(4, scheduler=TestScheduler())
    rx.of(lead, first, second).pipe(compact).subscribe(got.append)
    assert got == [lead, *([first, second] if both is None else [both])]


def test_what_was_held_comes_right_before_an_event_that_is_not() -> None:
    scheduler = TestScheduler()
    source = Subject[rd.Event]()
    got: list[Any] = []
    source.pipe(rd.compact_deltas(4)).subscribe(got.append, scheduler=scheduler)
    for mark in "abc!de":
        source.on_next(EVENTS[mark])
    assert got == [one("a"), one("bc"), TOOL]
    scheduler.advance_to(4)
    assert got[3:] == [one("de")]


def test_disposal_stops_the_source_and_the_timer() -> None:
    reads = [(0.0, 3.0)]
    marbles.check("-ab", rd.compact_deltas(4), gives="-a", values=EVENTS, frame=1, until=3, reads=reads)


def test_an_explicit_scheduler_wins_over_the_subscribers_which_goes_upstream() -> None:
    mine, theirs = TestScheduler(), TestScheduler()
    source = Subject[rd.Event]()
    seen: list[Any] = []
    got: list[Any] = []

    def subscribe(observer: abc.ObserverBase[rd.Event], scheduler: abc.SchedulerBase | None = None) -> Any:
        seen.append(scheduler)
        return source.subscribe(observer)

    Observable(subscribe).pipe(rd.compact_deltas(4, scheduler=mine)).subscribe(got.append, scheduler=theirs)
    source.on_next(one("a"))
    source.on_next(one("b"))
    theirs.advance_to(10)
    assert got == [one("a")]
    mine.advance_to(10)
    assert got == [one("a"), one("b")]
    assert seen == [theirs]


def test_an_observer_may_emit_inside_on_next_and_its_deltas_are_joined() -> None:
    scheduler = TestScheduler()
    source = Subject[Any]()
    got: list[Any] = []

    def draw(event: Any) -> None:
        got.append(event)
        if event == one("a"):
            for mark in "bc!de":
                source.on_next(EVENTS[mark])
            source.on_completed()
            source.on_next(one("f"))
            assert got == [one("a")]

    source.pipe(rd.compact_deltas(4)).subscribe(
        draw, on_completed=lambda: got.append("|"), scheduler=scheduler
    )
    source.on_next(one("a"))
    assert got == [one("a"), one("bc"), TOOL, one("de"), "|"]


def test_52_an_observer_may_dispose_inside_on_next() -> None:
    source = Subject[Any]()
    got: list[Any] = []
    subscription = SerialDisposable()

    def draw(event: Any) -> None:
        got.append(event)
        source.on_next(one("b"))
        source.on_next(TOOL)
        subscription.dispose()

    scheduler = TestScheduler()
    subscription.disposable = source.pipe(rd.compact_deltas(4)).subscribe(draw, scheduler=scheduler)
    source.on_next(one("a"))
    scheduler.advance_to(100)
    assert got == [one("a")]
    assert source.observers == []


def test_51_an_observer_that_raises_in_a_timer_ends_the_subscription(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = TestScheduler()
    source = Subject[Any]()

    def draw(event: Any) -> None:
        if event == one("b"):
            raise BOOM

    source.pipe(rd.compact_deltas(4)).subscribe(draw, scheduler=scheduler)
    source.on_next(one("a"))
    source.on_next(one("b"))
    scheduler.advance_to(4)
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [BOOM]
    assert source.observers == []


def test_a_synchronous_source_gives_two_deltas() -> None:
    got: list[Any] = []
    rx.from_iterable([one("a")] * 100_000).pipe(rd.compact_deltas(1000)).subscribe(got.append)
    assert got == [one("a"), one("a" * 99_999)]


def test_a_source_that_goes_on_after_its_end_is_not_heard_again() -> None:
    def subscribe(observer: abc.ObserverBase[Any], _: abc.SchedulerBase | None = None) -> Disposable:
        observer.on_next(one("a"))
        observer.on_next(one("b"))
        observer.on_error(BOOM)
        observer.on_next(one("c"))
        observer.on_completed()
        return Disposable()

    got: list[Any] = []
    Observable(subscribe).pipe(rd.compact_deltas(1000)).subscribe(got.append, got.append)
    assert got == [one("a"), one("b"), BOOM]


def test_two_subscriptions_know_nothing_of_each_other() -> None:
    scheduler = TestScheduler()
    compacted = marbles.cold("abc|", scheduler, values=EVENTS, frame=1).pipe(rd.compact_deltas(9))
    first, second = scheduler.create_observer(), scheduler.create_observer()
    compacted.subscribe(first, scheduler=scheduler)
    scheduler.schedule_absolute(1, lambda *_: compacted.subscribe(second, scheduler=scheduler))
    scheduler.start()
    assert line_of(first.messages, values=joined(B="bc")) == "a--[B|]"
    assert line_of(second.messages, values=joined(B="bc"), start=1) == "a--[B|]"


def test_what_is_no_event_is_refused_after_what_was_held() -> None:
    snapshot = rd.MessageDelta(content="x")
    came, _ = through("[abs]-----c", rd.compact_deltas(4), values={**EVENTS, "s": snapshot})
    *held, (_, _, error) = came
    assert [event for _, _, event in held] == [one("a"), one("b")]
    assert type(error) is rd.InvalidValueError
    assert "compact_deltas() reads events, and got a MessageDelta" in str(error)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "1", None])
def test_57_a_window_that_is_no_positive_time_is_refused_at_once(seconds: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="seconds: must be a positive number"):
        rd.compact_deltas(seconds)


def test_a_slow_observer_on_the_timer_does_not_hold_the_source_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(clocks, "monotonic", lambda: now[0])
    source = Subject[Any]()
    entered, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    got: list[Any] = []

    def draw(event: Any) -> None:
        got.append(event)
        if event == one("b"):
            entered.set()
            assert go_on.wait(10)

    source.pipe(rd.compact_deltas(0.001)).subscribe(draw, on_completed=ended.set)
    source.on_next(one("a"))
    source.on_next(one("b"))
    now[0] = 0.001
    assert entered.wait(10)
    for mark in "cd!ef":
        source.on_next(EVENTS[mark])  # returns while the timer's thread is inside draw
    source.on_completed()
    go_on.set()
    assert ended.wait(10)
    assert got == [one("a"), one("b"), one("cd"), TOOL, one("ef")]


def test_the_time_is_that_of_the_running_loop() -> None:
    async def main() -> list[Any]:
        source = Subject[Any]()
        compacted = rd.to_async_iterable(source.pipe(rd.compact_deltas(0.001)), overflow="buffer")
        async with compacted as values:
            for mark in "abc":
                source.on_next(EVENTS[mark])
            return [await anext(values), await anext(values)]  # the source is silent, so it was the timer

    assert loops.run(main) == [one("a"), one("bc")]


DELTAS = st.builds(
    lambda make, index, text, choice: make(index, text, choice=choice),
    st.sampled_from([ev.TextDelta, ev.ReasoningDelta, ev.ToolCallDelta]),
    st.integers(0, 1),
    st.text("ab", max_size=2),
    st.integers(0, 1),
)


@given(
    stream=st.lists(st.tuples(st.integers(0, 6), st.one_of(DELTAS, st.just(TOOL))), max_size=40),
    window=st.integers(1, 9),
    error=st.booleans(),
)
def test_order_and_text_stay_and_nothing_waits_longer_than_a_window(
    stream: list[tuple[int, Any]], window: int, error: bool
) -> None:
    times = [sum(gap for gap, _ in stream[: count + 1]) for count in range(len(stream))]
    end = (times[-1] if times else 0) + 1
    source: list[marbles.Record] = [(time, "next", event) for time, (_, event) in zip(times, stream)]
    source.append((end, "error", BOOM) if error else (end, "completed", None))
    records, _ = through(source, rd.compact_deltas(window))
    assert records[-1][1:] == source[-1][1:]
    came = [unit for time, (_, event) in zip(times, stream) for unit in _units(event, time)]
    left = [unit for time, _, event in records[:-1] for unit in _units(event, time)]
    assert [unit for unit, _ in came] == [unit for unit, _ in left]
    assert all(0 <= after - before <= window for (_, before), (_, after) in zip(came, left))


def _units(event: Any, time: float) -> list[tuple[Any, float]]:
    """An event letter by letter."""
    if event is TOOL:
        return [(TOOL, time)]
    text = {ev.TextDelta: "text", ev.ReasoningDelta: "reasoning", ev.ToolCallDelta: "args"}[type(event)]
    return [((type(event), event.index, event.choice, one), time) for one in getattr(event, text)]
