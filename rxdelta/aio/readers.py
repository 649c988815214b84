"""Functions that read a pipeline without knowledge of Rx: in a coroutine, or with a plain `for`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from reactivex import Observable, operators as ops

from rxdelta.aio.reading import CLOSE_SECONDS, Inbox, Overflow, Reading, ReadingOptions, check_source
from rxdelta.core import EmptyStreamError, InvalidValueError, Limits, check_function
from rxdelta.runtime import other_library, running_loop

if TYPE_CHECKING:
    from types import TracebackType

    from rxdelta.aio.queues import ReaderMeter

T = TypeVar("T")
R = TypeVar("R")


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
    options = ReadingOptions("for_each", overflow, maxsize, key, limits, meter)
    async with Reading(source, options) as values:
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
    options = ReadingOptions("iterate", overflow, maxsize, key, limits, meter)
    async with Reading(source, options, passes_on=True) as values:
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
    async with Reading(source, ReadingOptions("first_value", "buffer")) as values:
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
    async with Reading(source.pipe(ops.take_last(1)), ReadingOptions("last_value", "buffer")) as values:
        async for value in values:
            last = (value,)
    if not last:
        raise EmptyStreamError("the stream completed without a value")
    return last[0]


def to_iterable(
    source: Observable[T],
    overflow: Overflow = "block",
    *,
    maxsize: int = 1024,
    key: Callable[[T], Hashable] | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
    limits: Limits | None = None,
    meter: ReaderMeter | None = None,
) -> BlockingReading[T]:
    """The source's values for a plain `for`, inside `with`: for programs without asyncio.

    Entering the block subscribes, in a copy of the caller's context, on an asyncio loop that runs on its own thread;
    so asynchronous sources, tools and timers work. Leaving it, in any way, disposes the subscription, which cancels
    the provider's request. It waits until the source has closed and the thread has ended, for five seconds each at
    most. All queued values come before the end: then the iteration stops, if the source has completed, or raises
    the source's error.

    The connections of an asynchronous client belong to the loop that made them. Make the client inside the source's
    function, or use the provider's sync client and `from_iterable`. Or pass one `loop` to all readings, as for a
    shared source that goes on when its first reader has left.

    Args:
        source: Any Observable.
        overflow: The policy for a slow reader: all values, and the source waits if it can (`block`); all values
            (`buffer`); the `latest` snapshot; all events, joined (`join`); or an `error`. See `to_async_iterable`.
        maxsize: How many values may be queued, for `block`, `error` and `join`.
        key: For `latest`: a function that returns the key of a value; see `to_async_iterable`.
        loop: A loop that is running on another thread, to be used instead of a new one.
        limits: Bounds on what the pipeline may hold in memory; see `to_async_iterable`.
        meter: Measures what waits for this reader, see `ReaderMeter`.

    Raises:
        InvalidValueError: At once and while reading, as `to_async_iterable`. On entering, if `loop` is not running,
            and if this thread runs an asyncio loop, which would be blocked (use `to_async_iterable`), or another
            library's, such as trio's (use a worker thread).

    Example:
        >>> import rxdelta as rd
        >>> async def chunks():
        ...     yield 1
        ...     yield 2
        >>> with rd.to_iterable(rd.from_async_iterable(chunks)) as values:
        ...     for value in values:
        ...         print(value)
        1
        2
    """
    options = ReadingOptions("to_iterable", overflow, maxsize, key, limits, meter)
    return BlockingReading(Reading(source, options, passes_on=True), loop)


def refuse_loop() -> None:
    """Refuse to block a thread that runs a loop.

    Raises:
        InvalidValueError: It does.
    """
    if running_loop() is not None:
        raise InvalidValueError(
            "an asyncio loop is running here, and a plain `for` would block it; use "
            "`async with to_async_iterable(…)`",
            field="source",
        )
    library = other_library()
    if library is not None:
        raise InvalidValueError(
            f"to_iterable would block the loop of {library}, which runs this task; enter it in a worker thread",
            field="source",
        )


class BlockingReading(Generic[T]):
    """One reading of an Observable: a context manager whose value is an iterator."""

    def __init__(self, reading: Reading[T], loop: asyncio.AbstractEventLoop | None) -> None:
        self._reading = reading
        self._loop = loop
        self._thread: _LoopThread | None = None
        self._items: _Items[T] | None = None

    def __enter__(self) -> Iterator[T]:
        refuse_loop()
        if self._items is not None:
            raise InvalidValueError(
                "a reading is entered once; make another with to_iterable()", field="source"
            )
        loop = self._loop
        if loop is not None and not loop.is_running():
            raise InvalidValueError.of([("loop", loop, "must be running, on another thread")])
        if loop is None:
            self._thread = _LoopThread()
            loop = self._thread.loop
        opened: Future[Inbox[T]] = Future()
        try:
            loop.call_soon_threadsafe(_open, self._reading, opened)  # in a copy of our context
            self._items = _Items(opened.result(), loop)
        except BaseException:
            if self._thread is not None:
                self._thread.end()
            raise
        return self._items

    def __iter__(self) -> NoReturn:
        raise InvalidValueError(
            "read it inside a block, which closes the source: `with to_iterable(…) as values:`, then "
            "`for value in values:`",
            field="source",
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._items is not None:
                self._items.leave()
        finally:
            if self._thread is not None:
                self._thread.end()


def _open(reading: Reading[T], opened: Future[Inbox[T]]) -> None:
    try:
        opened.set_result(reading.open())
    except BaseException as error:
        opened.set_exception(error)


class _Items(Generic[T]):
    """The queued values, taken on another thread than the loop's."""

    def __init__(self, inbox: Inbox[T], loop: asyncio.AbstractEventLoop) -> None:
        self._inbox = inbox
        self._loop = loop
        self._left = False

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        while True:
            with suppress(IndexError):
                return self._inbox.take()
            if self._left:
                raise StopIteration
            self._wait()

    def _wait(self) -> None:
        """Wait for a value without taking it, so that an interrupt of this thread loses none."""
        waiting = self._start(self._inbox.wait_for_value())
        try:
            waiting.result()
        except StopAsyncIteration:
            raise StopIteration from None
        except BaseException:
            waiting.cancel()  # needed if this thread was interrupted
            raise
        finally:
            del waiting  # breaks the cycle: it holds the error, whose traceback holds this frame

    def leave(self) -> None:
        self._left = True
        with suppress(RuntimeError):  # the loop is closed, and the source with it
            self._start(self._inbox.leave()).result()

    def _start(self, waiting: Coroutine[Any, Any, R]) -> Future[R]:
        try:
            return asyncio.run_coroutine_threadsafe(waiting, self._loop)
        except RuntimeError:
            waiting.close()
            raise


class _LoopThread:
    """A loop on its own thread."""

    def __init__(self) -> None:
        started: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = Thread(target=self._run, args=(started,), name="rxdelta-loop", daemon=True)
        self._thread.start()
        self.loop = started.result()

    def _run(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        with asyncio.Runner() as runner:
            runner.run(self._wait(started))

    async def _wait(self, started: Future[asyncio.AbstractEventLoop]) -> None:
        self._ended = asyncio.Event()
        started.set_result(asyncio.get_running_loop())
        await self._ended.wait()

    def end(self) -> None:
        """End the loop, which cancels its remaining tasks. A thread that hangs doesn't delay the program's exit."""
        with suppress(RuntimeError):
            self.loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(CLOSE_SECONDS)
