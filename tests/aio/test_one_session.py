"""Room, end and failure from a reader to its sources, on real loops and threads; nothing here goes by the clock."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.subject import Subject
from support.loops import run, turns

import rxdelta as rd
from rxdelta.aio import reading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

SECONDS = 60  # what hangs is found
BOOM = ValueError("boom")
COUNT = 5_000  # more than a source gives in the millisecond of the timers below
ROOM = 4


class Source:
    """Numbers, as fast as they are taken. Each subscription is one request."""

    def __init__(self, count: float = COUNT, *, then_hang: bool = False) -> None:
        self.count = count
        self.then_hang = then_hang
        self.opened = self.given = self.closed = 0

    async def __call__(self) -> AsyncIterator[int]:
        self.opened += 1
        try:
            number = 0
            while number < self.count:
                yield number
                number += 1
                self.given += 1
            if self.then_hang:
                await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            self.closed += 1

    def blocking(self) -> Iterator[int]:
        self.opened += 1
        try:
            for number in range(COUNT):
                yield number
                self.given += 1
        finally:
            self.closed += 1

    def pump(self) -> rx.Observable[int]:
        return rd.from_async_iterable(self)


def on_loop() -> AsyncIOScheduler:
    return AsyncIOScheduler(asyncio.get_running_loop())


def failing_once(pump: rx.Observable[int]) -> rx.Observable[int]:
    attempts = iter([rx.throw(OSError()), pump])
    return rx.defer(lambda _: next(attempts))


# All values of one source, or of two, through operators of Rx.
BEHIND: dict[str, Callable[[Source], rx.Observable[Any]]] = {
    "nothing": lambda source: source.pump(),
    "from_iterable": lambda source: rd.from_iterable(source.blocking),
    "flat_map": lambda source: rx.of(1, 2).pipe(ops.flat_map(lambda _: source.pump())),
    "merge": lambda source: rx.merge(source.pump(), source.pump()),
    "concat": lambda source: rx.concat(rx.of(1), source.pump()),
    "switch_latest": lambda source: rx.of(source.pump()).pipe(ops.switch_latest()),
    "observe_on": lambda source: source.pump().pipe(ops.observe_on(on_loop())),
    "subscribe_on": lambda source: source.pump().pipe(ops.subscribe_on(on_loop())),
    "retry": lambda source: failing_once(source.pump()).pipe(ops.retry(2)),
    "repeat": lambda source: source.pump().pipe(ops.repeat(2)),
    "share": lambda source: source.pump().pipe(ops.share()),
    "publish": lambda source: source.pump().pipe(ops.publish(), ops.ref_count()),
    "catch": lambda source: rx.throw(OSError()).pipe(ops.catch(source.pump())),
    "start_with": lambda source: source.pump().pipe(ops.start_with(1)),
    "zip": lambda source: rx.zip(source.pump(), source.pump()),
    "combine_latest": lambda source: rx.combine_latest(source.pump(), source.pump()),
    "take_until": lambda source: source.pump().pipe(ops.take_until(rx.never())),
    "group_by": lambda source: source.pump().pipe(
        ops.group_by(lambda number: number % 3), ops.flat_map(lambda group: group)
    ),
    "delay": lambda source: source.pump().pipe(ops.delay(0.001)),
    "share_events": lambda source: source.pump().pipe(ops.map(event), rd.share_events()),
}


def event(number: int) -> rd.Event:
    return rd.events.TextDelta(0, str(number))


async def until(condition: Callable[[], bool]) -> None:
    async def wait() -> None:
        while not condition():
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), SECONDS)


def session_of(values: Any) -> Any:
    return values.session


@pytest.mark.parametrize("behind", BEHIND)
def test_a_source_waits_for_a_slow_reader_and_loses_nothing(behind: str) -> None:
    source = Source()

    async def main() -> None:
        async with rd.to_async_iterable(BEHIND[behind](source), maxsize=ROOM) as values:
            room = session_of(values).backpressure
            await until(lambda: not room.is_ready())
            await turns(100)
            waiting = source.given
            await turns(100)
            assert source.given == waiting < COUNT
            assert len([value async for value in values]) >= COUNT
        assert source.closed == source.opened

    run(main)


@pytest.mark.parametrize("behind", BEHIND)
def test_leaving_waits_until_all_sources_have_closed(behind: str) -> None:
    source = Source()

    async def main() -> None:
        async with rd.to_async_iterable(BEHIND[behind](source), maxsize=ROOM) as values:
            await anext(values)
            await until(lambda: source.opened > 0)
        assert source.closed == source.opened

    run(main)


@pytest.mark.parametrize("behind", BEHIND)
def test_a_source_that_hangs_is_closed_before_a_cancelled_reader_ends(behind: str) -> None:
    source = Source(3, then_hang=True)

    async def main() -> None:
        reading = asyncio.ensure_future(rd.for_each(BEHIND[behind](source), lambda _: None))
        await until(lambda: source.given >= 3)
        await turns()
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        assert reading.cancelled()
        assert source.closed == source.opened

    if behind != "from_iterable":  # a thread can't be made to hang for a test
        run(main)


def raising(at: int) -> Callable[[Any], None]:
    count = 0

    def call(_: object) -> None:
        nonlocal count
        count += 1
        if count == at:
            raise BOOM

    return call


@pytest.mark.parametrize("behind", [name for name in BEHIND if name != "observe_on"])
def test_what_raises_behind_is_raised_at_the_door_and_closes_all_sources(behind: str) -> None:
    source = Source()

    async def main() -> None:
        with pytest.raises(ValueError, match="boom"):
            await rd.for_each(BEHIND[behind](source).pipe(ops.map(raising(20))), lambda _: None)
        assert source.closed == source.opened

    run(main)


def test_two_replies_at_once_have_a_session_each() -> None:
    quick, slow, broken = Source(), Source(), Source()

    async def main() -> None:
        async with rd.to_async_iterable(slow.pump().pipe(ops.delay(0.001)), maxsize=ROOM) as held:
            await until(lambda: not session_of(held).backpressure.is_ready())
            failing = rd.for_each(broken.pump().pipe(ops.delay(0.001), ops.map(raising(5))), lambda _: None)
            last, failed = await asyncio.gather(
                rd.last_value(quick.pump().pipe(ops.delay(0.001))), failing, return_exceptions=True
            )
            assert last == COUNT - 1
            assert failed is BOOM
            assert broken.closed == quick.closed == 1
            assert slow.closed == 0
            assert len([value async for value in held]) == COUNT
        assert slow.closed == 1

    run(main)


def test_two_readers_of_a_shared_source_on_one_loop_fail_and_leave_each_for_itself() -> None:
    source = Source(20_000)

    async def main() -> None:
        shared = source.pump().pipe(ops.map(event), rd.share_events())
        async with rd.to_async_iterable(shared, maxsize=ROOM) as first:
            await anext(first)
            with pytest.raises(ValueError, match="boom"):
                await rd.for_each(shared.pipe(ops.delay(0.001), ops.map(raising(50))), lambda _: None)
            assert source.closed == 0
            assert (await anext(first)).text == "1"
        assert source.closed == source.opened == 1

    run(main)


def test_a_shared_source_waits_while_none_of_its_readers_has_room() -> None:
    source = Source()

    async def main() -> None:
        shared = source.pump().pipe(ops.map(event), rd.share_events())
        async with (
            rd.to_async_iterable(shared.pipe(ops.delay(0.001)), maxsize=ROOM) as first,
            rd.to_async_iterable(shared, maxsize=2 * ROOM) as second,
        ):
            for values in (first, second):
                await until(lambda one=values: not session_of(one).backpressure.is_ready())
            await turns(100)
            waiting = source.given
            await turns(100)
            assert source.given == waiting < COUNT
            assert len([value async for value in second]) == COUNT
            assert len([value async for value in first]) == COUNT

    run(main)


def test_a_shared_source_read_on_two_loops_gives_each_reader_all() -> None:
    source = Source()
    whole = "".join(map(str, range(COUNT)))
    begun = threading.Event()

    async def main() -> None:
        start = [rd.events.MessageStart(id="m"), rd.events.BlockStart(0, {"type": "text"})]
        reply = source.pump().pipe(ops.map(event), ops.start_with(*start), rd.share_events())
        pieces = reply.pipe(rd.text_deltas())

        def read() -> str:
            with rd.to_iterable(pieces.pipe(ops.delay(0.001))) as values:
                begun.set()
                return "".join(values)

        async with rd.to_async_iterable(pieces, maxsize=ROOM) as values:
            first = await anext(values)
            other = asyncio.ensure_future(asyncio.to_thread(read))
            assert await asyncio.to_thread(begun.wait, SECONDS)
            assert first + "".join([piece async for piece in values]) == whole
            assert await asyncio.wait_for(other, SECONDS) == whole
        assert source.closed == source.opened == 1

    asyncio.run(main())


def test_what_raises_behind_a_timer_on_another_loop_is_raised_there() -> None:
    source = Source(COUNT, then_hang=True)
    raised: list[Exception] = []

    async def main() -> None:
        shared = source.pump().pipe(ops.map(event), rd.share_events())

        def read() -> None:
            try:
                with rd.to_iterable(shared.pipe(ops.delay(0.001), ops.map(raising(9)))) as values:
                    list(values)
            except ValueError as error:
                raised.append(error)

        async with rd.to_async_iterable(shared) as values:
            await anext(values)
            await asyncio.wait_for(asyncio.to_thread(read), SECONDS)
            assert (await anext(values)).text == "1"

    asyncio.run(main())
    assert raised == [BOOM]
    assert source.closed == source.opened == 1


def test_a_source_on_another_loop_waits_for_the_reader_but_not_the_reader_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "CLOSE_SECONDS", 10 * SECONDS)
    closed = asyncio.Event()
    left = threading.Event()
    bridge = Subject[int]()

    async def numbers() -> AsyncIterator[int]:
        try:
            for number in range(COUNT):
                yield number
        finally:
            assert left.is_set() or await asyncio.to_thread(left.wait, SECONDS)
            closed.set()

    async def elsewhere() -> None:
        bridge.on_next(1)
        await asyncio.wait_for(closed.wait(), SECONDS)

    async def main() -> None:
        behind = bridge.pipe(ops.flat_map(lambda _: rd.from_async_iterable(numbers)))
        async with rd.to_async_iterable(behind, maxsize=ROOM) as values:
            other = asyncio.ensure_future(asyncio.to_thread(asyncio.run, elsewhere()))
            assert [await anext(values) for _ in range(COUNT // 2)] == list(range(COUNT // 2))
            await until(lambda: not session_of(values).backpressure.is_ready())
        left.set()
        await asyncio.wait_for(other, SECONDS)

    asyncio.run(asyncio.wait_for(main(), SECONDS))
