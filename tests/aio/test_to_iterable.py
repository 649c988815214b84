"""`to_iterable`: a pipeline read without asyncio. Nothing here goes by the clock."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import traceback
import warnings
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from support.loops import run, turns
from support.replies import ANTHROPIC

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

BOOM = ValueError("boom")
POLICIES = ["latest", "buffer", "block", "error"]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    known = set(threading.enumerate())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    for thread in set(threading.enumerate()) - known:
        thread.join(5)  # Rx's own thread of a source that has completed takes a moment to end
    assert set(threading.enumerate()) <= known


class Source:
    """An asynchronous stream, written down from the outside."""

    def __init__(self, *items: Any, end: Exception | None = None, hold: bool = False) -> None:
        self.items, self.end, self.hold = items, end, hold
        self.given = 0
        self.closed = 0
        self.threads: set[str] = set()

    async def __call__(self) -> AsyncIterator[Any]:
        self.threads.add(threading.current_thread().name)
        try:
            for item in self.items:
                await asyncio.sleep(0)
                self.given += 1
                yield item
            if self.hold:
                await asyncio.Event().wait()
            if self.end is not None:
                raise self.end
        finally:
            await asyncio.sleep(0)
            self.closed += 1


@pytest.mark.parametrize("overflow", ["buffer", "block", "error"])
def test_each_value_and_the_end(overflow: Any) -> None:
    source = Source(*range(200))
    with rd.to_iterable(rd.from_async_iterable(source), overflow) as values:
        assert list(values) == list(range(200))
        assert list(values) == []
    assert (source.closed, source.threads) == (1, {"rxdelta-loop"})


def test_the_newest_is_what_latest_gives() -> None:
    with rd.to_iterable(rx.of(1, 2, 3), "latest") as values:
        assert list(values) == [3]


def test_nothing_is_lost_unless_asked_for_and_a_source_that_can_wait_does() -> None:
    source = Source(*range(3000))
    with rd.to_iterable(rd.from_async_iterable(source), maxsize=5) as values:
        assert next(values) == 0
        assert list(values) == list(range(1, 3000))
    with rd.to_iterable(rx.from_iterable(range(3000)), maxsize=5) as values:
        assert list(values) == list(range(3000))


def test_readings_of_a_shared_source_may_be_read_one_after_the_other() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        shared = rd.from_async_iterable(Source(*range(500))).pipe(rd.share_latest())

        def read() -> tuple[list[int], list[int]]:
            with (
                rd.to_iterable(shared, maxsize=9, loop=loop) as one,
                rd.to_iterable(shared, maxsize=9, loop=loop) as other,
            ):
                return list(one), list(other)

        one, other = await asyncio.to_thread(read)
        assert one == list(range(500))
        assert other == list(range(other[0], 500))  # who came late got the newest first

    run(main)


def test_every_value_for_a_reader_in_step() -> None:
    source = Subject[int]()
    for overflow in POLICIES:
        with rd.to_iterable(source, overflow, maxsize=1) as values:  # type: ignore[arg-type]
            for number in range(5):
                source.on_next(number)
                assert next(values) == number


@pytest.mark.parametrize("maxsize", [1, 2])
def test_block_makes_the_source_wait(maxsize: int) -> None:
    source = Source(*range(300))
    furthest = 0
    with rd.to_iterable(rd.from_async_iterable(source), "block", maxsize=maxsize) as values:
        for number, value in enumerate(values):
            assert value == number
            furthest = max(furthest, source.given - number)
    assert number == 299
    assert furthest <= maxsize + 2


def test_error_tells_a_reader_that_fell_behind() -> None:
    with (
        rd.to_iterable(rx.from_iterable(range(9)), "error", maxsize=3) as values,
        pytest.raises(rd.errors.BufferOverflowError),
    ):
        list(values)


def test_values_come_before_the_error_which_keeps_the_frames_of_the_source() -> None:
    source = Source(1, 2, end=BOOM)
    got = []
    with (
        rd.to_iterable(rd.from_async_iterable(source), "buffer") as values,
        pytest.raises(ValueError, match="boom") as raised,
    ):
        got += values
        got.extend(values)
    assert raised.value is BOOM
    assert "__call__" in [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
    assert source.closed == 1


@pytest.mark.parametrize("how", ["break", "raise", "at once"])
def test_54_leaving_waits_until_the_source_has_closed(how: str) -> None:
    source = Source(1, hold=True)
    try:
        with rd.to_iterable(rd.from_async_iterable(source)) as values:
            if how != "at once":
                assert next(values) == 1
            if how == "raise":
                raise BOOM
    except ValueError:
        assert how == "raise"
    assert source.closed == (source.given > 0)
    assert list(values) == []


def test_the_source_runs_in_a_copy_of_the_callers_context() -> None:
    name = contextvars.ContextVar("name", default="nobody")

    async def said() -> AsyncIterator[str]:
        yield name.get()
        name.set("source")
        yield name.get()

    def read() -> list[str]:
        name.set("caller")
        with rd.to_iterable(rd.from_async_iterable(said), "buffer") as values:
            return [*values, name.get()]

    assert contextvars.copy_context().run(read) == ["caller", "source", "caller"]


def test_a_synchronous_source_is_read_on_a_thread_of_its_own_and_closed() -> None:
    closed: list[str] = []

    def chunks() -> Iterator[Any]:
        try:
            yield from ANTHROPIC
        finally:
            closed.append(threading.current_thread().name)

    events = rd.from_iterable(chunks).pipe(rd.decode("anthropic-messages"))
    with rd.to_iterable(events.pipe(rd.scan_deltas(), rd.throttle_latest(3600))) as snapshots:
        *_, last = snapshots
    assert (last.text, last.status) == ("Let me look.", "complete")
    assert closed == ["rxdelta-source"]


def test_tools_run_too() -> None:
    async def look(at: str) -> str:
        await asyncio.sleep(0)
        return f"calm {at}"

    events = rd.from_iterable(ANTHROPIC).pipe(
        rd.decode("anthropic-messages"), rd.run_tools({"look": look}), rd.scan_deltas()
    )
    with rd.to_iterable(events.pipe(rd.until_all_tools_terminal())) as snapshots:
        *_, last = snapshots
    assert last.tool_calls[0].result is not None
    assert last.tool_calls[0].result.content == "calm sea"


def test_a_loop_that_is_running_is_not_blocked() -> None:
    async def main() -> None:
        with pytest.raises(rd.InvalidValueError, match="to_async_iterable"), rd.to_iterable(rx.of(1)):
            pass

    run(main)


def test_it_is_entered_once() -> None:
    reading = rd.to_iterable(rx.of(1))
    with reading as values:
        assert list(values) == [1]
    with pytest.raises(rd.InvalidValueError, match="entered once"), reading:
        pass


def test_a_subscription_that_fails_is_an_error_of_the_reading() -> None:
    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        raise BOOM

    with rd.to_iterable(rx.Observable(subscribe)) as values, pytest.raises(ValueError, match="boom"):
        next(values)


def test_an_interrupt_of_the_reader_loses_nothing_and_closes_the_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, subject = Source(hold=True), Subject[int]()
    both = rx.merge(rd.from_async_iterable(source), subject)
    with pytest.raises(KeyboardInterrupt), rd.to_iterable(both, "buffer") as values:
        with monkeypatch.context() as patched:
            from concurrent.futures import Future

            def interrupted(self: Any, timeout: float | None = None) -> Any:
                raise KeyboardInterrupt

            patched.setattr(Future, "result", interrupted)
            with pytest.raises(KeyboardInterrupt):
                next(values)
        subject.on_next(1)
        asyncio.run_coroutine_threadsafe(turns(), values._loop).result()  # type: ignore[attr-defined]
        assert next(values) == 1
        raise KeyboardInterrupt
    assert subject.observers == []


class Loop:
    """Somebody's own loop, on a thread."""

    def __enter__(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._loop.call_soon(lambda: None)
        self._thread.start()
        while not self._loop.is_running():
            pass
        return self._loop

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def test_two_readers_share_a_source_on_one_loop_and_the_second_goes_on() -> None:
    source = Source(1, 2, 3)
    shared = rd.from_async_iterable(source).pipe(rd.share_latest())
    with Loop() as loop:
        with rd.to_iterable(shared, "block", maxsize=1, loop=loop) as second:
            with rd.to_iterable(shared, "block", maxsize=1, loop=loop) as first:
                assert next(first) == 1
            assert next(second) == 1
            assert list(second) == [2, 3]
        assert source.closed == 1


def test_a_loop_that_does_not_run_is_refused() -> None:
    loop = asyncio.new_event_loop()
    reading = rd.to_iterable(rx.of(1), loop=loop)
    with pytest.raises(rd.InvalidValueError, match="must be running"), reading:
        pass
    loop.close()


def test_58_the_given_loop_closes_while_it_is_read() -> None:
    source = Subject[int]()
    with Loop() as loop:
        reading = rd.to_iterable(source, loop=loop)
        values = reading.__enter__()
    with pytest.raises(RuntimeError, match="closed"):
        next(values)
    reading.__exit__(None, None, None)


def test_what_goes_on_by_itself_ends_with_the_loop() -> None:
    source = Source(1, hold=True)
    shared = rd.from_async_iterable(source).pipe(rd.share_latest(unread="keep"))
    with rd.to_iterable(shared) as values:
        assert next(values) == 1
    assert source.closed == 1


def test_values_of_foreign_threads_come_in_order() -> None:
    source = rx.from_iterable(range(500)).pipe(ops.subscribe_on(rx.scheduler.NewThreadScheduler()))
    with rd.to_iterable(source, "block", maxsize=3) as values:
        assert list(values) == list(range(500))
