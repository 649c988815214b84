"""`share_latest`: one subscription to the source, however many read."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable, SerialDisposable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.lines import DAY, line_of, whole
from support.loops import Stream, run as run_loop, turns

import rxdelta as rd
from rxdelta.testing import marbles

if TYPE_CHECKING:
    from reactivex.testing.recorded import Recorded

BOOM = ValueError("boom")

ev = rd.events


def watch(shared: Observable[Any]) -> tuple[list[Any], abc.DisposableBase]:
    """What a reader hears: values, errors, and `|`."""
    got: list[Any] = []
    return got, shared.subscribe(got.append, got.append, lambda: got.append("|"))


def two_readers(
    source: str, second_at: int, *, first_leaves: int = DAY, second_leaves: int = DAY, **options: bool
) -> tuple[list[Recorded[Any]], list[Recorded[Any]], list[Any]]:
    """What each hears, and when the source was read; the times of both count from 200."""
    scheduler = TestScheduler()
    cold = marbles.cold(source, scheduler, values=str, frame=1, error=BOOM)
    shared = cold.pipe(rd.share_latest(**options))
    readers = scheduler.create_observer(), scheduler.create_observer()
    for reader, comes, leaves in ((readers[0], 0, first_leaves), (readers[1], second_at, second_leaves)):
        slot = SerialDisposable()

        def come(*_: Any, slot: SerialDisposable = slot, reader: Any = reader) -> None:
            slot.disposable = shared.subscribe(reader, scheduler=scheduler)

        def leave(*_: Any, slot: SerialDisposable = slot) -> None:
            slot.dispose()

        scheduler.schedule_absolute(200 + comes, come)
        scheduler.schedule_absolute(200 + leaves, leave)
    scheduler.start()
    reads = [(begin - 200, end and end - 200) for begin, end in cold.subscriptions]
    return readers[0].messages, readers[1].messages, reads


def heard(messages: list[Recorded[Any]]) -> str:
    return line_of(messages, start=200, error=BOOM)


@pytest.mark.parametrize(
    ("source", "second_at", "expected"),
    [
        pytest.param("-a-b-c-|", 0, "-a-b-c-|", id="from the start"),
        pytest.param("-a-b-c-|", 4, "----bc-|", id="late: the newest, then what comes"),
        pytest.param("-[ab]-----c|", 4, "----b--c|", id="after a burst"),
        pytest.param("--------a-|", 4, "--------a-|", id="before anything came"),
        pytest.param("-a-b-c-|", 9, "---------[c|]", id="after the end: the newest and the end"),
        pytest.param("-a-b-c-#", 9, "---------[c#]", id="after an error: the newest and the error"),
        pytest.param("-a-b-c-#", 4, "----bc-#", id="an error"),
        pytest.param("|", 4, "----|", id="after nothing"),
        pytest.param("#", 4, "----#", id="after only an error"),
        pytest.param("-a-------", 4, "----a", id="a silent source"),
        pytest.param("---------", 4, "", id="never"),
    ],
)
def test_a_second_reader(source: str, second_at: int, expected: str) -> None:
    first, second, reads = two_readers(source, second_at)
    assert (heard(first), heard(second), reads) == (source.rstrip("-"), expected, whole(source))


def test_who_comes_after_all_have_left_is_told_so_and_no_second_request_is_made() -> None:
    _, second, reads = two_readers("-a-b-c-d-|", 6, first_leaves=4)
    assert heard(second[:1]) == "------b"
    error = second[1].value.exception
    assert type(error) is rd.StreamInterrupted
    assert "unread='keep'" in str(error)
    assert "unread='restart'" in str(error)
    assert reads == [(0, 4)]


def test_the_source_may_be_kept() -> None:
    _, second, reads = two_readers("-a-b-c-d-|", 6, first_leaves=4, unread="keep")
    assert (heard(second), reads) == ("------cd-|", [(0, 9)])


def test_the_source_may_be_begun_anew_but_one_that_ended_stays_ended() -> None:
    _, second, reads = two_readers("-a-b-|", 6, first_leaves=4, unread="restart")
    assert (heard(second), reads) == ("-------a-b-|", [(0, 4), (6, 11)])
    _, second, reads = two_readers("-a-b-#", 6, unread="restart")
    assert (heard(second), len(reads)) == ("------[b#]", 1)


def test_a_retry_behind_it_repeats_no_request() -> None:
    asked: list[int] = []
    source = rx.defer(lambda _: (asked.append(1), rx.throw(BOOM))[1])
    got, _ = watch(source.pipe(rd.share_latest(), ops.retry(3)))
    assert (got, asked) == ([BOOM], [1])


def test_an_error_has_the_newest_snapshot() -> None:
    snapshot = rd.MessageDelta(content="Hi")
    shared = Subject[rd.Snapshot]()
    latest = shared.pipe(rd.share_latest())
    _, subscription = watch(latest)
    shared.on_next(snapshot)
    subscription.dispose()
    got, _ = watch(latest)
    assert got[0] is got[1].snapshot is snapshot


def test_an_event_is_refused_rather_than_kept_from_those_who_come_late() -> None:
    source = Subject[Any]()
    got, _ = watch(source.pipe(rd.share_latest()))
    source.on_next(ev.TextDelta(0, "a"))
    assert [type(one) for one in got] == [rd.InvalidValueError]
    assert "share_events()" in str(got[0])
    assert source.observers == []


def test_51_a_reader_that_raises_is_told_no_more_and_the_others_dont_notice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = Subject[int]()
    shared = source.pipe(rd.share_latest())
    told: list[int] = []

    def draw(value: int) -> None:
        told.append(value)
        raise BOOM

    before, _ = watch(shared)
    shared.subscribe(draw)
    after, _ = watch(shared)
    with caplog.at_level(logging.ERROR, "rxdelta"):
        for value in range(3):
            source.on_next(value)
        source.on_completed()
    assert before == after == [0, 1, 2, "|"]
    assert told == [0]
    assert [record.exc_info and record.exc_info[1] for record in caplog.records] == [BOOM]


def test_51_an_observer_that_raises_at_the_end_doesnt_keep_it_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = Subject[int]()
    shared = source.pipe(rd.share_latest())

    def fail() -> None:
        raise BOOM

    shared.subscribe(on_completed=fail)
    after, _ = watch(shared)
    source.on_completed()
    assert after == ["|"]
    assert len(caplog.records) == 1


def test_a_source_that_cannot_be_subscribed_is_an_error_for_all() -> None:
    def subscribe(*_: object) -> Disposable:
        raise BOOM

    shared = Observable(subscribe).pipe(rd.share_latest())
    assert [watch(shared)[0], watch(shared)[0]] == [[BOOM], [BOOM]]


def test_53_readers_come_and_go_on_many_threads_and_none_misses_the_end() -> None:
    source = Subject[int]()
    shared = source.pipe(rd.share_latest(unread="keep"))
    heard: list[list[Any]] = []
    gone = threading.Event()
    held, _ = watch(shared)

    def come_and_go() -> None:
        while not gone.is_set():
            got, subscription = watch(shared)
            if len(heard) % 2:
                subscription.dispose()
            else:
                heard.append(got)

    threads = [threading.Thread(target=come_and_go) for _ in range(3)]
    for thread in threads:
        thread.start()
    for value in range(300):
        source.on_next(value)
        if len(heard) % 2 == 0:
            heard.append([])
    source.on_completed()
    gone.set()
    for thread in threads:
        thread.join()
    assert held == [*range(300), "|"]
    for got in heard:
        if got:
            *values, end = got
            assert end == "|"
            assert values == list(range(values[0], 300)) if values else True


def test_a_slow_reader_on_another_thread_holds_nobody_up() -> None:
    source = Subject[int]()
    shared = source.pipe(rd.share_latest())
    fast, _ = watch(shared)
    source.on_next(0)
    entered, go_on = threading.Event(), threading.Event()
    slow: list[int] = []

    def draw(value: int) -> None:
        entered.set()
        assert go_on.wait(10)
        slow.append(value)

    thread = threading.Thread(target=lambda: shared.subscribe(draw))
    thread.start()
    assert entered.wait(10)
    source.on_next(1)
    source.on_completed()
    assert fast == [0, 1, "|"]
    go_on.set()
    thread.join()
    assert slow == [0, 1]


# With asyncio.


async def many(count: int) -> Any:
    for number in range(count):
        yield number


def test_each_reader_has_its_own_policy() -> None:
    async def main() -> None:
        shared = rd.from_async_iterable(lambda: many(100)).pipe(rd.share_latest())
        async with (
            rd.to_async_iterable(shared, "buffer") as buffer,
            rd.to_async_iterable(shared, "latest") as latest,
            rd.to_async_iterable(shared, "error", maxsize=10) as error,
        ):
            await turns(300)  # nobody reads
            assert [value async for value in buffer] == list(range(100))
            assert [value async for value in latest] == [99]
            assert [await anext(error) for _ in range(10)] == list(range(10))
            with pytest.raises(rd.errors.BufferOverflowError):
                await anext(error)

    run_loop(main)


def test_the_source_goes_as_fast_as_the_quickest_of_the_readers_that_block() -> None:
    given: list[int] = []

    async def counted() -> Any:
        for number in range(100):
            given.append(number)
            yield number

    async def main() -> None:
        shared = rd.from_async_iterable(counted).pipe(rd.share_latest())
        async with (
            rd.to_async_iterable(shared, "block", maxsize=20) as some,
            rd.to_async_iterable(shared, "block", maxsize=5) as few,
        ):
            await turns(300)
            assert len(given) == 20
            assert [await anext(few) for _ in range(20)] == list(range(20))
            await turns(300)
            assert len(given) == 25
            assert [await anext(some) for _ in range(25)] == list(range(25))
            await turns(300)
            assert len(given) == 45
            async with rd.to_async_iterable(shared, "latest") as latest:  # always has room
                await turns(300)
                assert len(given) == 100
                assert [value async for value in latest] == [99]
            assert [value async for value in few] == list(range(20, 100))
            assert [value async for value in some] == list(range(25, 100))

    run_loop(main)


def test_who_leaves_last_waits_until_the_source_has_closed() -> None:
    async def main() -> None:
        stream = Stream(1, hold=True)
        shared = rd.from_async_iterable(stream).pipe(rd.share_latest())
        first, second = rd.to_async_iterable(shared), rd.to_async_iterable(shared)
        assert await anext(await first.__aenter__()) == 1
        values = await second.__aenter__()  # the request was made long before
        await first.__aexit__(None, None, None)
        assert (stream.closed, stream.cancelled) == (0, 0)
        assert await anext(values) == 1
        await second.__aexit__(None, None, None)
        assert stream.closed == 1

    run_loop(main)


def test_shared_twice_it_is_the_same() -> None:
    async def main() -> None:
        stream = Stream(1, hold=True)
        shared = rd.from_async_iterable(stream).pipe(rd.share_latest(), rd.share_latest())
        async with rd.to_async_iterable(shared, "block", maxsize=1) as values:
            assert await anext(values) == 1
        assert stream.closed == 1

    run_loop(main)


def test_51_what_a_reader_raises_is_raised_to_it_alone() -> None:
    def fail(_: object) -> int:
        raise BOOM

    async def main() -> None:
        go_on = asyncio.Event()

        async def values() -> Any:
            yield 1
            await go_on.wait()
            yield 2

        shared = rd.from_async_iterable(values).pipe(rd.share_latest())
        raising = Observable(lambda observer, scheduler=None: shared.subscribe(lambda value: fail(value)))
        other = asyncio.create_task(rd.last_value(shared))
        with pytest.raises(ValueError, match="boom"):
            await rd.last_value(raising)
        go_on.set()
        assert await other == 2

    run_loop(main)


def test_the_source_runs_in_the_first_readers_context() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")

    async def named() -> Any:
        yield name.get()

    async def main() -> None:
        name.set("first")
        shared = rd.from_async_iterable(named).pipe(rd.share_latest())
        reading = asyncio.create_task(rd.last_value(shared))
        name.set("second")
        assert await reading == "first"
        assert await rd.last_value(shared) == "first"

    run_loop(main)


def test_58_a_loop_that_is_closed_leaves_nothing_behind() -> None:
    errors: list[Exception] = []
    kept: list[abc.DisposableBase] = []

    async def main() -> Observable[int]:
        shared = rd.from_async_iterable(Stream(1, hold=True)).pipe(rd.share_latest())
        kept.append(shared.subscribe(on_error=errors.append))
        await turns()
        return shared

    shared = asyncio.run(main())
    assert [type(error) for error in errors] == [rd.StreamInterrupted]
    assert watch(shared)[0] == [1, *errors]
    kept[0].dispose()


@given(
    marks=st.lists(st.sampled_from("abc-"), max_size=20),
    error=st.booleans(),
    second_at=st.integers(0, 30),
)
def test_a_late_reader_hears_the_newest_and_what_comes(marks: list[str], error: bool, second_at: int) -> None:
    source = "-" + "".join(marks) + ("#" if error else "|")
    first, second, _ = two_readers(source, second_at)
    assert heard(first) == source
    now = 200 + second_at
    newest = [message.value for message in first if message.time < now and message.value.kind == "N"][-1:]
    later = [message.value for message in first if message.time >= now or message.value.kind != "N"]
    assert [message.value for message in second] == [*newest, *later]
    assert all(message.time == max(now, message.time) for message in second)


def test_readers_who_have_left_are_forgotten_while_the_source_goes_on() -> None:
    async def main() -> int:
        stream = Stream(1, hold=True)
        shared = rd.from_async_iterable(stream).pipe(rd.share_latest())
        left: list[weakref.ref[object]] = []
        async with rd.to_async_iterable(shared) as stays:
            await anext(stays)
            for _ in range(3):
                async with rd.to_async_iterable(shared) as values:
                    await anext(values)
                    left.append(weakref.ref(values))
                del values
            gc.collect()
            return sum(reader() is not None for reader in left)

    assert run_loop(main) == 0
