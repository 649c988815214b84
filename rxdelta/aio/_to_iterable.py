"""An Observable read with a plain `for`."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from rxdelta.aio._reader_session import CLOSE_SECONDS
from rxdelta.aio._to_async_iterable import Inbox, Overflow, Reading
from rxdelta.core import InvalidValueError
from rxdelta.runtime import other_library, running_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Hashable, Iterator
    from types import TracebackType

    from reactivex import Observable

    from rxdelta.aio._meter import ReaderMeter
    from rxdelta.core import Limits

__all__ = ["BlockingReading", "refuse_loop", "to_iterable"]

T = TypeVar("T")
R = TypeVar("R")


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
    return BlockingReading(source, overflow, maxsize, key, limits, loop, meter)


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

    def __init__(
        self,
        source: Observable[T],
        overflow: Overflow,
        maxsize: int,
        key: Callable[[T], Hashable] | None,
        limits: Limits | None,
        loop: asyncio.AbstractEventLoop | None,
        meter: ReaderMeter | None,
    ) -> None:
        self._reading = Reading(source, overflow, maxsize, key, limits, "to_iterable", meter)
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
