"""An Observable read with `async for`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from reactivex import Observable, abc

from rxdelta.aio._session import Session, current_session
from rxdelta.core import BufferOverflowError, InvalidValueError

__all__ = ["Overflow", "Reading", "to_async_iterable"]

T = TypeVar("T")
Overflow: TypeAlias = Literal["latest", "buffer", "block", "error"]


def to_async_iterable(source: Observable[T], overflow: Overflow = "latest", *, maxsize: int = 1024) -> Reading[T]:
    """The source's values for `async for`, inside `async with`.

    Entering the block subscribes. Leaving it, however, disposes the subscription, which cancels the provider's
    request, and waits until the source has closed. Values come before the end: the iteration stops when the source
    has completed and raises the source's own error, each after what was waiting.

    Args:
        source: Any Observable.
        overflow: What a slow reader gets. `latest`: the newest value, for snapshots. `buffer`: all, in a queue
            without a bound. `block`: all, and a source of `from_async_iterable` waits while `maxsize` are queued (any
            other source cannot be slowed, and is queued). `error`: all, or `BufferOverflowError` when more than
            `maxsize` are queued.
        maxsize: Values that may be queued, for `block` and `error`.

    Raises:
        InvalidValueError: At once, for an unknown `overflow` or a `maxsize` below 1.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> async def main():
        ...     async with rd.to_async_iterable(rx.of(1, 2, 3), overflow="buffer") as values:
        ...         return [value async for value in values]
        >>> asyncio.run(main())
        [1, 2, 3]
    """
    if overflow not in ("latest", "buffer", "block", "error"):
        raise InvalidValueError.of([("overflow", overflow, "is invalid")])
    if not isinstance(maxsize, int) or maxsize < 1:
        raise InvalidValueError.of([("maxsize", maxsize, "must be at least 1")])
    return Reading(source, overflow, maxsize)


class Reading(Generic[T]):
    """One reading of an Observable: an async context manager that gives an async iterator."""

    def __init__(self, source: Observable[T], overflow: Overflow, maxsize: int) -> None:
        self._source = source
        self._overflow = overflow
        self._maxsize = maxsize
        self._values: deque[T] = deque(maxlen=1 if overflow == "latest" else None)
        self._ended: tuple[Exception | None] | None = None
        self._subscription: abc.DisposableBase | None = None

    async def __aenter__(self) -> AsyncIterator[T]:
        if self._subscription is not None:
            raise InvalidValueError("a reading is entered once; make another with to_async_iterable()", field="source")
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._session = Session()
        token = current_session.set(self._session)
        try:
            self._subscription = self._source.subscribe(self._on_next, self._on_error, self._on_completed)
        finally:
            current_session.reset(token)
        return self._iterate()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._subscription is not None:
            self._subscription.dispose()
        await self._session.closed()

    async def _iterate(self) -> AsyncIterator[T]:
        while True:
            while self._values:
                value = self._values.popleft()
                if len(self._values) < self._maxsize:
                    self._session.resume()
                yield value
            if self._ended is not None and not self._values:
                (error,) = self._ended
                if error is not None:
                    raise error
                return
            self._news.clear()
            if not self._values and self._ended is None:
                await self._news.wait()

    def _on_next(self, value: T) -> None:
        if self._ended is not None:
            return
        if self._overflow == "error" and len(self._values) >= self._maxsize:
            self._end(
                BufferOverflowError(
                    f"the reader has fallen {self._maxsize:,} values behind; read faster, raise maxsize, or choose "
                    "another overflow policy"
                )
            )
            if self._subscription is not None:
                self._subscription.dispose()
            return
        self._values.append(value)
        if self._overflow == "block" and len(self._values) >= self._maxsize:
            self._session.pause()
        self._wake()

    def _on_error(self, error: Exception) -> None:
        self._end(error)

    def _on_completed(self) -> None:
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        if self._ended is None:
            self._ended = (error,)
            self._wake()

    def _wake(self) -> None:
        """Values may come from other threads, where an asyncio event must not be set."""
        if _running_loop() is self._loop:
            self._news.set()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)


def _running_loop() -> Any:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
