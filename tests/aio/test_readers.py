"""`for_each`, `iterate`, `first_value`, `last_value`: reading a pipeline without knowing Rx."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from support.loops import Stream, run, turns
from support.security_page import says

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

BOOM = ValueError("boom")


def test_for_each_calls_with_each_value_in_turn() -> None:
    async def main() -> None:
        got: list[int] = []
        await rd.for_each(rd.from_async_iterable(Stream(1, 2, 3)), got.append)
        assert got == [1, 2, 3]

    run(main)


def test_for_each_waits_for_a_coroutine_function_before_the_next_value() -> None:
    async def main() -> None:
        log: list[Any] = []

        async def draw(value: int) -> None:
            log.append(value)
            await turns(3)
            log.append(-value)

        await rd.for_each(rd.from_async_iterable(Stream(1, 2)), draw)
        assert log == [1, -1, 2, -2]

    run(main)


def test_for_each_with_latest_draws_the_newest_when_it_was_busy() -> None:
    async def main() -> None:
        source, got = Subject[int](), []

        async def draw(value: int) -> None:
            got.append(value)
            if value == 1:
                source.on_next(2)
                source.on_next(3)
                source.on_completed()

        drawing = asyncio.ensure_future(rd.for_each(source, draw, overflow="latest"))
        await turns()
        source.on_next(1)
        await drawing
        assert got == [1, 3]

    run(main)


@says("values that wait for a reader")
@pytest.mark.parametrize("overflow", ["block", "join", "error"])
def test_for_each_and_iterate_bound_what_waits(overflow: Any) -> None:
    events = [rd.events.ProviderEvent("p", str(number)) for number in range(20)]

    async def main() -> None:
        furthest = 0

        async def draw(event: rd.Event) -> None:
            nonlocal furthest
            await turns(50)
            furthest = max(furthest, stream.given - int(event.name))

        stream = Stream(*events)
        reading = rd.for_each(rd.from_async_iterable(stream), draw, overflow=overflow, maxsize=3)
        if overflow == "error":
            with pytest.raises(rd.errors.BufferOverflowError, match="3 values behind"):
                await reading
        else:
            await reading
            assert furthest == 4
        stream = Stream(*events)
        try:
            async for event in rd.iterate(rd.from_async_iterable(stream), overflow=overflow, maxsize=3):
                await draw(event)
        except rd.errors.BufferOverflowError:
            assert overflow == "error"
        assert furthest == 4 or overflow == "error"

    run(main)


def test_a_policy_that_is_none_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(rd.InvalidValueError, match="maxsize"):
            await rd.for_each(rx.of(1), print, maxsize=0)
        with pytest.raises(rd.InvalidValueError, match="overflow"):
            await anext(rd.iterate(rx.of(1), overflow="newest"))  # type: ignore[arg-type]

    run(main)


@pytest.mark.parametrize("asynchronous", [False, True])
def test_51_for_each_raises_what_the_function_raised_when_the_source_has_closed(asynchronous: bool) -> None:
    async def main() -> None:
        stream = Stream(1, 2)

        def fails(value: int) -> None:
            raise BOOM

        async def fails_later(value: int) -> None:
            await turns(1)
            raise BOOM

        with pytest.raises(ValueError, match="boom"):
            await rd.for_each(rd.from_async_iterable(stream), fails_later if asynchronous else fails)
        assert stream.closed == 1

    run(main)


READERS: list[Callable[[rx.Observable[Any]], Awaitable[Any]]] = [
    lambda source: rd.for_each(source, lambda _: None),
    rd.last_value,
    lambda source: rd.first_value(source.pipe(ops.skip(9))),
]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 5, 20])
def test_cancelling_a_reader_closes_the_source_first(read: Any, steps: int) -> None:
    async def main() -> None:
        stream = Stream(1, hold=True)
        task = asyncio.ensure_future(read(rd.from_async_iterable(stream)))
        await turns(steps)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert stream.closed == (steps > 0)

    run(main)


@pytest.mark.parametrize("read", READERS)
def test_the_streams_error_is_raised(read: Any) -> None:
    async def main() -> None:
        stream = Stream(1, end=BOOM)
        with pytest.raises(ValueError, match="boom") as raised:
            await read(rd.from_async_iterable(stream))
        assert raised.value is BOOM
        assert stream.closed == 1

    run(main)


def test_first_value_closes_the_source_and_last_value_reads_to_the_end() -> None:
    async def main() -> None:
        stream = Stream(1, 2, hold=True)
        assert await rd.first_value(rd.from_async_iterable(stream)) == 1
        assert stream.closed == 1
        assert await rd.last_value(rx.of(1, 2, None)) is None

    run(main)


def test_first_and_last_value_take_anything_and_slow_nobody() -> None:
    events = [rd.events.TextDelta(0, str(number)) for number in range(3000)]

    async def main() -> None:
        assert await rd.first_value(rd.from_async_iterable(Stream(*events))) == events[0]
        assert await rd.last_value(rd.from_async_iterable(Stream(*events))) == events[-1]
        stream = Stream(*events)
        shared = rd.from_async_iterable(stream).pipe(rd.share_events())
        async with rd.to_async_iterable(shared, "block", maxsize=50) as slow:
            assert await rd.last_value(shared) == events[-1]
            assert stream.given == 3000
            assert [event async for event in slow] == events

    run(main)


@pytest.mark.parametrize("read", [rd.first_value, rd.last_value])
def test_a_stream_without_a_value_is_an_error(read: Any) -> None:
    async def main() -> None:
        with pytest.raises(rd.errors.EmptyStreamError):
            await read(rx.empty())

    run(main)


def test_iterate_gives_all_and_slows_the_source() -> None:
    async def main() -> None:
        stream = Stream(*range(5))
        assert [value async for value in rd.iterate(rd.from_async_iterable(stream))] == [0, 1, 2, 3, 4]
        assert stream.closed == 1

    run(main)


def test_closing_what_iterate_gave_closes_the_source() -> None:
    async def main() -> None:
        stream = Stream(1, 2, hold=True)
        values: Any = rd.iterate(rd.from_async_iterable(stream))
        assert await anext(values) == 1
        await values.aclose()
        assert stream.closed == 1

    run(main)


def test_iterate_raises_the_streams_error_after_the_values() -> None:
    async def main() -> None:
        values: Any = rd.iterate(rd.from_async_iterable(Stream(1, end=BOOM)))
        assert await anext(values) == 1
        with pytest.raises(ValueError, match="boom"):
            await anext(values)

    run(main)


def test_one_reading_inside_another() -> None:
    async def main() -> None:
        inner, outer = Stream(1, 2, hold=True), Stream(1, 2)

        async def nested() -> AsyncIterator[int]:
            async with rd.to_async_iterable(rd.from_async_iterable(inner), "block", maxsize=1) as values:
                yield await anext(values)
            async for value in outer:
                yield value

        assert [value async for value in rd.iterate(rd.from_async_iterable(nested))] == [1, 1, 2]
        assert inner.closed == 1

    run(main)
