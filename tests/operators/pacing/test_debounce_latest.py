"""`debounce_latest` in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from reactivex import abc
from reactivex.subject import Subject
from reactivex.testing import ReactiveTest, TestScheduler
from support.lines import through, whole

import rxdelta as rd
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
