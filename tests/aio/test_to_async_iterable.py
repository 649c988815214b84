"""`to_async_iterable` on a real loop; nothing here goes by the clock."""

from __future__ import annotations

import asyncio
import gc
import threading
import traceback
import weakref
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.disposable import Disposable
from reactivex.scheduler import ThreadPoolScheduler
from reactivex.subject import Subject
from support.loops import Stream, run, turns
from support.security_page import says

import rxdelta as rd
from rxdelta.aio import reading
from rxdelta.runtime import current_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

BOOM = ValueError("boom")
POLICIES = ["latest", "buffer", "block", "error"]


async def drain(values: AsyncIterator[Any]) -> list[Any]:
    return [value async for value in values]


# What a slow reader gets.


@pytest.mark.parametrize(
    ("overflow", "expected"),
    [("latest", [3]), ("buffer", [1, 2, 3]), ("block", [1, 2, 3]), ("error", [1, 2, 3])],
)
def test_the_policies_over_a_source_that_is_faster(overflow: Any, expected: list[int]) -> None:
    async def main() -> list[Any]:
        async with rd.to_async_iterable(rx.of(1, 2, 3), overflow) as values:
            return await drain(values)

    assert run(main) == expected


@pytest.mark.parametrize("overflow", POLICIES)
def test_a_reader_in_step_gets_every_value(overflow: Any) -> None:
    async def main() -> list[Any]:
        got = []
        source = Subject[int]()
        async with rd.to_async_iterable(source, overflow, maxsize=1) as values:
            for number in range(5):
                source.on_next(number)
                got.append(await anext(values))
        return got

    assert run(main) == [0, 1, 2, 3, 4]


def test_latest_holds_no_more_than_the_newest() -> None:
    async def main() -> list[int]:
        source = Subject[int]()
        async with rd.to_async_iterable(source, "latest") as values:
            source.on_next(1)
            source.on_next(2)
            first = await anext(values)
            source.on_next(3)
            source.on_completed()
            return [first, *await drain(values)]

    assert run(main) == [2, 3]


@pytest.mark.parametrize("maxsize", [1, 1024])
def test_nothing_is_lost_unless_asked_for_and_a_source_that_can_wait_does(maxsize: int) -> None:
    async def main() -> None:
        stream = Stream(*range(3000))
        async with rd.to_async_iterable(rd.from_async_iterable(stream), maxsize=maxsize) as values:
            await turns(3100)
            assert stream.given == maxsize
            assert await drain(values) == list(range(3000))

    run(main)


def test_nothing_is_lost_of_a_source_that_cannot_wait() -> None:
    async def main() -> None:
        source = Subject[int]()
        async with rd.to_async_iterable(source, maxsize=1) as values:
            for number in range(3000):
                source.on_next(number)
            source.on_completed()
            assert await drain(values) == list(range(3000))

    run(main)


def test_block_makes_the_source_wait_and_go_on() -> None:
    async def main() -> None:
        stream = Stream(*range(10))
        async with rd.to_async_iterable(rd.from_async_iterable(stream), "block", maxsize=2) as values:
            await turns(50)
            assert stream.given == 2
            for number in range(10):
                assert await anext(values) == number
                await turns(50)
                assert stream.given == min(number + 3, 10)
            with pytest.raises(StopAsyncIteration):
                await anext(values)
        assert stream.closed == 1

    run(main)


def test_block_keeps_all_also_of_a_chunk_that_is_many() -> None:
    async def main() -> list[int]:
        source = rd.from_async_iterable(Stream(*range(5))).pipe(ops.flat_map(lambda n: rx.of(n, n, n)))
        async with rd.to_async_iterable(source, "block", maxsize=2) as values:
            return await drain(values)

    assert run(main) == [n for n in range(5) for _ in range(3)]


def test_block_lets_a_reader_go_while_the_source_waits() -> None:
    async def main() -> None:
        stream = Stream(*range(10))
        async with rd.to_async_iterable(rd.from_async_iterable(stream), "block", maxsize=1):
            await turns()
            assert stream.given == 1
        assert stream.closed == 1

    run(main)


def test_block_lets_the_source_be_cancelled_while_it_waits() -> None:
    async def main() -> None:
        stream, enough = Stream(*range(10)), Subject[int]()
        source = rd.from_async_iterable(stream).pipe(ops.take_until(enough))
        async with rd.to_async_iterable(source, "block", maxsize=1) as values:
            await turns()
            enough.on_next(1)
            await turns()
            assert (stream.given, stream.closed) == (1, 1)
            assert await drain(values) == [0]

    run(main)


def test_block_ends_with_its_reader_for_those_who_share_the_source() -> None:
    async def main() -> None:
        stream = Stream(*range(5))
        shared = rd.from_async_iterable(stream).pipe(ops.share())
        got: list[int] = []
        async with rd.to_async_iterable(shared, "block", maxsize=1):
            shared.subscribe(got.append)
            await turns()
            assert got == [0]
        await turns()
        assert (got, stream.closed) == ([0, 1, 2, 3, 4], 1)

    run(main)


def test_a_reader_that_has_left_pauses_nobody() -> None:
    async def main() -> None:
        reading = rd.to_async_iterable(rx.never(), maxsize=1)
        async with reading:
            inbox = reading._inbox
            assert inbox is not None
        inbox._values.append(1)  # by another thread, which was just at it
        inbox.session.backpressure.update()
        assert inbox.session.backpressure.is_ready()

    run(main)


def test_a_subscription_inside_the_block_is_not_the_readings() -> None:
    async def main() -> None:
        async with rd.to_async_iterable(rx.never()):
            assert current_session() is None

    run(main)


def test_block_slows_each_of_several_sources() -> None:
    async def main() -> None:
        one, other = Stream(*range(100)), Stream(*range(100))
        merged = rx.merge(rd.from_async_iterable(one), rd.from_async_iterable(other))
        async with rd.to_async_iterable(merged, "block", maxsize=3) as values:
            await turns(300)
            assert one.given + other.given <= 4
            assert len(await drain(values)) == 200
        assert (one.closed, other.closed) == (1, 1)

    run(main)


def test_error_tells_a_reader_that_fell_behind_after_what_was_queued() -> None:
    async def main() -> None:
        stream = Stream(*range(10), hold=True)
        async with rd.to_async_iterable(rd.from_async_iterable(stream), "error", maxsize=3) as values:
            await turns(50)
            assert [await anext(values) for _ in range(3)] == [0, 1, 2]
            with pytest.raises(rd.errors.BufferOverflowError, match="3 values behind"):
                await anext(values)
        assert (stream.given, stream.closed) == (4, 1)

    run(main)


def test_error_carries_the_snapshot_that_did_not_fit() -> None:
    async def main() -> None:
        deltas = rx.from_iterable([rd.MessageDelta(content=mark) for mark in "abc"])
        with pytest.raises(rd.errors.BufferOverflowError) as raised:
            async with rd.to_async_iterable(deltas.pipe(rd.scan_deltas()), "error", maxsize=2) as values:
                await drain(values)
        assert raised.value.snapshot is not None
        assert raised.value.snapshot.text == "abc"

    run(main)


# How it ends.


@pytest.mark.parametrize("overflow", POLICIES)
def test_values_come_before_the_error_and_after_it_nothing(overflow: Any) -> None:
    async def main() -> None:
        source = Subject[int]()
        async with rd.to_async_iterable(source, overflow) as values:
            source.on_next(1)
            source.on_error(BOOM)
            source.on_next(2)
            assert await anext(values) == 1
            with pytest.raises(ValueError, match="boom") as raised:
                await anext(values)
            assert raised.value is BOOM
            with pytest.raises(StopAsyncIteration):
                await anext(values)

    run(main)


def test_leaving_while_a_value_is_awaited_elsewhere_ends_that_too() -> None:
    async def main() -> list[Any]:
        async with rd.to_async_iterable(rx.never()) as values:
            waiting = asyncio.ensure_future(drain(values))
            await turns()
        return await waiting

    assert run(main) == []


@pytest.mark.parametrize("overflow", POLICIES)
def test_after_the_block_there_is_nothing_to_read(overflow: Any) -> None:
    async def main() -> list[Any]:
        source = Subject[int]()
        async with rd.to_async_iterable(source, overflow) as values:
            source.on_next(1)
        assert source.observers == []
        return await drain(values)

    assert run(main) == []


@pytest.mark.parametrize("how", ["break", "raise", "cancel", "return"])
def test_54_leaving_waits_until_the_source_has_closed(how: str) -> None:
    async def main() -> None:
        stream = Stream(1, hold=True)

        async def read() -> None:
            async with rd.to_async_iterable(rd.from_async_iterable(stream)) as values:
                async for _ in values:
                    if how == "raise":
                        raise BOOM
                    if how == "break":
                        break
                    if how == "return":
                        return
            assert how == "break"

        task = asyncio.ensure_future(read())
        await turns()
        if how == "cancel":
            assert stream.closed == 0
            task.cancel()
        await asyncio.wait([task])
        assert stream.closed == 1
        assert task.cancelled() == (how == "cancel")
        assert how in ("cancel", "break", "return") or task.exception() is BOOM

    run(main)


def test_a_reading_is_entered_once() -> None:
    async def main() -> None:
        reading = rd.to_async_iterable(rx.of(1))
        async with reading as values:
            assert await drain(values) == [1]
        with pytest.raises(rd.InvalidValueError, match="entered once"):
            async with reading:
                pass

    run(main)


def test_a_subscription_that_fails_is_an_error_of_the_reading() -> None:
    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        raise BOOM

    async def main() -> None:
        async with rd.to_async_iterable(rx.Observable(subscribe)) as values:
            with pytest.raises(ValueError, match="boom"):
                await anext(values)

    run(main)


# Several readers of one source.


@pytest.mark.parametrize(
    ("overflow", "share"),
    [
        (overflow, share)
        for overflow in POLICIES
        for share in (rd.share_latest, rd.share_events)
        if (overflow, share) != ("latest", rd.share_events)
    ],  # refused when the reading is made
)
def test_each_reader_of_a_shared_source_has_its_own_policy(overflow: Any, share: Any) -> None:
    events = [
        rd.events.MessageStart(),
        rd.events.BlockStart(0, {"type": "text"}),
        *(rd.events.TextDelta(0, mark) for mark in "abcdefgh"),
        rd.events.BlockFinish(0),
        rd.events.MessageFinish("stop"),
    ]
    items = events if share is rd.share_events else list(range(12))

    async def main() -> None:
        stream = Stream(*items, hold=True)
        shared = rd.from_async_iterable(stream).pipe(share())
        async with (
            rd.to_async_iterable(shared, overflow, maxsize=3) as slow,
            rd.to_async_iterable(shared, "buffer") as quick,
        ):
            await turns(100)  # and the slow one doesn't read
            assert stream.given == 12
            assert [await anext(quick) for _ in range(12)] == items
            if overflow == "error":
                assert [await anext(slow) for _ in range(3)] == items[:3]
                with pytest.raises(rd.errors.BufferOverflowError):
                    await anext(slow)
                stream.go_on.set()
            elif overflow == "latest":
                assert await anext(slow) == items[-1]
                stream.go_on.set()
                assert await drain(slow) == []
            else:
                stream.go_on.set()
                assert await drain(slow) == items
            assert await drain(quick) == []
        assert stream.closed == 1

    run(main)


@pytest.mark.parametrize("share", [rd.share_latest, rd.share_events])
@pytest.mark.parametrize("asked", [{}, {"overflow": "block"}, {"overflow": "block", "maxsize": 1}])
def test_two_readers_of_a_shared_source_may_be_read_one_after_the_other(share: Any, asked: Any) -> None:
    text = [rd.events.TextDelta(0, "a")] * 3000
    events = [rd.events.BlockStart(0, {"type": "text"}), *text, rd.events.MessageFinish("stop")]
    items: list[Any] = events if share is rd.share_events else list(range(3000))
    size = asked.get("maxsize", 1024)

    async def main() -> None:
        stream = Stream(*items)
        shared = rd.from_async_iterable(stream).pipe(share())
        async with (
            rd.to_async_iterable(shared, **asked) as one,
            rd.to_async_iterable(shared, **asked) as other,
        ):
            await turns(3100)
            assert stream.given == min(size, len(items))  # neither has room
            assert await drain(one) == stream.items
            assert await drain(other) == stream.items
        assert stream.closed == 1

    run(main)


def test_a_shared_source_waits_only_while_none_of_its_readers_has_room() -> None:
    async def main() -> None:
        stream = Stream(*range(100))
        shared = rd.from_async_iterable(stream).pipe(rd.share_latest(unread="keep"))
        async with rd.to_async_iterable(shared, maxsize=3) as slow:
            async with rd.to_async_iterable(shared, maxsize=8) as quick:
                await turns(200)
                assert stream.given == 8
                assert [await anext(quick) for _ in range(5)] == [0, 1, 2, 3, 4]
                await turns(200)
                assert stream.given == 13
            await turns(200)
            assert stream.given == 13  # who is left has none
            assert [await anext(slow) for _ in range(10)] == list(range(10))
            await turns(200)
            assert stream.given == 13
            assert await anext(slow) == 10
            await turns(200)
            assert stream.given == 14
            async with rd.to_async_iterable(shared, maxsize=2):  # who comes has some
                await turns(200)
                assert stream.given == 15
        await turns(200)
        assert (stream.given, stream.closed) == (100, 1)  # nobody is left

    run(main)


def test_an_observer_of_ones_own_always_has_room() -> None:
    async def main() -> None:
        got: list[int] = []
        stream = Stream(*range(100))
        shared = rd.from_async_iterable(stream).pipe(rd.share_latest())
        async with rd.to_async_iterable(shared, maxsize=3) as slow:
            await turns(200)
            assert stream.given == 3
            shared.subscribe(got.append)
            await turns(200)
            assert (stream.given, got) == (100, list(range(2, 100)))
            assert await drain(slow) == list(range(100))

    run(main)


def test_a_reader_on_another_loop_is_waited_for_too_and_holds_up_nobody() -> None:
    async def main() -> None:
        stream = Stream(*range(100))
        shared = rd.from_async_iterable(stream).pipe(rd.share_latest())
        entered, go_on = threading.Event(), threading.Event()

        async def elsewhere() -> list[int]:
            async with rd.to_async_iterable(shared, maxsize=8) as values:
                entered.set()
                go_on.wait()
                return await drain(values)

        async with rd.to_async_iterable(shared, maxsize=3) as here:
            await turns(200)
            reading = asyncio.ensure_future(asyncio.to_thread(asyncio.run, elsewhere()))
            while not entered.is_set():
                await asyncio.sleep(0)
            await turns(200)
            assert stream.given == 10  # the newest, and seven more
            go_on.set()
            assert await reading == list(range(2, 100))
            assert await drain(here) == list(range(100))

    run(main)


def test_a_reader_whose_values_come_by_another_thread_does_not_leave_a_shared_source_waiting() -> None:
    async def main() -> None:
        for _ in range(20):
            threads = ThreadPoolScheduler(1)
            stream = Stream(*range(200))
            shared = rd.from_async_iterable(stream).pipe(rd.share_latest())
            readers = [
                rd.to_async_iterable(shared.pipe(*hop), maxsize=1) for hop in ((), (ops.observe_on(threads),))
            ]
            async with readers[0] as one, readers[1] as other:
                assert await asyncio.gather(drain(one), drain(other)) == [list(range(200))] * 2
            threads.executor.shutdown()

    run(main)


@says("values by which a reader")
@pytest.mark.parametrize("overflow", ["block", "join"])
def test_a_stuck_reader_of_a_shared_source_is_ended_when_it_is_far_behind_and_the_others_get_everything(
    overflow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(reading._MAX_LAG, overflow, 200)
    news = [rd.events.ProviderEvent("somebody", str(number)) for number in range(1000)]

    async def main() -> None:
        stream = Stream(*news, hold=True)
        shared = rd.from_async_iterable(stream).pipe(rd.share_events())
        async with (
            rd.to_async_iterable(shared, overflow, maxsize=4) as stuck,
            rd.to_async_iterable(shared, overflow, maxsize=4) as quick,
        ):
            assert [await anext(quick) for _ in range(1000)] == news
            assert [await anext(stuck) for _ in range(204)] == news[:204]
            with pytest.raises(rd.errors.BufferOverflowError, match="204 values behind the others"):
                await anext(stuck)
            stream.go_on.set()
            assert await drain(quick) == []
        assert stream.closed == 1

    run(main)


def test_a_shared_source_that_cannot_wait_overtakes_nobody() -> None:
    async def main() -> None:
        shared = rx.from_iterable(range(70_000)).pipe(rd.share_latest())
        async with rd.to_async_iterable(shared, maxsize=1) as values:
            assert await drain(values) == list(range(70_000))

    run(main)


@pytest.mark.parametrize("overflow", POLICIES)
def test_a_reader_of_a_shared_source_that_leaves_takes_nothing_from_the_other(overflow: Any) -> None:
    async def main() -> None:
        stream = Stream(*range(9))
        shared = rd.from_async_iterable(stream).pipe(rd.share_latest())
        async with rd.to_async_iterable(shared, "buffer") as stays:
            async with rd.to_async_iterable(shared, overflow, maxsize=1) as leaves:
                assert await anext(leaves) == 0
            assert stream.closed == 0
            assert await drain(stays) == list(range(9))
        assert stream.closed == 1

    run(main)


def test_an_error_that_several_raise_keeps_the_frames_of_the_source() -> None:
    async def broken() -> AsyncIterator[int]:
        yield 1
        raise BOOM

    async def main() -> None:
        shared = rd.from_async_iterable(broken).pipe(rd.share_latest())

        readers = [asyncio.ensure_future(rd.last_value(shared)) for _ in range(2)]
        for reader in [*readers, rd.last_value(shared)]:
            with pytest.raises(ValueError, match="boom") as raised:
                await reader
            assert "broken" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]

    run(main)


def test_an_error_that_was_raised_is_freed_without_the_garbage_collector() -> None:
    class Big(ValueError):
        pass

    async def main() -> None:
        gc.disable()
        try:
            async with rd.to_async_iterable(rx.throw(Big()), "buffer") as values:
                try:
                    await anext(values)
                except Big as error:
                    kept = weakref.ref(error)
            assert kept() is None
        finally:
            gc.enable()

    run(main)


# Other threads.


@pytest.mark.parametrize("overflow", ["buffer", "block", "latest"])
def test_values_of_another_thread_wake_the_reader_and_come_in_order(overflow: Any) -> None:
    threads: list[threading.Thread] = []

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        def emit() -> None:
            for number in range(500):
                observer.on_next(number)
            observer.on_completed()

        threads.append(threading.Thread(target=emit))
        threads[0].start()
        return Disposable()

    async def main() -> list[Any]:
        async with rd.to_async_iterable(rx.Observable(subscribe), overflow, maxsize=10) as values:
            got = await drain(values)
        threads[0].join()
        return got

    got = run(main)
    assert got == sorted(set(got))
    assert got[-1] == 499
    assert overflow == "latest" or len(got) == 500


def test_a_throttled_source_of_another_thread_uses_the_loops_time() -> None:
    first, held, second = threading.Event(), threading.Event(), threading.Event()
    source = Subject[int]()
    threads: list[str] = []

    def emit() -> None:
        assert first.wait(10)
        source.on_next(1)
        source.on_next(2)
        held.set()
        assert second.wait(10)
        source.on_next(3)
        source.on_completed()

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        loop.set_debug(True)  # it then refuses calls that aren't safe
        thread = threading.Thread(target=emit, name="emitter")
        thread.start()
        throttled = source.pipe(
            rd.throttle_latest(10), ops.do_action(lambda _: threads.append(threading.current_thread().name))
        )
        async with rd.to_async_iterable(throttled, "buffer") as values:
            first.set()
            assert await anext(values) == 1
            while not held.is_set():
                await asyncio.sleep(0)
            await turns()
            now = loop.time
            loop.time = lambda: now() + 11
            assert await anext(values) == 2
            second.set()
            assert await drain(values) == [3]
        thread.join()

    run(main)
    assert threads == ["emitter", threading.main_thread().name, "emitter"]


def test_58_values_of_another_thread_after_the_loop_has_closed_are_nothing() -> None:
    source = Subject[int]()
    throttled = source.pipe(rd.throttle_latest(1))
    got: list[Any] = []

    async def main() -> None:
        throttled.subscribe(got.append, on_completed=lambda: got.append("|"))
        await rd.to_async_iterable(source).__aenter__()

    asyncio.run(main())
    source.on_next(1)
    source.on_next(2)
    source.on_completed()
    assert got == [1, 2, "|"]


def test_a_reader_that_never_has_to_wait_lets_the_loops_timers_run() -> None:
    async def main() -> None:
        ran: list[int] = []
        asyncio.get_running_loop().call_soon(ran.append, 1)
        async with rd.to_async_iterable(rx.from_iterable(range(1000)), "buffer") as values:
            seen = [len(ran) async for _ in values]
        assert seen.index(1) <= 64

    run(main)
