"""Functions that read a pipeline without knowledge of Rx."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, TypeVar

from reactivex import operators as ops

from rxdelta.aio._to_async_iterable import Overflow, Reading, check_source
from rxdelta.core import EmptyStreamError, check_function

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Hashable

    from reactivex import Observable

    from rxdelta.aio._meter import ReaderMeter
    from rxdelta.core import Limits

__all__ = ["first_value", "for_each", "iterate", "last_value"]

T = TypeVar("T")


async def for_each(
    source: Observable[T],
    fn: Callable[[T], Awaitable[object] | object],
    *,
    overflow: Overflow = "block",
    maxsize: int = 1024,
    key: Callable[[T], Hashable] | None = None,
    limits: Limits | None = None,
    meter: ReaderMeter | None = None,
) -> None:
    """Call `fn` with each value in turn, and return when the source has completed.

    `fn` may be a coroutine function; the next value waits until it has returned. When this coroutine is cancelled,
    or `fn` raises, the source is closed first.

    Args:
        source: Any Observable.
        fn: Called with each value.
        overflow: The policy for values that arrive while `fn` is busy; by default they are queued, and a full queue
            makes the source wait. For snapshots to be drawn use `latest`: the picture doesn't fall behind. See
            `to_async_iterable`.
        maxsize: How many values may be queued, for `block`, `error` and `join`.
        key: For `latest`: a function that returns the key of a value; see `to_async_iterable`.
        limits: Bounds on what the pipeline may hold in memory; see `to_async_iterable`.
        meter: Measures what waits for this reader, see `ReaderMeter`.

    Raises:
        Exception: The stream's error (with `.snapshot` behind `scan_deltas`), after the values before it; or the
            exception of `fn`.
        InvalidValueError: As `to_async_iterable`, and before subscribing if `fn` is no function.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> asyncio.run(rd.for_each(rx.of("a", "b"), print))
        a
        b
    """
    check_function("fn", fn, "a function of a value")
    async with Reading(source, overflow, maxsize, key, limits, "for_each", meter) as values:
        async for value in values:
            done = fn(value)
            if done is not None and inspect.isawaitable(done):
                await done


async def iterate(
    source: Observable[T],
    *,
    overflow: Overflow = "block",
    maxsize: int = 1024,
    key: Callable[[T], Hashable] | None = None,
    limits: Limits | None = None,
    meter: ReaderMeter | None = None,
) -> AsyncIterator[T]:
    """An async generator of the values, for what takes only one, such as a streaming response.

    Closing the generator closes the source. Prefer `to_async_iterable`: its `async with` closes at a known moment,
    an abandoned generator at an unknown one.

    Args:
        source: Any Observable.
        overflow: The policy for a slow reader; see `to_async_iterable`.
        maxsize: How many values may be queued, for `block`, `error` and `join`.
        key: For `latest`: a function that returns the key of a value; see `to_async_iterable`.
        limits: Bounds on what the pipeline may hold in memory; see `to_async_iterable`.
        meter: Measures what waits for this reader, see `ReaderMeter`.

    Raises:
        Exception: The stream's error, after the values before it.
        InvalidValueError: With the first value, as `to_async_iterable`.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> async def main():
        ...     return [value async for value in rd.iterate(rx.of(1, 2))]
        >>> asyncio.run(main())
        [1, 2]
    """
    async with Reading(source, overflow, maxsize, key, limits, "iterate", meter) as values:
        async for value in values:
            yield value


async def first_value(source: Observable[T]) -> T:
    """Return the first value, after closing the source.

    Raises:
        EmptyStreamError: The source completed without a value.
        Exception: The stream's error, if it came before a value.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> asyncio.run(rd.first_value(rx.of(1, 2)))
        1
    """
    async with Reading(source, "buffer", 1, None, None, "first_value") as values:
        async for value in values:
            return value
    raise EmptyStreamError("the stream completed without a value")


async def last_value(source: Observable[T]) -> T:
    """Return the last value, when the source has completed.

    Raises:
        EmptyStreamError: The source completed without a value.
        Exception: The stream's error.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> asyncio.run(rd.last_value(rx.of(1, 2)))
        2
    """
    check_source(source, "last_value")
    last: tuple[T, ...] = ()
    async with Reading(source.pipe(ops.take_last(1)), "buffer", 1, None, None, "last_value") as values:
        async for value in values:
            last = (value,)
    if not last:
        raise EmptyStreamError("the stream completed without a value")
    return last[0]
