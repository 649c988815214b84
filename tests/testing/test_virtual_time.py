"""Virtual time: what passes at once, what stays real, and what can never end."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from datetime import timedelta
from itertools import count
from time import monotonic, sleep as really_sleep
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd
from rxdelta.testing import FakeProvider, VirtualTime

LONG = 30.0  # seconds; a limit that jumps over real work would go off at once
QUICK = 25.0  # real seconds; less than a limit that would be waited for
A_MOMENT = 0.02


def exactly(seconds: float) -> Any:
    return pytest.approx(seconds, rel=0, abs=1e-9)


@pytest.fixture
def time() -> Iterator[VirtualTime]:
    began = monotonic()
    yield VirtualTime()
    assert monotonic() - began < QUICK


# what passes at once


def test_two_hours_pass_at_once(time: VirtualTime) -> None:
    async def main() -> str:
        await asyncio.sleep(7200)
        return "done"

    assert time.run(main()) == "done"
    assert time.elapsed == 7200


def test_many_short_times_are_a_long_one(time: VirtualTime) -> None:
    async def main() -> None:
        for _ in range(10):
            await asyncio.sleep(0.1)
        for _ in range(1000):
            await asyncio.sleep(0)

    time.run(main())
    assert time.elapsed == exactly(1.0)


def test_the_clock_begins_at_0_and_the_next_run_goes_on(time: VirtualTime) -> None:
    async def main() -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(2.5)
        assert time.elapsed == asyncio.get_running_loop().time() == began + 2.5
        return began

    assert [time.run(main()) for _ in range(3)] == [0, 2.5, 5]
    assert time.elapsed == 7.5


def test_timers_go_off_in_the_order_of_their_times_and_then_of_their_setting(time: VirtualTime) -> None:
    seen: list[tuple[str, float]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(1)

        def at(when: float, name: str) -> None:
            loop.call_at(when, lambda: seen.append((name, loop.time())))

        for when, name in [(4, "d"), (2, "b"), (2, "c"), (0.5, "past"), (1, "now")]:
            at(when, name)
        loop.call_later(3, at, 4, "set late")
        loop.call_soon(lambda: seen.append(("soon", loop.time())))
        await asyncio.sleep(5)

    time.run(main())
    assert seen == [("soon", 1), ("past", 1), ("now", 1), ("b", 2), ("c", 2), ("d", 4), ("set late", 4)]


@pytest.mark.parametrize("start", [0.0, 0.1, 1e6, 2e7, 9e8])
@pytest.mark.parametrize("pause", [1e-10, 0.1, 3600.0])
def test_a_timer_goes_off_however_high_the_clock_is(start: float, pause: float) -> None:
    time = VirtualTime()

    async def main() -> None:
        await asyncio.sleep(start)
        for _ in range(3):
            await asyncio.sleep(pause)

    time.run(main())
    assert time.elapsed == pytest.approx(start + 3 * pause, rel=1e-15, abs=1e-9)


async def with_timeout(task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(5):
        await task


LIMITS: dict[str, Callable[[asyncio.Task[None]], Awaitable[Any]]] = {
    "timeout": with_timeout,
    "wait_for": lambda task: asyncio.wait_for(task, 5),
    "wait": lambda task: asyncio.wait([task], timeout=5),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize(("takes", "elapsed"), [(4.999, 4.999), (5.001, 5.0), (7200.0, 5.0)])
def test_a_limit_is_exact(limit: str, takes: float, elapsed: float, time: VirtualTime) -> None:
    async def main() -> bool:
        task = asyncio.create_task(asyncio.sleep(takes))
        try:
            await LIMITS[limit](task)
        except TimeoutError:
            return False
        return task.done()

    assert time.run(main()) is (takes < 5)
    assert time.elapsed == elapsed


def test_code_of_the_program_that_blocks_the_loop_lets_timers_become_due(time: VirtualTime) -> None:
    seen: list[float] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(1, lambda: seen.append(loop.time()))
        time.advance(3)
        assert seen == []
        time.advance(timedelta(seconds=1))
        await asyncio.sleep(2)

    time.run(main())
    assert seen == [4]
    assert time.elapsed == 6


@pytest.mark.parametrize("seconds", [0, -1, "1", None, float("nan"), True])
def test_a_time_that_is_none_is_refused(seconds: Any, time: VirtualTime) -> None:
    with pytest.raises(rd.InvalidValueError, match="seconds: must be a positive number"):
        time.advance(seconds)
    assert time.elapsed == 0


# what this library does with time


def about(*seconds: float) -> Any:
    return pytest.approx(seconds, rel=0, abs=2e-6)  # schedulers count microseconds


def test_a_stream_is_read_at_its_times(time: VirtualTime) -> None:
    seen: list[tuple[float, str]] = []

    async def main() -> rd.Message:
        fake = FakeProvider(["a", 3600.0, "b", 0.01, "c", 0.01, "d", 0.03, "e"])
        async with rd.stream(fake.stream("ollama"), every=0.05) as snapshots:
            seen.extend([(time.elapsed, snapshot.text) async for snapshot in snapshots])
        return snapshots.message

    assert time.run(main()).text == "abcde"
    assert [text for _, text in seen] == ["", "a", "ab", "abcd", "abcde"]
    assert tuple(when for when, _ in seen) == about(0, 0.05, 3600, 3600.05, 3600.05)


def test_a_silence_is_noticed_when_it_has_lasted(time: VirtualTime) -> None:
    async def main() -> None:
        with pytest.raises(rd.errors.StallTimeoutError) as raised:
            fake = FakeProvider(["a", 29.9, "b", 7200.0, "c"])
            await rd.stream(fake.stream("openai-chat"), through=[rd.stall_timeout(idle=30)])
        assert raised.value.snapshot is not None
        assert raised.value.snapshot.text == "ab"

    time.run(main())
    assert time.elapsed == exactly(59.9)


def results(*names: str, **options: Any) -> Callable[[], Coroutine[Any, Any, list[Any]]]:
    """How the calls of these tools ended, and how long they took."""

    async def main() -> list[Any]:
        calls = [rd.ToolCall(call_id=name, name=name, arguments={}, status="complete") for name in names]
        source = rx.from_iterable(FakeProvider(calls).events())
        events = await rd.last_value(source.pipe(rd.run_tools(**options), ops.to_list()))
        updates = [event for event in events if isinstance(event, rd.events.ToolUpdate) and event.result]
        return [(update.execution_status, update.result.duration) for update in updates if update.result]

    return main


def test_the_limit_of_a_tool_is_exact(time: VirtualTime) -> None:
    async def quick() -> str:
        await asyncio.sleep(29.999)
        return "seen"

    async def slow() -> str:
        await asyncio.sleep(7200)
        return "never"

    run = results("quick", "slow", tools={"quick": quick, "slow": slow}, timeout=LONG)
    (quicks, took), (slows, limit) = time.run(run())
    assert (quicks, slows) == ("completed", "failed")
    assert (took, limit) == about(29.999, LONG)
    assert time.elapsed == exactly(LONG)


def test_the_timers_of_rx_are_virtual_in_a_pipeline(time: VirtualTime) -> None:
    assert time.run(rd.last_value(rx.timer(60).pipe(ops.delay(40)))) == 0
    assert (time.elapsed,) == about(100)


# what stays real


def test_a_job_on_a_thread_has_as_long_as_it_needs(time: VirtualTime) -> None:
    async def main() -> None:
        async with asyncio.timeout(LONG):
            await asyncio.to_thread(really_sleep, A_MOMENT)
            with ThreadPoolExecutor() as pool:
                await asyncio.get_running_loop().run_in_executor(pool, really_sleep, A_MOMENT)

    time.run(main())
    assert 0 < time.elapsed < QUICK


def test_a_job_on_a_thread_that_takes_too_long_is_cut_off_in_real_time(time: VirtualTime) -> None:
    goes_on = threading.Event()

    async def main() -> None:
        try:
            async with asyncio.timeout(A_MOMENT):
                await asyncio.to_thread(goes_on.wait, LONG)
        finally:
            await asyncio.sleep(7200)  # nobody waits for that thread any more
            goes_on.set()

    with pytest.raises(TimeoutError):
        time.run(main())
    assert 7200 + A_MOMENT <= time.elapsed < 7200 + QUICK


def test_a_job_that_the_coroutine_leaves_behind_is_awaited_as_by_asyncio_run(time: VirtualTime) -> None:
    ended: list[str] = []

    def job() -> None:
        really_sleep(2 * A_MOMENT)
        ended.append("job")

    async def main() -> None:
        left_over = asyncio.create_task(asyncio.to_thread(job))
        await asyncio.sleep(0)
        assert not left_over.done()

    time.run(main())
    assert ended == ["job"]
    assert time.elapsed < QUICK


def test_a_plain_function_as_a_tool_has_its_limit_in_real_time(time: VirtualTime) -> None:
    def tool() -> str:
        really_sleep(A_MOMENT)
        return "seen"

    ((status, _),) = time.run(results("tool", tools={"tool": tool}, timeout=LONG)())
    assert status == "completed"
    assert 0 < time.elapsed < QUICK


def test_a_sync_source_is_not_silent_while_its_thread_reads(time: VirtualTime) -> None:
    def blocking() -> Iterator[int]:
        for number in range(3):
            really_sleep(A_MOMENT)
            yield number

    async def main() -> None:
        source = rd.from_iterable(blocking).pipe(rd.stall_timeout(first=LONG, idle=LONG))
        got: list[int] = []

        async def draw(value: int) -> None:
            got.append(value)

        await rd.for_each(source, draw)
        assert got == [0, 1, 2]

    time.run(main())
    assert 0 < time.elapsed < QUICK


def test_a_sync_source_that_isnt_read_holds_no_clock_up(time: VirtualTime) -> None:
    async def main() -> None:
        source = rd.from_iterable(lambda: count())
        async with rd.to_async_iterable(source, maxsize=1, overflow="block") as values:
            for number in range(3):
                assert await anext(values) == number
                await asyncio.sleep(3600)

    time.run(main())
    assert 3 * 3600 <= time.elapsed < 3 * 3600 + QUICK


def test_a_sync_source_that_cannot_be_closed_holds_the_clock_up_no_longer(
    time: VirtualTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rxdelta.aio.reading.CLOSE_SECONDS", A_MOMENT)
    goes_on = threading.Event()

    def blocking() -> Iterator[int]:
        yield 1
        goes_on.wait(LONG)

    async def main() -> None:
        assert await rd.first_value(rd.from_iterable(blocking)) == 1
        await asyncio.sleep(7200)

    time.run(main())
    goes_on.set()
    assert 7200 <= time.elapsed < 7200 + QUICK


def test_a_closed_loop_is_free_at_once(time: VirtualTime) -> None:
    async def main() -> weakref.ref[asyncio.AbstractEventLoop]:
        await asyncio.sleep(1)
        return weakref.ref(asyncio.get_running_loop())

    gc.disable()
    try:
        assert time.run(main())() is None
    finally:
        gc.enable()


def test_a_socket_has_as_long_as_it_needs(time: VirtualTime) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    answering = threading.Timer(A_MOMENT, theirs.sendall, [b"late"])

    async def main() -> None:
        answering.start()
        async with asyncio.timeout(LONG):
            assert await asyncio.get_running_loop().sock_recv(ours, 10) == b"late"
        await asyncio.sleep(7200)  # nobody watches it any more

    with ours, theirs:
        time.run(main())
        answering.join()
    assert 7200 < time.elapsed < 7200 + QUICK


def test_a_process_has_as_long_as_it_needs(time: VirtualTime) -> None:
    async def main() -> int:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", "raise SystemExit(3)")
        async with asyncio.timeout(LONG):
            return await process.wait()

    assert time.run(main()) == 3
    assert 0 < time.elapsed < QUICK


def test_a_server_that_says_nothing_is_left_in_real_time(time: VirtualTime) -> None:
    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(), A_MOMENT)
            writer.close()
            await writer.wait_closed()

    began = monotonic()
    time.run(main())
    assert monotonic() - began >= A_MOMENT


def test_a_thread_of_ones_own_may_report_what_nothing_else_waits_for(time: VirtualTime) -> None:
    async def main() -> str:
        loop = asyncio.get_running_loop()
        told: asyncio.Future[str] = loop.create_future()
        threading.Timer(A_MOMENT, loop.call_soon_threadsafe, [told.set_result, "seen"]).start()
        return await told

    assert time.run(main()) == "seen"


# what can never end


@pytest.mark.parametrize("never", ["event", "infinite"])
def test_a_wait_without_an_end_is_an_error_that_says_where(never: str, time: VirtualTime) -> None:
    left: list[str] = []

    async def waits() -> None:
        try:
            if never == "event":
                await asyncio.Event().wait()
            await asyncio.sleep(float("inf"))
        except asyncio.CancelledError:
            await asyncio.sleep(1)
            left.append("cleaned up")
            raise

    async def main() -> None:
        await asyncio.sleep(10)
        await waits()

    with pytest.raises(rd.RxDeltaError, match=r"nothing will ever happen again: no timer is set") as raised:
        time.run(main())
    assert f"of {__file__}, in main" in str(raised.value)
    assert left == ["cleaned up"]
    assert time.run(asyncio.sleep(1, "runs again")) == "runs again"
    assert time.elapsed == 12


@pytest.mark.slow
def test_a_timer_that_repeats_for_ever_is_an_error() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        def again() -> None:
            loop.call_later(15, again)

        again()
        await asyncio.Event().wait()

    with pytest.raises(rd.RxDeltaError, match=r"has not ended after 250,000 jumps of the clock, at 3\.75e"):
        VirtualTime().run(main())


# as asyncio.run


def test_what_the_coroutine_raises_is_raised(time: VirtualTime) -> None:
    class Own(BaseException):
        pass

    async def main(error: BaseException) -> None:
        await asyncio.sleep(1)
        raise error

    for error in (ValueError("own"), Own(), KeyboardInterrupt(), SystemExit(3)):
        with pytest.raises(type(error)) as raised:
            time.run(main(error))
        assert raised.value is error
    assert time.elapsed == 4


def test_nothing_is_left_over(time: VirtualTime) -> None:
    left: list[str] = []

    async def task() -> None:
        try:
            await asyncio.sleep(7200)
        finally:
            left.append("task")

    async def generator() -> AsyncIterator[int]:
        try:
            yield 1
            yield 2
        finally:
            left.append("generator")

    async def main() -> tuple[Any, Any]:
        iterator = generator()
        await anext(iterator)
        running = asyncio.create_task(task())
        await asyncio.sleep(1)
        return iterator, running

    time.run(main())
    assert left == ["task", "generator"]
    assert time.elapsed == 1


def test_the_context_is_a_copy_of_the_callers(time: VirtualTime) -> None:
    name = ContextVar("name", default="nobody's")

    async def main() -> str:
        await asyncio.sleep(1)
        seen = name.get()
        name.set("main's")
        return seen

    token = name.set("the caller's")
    assert (time.run(main()), name.get()) == ("the caller's", "the caller's")
    name.reset(token)


async def a_coroutine() -> None: ...


async def a_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (a_coroutine, "call it, as in run(main())"),
        (a_generator(), "must be a coroutine"),
        (None, "must be a coroutine"),
        ("main", "must be a coroutine"),
    ],
    ids=["a function", "an async generator", "nothing", "a text"],
)
def test_what_isnt_a_coroutine_is_refused(value: Any, wrong: str, time: VirtualTime) -> None:
    with pytest.raises(rd.InvalidValueError) as raised:
        time.run(value)
    assert raised.value.field == "coroutine"
    assert wrong in str(raised.value)


@pytest.mark.parametrize("run", [asyncio.run, VirtualTime().run], ids=["real", "virtual"])
def test_a_run_within_a_running_loop_is_refused(run: Any, time: VirtualTime) -> None:
    async def main() -> None:
        with pytest.raises(rd.InvalidValueError, match="a loop is running in this thread already: await it"):
            time.run(a_coroutine())

    run(main())


def test_another_thread_may_have_its_own_time_meanwhile(time: VirtualTime) -> None:
    other = VirtualTime()

    async def main() -> None:
        await asyncio.to_thread(other.run, asyncio.sleep(7200))
        await asyncio.sleep(60)

    time.run(main())
    assert other.elapsed == 7200
    assert 60 <= time.elapsed < 60 + QUICK


# the scheduler


def test_the_scheduler_counts_seconds_exactly(time: VirtualTime) -> None:
    seen: list[tuple[float, int]] = []
    numbers = rx.concat(rx.range(500), rx.timer(0.1), rx.range(500), rx.timer(7200))
    numbers.subscribe(lambda number: seen.append((time.scheduler.clock, number)), scheduler=time.scheduler)
    assert seen == []
    time.scheduler.start()
    assert {when for when, _ in seen} == {0, 0.1, 7200.1}
    assert len(seen) == 1002
    assert time.elapsed == 0, "it has a clock of its own"


def test_the_scheduler_runs_on_after_an_action_that_raised(time: VirtualTime) -> None:
    def fail(*_: object) -> None:
        raise ValueError("own")

    seen: list[float] = []
    time.scheduler.schedule_relative(1, fail)
    time.scheduler.schedule_relative(2, lambda *_: seen.append(time.scheduler.clock))
    with pytest.raises(ValueError, match="own"):
        time.scheduler.start()
    time.scheduler.start()
    assert seen == [2]
