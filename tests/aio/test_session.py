"""What is raised anywhere between a source and its reader is raised to the reader, whoever was calling."""

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

import rxdelta as rd
from rxdelta.runtime import Backpressure
from rxdelta.testing import VirtualTime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ev = rd.events
BOOM = ValueError("boom")
SECONDS = 30  # the longest that a test on a thread may take; it takes none


class Source:
    """A reply that comes a piece each 10 ms and then hangs: only an error ends it."""

    def __init__(self) -> None:
        self.opened = self.closed = 0

    async def __call__(self) -> AsyncIterator[rd.Event]:
        self.opened += 1
        try:
            yield ev.MessageStart(id="m")
            yield ev.BlockStart(0, {"type": "text"})
            for number in range(8):
                yield ev.TextDelta(0, f"w{number} ")
                await asyncio.sleep(0.01)
            await asyncio.Event().wait()
        finally:
            self.closed += 1


def raising(at: int = 0) -> Callable[[rx.Observable[Any]], rx.Observable[Any]]:
    """An operator of somebody's own that raises at its n-th value, or at the source's error."""

    def apply(source: rx.Observable[Any]) -> rx.Observable[Any]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            count = 0

            def on_next(value: Any) -> None:
                nonlocal count
                count += 1
                if count == at:
                    raise BOOM
                observer.on_next(value)

            def on_error(_: Exception) -> None:
                raise BOOM

            return source.subscribe(on_next, on_error, observer.on_completed, scheduler=scheduler)

        return rx.Observable(subscribe)

    return apply


async def given_to_for_each(source: rx.Observable[Any]) -> None:
    await rd.for_each(source, lambda _: None)


async def read(source: rx.Observable[Any]) -> None:
    async with rd.to_async_iterable(source) as values:
        async for _ in values:
            pass


async def iterated(source: rx.Observable[Any]) -> None:
    async for _ in rd.iterate(source):
        pass


DOORS = [given_to_for_each, read, iterated, rd.last_value]


def later(call: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(0.045, call)


def event_set_later() -> asyncio.Event:
    stop = asyncio.Event()
    later(stop.set)
    return stop


def value_pushed_later() -> Subject[int]:
    stop = Subject[int]()
    later(lambda: stop.on_next(1))
    return stop


def error_pushed_later() -> Subject[int]:
    stop = Subject[int]()
    later(lambda: stop.on_error(RuntimeError("the button is broken")))
    return stop


async def task_ended_later() -> None:
    await asyncio.sleep(0.045)


def retried(source: rx.Observable[Any]) -> rx.Observable[Any]:
    requests = iter([rx.throw(ConnectionResetError()), source])
    return rd.retry_stream(lambda: next(requests), backoff=lambda failures, error: 0.05)


def snapshots(*operators: Any) -> Any:
    return lambda source: source.pipe(rd.scan_deltas(), *operators)


BEHIND: dict[str, tuple[Callable[[rx.Observable[Any]], rx.Observable[Any]], int]] = {
    "throttle_latest's timer": (snapshots(rd.throttle_latest(0.015)), 2),
    "debounce_latest's timer": (snapshots(rd.debounce_latest(0.004)), 1),
    "debounce_latest's longest wait": (snapshots(rd.debounce_latest(1, max_wait=0.02)), 1),
    "conflate's scheduler": (
        lambda source: source.pipe(
            rd.scan_deltas(), rd.conflate(scheduler=AsyncIOScheduler(asyncio.get_running_loop()))
        ),
        2,
    ),
    "smooth's timer": (lambda source: source.pipe(rd.smooth(rate=50)), 6),
    "compact_deltas' timer": (lambda source: source.pipe(rd.compact_deltas(0.015)), 5),
    "a paced tap": (snapshots(rd.tap_metrics(lambda _: None, through=rd.throttle_latest(0.015))), 2),
    "retry_stream's wait": (retried, 1),
    "to_sse's silence": (lambda source: source.pipe(rd.to_ai_sdk(), rd.to_sse(keep_alive=1)), 12),
    "stall_timeout": (lambda source: source.pipe(rd.stall_timeout(idle=1)), 0),
    "until_stopped's event": (lambda source: source.pipe(rd.until_stopped(event_set_later())), 8),
    "until_stopped's task": (
        lambda source: source.pipe(rd.until_stopped(asyncio.ensure_future(task_ended_later()))),
        8,
    ),
    "until_stopped's observable": (lambda source: source.pipe(rd.until_stopped(value_pushed_later())), 8),
    "until_stopped's failure": (lambda source: source.pipe(rd.until_stopped(error_pushed_later())), 0),
    "a block's stream": (
        lambda source: source.pipe(rd.group_by_block(), ops.flat_map(lambda block: block)),
        3,
    ),
    "a choice's stream": (lambda source: source.pipe(rd.group_by_choice(), ops.flat_map(lambda one: one)), 3),
    "a message's stream": (
        lambda source: source.pipe(rd.group_by_message(), ops.flat_map(lambda one: one)),
        3,
    ),
    "per_block": (lambda source: source.pipe(rd.per_block(lambda block: block)), 3),
    "in a block's pipeline": (
        lambda source: source.pipe(rd.per_block(lambda block: block.pipe(raising(3)))),
        99,
    ),
    "behind a timer in a block's pipeline": (
        lambda source: source.pipe(
            rd.per_block(lambda block: block.pipe(rd.throttle_latest(0.015), raising(2)))
        ),
        99,
    ),
    "share_events": (lambda source: source.pipe(rd.share_events()), 3),
    "behind share_events, a block's timer": (
        lambda source: source.pipe(
            rd.share_events(),
            rd.group_by_block(),
            ops.flat_map(lambda block: block.pipe(rd.throttle_latest(0.015), raising(2))),
        ),
        99,
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("behind", BEHIND)
def test_what_raises_behind_a_timer_a_signal_or_in_a_branch_is_raised_at_the_door(
    behind: str, door: Any
) -> None:
    source = Source()
    build, at = BEHIND[behind]
    reports: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
        with pytest.raises(ValueError, match="boom") as raised:
            await door(build(rd.from_async_iterable(source)).pipe(raising(at)))
        assert raised.value is BOOM

    VirtualTime().run(main())
    assert source.closed == source.opened <= 1
    assert reports == []


@pytest.mark.parametrize(
    "behind", ["throttle_latest's timer", "smooth's timer", "a block's stream", "in a block's pipeline"]
)
def test_what_raises_behind_a_timer_or_in_a_branch_is_raised_by_a_plain_for(behind: str) -> None:
    source = Source()
    build, at = BEHIND[behind]
    raised: list[Exception] = []

    def go() -> None:
        with rd.to_iterable(build(rd.from_async_iterable(source)).pipe(raising(at))) as values:
            try:
                for _ in values:
                    pass
            except ValueError as error:
                raised.append(error)

    thread = threading.Thread(target=go, daemon=True)
    thread.start()
    thread.join(SECONDS)
    assert raised == [BOOM]
    assert source.closed == 1


def test_what_raises_in_a_branch_on_a_foreign_thread_is_raised_at_the_door() -> None:
    async def main() -> None:
        source = Subject[rd.Event]()
        branches = source.pipe(rd.group_by_block(), ops.flat_map(lambda block: block), raising(2))
        async with rd.to_async_iterable(branches) as values:
            for event in (ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "a")):
                await asyncio.to_thread(source.on_next, event)
            await anext(values)
            with pytest.raises(ValueError, match="boom"):
                await asyncio.wait_for(anext(values), SECONDS)
        assert source.observers == []

    asyncio.run(main())


def test_what_raises_behind_a_source_that_one_reader_has_begun_ends_that_reader_alone() -> None:
    async def main() -> None:
        enough = asyncio.Event()
        shared = rd.from_async_iterable(Source()).pipe(rd.until_stopped(enough), rd.share_events())
        later = shared.pipe(
            ops.flat_map(lambda event: after(0.01, event))
        )  # begun in the shared source's task
        good = asyncio.ensure_future(rd.last_value(later))
        with pytest.raises(ValueError, match="boom"):
            await rd.for_each(later.pipe(raising(5)), lambda _: None)
        enough.set()
        assert isinstance(await good, ev.MessageInterrupted)

    VirtualTime().run(main())


@pytest.mark.parametrize("unread", ["close", "keep"])
@pytest.mark.parametrize("share", [rd.share_events, rd.share_latest])
@pytest.mark.parametrize("before", [(), (rd.compact_deltas(0.015),)], ids=["at once", "behind a timer"])
def test_what_raises_in_front_of_a_shared_source_ends_it_for_all_who_read_or_come_later(
    before: Any, share: Any, unread: Any
) -> None:
    reports: list[Any] = []
    told: list[object] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
        source = Source()
        made = [] if share is rd.share_events else [rd.scan_deltas()]
        shared = rd.from_async_iterable(source).pipe(*before, raising(4), *made, share(unread=unread))
        shared.subscribe(on_error=told.append)
        with pytest.raises(ValueError, match="boom"):
            await asyncio.wait_for(rd.last_value(shared), SECONDS)
        with pytest.raises(ValueError, match="boom"):
            await asyncio.wait_for(rd.last_value(shared), SECONDS)
        assert source.closed == source.opened == 1

    VirtualTime().run(main())
    assert told == [BOOM]
    assert reports == []


def after(seconds: float, value: Any) -> rx.Observable[Any]:
    async def one() -> AsyncIterator[Any]:
        await asyncio.sleep(seconds)
        yield value

    return rd.from_async_iterable(one)


def test_without_a_session_what_raises_in_a_timer_goes_to_the_loops_handler_once() -> None:
    reports: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
        source = Source()
        paced = rd.from_async_iterable(source).pipe(rd.scan_deltas(), rd.throttle_latest(0.015), raising(2))
        with suppress(TimeoutError):
            paced.subscribe()
            await asyncio.sleep(1)
        assert source.closed == 1

    VirtualTime().run(main())
    assert [report["exception"] for report in reports] == [BOOM]


def test_a_branch_that_somebody_subscribes_for_himself_is_no_part_of_the_reading() -> None:
    reports: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reports.append(context))
        stop = asyncio.Event()
        events = rd.from_async_iterable(Source()).pipe(rd.until_stopped(stop))
        asyncio.get_running_loop().call_later(1, stop.set)
        await rd.for_each(
            events.pipe(rd.group_by_block()), lambda block: block.pipe(raising(3)).subscribe().dispose
        )

    VirtualTime().run(main())
    assert [report["exception"] for report in reports] == [BOOM]


def test_a_reader_that_reads_just_when_it_is_found_full_has_room() -> None:
    waiting = [1]
    room = Backpressure(lambda: not waiting)
    changes: list[bool] = []
    room.watch(lambda: changes.append(room.is_ready()))
    room.watch(waiting.clear)  # as another thread may, which has seen that there was room
    room.update()
    assert room.is_ready()
    assert changes == [False, True]


def test_a_reading_forgets_the_shared_sources_that_it_has_read() -> None:
    async def main() -> None:
        sources = [rx.of(number).pipe(rd.share_latest()) for number in range(20)]
        reading = rd.to_async_iterable(rx.concat(*sources, rx.never()))
        async with reading as values:
            assert [await anext(values) for _ in sources] == list(range(20))
            inbox: Any = reading._inbox
            assert not inbox.session.backpressure._watchers

    VirtualTime().run(main())
