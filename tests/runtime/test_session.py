"""The scheduler that carries a session, and the clocks of operators."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.scheduler import HistoricalScheduler, VirtualTimeScheduler
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.subject import Subject
from support.loops import run

import rxdelta as rd
from rxdelta.runtime import (
    Backpressure,
    Idleness,
    LoopScheduler,
    clock,
    session_of,
    subscribing,
)
from rxdelta.runtime.session import SessionScheduler

BOOM = ValueError("boom")
SECONDS = 60  # what hangs is found


class Reader:
    """A session that notes its failures."""

    def __init__(self, *, limits: rd.Limits | None = None, has_left: bool = False) -> None:
        self.limits = limits
        self.has_left = has_left
        self.journal = None
        self.errors: list[Exception] = []
        self.backpressure = Backpressure(lambda: True)

    def register(self, pump: Any) -> None: ...

    def check_lag(self) -> None: ...

    def fail(self, error: Exception) -> bool:
        self.errors.append(error)
        return not self.has_left


def boom(*_: object) -> None:
    raise BOOM


# Who finds the session.


def test_a_plain_subscription_has_no_session() -> None:
    assert session_of(None) is None
    assert session_of(VirtualTimeScheduler()) is None


def test_the_scheduler_carries_the_session_also_where_another_reader_is_current() -> None:
    ours, other = Reader(), Reader()
    with subscribing(ours, VirtualTimeScheduler()) as scheduler:
        pass
    with subscribing(other, None):
        assert session_of(scheduler) is ours


def test_the_context_has_the_session_where_no_scheduler_carries_it() -> None:
    reader = Reader()
    with subscribing(reader, None) as scheduler:
        assert scheduler is None
        assert session_of(None) is reader
        assert session_of(VirtualTimeScheduler()) is reader
    assert session_of(None) is None


def test_what_is_subscribed_while_another_readers_source_emits_belongs_to_its_own_reader() -> None:
    closed: list[str] = []

    async def inner() -> Any:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.append("inner")

    async def outer() -> Any:
        yield 1
        await asyncio.Event().wait()

    async def main() -> None:
        bridge = Subject[int]()
        behind = bridge.pipe(ops.flat_map(lambda _: rd.from_async_iterable(inner)))
        async with rd.to_async_iterable(behind) as values:
            pushing = rd.from_async_iterable(outer).pipe(ops.do_action(bridge.on_next))
            async with rd.to_async_iterable(pushing) as pushed:
                await anext(pushed)
                await anext(values)
            assert closed == []
        assert closed == ["inner"]

    run(main)


# The time of an operator.


def test_an_operator_takes_the_time_from_its_own_scheduler_and_the_session_from_its_subscriber() -> None:
    reader, own, subscribers = Reader(), VirtualTimeScheduler(), VirtualTimeScheduler()
    with subscribing(reader, subscribers) as inherited:
        pass
    time, _ = clock(own, inherited)
    assert session_of(time) is reader
    calls: list[datetime] = []
    time.schedule_relative(5, lambda *_: calls.append(time.now))
    subscribers.advance_by(10)
    assert calls == []
    own.advance_by(10)
    assert calls == [datetime.fromtimestamp(5, UTC)]


def test_without_a_scheduler_of_its_own_an_operator_uses_the_subscribers() -> None:
    with subscribing(Reader(), VirtualTimeScheduler()) as inherited:
        pass
    assert clock(None, inherited)[0] is inherited
    assert clock(None, given := VirtualTimeScheduler())[0] is given


@pytest.mark.parametrize(
    "schedule", ["schedule", "schedule_relative", "schedule_absolute", "schedule_periodic"]
)
def test_an_action_that_raises_fails_the_session(schedule: str) -> None:
    reader, own = Reader(), HistoricalScheduler()
    with subscribing(reader, VirtualTimeScheduler()) as inherited:
        pass
    time: Any = clock(own, inherited)[0]
    when = {"schedule_relative": [1], "schedule_absolute": [own.now + timedelta(1)], "schedule_periodic": [1]}
    getattr(time, schedule)(*when.get(schedule, []), boom)
    own.start()
    assert reader.errors == [BOOM]


def test_an_action_that_raises_when_the_reader_has_left_raises_at_its_scheduler() -> None:
    own = VirtualTimeScheduler()
    SessionScheduler(Reader(has_left=True), own).schedule(boom)
    with pytest.raises(ValueError, match="boom"):
        own.start()


def test_an_interrupt_in_an_action_ends_the_reading_and_the_program() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    reader, own = Reader(), VirtualTimeScheduler()
    SessionScheduler(reader, own).schedule(interrupt)
    with pytest.raises(KeyboardInterrupt):
        own.start()
    assert [type(error) for error in reader.errors] == [rd.StreamInterrupted]


def test_an_action_gets_the_scheduler_that_carries_the_session() -> None:
    reader, own = Reader(), VirtualTimeScheduler()
    seen: list[Any] = []
    SessionScheduler(reader, own).schedule_relative(
        1, lambda scheduler, state: seen.append((session_of(scheduler), state)), "state"
    )
    own.start()
    assert seen == [(reader, "state")]


def test_an_operators_own_scheduler_raises_at_the_door() -> None:
    async def source() -> Any:
        yield rd.MessageDelta(content="a")
        yield rd.MessageDelta(content="b")
        await asyncio.Event().wait()

    async def main() -> None:
        own = AsyncIOScheduler(asyncio.get_running_loop())
        paced = rd.from_async_iterable(source).pipe(
            rd.scan_deltas(), rd.throttle_latest(0.001, scheduler=own)
        )
        raising = paced.pipe(ops.skip(1), ops.do_action(boom), ops.catch(lambda error, _: boom()))
        with pytest.raises(ValueError, match="boom"):
            await rd.last_value(raising)

    run(main)


# The loop's time.


def test_the_loops_time_is_the_time_of_day() -> None:
    async def main() -> None:
        stamped = await rd.first_value(rx.of(1).pipe(ops.timestamp()))
        assert abs(stamped.timestamp - datetime.now(UTC)) < timedelta(hours=1)
        when = datetime.now(UTC) + timedelta(milliseconds=5)
        assert await rd.first_value(rx.timer(when)) == 0

    run(main)


def test_a_timer_runs_on_the_loop_wherever_it_was_started() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ran: asyncio.Future[threading.Thread] = loop.create_future()
        time = LoopScheduler(loop)
        disposed: list[Any] = []

        def start() -> None:
            time.schedule_relative(0.001, disposed.append).dispose()
            time.schedule_relative(0.002, lambda *_: ran.set_result(threading.current_thread()))

        await asyncio.to_thread(start)
        timer = time.schedule_relative(0.001, disposed.append)
        await asyncio.to_thread(timer.dispose)
        assert await asyncio.wait_for(ran, SECONDS) is threading.current_thread()
        assert disposed == []

    asyncio.run(main())


def test_a_timer_for_a_loop_that_has_ended_is_dropped() -> None:
    async def main() -> LoopScheduler:
        return LoopScheduler(asyncio.get_running_loop())

    asyncio.run(main()).schedule_relative(0, boom).dispose()


def test_a_stream_subscribed_during_a_notification_misses_none_of_the_following() -> None:
    async def items() -> Any:
        for number in range(6):
            yield number

    async def main() -> None:
        groups = rd.from_async_iterable(items).pipe(
            ops.group_by(lambda number: number % 2),
            ops.flat_map(lambda group: group.pipe(ops.start_with("group"))),
        )
        async with rd.to_async_iterable(groups) as values:
            assert [value async for value in values] == ["group", 0, "group", 1, 2, 3, 4, 5]

    run(main)


def test_a_hot_source_behind_start_with_is_subscribed_on_entering() -> None:
    async def main() -> None:
        source = Subject[int]()
        async with rd.to_async_iterable(source.pipe(ops.start_with(0))) as values:
            source.on_next(1)
            assert [await anext(values), await anext(values)] == [0, 1]

    run(main)


# Idleness.


def test_two_readers_that_become_idle_at_once_call_whoever_asked_once() -> None:
    called: list[str] = []

    def is_idle() -> bool:
        nonlocal other_reader
        other_reader, other = None, other_reader
        if other is not None:
            other.notify()
        return True

    idleness = Idleness(is_idle)
    other_reader: Idleness | None = idleness
    idleness.when_idle(lambda: called.append("called"))
    idleness.notify()
    assert called == ["called"]
