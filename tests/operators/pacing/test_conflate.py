"""`conflate` in virtual time, and where an observer is slow: on another thread, on a scheduler, further up the stack."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex.disposable import SerialDisposable
from reactivex.scheduler import EventLoopScheduler, ImmediateScheduler, VirtualTimeScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.subject import Subject
from support import loops
from support.lines import whole

import rxdelta as rd
from rxdelta.testing import marbles

BOOM = ValueError("boom")


@pytest.mark.parametrize(
    "diagram",
    [
        pytest.param("-a--------b---|", id="a slow source"),
        pytest.param("abcdefghijkl|", id="a steady source"),
        pytest.param("[abc]-------|", id="a burst"),
        pytest.param("-ab|", id="completion"),
        pytest.param("-ab#", id="an error"),
        pytest.param("-ab", id="a source that goes silent"),
        pytest.param("[a|]", id="one value and the end"),
        pytest.param("[ab#]", id="all at once"),
        pytest.param("--|", id="empty"),
        pytest.param("#", id="only an error"),
        pytest.param("------", id="never"),
    ],
)
def test_an_idle_observer_gets_every_value_in_the_same_instant(diagram: str) -> None:
    marbles.check(diagram, rd.conflate(), values=str, frame=1, reads=whole(diagram))


def test_an_observer_that_is_busy_on_another_thread_does_not_hold_the_source_up() -> None:
    source = Subject[int]()
    entered, go_on = threading.Event(), threading.Event()
    got: list[Any] = []

    def draw(value: int) -> None:
        if value == 0:
            entered.set()
            assert go_on.wait(10)
        got.append(value)

    source.pipe(rd.conflate()).subscribe(draw, on_completed=lambda: got.append("|"))
    drawing = threading.Thread(target=source.on_next, args=(0,))
    drawing.start()
    assert entered.wait(10)
    for value in range(1, 10_000):
        source.observers[0].on_next(value)  # returns at once
    source.observers[0].on_completed()
    assert got == []
    go_on.set()
    drawing.join(10)
    assert got == [0, 9_999, "|"]


def test_on_a_scheduler_a_source_never_waits_not_even_on_a_single_thread() -> None:
    source = Subject[int]()
    entered, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    got: list[Any] = []

    def draw(value: int) -> None:
        got.append((value, threading.current_thread() is threading.main_thread()))
        entered.set()
        assert go_on.wait(10)

    place = EventLoopScheduler()
    source.pipe(rd.conflate(scheduler=place)).subscribe(draw, on_completed=ended.set)
    source.on_next(0)
    assert entered.wait(10)
    for value in range(1, 10_000):
        source.on_next(value)
    source.on_completed()
    go_on.set()
    assert ended.wait(10)
    place.dispose()
    assert got == [(0, False), (9_999, False)]


def test_on_a_scheduler_the_values_of_one_turn_are_one() -> None:
    scheduler = VirtualTimeScheduler()
    source = Subject[str]()
    got: list[str] = []
    source.pipe(rd.conflate(scheduler=scheduler)).subscribe(got.append, on_completed=lambda: got.append("|"))
    for burst in ("abc", "d", "ef"):
        for mark in burst:
            source.on_next(mark)
        scheduler.start()
    source.on_next("g")
    source.on_completed()
    assert got == ["c", "d", "f"]
    scheduler.start()
    assert got == ["c", "d", "f", "g", "|"]


def test_a_scheduler_may_call_at_once() -> None:
    got: list[int] = []
    rx.of(1, 2, 3).pipe(rd.conflate(scheduler=ImmediateScheduler())).subscribe(got.append)
    assert got == [1, 2, 3]


def test_51_an_observer_that_raises_on_a_scheduler_ends_the_subscription(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scheduler = VirtualTimeScheduler()
    source = Subject[int]()

    def draw(value: int) -> None:
        raise BOOM

    source.pipe(rd.conflate(scheduler=scheduler)).subscribe(draw)
    source.on_next(1)
    scheduler.start()
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [BOOM]
    assert source.observers == []


def test_52_an_observer_may_dispose_inside_on_next_and_what_waits_is_let_go() -> None:
    class Value:
        pass

    source = Subject[Value]()
    got: list[type] = []
    subscription = SerialDisposable()
    known: list[weakref.ref[Value]] = []

    def draw(value: Value) -> None:
        got.append(type(value))
        held = Value()
        known.append(weakref.ref(held))
        source.on_next(held)
        subscription.dispose()

    subscription.disposable = source.pipe(rd.conflate()).subscribe(draw)
    source.on_next(Value())
    gc.collect()
    assert got == [Value]
    assert source.observers == []
    assert known[0]() is None


def test_on_the_running_loop_a_burst_is_drawn_once() -> None:
    async def main() -> list[int]:
        got: list[int] = []
        source = Subject[int]()
        here = AsyncIOScheduler(asyncio.get_running_loop())
        with source.pipe(rd.conflate(scheduler=here)).subscribe(got.append):
            for value in range(100):
                source.on_next(value)
            assert got == []
            await loops.turns()
            source.on_next(100)
            await loops.turns()
        return got

    assert loops.run(main) == [99, 100]


def test_at_the_doors_to_asyncio_latest_is_what_conflates() -> None:
    async def main(overflow: Any) -> list[int]:
        got: list[int] = []
        source = Subject[int]()

        async def draw(value: int) -> None:
            got.append(value)
            await asyncio.sleep(0)

        reading = asyncio.create_task(rd.for_each(source.pipe(rd.conflate()), draw, overflow=overflow))
        await loops.turns()
        for value in range(100):
            source.on_next(value)
        source.on_completed()
        await reading
        return got

    assert loops.run(lambda: main("latest")) == [99]
    assert loops.run(lambda: main("buffer")) == list(range(100))


@given(
    bursts=st.lists(st.integers(0, 5), max_size=40),
    place=st.booleans(),
    error=st.booleans(),
)
def test_the_last_value_always_arrives_before_the_end_and_each_burst_gives_its_newest(
    bursts: list[int], place: bool, error: bool
) -> None:
    scheduler = VirtualTimeScheduler()
    source = Subject[int]()
    got: list[Any] = []
    emitted = 0

    def draw(value: int) -> None:
        nonlocal emitted
        got.append(value)
        if bursts:
            for _ in range(bursts.pop()):
                emitted += 1
                source.on_next(emitted)

    newest: list[int] = []
    source.pipe(rd.conflate(scheduler=scheduler if place else None)).subscribe(
        draw, got.append, lambda: got.append("|")
    )
    while bursts:
        emitted += 1
        source.on_next(emitted)
        scheduler.start()
        assert got[-1] == emitted
        newest.append(emitted)
    source.on_error(BOOM) if error else source.on_completed()
    scheduler.start()
    assert got[-1:] == [BOOM if error else "|"]
    assert got[:-1] == sorted(set(got[:-1]))
    assert set(newest) <= set(got[:-1])
