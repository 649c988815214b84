"""An Observable read with `async for`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from math import inf
from typing import TYPE_CHECKING, Generic, Literal, NoReturn, TypeAlias, TypeVar

from reactivex.disposable import SingleAssignmentDisposable

from rxdelta.aio._backlog import Backlog
from rxdelta.aio._reader_session import ReaderSession, current_session
from rxdelta.core import BufferOverflowError, InvalidValueError, Snapshot, StreamInterrupted
from rxdelta.core.events import EVENT_TYPES
from rxdelta.runtime import call_on, drop_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import TracebackType

    from reactivex import Observable

__all__ = ["Inbox", "Overflow", "Reading", "check_overflow", "to_async_iterable"]

T = TypeVar("T")
Overflow: TypeAlias = Literal["latest", "buffer", "block", "error", "join"]

_YIELD_EVERY = 64  # values after which a reader that never has to wait lets the loop's timers run
_MAX_LAG = {"block": 65_536, "join": 8_192}  # values beyond maxsize; see `Inbox._check_lag`


def to_async_iterable(
    source: Observable[T], overflow: Overflow = "block", *, maxsize: int = 1024
) -> Reading[T]:
    """The source's values for `async for`, inside `async with`.

    Entering the block subscribes. Leaving it, however, disposes the subscription, which cancels the
    provider's request, and waits until the source has closed, for five seconds at most. Values come before
    the end: the iteration stops when the source has completed and raises the source's own error, each after
    what was waiting.

    Nothing is lost unless you ask for that. What is raised on the way (by an operator of your own, also behind a timer,
    a tool or in a block's pipeline) is raised here, and ends the reading.

    Args:
        source: Any Observable.
        overflow: What a slow reader gets. `block`: all; while `maxsize` values are queued, a source that can wait
            does, which is any `from_async_iterable` or `from_iterable` that this reading has started (any other is
            queued). `buffer`: all, in a queue without a bound. `latest`: the newest value, for snapshots and for
            whatever else a newer value replaces; events are refused. `error`: all, or `BufferOverflowError` when
            more than `maxsize` are queued. `join`: for events; those that wait are joined where they are more of the
            same (pieces of a block, usage, news of a tool), so that a few are queued however far the reader is
            behind; otherwise like `block`.
        maxsize: Values that may be queued, for `block`, `error` and `join`. A source that is shared
            (`share_events`, `share_latest`) waits only while none of its readers has room; as long as another takes its
            values, more are queued for this one, and when those are 65,536 (`block`) or 8,192 (`join`), it is ended
            with `BufferOverflowError`.

    Raises:
        InvalidValueError: At once, for an unknown `overflow` or a `maxsize` below 1. While reading, for an event where
            `latest`, or what is no event where `join` was asked for.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> async def main():
        ...     async with rd.to_async_iterable(rx.of(1, 2, 3)) as values:
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
        self._full = maxsize if overflow in ("block", "join") else inf  # when the source should wait
        self._values: deque[T] | Backlog[T] = (
            Backlog() if overflow == "join" else deque(maxlen=1 if overflow == "latest" else None)
        )
        self._refuse = _REFUSALS.get(overflow)  # what is, with a value
        self._ended = False
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        self._count = 0
        self.session = ReaderSession(self._fail, self._has_room, self._check_lag, self._loop)
        self.subscription = SingleAssignmentDisposable()

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        self._count += 1
        if self._count % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
        await self.wait_for_value()
        return self.take()

    async def wait_for_value(self) -> None:
        """Wait until there is a value, or raise the end."""
        while not self._values:
            if self._ended:
                self._raise()
            self._changed.clear()
            if not self._values and not self._ended:  # another thread may have been quicker
                await self._changed.wait()

    def take(self) -> T:
        """A value that waits, on any thread; `IndexError` if there is none."""
        value = self._values.popleft()
        if not self.session.backpressure.is_ready():
            self.session.backpressure.update()
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
        await self.session.leave()

    def on_next(self, value: T) -> None:
        if self._ended:
            return
        if self._overflow == "error" and len(self._values) >= self._maxsize:
            self._fail(_overflow(f"{self._maxsize:,} values behind", value))
            return
        refusal = None if self._refuse is None else self._refuse(value)
        if refusal is not None:
            self._fail(refusal)
            return
        self._values.append(value)
        if len(self._values) >= self._full:
            self.session.backpressure.update()
        call_on(self._loop, self._changed.set)

    def _has_room(self) -> bool:
        return len(self._values) < self._full

    def _check_lag(self) -> None:
        """A shared source has gone on without room here. Its others don't wait for ever, nor does the queue grow so."""
        if len(self._values) >= self._maxsize + _MAX_LAG[self._overflow]:
            newest = self._values[-1] if isinstance(self._values, deque) else None
            behind = f"{len(self._values):,} values behind the others who read this source"
            self._fail(_overflow(behind, newest))

    def _fail(self, error: Exception) -> bool:
        """End the reading with what went wrong in it, and the source with the reading. Whether it was the end."""
        first = self._end(error)
        self.subscription.dispose()
        return first

    def on_error(self, error: Exception) -> None:
        self._end(error)

    def on_completed(self) -> None:
        self._end(None)

    def _end(self, error: Exception | None) -> bool:
        if self._ended:
            return False
        self._error = error
        self._ended = True
        call_on(self._loop, self._changed.set)
        return True


def _overflow(behind: str, value: object) -> BufferOverflowError:
    return BufferOverflowError(
        f"the reader has fallen {behind}; read faster, raise maxsize, or choose another overflow policy",
        snapshot=value if isinstance(value, Snapshot) else None,
    )


def _no_snapshot(event: object) -> InvalidValueError | None:
    return drop_error('overflow="latest"', event, "read the events with overflow='join'")


def _no_event(value: object) -> InvalidValueError | None:
    if type(value) in EVENT_TYPES:
        return None
    wanted = "must be an event where a reader asks for overflow='join'; of snapshots it wants the 'latest'"
    return InvalidValueError.of([("value", value, wanted)])


_REFUSALS: Mapping[Overflow, Callable[[object], InvalidValueError | None]] = {
    "latest": _no_snapshot,
    "join": _no_event,
}
