"""An Observable read with `async for`."""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Generic, Literal, NoReturn, TypeAlias, TypeVar

from reactivex.disposable import SingleAssignmentDisposable

from rxdelta.aio._backlog import Backlog
from rxdelta.aio._session import Session, current_session
from rxdelta.core import BufferOverflowError, InvalidValueError, MessageDelta, StreamInterrupted
from rxdelta.core.events import EVENT_TYPES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType

    from reactivex import Observable

__all__ = ["Inbox", "Overflow", "Reading", "check_overflow", "to_async_iterable"]

T = TypeVar("T")
Overflow: TypeAlias = Literal["latest", "buffer", "block", "error", "join"]

_BREATH = 64  # values after which a reader that never has to wait lets the loop's timers run


def to_async_iterable(
    source: Observable[T], overflow: Overflow = "latest", *, maxsize: int = 1024
) -> Reading[T]:
    """The source's values for `async for`, inside `async with`.

    Entering the block subscribes. Leaving it, however, disposes the subscription, which cancels the
    provider's request, and waits until the source has closed, for five seconds at most. Values come before
    the end: the iteration stops when the source has completed and raises the source's own error, each after
    what was waiting.

    Args:
        source: Any Observable.
        overflow: What a slow reader gets. `latest`: the newest value, for snapshots. `buffer`: all, in a
            queue without a bound. `block`: all, and a `from_async_iterable` that this reading has started
            waits while `maxsize` are queued (any other source cannot be slowed, and is queued). `error`: all,
            or `BufferOverflowError` when more than `maxsize` are queued. `join`: for events; those that wait are
            joined where they are more of the same (pieces of a block, usage, news of a tool), so that a few are
            queued however far the reader is behind; otherwise like `block`.
        maxsize: Values that may be queued, for `block`, `error` and `join`.

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
    check_overflow(overflow, maxsize)
    return Reading(source, overflow, maxsize)


def check_overflow(overflow: object, maxsize: object) -> None:
    if overflow not in ("latest", "buffer", "block", "error", "join"):
        raise InvalidValueError.of([("overflow", overflow, "is invalid")])
    if isinstance(maxsize, bool) or not isinstance(maxsize, int) or maxsize < 1:
        raise InvalidValueError.of([("maxsize", maxsize, "must be at least 1")])


class Reading(Generic[T]):
    """One reading of an Observable: an async context manager that gives an async iterator."""

    def __init__(self, source: Observable[T], overflow: Overflow, maxsize: int) -> None:
        self._source = source
        self._overflow: Overflow = overflow
        self._maxsize = maxsize
        self._inbox: Inbox[T] | None = None

    async def __aenter__(self) -> AsyncIterator[T]:
        return self.open()

    def open(self) -> Inbox[T]:
        """Subscribe. The loop must be running."""
        if self._inbox is not None:
            raise InvalidValueError(
                "a reading is entered once; make another with to_async_iterable()", field="source"
            )
        inbox: Inbox[T] = Inbox(self._overflow, self._maxsize)
        self._inbox = inbox
        token = current_session.set(inbox.session)
        try:
            inbox.subscription.disposable = self._source.subscribe(
                inbox.on_next, inbox.on_error, inbox.on_completed
            )
        finally:
            current_session.reset(token)
        return inbox

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._inbox is not None:
            await self._inbox.leave()


class Inbox(Generic[T]):
    """What has come and wasn't read yet. Written to by the source, on any thread; read on the loop."""

    def __init__(self, overflow: Overflow, maxsize: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._overflow = overflow
        self._maxsize = maxsize
        self._values: deque[T] | Backlog[T] = (
            Backlog() if overflow == "join" else deque(maxlen=1 if overflow == "latest" else None)
        )
        self._ended = False
        self._error: Exception | None = None
        self._news = asyncio.Event()
        self._count = 0
        self.session = Session(self.on_error)
        self.subscription = SingleAssignmentDisposable()

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        self._count += 1
        if self._count % _BREATH == 0:
            await asyncio.sleep(0)
        await self.come()
        value = self._values.popleft()
        if len(self._values) < self._maxsize:
            self.session.room.set()
        return value

    async def come(self) -> None:
        """Wait until there is a value, or raise the end."""
        while not self._values:
            if self._ended:
                self._raise()
            self._news.clear()
            if not self._values and not self._ended:  # another thread may have been quicker
                await self._news.wait()

    def take(self) -> T:
        """A value that waits, on any thread; `IndexError` if there is none."""
        value = self._values.popleft()
        if self._overflow in ("block", "join"):
            self._make_room()
        return value

    def _raise(self) -> NoReturn:
        error, self._error = self._error, None
        if error is None:
            raise StopAsyncIteration
        if isinstance(error, (StopIteration, StopAsyncIteration)):  # which would look like completion
            error = StreamInterrupted.by(error)
        try:
            raise error
        finally:
            del error  # or it would keep this frame, and that it

    async def leave(self) -> None:
        self.subscription.dispose()
        self._end(None)
        self._values.clear()
        await self.session.closed()

    def on_next(self, value: T) -> None:
        if self._ended:
            return
        if self._overflow == "error" and len(self._values) >= self._maxsize:
            overflow = BufferOverflowError(
                f"the reader has fallen {self._maxsize:,} values behind; read faster, raise maxsize, or "
                "choose another overflow policy"
            )
            overflow.snapshot = value if isinstance(value, MessageDelta) else None
            self._end(overflow)
            self.subscription.dispose()
            return
        if self._overflow == "join" and type(value) not in EVENT_TYPES:
            wanted = (
                "must be an event where a reader asks for overflow='join'; of snapshots it wants the 'latest'"
            )
            self._end(InvalidValueError.of([("value", value, wanted)]))
            self.subscription.dispose()
            return
        self._values.append(value)
        if self._overflow in ("block", "join") and len(self._values) >= self._maxsize:
            self.session.pause()
            self._make_room()  # where it was read meanwhile, on another thread
        self._on_loop(self._news.set)

    def on_error(self, error: Exception) -> None:
        self._end(error)

    def on_completed(self) -> None:
        self._end(None)

    def _end(self, error: Exception | None) -> None:
        if not self._ended:
            self._error = error
            self._ended = True
            self._on_loop(self._news.set)

    def _make_room(self) -> None:
        if len(self._values) < self._maxsize and not self.session.room.is_set():
            self._on_loop(self.session.room.set)

    def _on_loop(self, call: Callable[[], object]) -> None:
        """Values may come from other threads, where an asyncio event must not be set."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            call()
        else:
            with suppress(RuntimeError):  # the loop is closed, and the reader with it
                self._loop.call_soon_threadsafe(call)
