"""One reading of an Observable on an asyncio loop: its options, its queue, its session (see `rxdelta.runtime.session`)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import suppress
from functools import partial
from math import inf
from threading import Event
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeAlias, TypeVar, get_args

import attrs
from reactivex import Observable, abc
from reactivex.disposable import SingleAssignmentDisposable

from rxdelta.aio.queues import Backlog, ReaderMeter, check_meter
from rxdelta.core import (
    BufferOverflowError,
    InvalidValueError,
    Limits,
    Snapshot,
    StreamInterrupted,
    did_you_mean,
)
from rxdelta.runtime import (
    Backpressure,
    Bounds,
    Idleness,
    Journal,
    LoopScheduler,
    Newest,
    Pump,
    call_on,
    current_journal,
    emits_events,
    needed_loop,
    refuse_pieces,
    subscribing,
)

if TYPE_CHECKING:
    from types import TracebackType


T = TypeVar("T")
Overflow: TypeAlias = Literal["latest", "buffer", "block", "error", "join"]

CLOSE_SECONDS = 5.0
"""How long leaving waits for a source to close before it cancels the closing."""

_POLICIES: tuple[str, ...] = get_args(Overflow)
_YIELD_EVERY = 64  # values after which a reader that never waits lets the loop's timers run
_LATEST = 'overflow="latest"'  # in messages
_MAX_LAG = {"block": 65_536, "join": 8_192}  # values above maxsize; see `Inbox._check_lag`
_TEXT_BYTES = 2**20  # of text that waits with `join`, where few events may hold much
_MAX_LAG_TEXT_BYTES = 2**23  # above that, as `_MAX_LAG`


def to_async_iterable(
    source: Observable[T],
    overflow: Overflow = "block",
    *,
    maxsize: int = 1024,
    key: Callable[[T], Hashable] | None = None,
    limits: Limits | None = None,
    meter: ReaderMeter | None = None,
) -> Reading[T]:
    """The source's values for `async for`, inside `async with`.

    Entering the block subscribes. Leaving it, in any way, disposes the subscription, which cancels the
    provider's request, and waits until the source has closed, for five seconds at most. All queued values come
    before the end: then the iteration stops, if the source has completed, or raises the source's error.

    No value is lost unless you choose a policy that drops values. An exception in the pipeline (of an operator of your
    own, also behind a timer, a tool or in a block's pipeline) is raised here, and ends the reading.

    Args:
        source: Any Observable.
        overflow: The policy for a slow reader.
            `block`: all values; while `maxsize` values are queued, the source waits. This holds for each
            `from_async_iterable` and `from_iterable` that this reading has started; values of other sources are queued.
            `buffer`: all values, in a queue without a bound.
            `latest`: the newest value of each key (see `throttle_latest`), for snapshots and other values that a newer
            one replaces. Values that no later value contains are refused: events, pieces of text, calls, frames.
            `error`: all values, or `BufferOverflowError` when more than `maxsize` are queued.
            `join`: for events; like `block`, but queued events are joined (pieces of a block, usage, updates of a
            tool), so that the queue is short for a reader that is a little behind. It is full with `maxsize` events or
            1 MiB of text, as it is in memory.
        maxsize: How many values may be queued, for `block`, `error` and `join`. A shared source (`share_events`,
            `share_latest`) waits only while none of its readers has room. While another reader takes its values, more
            are queued for this one; at 65,536 (`block`) or 8,192 (`join`) more, or 8 MiB of text more (`join`), the
            reading ends with `BufferOverflowError`.
        key: For `latest`: a function that returns the key of a value, see `throttle_latest`. With a key nothing
            is refused.
        limits: Bounds on what the pipeline may hold in memory, where no `with_limits` holds.
        meter: Measures what waits for this reader, see `ReaderMeter`.

    Raises:
        InvalidValueError: At once, for an argument of the wrong type, an unknown `overflow`, a `maxsize` below 1, and
            with `latest` if the operator in front emits what no later value contains. On entering, without a running
            asyncio loop, as under trio. While reading, for an event with `latest`, and for any other value with
            `join`.

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
    options = ReadingOptions("to_async_iterable", overflow, maxsize, key, limits, meter)
    return Reading(source, options, passes_on=True)


@attrs.frozen
class ReadingOptions(Generic[T]):
    """The arguments of a function that reads, checked.

    Attributes:
        by: The name of the function, for messages.
    """

    by: str
    overflow: Overflow
    maxsize: int = 1024
    key: Callable[[T], Hashable] | None = None
    limits: Limits | None = None
    meter: ReaderMeter | None = None

    def __attrs_post_init__(self) -> None:
        by, overflow, maxsize, key = self.by, self.overflow, self.maxsize, self.key
        problems: list[tuple[str, object, str] | tuple[str, object, str, str]] = []
        if overflow not in _POLICIES:
            problems.append(("overflow", overflow, f"{by} knows {', '.join(_POLICIES)}", _meant(overflow)))
        if isinstance(maxsize, bool) or not isinstance(maxsize, int) or maxsize < 1:
            problems.append(("maxsize", maxsize, f"must be at least 1 for {by}"))
        if key is not None and (not callable(key) or overflow != "latest"):
            problems.append(("key", key, f"{by} takes a function of a value, with overflow='latest'"))
        if self.limits is not None and not isinstance(self.limits, Limits):
            problems.append(("limits", self.limits, f"{by} takes rd.Limits"))
        problems += check_meter(self.meter, by)
        if problems:
            raise InvalidValueError.of(problems)


def _meant(overflow: object) -> str:
    return "did you mean 'latest'?" if overflow == "newest" else did_you_mean(overflow, _POLICIES)


class Reading(Generic[T]):
    """One reading of an Observable: an async context manager whose value is an async iterator.

    Args:
        passes_on: Whether the reader may pass the events on to the log of a relay, whose stream it is part of.
    """

    def __init__(self, source: Observable[T], options: ReadingOptions[T], *, passes_on: bool = False) -> None:
        check_source(source, options.by)
        if options.overflow == "latest" and options.key is None:
            refuse_pieces(source, _LATEST)
        self._source = source
        self._options = options
        self._passes_on = passes_on
        self._inbox: Inbox[T] | None = None

    async def __aenter__(self) -> AsyncIterator[T]:
        return self.open()

    def __aiter__(self) -> NoReturn:
        raise InvalidValueError(
            f"read it inside a block, which closes the source: `async with {self._options.by}(…) as values:`, then "
            "`async for value in values:`",
            field="source",
        )

    def open(self) -> Inbox[T]:
        """Subscribe on the running loop."""
        if self._inbox is not None:
            raise InvalidValueError(
                "a reading is entered once; make another with to_async_iterable()", field="source"
            )
        options = self._options
        loop = needed_loop(options.by, "await it in a coroutine that asyncio.run() runs")
        journal = current_journal() if self._passes_on and emits_events(self._source) else None
        inbox: Inbox[T] = Inbox(options, loop, journal)
        self._inbox = inbox
        with subscribing(inbox.session, LoopScheduler(loop), Bounds(given=options.limits)) as scheduler:
            inbox.subscription.disposable = self._source.subscribe(
                inbox.on_next, inbox.on_error, inbox.on_completed, scheduler=scheduler
            )
        return inbox

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._inbox is not None:
            await self._inbox.leave()


def check_source(source: object, by: str) -> None:
    if not isinstance(source, abc.ObservableBase):
        made = "from_async_iterable() and from_iterable() make one"
        raise InvalidValueError.of([("source", source, f"{by} reads an Observable; {made}")])


class Inbox(Generic[T]):
    """The queue of one reading. The source writes to it, on any thread; the loop reads it."""

    def __init__(
        self, options: ReadingOptions[T], loop: asyncio.AbstractEventLoop, journal: Journal | None
    ) -> None:
        self._loop = loop
        overflow, maxsize = options.overflow, options.maxsize
        self._overflow = overflow
        self._maxsize = maxsize
        self._full = maxsize if overflow in ("block", "join") else inf  # the source waits at this length
        values: deque[T] | Backlog[T] | Newest[T] = deque()
        self._backlog: Backlog[T] | None = None
        if overflow == "join":
            values = self._backlog = Backlog()
        elif overflow == "latest":
            values = Newest(_LATEST, options.key)
        self._metered = None if options.meter is None else options.meter._open(values, overflow)
        self._values = values if self._metered is None else self._metered
        self._queue = values
        self._holds_back = overflow in ("block", "join", "latest")
        self._waits = False
        self._ended = False
        self._error: Exception | None = None
        self._changes = Latch()
        self._count = 0
        self.session = ReaderSession(
            self._fail, self._has_room, self._is_idle, self._check_lag, loop, journal
        )
        self.subscription = SingleAssignmentDisposable()

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        self._count += 1
        if self._count % _YIELD_EVERY == 0:
            await asyncio.sleep(0)
        while True:
            if not self._values:
                await self.wait_for_value()
            try:
                return self.take()
            except IndexError:  # another reader was quicker
                continue

    async def wait_for_value(self) -> None:
        """Wait until a value is queued. At the end of the stream raise `StopAsyncIteration` or the error."""
        self._waits = True
        try:
            while not self._values:
                if self._ended:
                    self._raise()
                known = self._changes.count  # before the last look: no change in between is missed
                self.session.idleness.notify()  # which may bring a value at once
                if not self._values and not self._ended:
                    await self._changes.wait(self._loop, known)
        finally:
            self._waits = False

    def take(self) -> T:
        """Take the next queued value, on any thread; `IndexError` if the queue is empty."""
        value = self._values.popleft()
        if not self.session.backpressure.is_ready():
            self.session.backpressure.update()
        return value

    def _raise(self) -> NoReturn:
        error, self._error = self._error, None
        if error is None:
            raise StopAsyncIteration
        if isinstance(error, (StopIteration, StopAsyncIteration)):  # these would look like completion
            error = StreamInterrupted.by(error)
        try:
            raise error
        finally:
            del error  # breaks the cycle of the error's traceback and this frame

    async def leave(self) -> None:
        self.subscription.dispose()
        self._end(None)
        self._values.clear()  # behind the end, or the source's thread would go on to append
        await self.session.leave()

    def on_next(self, value: T) -> None:
        if self._ended:
            return
        if self._overflow == "error" and len(self._values) >= self._maxsize:
            self._overflowed(f"{self._maxsize:,} values behind", value)
            return
        try:
            self._values.append(value)
        except Exception as error:
            self._fail(error)
            return
        if not self._has_room():
            self.session.backpressure.update()
        self._changes.changed()

    def _has_room(self) -> bool:
        return len(self._values) < self._full and (
            self._backlog is None or self._backlog.text_bytes < _TEXT_BYTES
        )

    def _is_idle(self) -> bool:
        return not self._holds_back or (self._waits and not self._values)

    def _check_lag(self) -> None:
        """Fail if a shared source, which went on for other readers, has queued too much: the queue is bounded."""
        others = "behind the others who read this source"
        if len(self._values) >= self._maxsize + _MAX_LAG[self._overflow]:
            newest = self._queue[-1] if isinstance(self._queue, deque) else None
            self._overflowed(f"{len(self._values):,} values {others}", newest)
        elif self._backlog is not None and self._backlog.text_bytes >= _TEXT_BYTES + _MAX_LAG_TEXT_BYTES:
            self._overflowed(f"{self._backlog.text_bytes:,} bytes of text {others}", None, "read faster, or")

    def _overflowed(self, behind: str, value: object, remedy: str = "read faster, raise maxsize, or") -> None:
        error = BufferOverflowError(
            f"the reader has fallen {behind}; {remedy} choose another overflow policy",
            snapshot=value if isinstance(value, Snapshot) else None,
        )
        if self._fail(error) and self._metered is not None:
            self._metered.overflows += 1

    def _fail(self, error: Exception) -> bool:
        """End the reading with an error, and dispose the source. Return whether the reading was still open."""
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
        self._error = error  # before `_ended`, which the loop reads on another thread
        self._ended = True
        self._changes.changed()
        return True


async def until_closed(closing: set[asyncio.Task[None]] | set[asyncio.Future[None]]) -> set[Any]:
    """Wait, for a bounded time, until sources have closed. Return those that haven't."""
    return (await asyncio.wait(closing, timeout=CLOSE_SECONDS))[1] if closing else set()


class ReaderSession:
    """One reader's subscription: its pumps, and whether they should wait."""

    def __init__(
        self,
        fail: Callable[[Exception], bool],
        has_room: Callable[[], bool],
        is_idle: Callable[[], bool],
        check_lag: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
        journal: Journal | None = None,
    ) -> None:
        self._fail = fail
        self._has_room = has_room
        self._check_lag = check_lag
        self._pumps: dict[asyncio.Task[None], Pump] = {}
        self._loop = loop
        self._left = False
        self.journal = journal
        self.backpressure = Backpressure(self._is_ready)
        self.idleness = Idleness(lambda: self._left or is_idle())

    def register(self, pump: Pump) -> None:
        if pump.task.get_loop() is not self._loop:
            return
        self._pumps[pump.task] = pump
        pump.task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._pumps.pop(task, None)

    def _is_ready(self) -> bool:
        return self._left or self._has_room()

    def fail(self, error: Exception) -> bool:
        """End the reading with an exception of the pipeline. Return `False` if it has already ended."""
        return not self._left and self._fail(error)

    def check_lag(self) -> None:
        """End this reader if it is too far behind a source that goes on for others."""
        self._check_lag()

    async def leave(self) -> None:
        """Wait, for a bounded time, until every source that stopped with this reader has closed.

        A source that other readers share goes on, and isn't waited for.
        """
        self._left = True
        self.backpressure.update()
        self.idleness.notify()  # an operator in front of Rx's own `share` goes on for other subscribers
        if not all(pump.stopped for pump in self._pumps.values()):
            await asyncio.sleep(0)  # Rx's `subscribe_on` disposes in the loop's next turn
        closing = {task for task, pump in self._pumps.items() if pump.stopped}
        for task in self._pumps.keys() - closing:  # these may run for long, and must not keep us alive
            task.remove_done_callback(self._ended)
        for task in await until_closed(closing):
            task.cancel()


class Latch:
    """Counts changes. A reader that reads the count, looks, and waits behind that count misses none, on whatever thread."""

    __slots__ = ("count", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.waiting: list[Callable[[], object]] = []

    def changed(self) -> None:
        """Wake all waiting readers. Call it after the change."""
        self.count += 1
        if self.waiting:  # a later reader sees the count, also one whose `waiting` is still the old list
            woken, self.waiting = self.waiting, []
            for wake in woken:
                wake()

    async def wait(self, loop: asyncio.AbstractEventLoop, known: int) -> None:
        """Wait on this loop until there is another change than those known."""
        change: asyncio.Future[None] = loop.create_future()
        wake = partial(call_on, loop, partial(_answer, change))
        self.waiting.append(wake)  # before the count is read: a change in between wakes it
        try:
            if self.count == known:
                await change
        finally:
            self._forget(wake)

    def wait_here(self, known: int, seconds: float | None = None) -> None:
        """Block this thread until then, or so many seconds."""
        change = Event()
        self.waiting.append(change.set)
        try:
            if self.count == known:
                change.wait(seconds)
        finally:
            self._forget(change.set)

    def _forget(self, wake: Callable[[], object]) -> None:
        if wake in self.waiting:
            with suppress(ValueError):  # another thread wakes it
                self.waiting.remove(wake)


def _answer(change: asyncio.Future[None]) -> None:
    if not change.done():  # else its task was cancelled
        change.set_result(None)
