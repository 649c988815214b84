"""An operator that can't take more values closes its room, and the sources in front of it wait."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.disposable import Disposable
from reactivex.scheduler.eventloop import AsyncIOScheduler
from reactivex.subject import Subject
from support.loops import run, turns

import rxdelta as rd
from rxdelta.aio.threads import Gate, pushed
from rxdelta.runtime import logged
from rxdelta.testing import VirtualTime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
    from concurrent.futures import Future

BOOM = ValueError("boom")

ev = rd.events
COUNT = 300
CHECK = 0.05  # seconds
SECONDS = 60  # what hangs is found


class Checking:
    """Each value after a check. No other is taken meanwhile."""

    def __init__(
        self, sink: rd.building.Sink[Any], check: Callable[[Any], Coroutine[Any, Any, object]]
    ) -> None:
        self._sink = sink
        self._check = check
        self._room = sink.room()
        self._loop = asyncio.get_running_loop()
        self._waiting = deque[Any]()
        self._running: Future[object] | None = None
        self._source_ended = False
        sink.own(Disposable(self._cancel))

    def on_next(self, value: Any) -> None:
        self._room.close()
        self._waiting.append(value)
        self._begin()

    def on_completed(self) -> None:
        self._source_ended = True
        self._begin()

    def _begin(self) -> None:
        if self._waiting and self._running is None:
            self._running = asyncio.run_coroutine_threadsafe(self._check(self._waiting[0]), self._loop)
            self._running.add_done_callback(self._done)
        elif not self._waiting and self._source_ended:
            self._sink.on_completed()

    def _done(self, check: Future[object]) -> None:
        if not check.cancelled():
            self._sink.run(self._checked, check)

    def _checked(self, check: Future[object]) -> None:
        self._running = None
        check.result()
        self._sink.on_next(self._waiting.popleft())
        if not self._waiting:
            self._room.open()
        self._begin()

    def _cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()


def checked(check: Callable[[Any], Coroutine[Any, Any, object]]) -> Any:
    return rd.building.lift("checked", lambda sink: Checking(sink, check), emits="same")


async def slow(_: object) -> None:
    await asyncio.sleep(CHECK)


async def never(_: object) -> None:
    await asyncio.Event().wait()


class Source:
    """A quick source of numbers, or of a reply with so many deltas."""

    def __init__(self, count: int = COUNT) -> None:
        self.count = count
        self.given = self.opened = self.closed = 0
        self.told = 0  # the values that have come out
        self.ahead = 0  # the most that had been given, and had not come out

    async def __call__(self) -> AsyncIterator[int]:
        self.opened += 1
        try:
            for number in range(self.count):
                self.given += 1
                yield number
        finally:
            self.closed += 1

    def blocking(self) -> Iterator[int]:
        for number in range(self.count):
            self.given += 1
            yield number

    async def reply(self) -> AsyncIterator[rd.Event]:
        yield ev.MessageStart("m")
        yield ev.BlockStart(0, {"type": "text", "text": ""})
        async for number in self():
            yield ev.TextDelta(0, f"{number} ")
        yield ev.BlockFinish(0)
        yield ev.MessageFinish("stop")

    def tell(self, _: object) -> None:
        self.told += 1
        self.ahead = max(self.ahead, self.given - self.told)


def numbers(source: Source) -> rx.Observable[int]:
    return rd.from_async_iterable(source)


def events(source: Source) -> rx.Observable[rd.Event]:
    return rd.from_async_iterable(source.reply)


HELD = checked(slow)
PIPELINES: dict[str, Callable[[Source], rx.Observable[Any]]] = {
    "alone": lambda source: numbers(source).pipe(HELD),
    "two": lambda source: numbers(source).pipe(HELD, HELD),
    "behind other operators": lambda source: events(source).pipe(
        rd.validate(), rd.stall_timeout(1), rd.run_tools({}), HELD
    ),
    "in front of other operators": lambda source: events(source).pipe(
        HELD, rd.run_tools({}), rd.smooth(max_lag=CHECK / 10), rd.scan_deltas()
    ),
    "behind share_events": lambda source: events(source).pipe(rd.share_events(), HELD),
    "in front of share_events": lambda source: events(source).pipe(HELD, rd.share_events()),
    "behind retry_stream": lambda source: rd.retry_stream(lambda: events(source)).pipe(HELD),
    "in retry_stream": lambda source: rd.retry_stream(lambda: events(source).pipe(HELD)),
    "in per_block": lambda source: events(source).pipe(rd.per_block(lambda block: block.pipe(HELD))),
    "behind per_block": lambda source: events(source).pipe(rd.per_block(lambda block: block), HELD),
    "in group_by_block": lambda source: events(source).pipe(
        rd.group_by_block(), ops.flat_map(lambda block: block.pipe(HELD))
    ),
    "in a block of a message": lambda source: events(source).pipe(
        rd.group_by_message(),
        ops.flat_map(lambda message: message.pipe(rd.per_block(lambda block: block.pipe(HELD)))),
    ),
    "in one of two that are merged": lambda source: rx.merge(rx.never(), numbers(source).pipe(HELD)),
    "behind a merge": lambda source: rx.merge(rx.never(), numbers(source)).pipe(HELD),
    "behind a concat": lambda source: rx.concat(rx.of(-1), numbers(source)).pipe(HELD),
    "behind flat_map": lambda source: rx.of(1).pipe(ops.flat_map(lambda _: numbers(source)), HELD),
}


@pytest.mark.parametrize("overflow", ["block", "buffer"])
@pytest.mark.parametrize("build", PIPELINES.values(), ids=PIPELINES)
def test_a_source_is_not_read_ahead_of_a_slow_check(build: Any, overflow: Any) -> None:
    source = Source()

    async def main() -> None:
        async with rd.to_async_iterable(build(source), overflow) as values:
            async for value in values:
                source.tell(value)
                if source.told == COUNT:
                    break

    VirtualTime().run(main())
    assert source.told >= COUNT
    assert source.ahead <= 3
    assert source.closed == source.opened == 1


@pytest.mark.parametrize("build", PIPELINES.values(), ids=PIPELINES)
def test_a_source_still_waits_for_a_slow_reader(build: Any) -> None:
    source = Source()

    async def main() -> None:
        async with rd.to_async_iterable(build(source), maxsize=1) as values:
            async for value in values:
                await asyncio.sleep(CHECK * 10)
                source.tell(value)
                if source.told == 20:
                    break

    VirtualTime().run(main())
    assert source.ahead <= 4


def test_a_blocking_source_is_not_read_ahead_of_a_slow_check() -> None:
    source = Source(50)

    async def main() -> None:
        await rd.for_each(rd.from_iterable(source.blocking).pipe(checked(turn)), source.tell)

    run(main)
    assert source.told == 50
    assert source.ahead <= 1


async def turn(_: object) -> None:
    await turns(3)


@pytest.mark.parametrize("gate", [None, Gate()])
def test_a_blocking_source_on_a_thread_is_checked_to_its_end(gate: Gate | None) -> None:
    source = Source(50)

    with rd.to_iterable(pushed(source.blocking, gate).pipe(checked(turn)), "buffer") as values:
        for value in values:
            assert value == source.told
            source.told += 1
    assert source.told == 50


def test_a_source_on_a_thread_stops_where_the_room_is_closed() -> None:
    gate, source = Gate(), Source()
    asked = threading.Event()

    async def ask(_: object) -> None:
        asked.set()
        await asyncio.Event().wait()

    async def main() -> None:
        async with rd.to_async_iterable(pushed(source.blocking, gate).pipe(checked(ask)), "buffer"):
            assert await asyncio.to_thread(asked.wait, SECONDS)
            await asyncio.sleep(0.02)  # in which a source that doesn't wait is read to its end
            assert source.given <= 2

    run(main)


def test_rd_stream_reads_a_source_as_fast_as_its_checks() -> None:
    source = Source(50)
    told: list[int] = []

    async def check(event: rd.Event) -> None:
        await turns(3)
        if isinstance(event, ev.TextDelta):
            told.append(source.given - int(event.text))

    def read() -> rx.Observable[rd.Event]:
        return events(source).pipe(checked(check))

    with rd.stream(read()) as reply:
        text = "".join(reply.text_deltas)
    assert text == "".join(f"{number} " for number in range(50))
    assert max(told) <= 2


# What is shared.


@pytest.mark.parametrize("overflow", ["block", "buffer", "join"])
def test_a_check_of_one_reader_does_not_hold_up_the_others(overflow: Any) -> None:
    source, may_pass = Source(), asyncio.Event()

    async def main() -> None:
        shared = events(source).pipe(rd.share_events())

        async def wait(_: object) -> None:
            await may_pass.wait()

        async with rd.to_async_iterable(shared.pipe(checked(wait)), overflow) as slow_values:
            texts = await rd.last_value(shared.pipe(rd.text_deltas(), ops.scan(lambda a, b: a + b)))
            assert source.given == COUNT
            assert isinstance(texts, str)
            may_pass.set()
            snapshot = rd.Fold()
            async for event in slow_values:
                snapshot.step(event)
        assert snapshot.snapshot.text == texts

    VirtualTime().run(main())


def test_a_shared_source_waits_while_each_of_its_readers_checks_and_goes_on_when_one_has_left() -> None:
    source, may_pass = Source(), asyncio.Event()

    async def main() -> None:
        async def wait(_: object) -> None:
            await may_pass.wait()

        shared = events(source).pipe(rd.share_events())
        reading = asyncio.ensure_future(rd.for_each(shared.pipe(checked(wait)), lambda _: None))
        async with rd.to_async_iterable(shared.pipe(checked(never))):
            await turns()
            before = source.given
            await asyncio.sleep(1)
            assert source.given == before <= 1
        may_pass.set()
        await reading
        assert source.given == COUNT

    VirtualTime().run(main())


def test_a_branch_that_is_left_while_it_checks_lets_the_source_go_on() -> None:
    source, enough = Source(), Subject[int]()

    async def main() -> None:
        held = events(source).pipe(
            rd.per_block(lambda block: block.pipe(checked(never), ops.take_until(enough)))
        )
        reading = asyncio.ensure_future(rd.for_each(held, lambda _: None))
        await asyncio.sleep(1)
        assert source.given <= 1
        enough.on_next(1)
        await reading
        assert source.given == COUNT

    VirtualTime().run(main())


# The end.


@pytest.mark.parametrize(
    "build", [PIPELINES[name] for name in ("alone", "two", "in per_block", "behind share_events")]
)
def test_a_reader_may_leave_during_a_check(build: Any) -> None:
    source = Source()

    async def main() -> None:
        async with rd.to_async_iterable(build(source)):
            await turns()
        assert source.closed == source.opened

    run(main)


def test_a_reply_may_be_stopped_during_a_check() -> None:
    source = Source()

    async def main() -> None:
        async with rd.stream(events(source).pipe(checked(never))) as reply:
            await turns()
            reply.stop()
            async for snapshot in reply:
                assert snapshot.status == "interrupted"
        assert source.closed == source.opened

    run(main)


def test_a_check_that_fails_ends_the_stream_and_closes_the_source() -> None:
    source = Source()

    async def fail(_: object) -> None:
        await turns()
        raise BOOM

    async def main() -> None:
        with pytest.raises(ValueError, match="boom"):
            await rd.for_each(numbers(source).pipe(checked(fail)), lambda _: None)
        assert source.closed == source.opened == 1

    run(main)


def test_an_error_of_the_source_during_a_check_ends_the_stream() -> None:
    async def main() -> None:
        source = Subject[int]()
        reading = asyncio.ensure_future(rd.for_each(source.pipe(checked(never)), lambda _: None))
        await turns()
        source.on_next(1)
        source.on_error(BOOM)
        with pytest.raises(ValueError, match="boom"):
            await reading

    run(main)


def test_a_room_that_is_closed_behind_the_end_holds_nobody() -> None:
    rooms: list[Any] = []

    class Early:
        def __init__(self, sink: rd.building.Sink[Any]) -> None:
            self._sink = sink
            rooms.append(sink.room())

        def on_next(self, _: object) -> None:
            rooms[0].close()
            self._sink.on_completed()

    async def main() -> None:
        source = Source()
        again = rx.concat(numbers(source).pipe(rd.building.lift("early", Early)), numbers(source))
        await rd.for_each(again, source.tell)
        rooms[0].close()
        assert source.told == COUNT
        assert rooms[0].is_open

    run(main)


# The silence of a provider.


@pytest.mark.parametrize("limit", ["idle", "first", "total"])
def test_the_time_of_a_check_is_no_silence_in_front_of_it(limit: str) -> None:
    async def main() -> None:
        source = Source(20)
        seconds: Any = {"first": None, "idle": None} | {limit: CHECK / 2}
        watched = numbers(source).pipe(rd.stall_timeout(**seconds), HELD)
        await rd.for_each(watched, source.tell)
        assert source.told == 20

    VirtualTime().run(main())


def test_the_time_of_a_check_is_silence_behind_it() -> None:
    async def main() -> None:
        watched = numbers(Source()).pipe(HELD, rd.stall_timeout(CHECK / 2))
        with pytest.raises(rd.errors.StallTimeoutError):
            await rd.for_each(watched, lambda _: None)

    VirtualTime().run(main())


# What the check itself needs doesn't wait for it.


class Asking:
    """Each value when the Observable of its check has completed."""

    def __init__(self, sink: rd.building.Sink[Any], ask: Callable[[Asking, Any], None]) -> None:
        self.sink = sink
        self.room = sink.room()
        self._ask = ask
        self._source_ended = False
        self._open = 0

    def on_next(self, value: Any) -> None:
        self._open += 1
        self.room.close()
        self._ask(self, value)

    def answered(self, value: Any) -> None:
        self.sink.on_next(value)
        self._open -= 1
        self.room.open()
        self._end()

    def on_completed(self) -> None:
        self._source_ended = True
        self._end()

    def _end(self) -> None:
        if self._source_ended and not self._open:
            self.sink.on_completed()


class Answer:
    def __init__(self, asking: Asking, value: Any) -> None:
        self._asking = asking
        self._value = value

    def on_next(self, _: object) -> None: ...

    def on_completed(self) -> None:
        self._asking.answered(self._value)


def by_the_sink(asking: Asking, value: Any) -> None:
    asking.sink.subscribe(numbers(Source(5)), Answer(asking, value))


def by_an_effect(asking: Asking, value: Any) -> None:
    asking.sink.effect(by_the_sink, asking, value)


def by_hand(asking: Asking, value: Any) -> None:
    numbers(Source(5)).subscribe(on_completed=lambda: asking.sink.run(asking.answered, value))


def by_rx(asking: Asking, value: Any) -> None:
    loop = AsyncIOScheduler(asyncio.get_running_loop())
    later = numbers(Source(5)).pipe(ops.delay(0.001), ops.subscribe_on(loop))
    asking.sink.subscribe(later, Answer(asking, value))


class Log:
    """A log that is never asked."""

    def when_written(self, event: rd.Event, step: Callable[[bool], object]) -> Disposable:
        raise AssertionError(event, step)


BEFORE: dict[str, Any] = {
    "nothing": (),
    "a shared source": (rd.share_events(),),
    "a shared source with a log": (rd.share_events(), lambda source: logged(source, Log())),
    "an operator of Rx": (ops.map(lambda value: value),),
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("ask", [by_the_sink, by_an_effect, by_hand, by_rx])
@pytest.mark.parametrize("start", [0, 2], ids=["later", "at the subscription"])
def test_a_check_that_reads_a_source_of_its_own_ends(ask: Any, before: Any, start: int) -> None:
    source = Source(20)

    async def main() -> None:
        asking = rd.building.lift("asking", lambda sink: Asking(sink, ask))
        first = rx.from_iterable([ev.BlockStart(number, {"type": "text"}) for number in range(start)])
        reply = rx.concat(first, events(source)).pipe(*before, asking)
        await rd.for_each(reply, source.tell)
        assert source.told == start + 24

    VirtualTime().run(main())


def test_a_stop_signal_does_not_wait_for_a_check() -> None:
    async def signal() -> AsyncIterator[int]:
        for number in range(5):
            await asyncio.sleep(1)
            yield number

    async def main() -> None:
        source = Source()
        stop = rd.from_async_iterable(signal).pipe(ops.skip(4))
        stopped = events(source).pipe(rd.until_stopped(stop), checked(pause))
        await rd.for_each(stopped, source.tell)
        assert source.told < 10

    async def pause(_: object) -> None:
        await asyncio.sleep(4)

    VirtualTime().run(main())


# The rest.


def test_a_room_may_be_opened_on_any_thread() -> None:
    class Elsewhere:
        """Opens its room on another thread, which may be earlier than it is closed."""

        def __init__(self, sink: rd.building.Sink[Any]) -> None:
            self._sink = sink
            self._room = sink.room()

        def on_next(self, value: Any) -> None:
            self._room.close()
            threading.Thread(target=self._room.open).start()
            self._sink.on_next(value)

    async def main() -> None:
        source = Source()
        await rd.for_each(numbers(source).pipe(rd.building.lift("elsewhere", Elsewhere)), source.tell)
        assert source.told == COUNT

    run(main)


def test_without_a_reader_with_a_session_nothing_waits() -> None:
    async def main() -> None:
        source, told = Source(), list[int]()
        ended = asyncio.Event()
        numbers(source).pipe(checked(turn)).subscribe(told.append, on_completed=ended.set)
        await ended.wait()
        assert told == list(range(COUNT))

    run(main)


def test_a_room_is_asked_for_before_the_source_is_subscribed() -> None:
    class Late:
        def __init__(self, sink: rd.building.Sink[Any]) -> None:
            self._sink = sink

        def on_next(self, _: object) -> None:
            self._sink.room()

    with pytest.raises(rd.InvalidValueError, match=r"late asked for its room after its source"):
        rx.of(1).pipe(rd.building.lift("late", Late)).run()


def test_an_operator_has_one_room() -> None:
    rooms: list[Any] = []

    class Twice:
        def __init__(self, sink: rd.building.Sink[Any]) -> None:
            rooms.extend([sink.room(), sink.room()])
            self.on_next = sink.on_next

    rx.of(1).pipe(rd.building.lift("twice", Twice)).run()
    assert rooms[0] is rooms[1]
