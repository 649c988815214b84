"""`from_async_iterable` on a real loop; nothing here goes by the clock."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import traceback
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.loops import Stream, run, turns

import rxdelta as rd
from rxdelta.aio import pumps, reading
from rxdelta.testing import VirtualTime

if TYPE_CHECKING:
    from collections.abc import Iterator

BOOM = ValueError("boom")


class Log(list[Any]):
    """An observer that writes down what it is told."""

    def on_next(self, value: Any) -> None:
        self.append(value)

    def on_error(self, error: Exception) -> None:
        self.append(error)

    def on_completed(self) -> None:
        self.append("|")

    def watch(self, source: rx.Observable[Any]) -> Any:
        return source.subscribe(self.on_next, self.on_error, self.on_completed)


async def numbers(count: int = 3) -> AsyncIterator[int]:
    for number in range(count):
        yield number


async def opened(stream: Any) -> Any:
    await asyncio.sleep(0)
    return stream


# What it takes.


@pytest.mark.parametrize("wrong", [[1, 2], (n for n in (1, 2)), 3, lambda: [1, 2], lambda: lambda: numbers()])
def test_what_is_no_async_iterable_is_an_error_that_says_so(wrong: Any) -> None:
    async def main() -> None:
        with pytest.raises(rd.InvalidValueError, match="must be an async iterable"):
            await rd.last_value(rd.from_async_iterable(wrong))

    run(main)


def test_the_synchronous_stream_that_a_function_has_opened_by_mistake_is_closed() -> None:
    closed: list[str] = []

    def sync() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.append("closed")

    async def main() -> None:
        stream = sync()
        next(stream)
        with pytest.raises(rd.InvalidValueError):
            await rd.last_value(rd.from_async_iterable(lambda: stream))  # type: ignore[arg-type, return-value]

    run(main)
    assert closed == ["closed"]


def test_without_a_loop_it_says_so_and_the_source_is_not_used_up() -> None:
    log = Log()
    source = rd.from_async_iterable(numbers())
    log.watch(source)
    assert [type(error) for error in log] == [rd.InvalidValueError]
    assert "running asyncio loop" in str(log[0])

    async def main() -> int:
        return await rd.last_value(source)

    assert run(main) == 2


class Closable:
    """What has an end of its own gives its items once, also where it doesn't say so."""

    def __aiter__(self) -> AsyncIterator[int]:
        return numbers()

    async def close(self) -> None:
        pass


@pytest.mark.parametrize(
    "make", [lambda: numbers(), lambda: opened(numbers()), lambda: Stream(0, 1, 2), Closable]
)
def test_a_one_shot_source_subscribed_twice_is_an_error(make: Any) -> None:
    async def main() -> None:
        source = rd.from_async_iterable(make())
        assert await rd.last_value(source) == 2
        with pytest.raises(rd.InvalidValueError, match="pass a function"):
            await rd.last_value(source)

    run(main)


def test_a_function_is_called_for_each_subscription_and_not_before() -> None:
    calls: list[int] = []

    def request() -> AsyncIterator[int]:
        calls.append(len(calls))
        return numbers()

    async def main() -> None:
        source = rd.from_async_iterable(request)
        assert calls == []
        assert [await rd.last_value(source), await rd.last_value(source)] == [2, 2]

    run(main)
    assert calls == [0, 1]


def test_the_source_runs_in_the_subscribers_context() -> None:
    name = contextvars.ContextVar("name", default="nobody")

    async def said() -> AsyncIterator[str]:
        yield name.get()

    async def main() -> str:
        name.set("subscriber")
        values = rd.last_value(rd.from_async_iterable(said))
        return await values

    assert run(main) == "subscriber"


# How it ends.


def test_an_exception_is_passed_on_raw_with_its_traceback_after_the_items() -> None:
    async def broken() -> AsyncIterator[int]:
        yield 1
        raise BOOM

    async def main() -> list[Any]:
        log = Log()
        log.watch(rd.from_async_iterable(broken))
        await turns()
        return log

    log = run(main)
    assert log == [1, BOOM]
    assert "broken" in [frame.name for frame in traceback.extract_tb(log[1].__traceback__)]


def test_the_iterator_inside_an_sdks_stream_is_closed_before_the_stream() -> None:
    closed: list[str] = []

    class Inner:
        async def __aiter__(self) -> AsyncIterator[int]:
            try:
                yield 1
                yield 2
            finally:
                closed.append("iterator")

        async def close(self) -> None:
            closed.append("stream")

    async def main() -> None:
        assert await rd.first_value(rd.from_async_iterable(Inner())) == 1

    run(main)
    assert closed == ["iterator", "stream"]


def test_a_stream_without_a_close_is_closed_by_its_response() -> None:
    closed: list[str] = []

    class Response:
        async def aclose(self) -> None:
            closed.append("response")

    class Events:
        """As of an SDK whose stream has `__aexit__` and no `close`."""

        response = Response()

        async def __aiter__(self) -> AsyncIterator[int]:
            yield 1
            yield 2

    async def main() -> None:
        assert await rd.first_value(rd.from_async_iterable(Events())) == 1

    run(main)
    assert closed == ["response"]


def test_a_source_that_was_cancelled_by_somebody_else_is_interrupted_and_nobody_hangs() -> None:
    async def main() -> None:
        other = asyncio.ensure_future(asyncio.Event().wait())

        async def waits() -> AsyncIterator[int]:
            yield 1
            await other

        async with rd.to_async_iterable(rd.from_async_iterable(waits)) as values:
            assert await anext(values) == 1
            other.cancel()
            with pytest.raises(rd.StreamInterrupted) as raised:
                await anext(values)
            assert isinstance(raised.value.__cause__, asyncio.CancelledError)

    run(main)


@pytest.mark.parametrize("begun", [False, True])
def test_a_cancelled_task_interrupts_its_reader(begun: bool) -> None:
    async def main() -> None:
        stream = Stream(1, hold=True)
        async with rd.to_async_iterable(rd.from_async_iterable(stream)) as values:
            if begun:
                assert await anext(values) == 1
            (task,) = pumps._running
            task.cancel()
            with pytest.raises(rd.StreamInterrupted):
                await anext(values)
        await turns()
        assert (task.cancelled(), stream.closed) == (True, 1)

    run(main)


# Leaving, at every moment.


def test_disposal_while_the_source_opens_cancels_the_request() -> None:
    async def main() -> None:
        cancelled: list[str] = []

        async def request() -> Any:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append("cancelled")
                raise

        log = Log()
        subscription = log.watch(rd.from_async_iterable(request))
        await turns()
        subscription.dispose()
        await turns()
        assert (log, cancelled) == ([], ["cancelled"])

    run(main)


def test_disposal_just_after_the_request_was_answered_closes_the_answer() -> None:
    async def main() -> None:
        stream: Stream[int] = Stream(1)
        answer = asyncio.get_running_loop().create_future()
        log = Log()
        subscription = log.watch(rd.from_async_iterable(answer))
        await turns()
        answer.set_result(stream)
        subscription.dispose()
        await turns()
        assert (log, stream.given, stream.closed) == ([], 0, 1)

    run(main)


def test_a_close_after_disposal_is_no_cancelled_task_any_more() -> None:
    async def main() -> None:
        seen: list[int] = []

        class Looks(Stream[int]):
            async def close(self) -> None:
                task = asyncio.current_task()
                assert task is not None
                seen.append(task.cancelling())

        subscription = Log().watch(rd.from_async_iterable(Looks(1, hold=True)))
        await turns()
        subscription.dispose()
        await turns()
        assert seen == [0]

    run(main)


def test_disposal_while_closing_lets_it_close() -> None:
    async def main() -> None:
        go_on, closed = asyncio.Event(), []

        class Slow(Stream[int]):
            async def close(self) -> None:
                await go_on.wait()
                closed.append("closed")

        log = Log()
        subscription = log.watch(rd.from_async_iterable(Slow(1)))
        await turns()
        assert log == [1, "|"]
        subscription.dispose()
        await turns()
        assert closed == []
        go_on.set()
        await turns()
        assert closed == ["closed"]

    run(main)


def test_disposal_from_another_thread_wakes_the_loop() -> None:
    async def main() -> None:
        closed = asyncio.Event()

        class Noting(Stream[int]):
            async def close(self) -> None:
                await super().close()
                closed.set()

        stream = Noting(1, hold=True)
        subscription = Log().watch(rd.from_async_iterable(stream))
        await turns()
        asyncio.get_running_loop().set_debug(True)  # it then refuses calls that aren't safe
        thread = threading.Thread(target=subscription.dispose)
        thread.start()
        await closed.wait()  # nothing else would wake the loop
        thread.join()
        assert (stream.cancelled, stream.closed) == (1, 1)

    run(main)


def test_58_disposal_after_the_loop_has_closed_is_nothing() -> None:
    subscriptions: list[Any] = []

    async def main() -> None:
        subscriptions.append(Log().watch(rd.from_async_iterable(Stream(1, hold=True))))
        await turns()

    asyncio.run(main())
    subscriptions[0].dispose()


def test_a_source_that_swallows_the_cancellation_is_not_heard_any_more() -> None:
    async def stubborn() -> AsyncIterator[int]:
        yield 1
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield 2
            raise BOOM from None

    async def main() -> None:
        log = Log()
        subscription = log.watch(rd.from_async_iterable(stubborn))
        await turns()
        subscription.dispose()
        await turns()
        assert log == [1]

    run(main)


def test_a_close_that_raises_is_reported_and_the_end_stands() -> None:
    class Bad(Stream[int]):
        async def close(self) -> None:
            raise BOOM

    async def main() -> list[Any]:
        log = Log()
        log.watch(rd.from_async_iterable(Bad(1)))
        await turns()
        return log

    reports: list[Any] = []
    assert run(main, reports=reports) == [1, "|"]
    assert [report["exception"] for report in reports] == [BOOM]


@pytest.mark.parametrize("between_items", [False, True])
def test_a_close_that_hangs_is_waited_for_a_while_and_then_cancelled(
    between_items: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "CLOSE_SECONDS", 0)
    after: list[str] = []

    class Hangs:
        async def __aiter__(self) -> AsyncIterator[int]:
            try:
                yield 1
                await asyncio.Event().wait()
            finally:
                try:
                    await asyncio.Event().wait()
                finally:
                    after.append("iterator")

        async def close(self) -> None:
            after.append("stream")

    async def main() -> None:
        source = rd.from_async_iterable(Hangs())
        assert await rd.first_value(source.pipe(ops.take(1)) if between_items else source) == 1
        await turns()

    run(main)
    assert after == ["iterator", "stream"]


# Leaving a source that is closing by itself.

Closing = Callable[[list[str], asyncio.Event], Any]


def in_a_finally(log: list[str], go_on: asyncio.Event) -> Any:
    async def source() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            log.append("begun")
            await go_on.wait()
            await asyncio.sleep(0)
            log.append("done")

    return source


def in_an_async_with(log: list[str], go_on: asyncio.Event) -> Any:
    @asynccontextmanager
    async def connection() -> AsyncIterator[None]:
        yield
        log.append("begun")
        await go_on.wait()
        await asyncio.sleep(0)
        log.append("done")

    async def source() -> AsyncIterator[int]:
        async with connection():
            yield 1

    return source


def in_a_generator_that_it_reads(log: list[str], go_on: asyncio.Event) -> Any:
    async def source() -> AsyncIterator[int]:
        async for number in in_a_finally(log, go_on)():
            yield number

    return source


def below_an_sdks_stream(log: list[str], go_on: asyncio.Event) -> Any:
    class Numbers:
        def __init__(self) -> None:
            self._items = in_a_finally(log, go_on)()

        def __aiter__(self) -> Numbers:
            return self

        async def __anext__(self) -> int:
            number: int = await self._items.__anext__()
            return number

    return Numbers


def after_an_error(log: list[str], go_on: asyncio.Event) -> Any:
    async def source() -> AsyncIterator[int]:
        try:
            yield 1
            raise BOOM
        finally:
            log.append("begun")
            await go_on.wait()
            log.append("done")

    return source


@pytest.mark.parametrize(
    "make",
    [in_a_finally, in_an_async_with, in_a_generator_that_it_reads, below_an_sdks_stream, after_an_error],
)
@pytest.mark.parametrize("how", ["the block is left", "disposed", "the reader is cancelled"])
def test_a_source_that_is_left_while_it_closes_by_itself_is_not_cut_short(make: Closing, how: str) -> None:
    async def main() -> None:
        log: list[str] = []
        go_on = asyncio.Event()
        source = rd.from_async_iterable(make(log, go_on))

        async def read() -> None:
            async with rd.to_async_iterable(source, overflow="buffer") as values:
                assert await anext(values) == 1
                await turns()
                if how == "the reader is cancelled":
                    await asyncio.Event().wait()

        if how == "disposed":
            subscription = Log().watch(source)
            await turns()
            subscription.dispose()
            reading = None
        else:
            reading = asyncio.ensure_future(read())
            await turns(60)
            if how == "the reader is cancelled":
                reading.cancel()
        await turns()
        assert log == ["begun"]
        go_on.set()
        await turns(60)
        assert log == ["begun", "done"]
        if reading is not None:
            await asyncio.wait([reading])

    run(main)


def test_a_source_that_was_let_finish_leaves_no_timer_behind() -> None:
    async def main() -> None:
        log: list[str] = []
        go_on = asyncio.Event()
        subscription = Log().watch(rd.from_async_iterable(in_a_finally(log, go_on)))
        await turns()
        subscription.dispose()
        subscription.dispose()
        go_on.set()
        await turns()
        assert log == ["begun", "done"]
        timers: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]
        assert [timer for timer in timers if not timer.cancelled() and "TaskPump" in repr(timer)] == []

    run(main)


def test_a_source_that_closes_one_thing_and_then_waits_for_more_is_left_all_the_same() -> None:
    log: list[str] = []

    async def source() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            await asyncio.sleep(1)
            log.append("closed")
        try:
            await asyncio.Event().wait()  # another connection
        except asyncio.CancelledError:
            log.append("cancelled")
            raise

    async def main() -> None:
        async with rd.to_async_iterable(rd.from_async_iterable(source), overflow="buffer") as values:
            assert await anext(values) == 1
            await turns()
        assert log == ["closed", "cancelled"]  # before the loop's end, which cancels all tasks

    VirtualTime().run(main())


@asynccontextmanager
async def in_a_group_of_its_own(work: Any) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(work)
        yield


@pytest.mark.parametrize("group", ["asyncio's", "anyio's", "one in a context manager"])
def test_a_source_that_waits_for_the_work_of_a_task_group_is_left_at_once(group: str) -> None:
    log: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            log.append("cancelled")

    async def source() -> AsyncIterator[int]:
        yield 1
        if group == "asyncio's":
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(work())
        elif group == "anyio's":
            anyio = pytest.importorskip("anyio")
            async with anyio.create_task_group() as several:
                several.start_soon(work)
        else:
            async with in_a_group_of_its_own(work()):
                pass
        yield 2

    async def main() -> None:
        async with rd.to_async_iterable(rd.from_async_iterable(source), overflow="buffer") as values:
            assert await anext(values) == 1
            await turns()
            left = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() == left

    VirtualTime().run(main())
    assert log == ["cancelled"]


def test_where_python_has_no_text_of_the_source_leaving_cancels_it() -> None:
    log: list[str] = []
    names: dict[str, Any] = {"asyncio": asyncio, "log": log}
    exec(  # as in a frozen program
        "async def source():\n"
        "    try:\n"
        "        yield 1\n"
        "    finally:\n"
        "        try:\n"
        "            await asyncio.Event().wait()\n"
        "        finally:\n"
        "            log.append('cut')\n",
        names,
    )

    async def main() -> None:
        async with rd.to_async_iterable(rd.from_async_iterable(names["source"]), "buffer") as values:
            assert await anext(values) == 1
            await turns()
        assert log == ["cut"]  # before the loop's end, which cancels all tasks

    run(main)


# The loop's end.


@pytest.mark.parametrize("steps", [0, 1, 20])
def test_asyncio_run_ends_with_a_pipeline_left_open_and_all_is_closed(
    steps: int, caplog: pytest.LogCaptureFixture
) -> None:
    streams: list[Stream[int]] = []
    logs = [Log(), Log()]

    async def main() -> None:
        streams.append(Stream(1, hold=True))
        logs[0].watch(rd.from_async_iterable(streams[0]))
        logs[1].watch(rd.from_async_iterable(opened(numbers())).pipe(ops.concat(rx.never())))
        rd.from_async_iterable(lambda: Stream(hold=True)).subscribe()  # with no handler of errors
        await turns(steps)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(main())
        gc.collect()
    assert streams[0].closed == 1
    assert logs[0][:-1] == [1] * bool(steps)
    assert type(logs[0][-1]) is rd.StreamInterrupted
    assert caplog.records == []
    assert not pumps._running


# Who raises.


def test_51_a_reader_behind_what_raises_is_told_and_does_not_hang() -> None:
    def raises(source: rx.Observable[int]) -> rx.Observable[int]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            def on_next(value: int) -> None:
                if value == 1:
                    raise BOOM
                observer.on_next(value)

            return source.subscribe(on_next, observer.on_error, observer.on_completed)

        return rx.Observable(subscribe)

    async def main() -> None:
        stream = Stream(0, 1, 2)
        got: list[int] = []
        with pytest.raises(ValueError, match="boom"):
            await rd.for_each(rd.from_async_iterable(stream).pipe(raises), got.append)
        assert (got, stream.given, stream.closed) == ([0], 2, 1)

    run(main)


def test_51_an_observer_that_raises_when_the_first_reader_has_left_is_reported() -> None:
    async def main() -> None:
        go_on = asyncio.Event()

        async def waits() -> AsyncIterator[int]:
            yield 0
            await go_on.wait()
            yield 1

        def read(value: int) -> None:
            if value == 1:
                raise BOOM

        shared = rd.from_async_iterable(waits).pipe(ops.share())
        async with rd.to_async_iterable(shared) as values:
            shared.subscribe(read)
            assert await anext(values) == 0
        go_on.set()
        await turns()

    reports: list[Any] = []
    run(main, reports=reports)
    assert [report["exception"] for report in reports] == [BOOM]


def test_an_error_that_nobody_handles_is_reported_once() -> None:
    async def main() -> None:
        rd.from_async_iterable(Stream(end=BOOM)).subscribe()
        await turns()

    reports: list[Any] = []
    run(main, reports=reports)
    assert [report["exception"] for report in reports] == [BOOM]


# Company.


def test_a_source_that_is_always_ready_lets_the_loops_timers_run() -> None:
    async def main() -> None:
        ran: list[int] = []
        seen: list[int] = []

        async def ready() -> AsyncIterator[int]:
            for number in range(1000):
                if number == 10:
                    asyncio.get_running_loop().call_soon(ran.append, number)
                seen.append(len(ran))
                yield number

        await rd.last_value(rd.from_async_iterable(ready))
        assert seen[-1] == 1
        assert seen.index(1) <= 10 + 64 + 1

    run(main)


def test_a_dropped_subscription_goes_on() -> None:
    async def main() -> None:
        go_on = asyncio.Event()
        log = Log()

        async def waits() -> AsyncIterator[int]:
            await go_on.wait()
            yield 1

        log.watch(rd.from_async_iterable(waits))
        await turns()
        gc.collect()
        go_on.set()
        await turns()
        assert log == [1, "|"]

    run(main)


def test_an_item_that_was_ready_when_another_thread_disposed_is_not_emitted() -> None:
    async def main() -> None:
        ready, got = asyncio.Event(), list[int]()

        async def source() -> AsyncIterator[int]:
            yield 1
            await ready.wait()
            yield 2

        subscription = rd.from_async_iterable(source).subscribe(got.append)
        await turns()
        ready.set()  # its task will run next
        disposing = threading.Thread(target=subscription.dispose)
        disposing.start()
        disposing.join()
        await turns()
        assert got == [1]

    run(main)
