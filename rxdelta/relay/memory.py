"""Logs in this process's memory, for readers that follow one or wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from secrets import token_hex
from threading import RLock
from typing import TYPE_CHECKING, overload

from reactivex.disposable import Disposable

from rxdelta.core import Event, LimitExceededError, StreamInterrupted
from rxdelta.relay.logs import LEAST, End, Name, News, Publisher, Seeker, store_is_full
from rxdelta.runtime import call_on

if TYPE_CHECKING:
    import asyncio

    from reactivex import abc


class Events:
    """Events that only become more, until the end. Every method may be called on any thread."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._events: list[Event] = []
        self._end: End | None = None
        self._waiting: dict[Callable[[News], None], None] = {}

    @property
    def newest(self) -> int:
        """The number of the last event."""
        return len(self._events)

    @property
    def has_ended(self) -> bool:
        return self._end is not None

    def add(self, events: Sequence[Event], end: End | None) -> bool:
        """Add these and the end, if there is one, and notify those that wait. Return whether there was no end
        before."""
        with self._lock:
            if self._end is not None:
                return False
            after = len(self._events)
            self._events.extend(events)
            self._end = end
            waiting, self._waiting = self._waiting, {}
            news = self._behind(after) if waiting else None
        if news is not None:
            for take in waiting:
                take(news)
        return True

    def news(self) -> News:
        """All events."""
        with self._lock:
            return self._behind(0)

    def none_yet(self) -> News:
        """No events: what was there before the log began."""
        with self._lock:
            return News(_Part(self._events, range(0)), 0, None)

    def read(self, after: int, take: Callable[[News], None]) -> None:
        """See `Log.read`."""
        with self._lock:
            if self._end is None and len(self._events) <= after:
                self._waiting[take] = None
                return
            news = self._behind(after)
        take(news)

    def forget(self, take: Callable[[News], None]) -> None:
        """See `Log.forget`."""
        with self._lock:
            self._waiting.pop(take, None)

    def _behind(self, after: int) -> News:
        newest = len(self._events)
        return News(_Part(self._events, range(after, newest)), newest, self._end)


class _Part(Sequence[Event]):
    """A part of a list that only grows, without a copy: a slow reader costs nothing but the log."""

    __slots__ = ("_all", "_places")

    def __init__(self, events: list[Event], places: range) -> None:
        self._all = events
        self._places = places

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Event]: ...
    def __getitem__(self, place: int | slice) -> Event | Sequence[Event]:
        if isinstance(place, slice):
            return _Part(self._all, self._places[place])
        return self._all[self._places[place]]

    def __iter__(self) -> Iterator[Event]:
        return map(self._all.__getitem__, self._places)


_CLOSED = "the relay was closed"
_LIVE = "it is live"
_KEPT = "it has ended, and is kept until it is deleted or its time is over"


class Memory:
    """Logs for readers and publishers on any thread.

    Args:
        keep: Seconds after which a log that has ended is forgotten.
        loop: The loop whose timers do that. They keep neither the loop nor the process alive.
        max_total_bytes: The most bytes of all logs together; `None` for any number.
    """

    def __init__(
        self, keep: float, loop: asyncio.AbstractEventLoop, max_total_bytes: int | None = None
    ) -> None:
        self._keep = keep
        self._loop = loop
        self._lock = RLock()
        self._logs: dict[Name, _Log] = {}
        self._seekers: dict[Name, dict[Seeker, None]] = {}
        self._closed = False
        self._most: float = inf if max_total_bytes is None else max_total_bytes
        self._bytes = 0  # of all logs

    def claim(self, name: Name, publisher: Publisher) -> None:
        log = _Log(self, name, publisher)
        seekers: tuple[Seeker, ...] = ()
        with self._lock:
            why, is_full = self._refusal(name), self._bytes + LEAST > self._most
            if why is None and not is_full:
                self._logs[name] = log
                seekers = tuple(self._seekers.pop(name, ()))
        if why is not None:
            publisher.refused(why, taken=why != _CLOSED)
        elif is_full:
            publisher.failed(store_is_full(int(self._most)))
        else:
            # Waiting readers get the log before its first event: transient data are for those that are there.
            for seeker in seekers:
                seeker.found(log, log.news())
            publisher.claimed(log)

    def _refusal(self, name: Name) -> str | None:
        if self._closed:
            return _CLOSED
        log = self._logs.get(name)
        return None if log is None else _KEPT if log.has_ended else _LIVE

    def find(self, name: Name, seeker: Seeker) -> abc.DisposableBase:
        with self._lock:
            log, closed = self._logs.get(name), self._closed
            if log is None and not closed:
                self._seekers.setdefault(name, {})[seeker] = None
        if log is not None:
            seeker.found(log, log.news())
        elif closed:
            seeker.failed(StreamInterrupted(_CLOSED))
        else:
            seeker.awaits()
        return Disposable(partial(self._forget_seeker, name, seeker))

    def _forget_seeker(self, name: Name, seeker: Seeker) -> None:
        with self._lock:
            seekers = self._seekers.get(name, {})
            seekers.pop(seeker, None)
            if not seekers:
                self._seekers.pop(name, None)

    def forget_later(self, log: _Log) -> None:
        """Forget a log that has ended when its time is over."""

        def start() -> None:
            with self._lock:
                if self._logs.get(log.name) is log:
                    log.expiry = self._loop.call_later(self._keep, self._forget, log)

        call_on(self._loop, start)

    def _forget(self, log: _Log) -> None:
        with self._lock:
            if self._logs.get(log.name) is log:
                del self._logs[log.name]
                self._bytes -= log.bytes
        if log.expiry is not None:
            call_on(self._loop, log.expiry.cancel)

    def take(self, log: _Log, size: int) -> LimitExceededError | None:
        """Count bytes of a log, or return the error if the store is full."""
        with self._lock:
            if self._bytes + size > self._most:
                return store_is_full(int(self._most))
            self._bytes += size
            log.bytes += size
        return None

    def kept_bytes(self) -> int:
        return self._bytes

    def _log(self, name: Name) -> _Log | None:
        """The log, if there is one, for a call that asks."""
        if self._closed:
            raise StreamInterrupted(_CLOSED)
        return self._logs.get(name)

    async def tell(self, name: Name, reason: str | None) -> bool:
        log = self._log(name)
        return log is not None and log.tell(reason)

    async def is_live(self, name: Name) -> bool:
        log = self._log(name)
        return log is not None and not log.has_ended

    async def names(self, tenant: str) -> list[str]:
        with self._lock:
            if self._closed:
                raise StreamInterrupted(_CLOSED)
            return [name.id for name in self._logs if name.tenant == tenant]

    async def delete(self, name: Name) -> bool:
        log = self._log(name)
        if log is None:
            return False
        self._forget(log)
        return True

    async def probe(self, seconds: float) -> float:  # noqa: ARG002
        if self._closed:
            raise StreamInterrupted(_CLOSED)
        return 0.0

    def away(self) -> float:
        return 0.0

    async def close(self) -> None:
        with self._lock:
            self._closed = True
            logs = [*self._logs.values()]
            seekers = [seeker for seekers in self._seekers.values() for seeker in seekers]
            self._seekers.clear()
        for log in logs:
            log.tell(_CLOSED)
            self._forget(log)
        for seeker in seekers:
            seeker.failed(StreamInterrupted(_CLOSED))


class _Log(Events):
    """One log: for its publisher, and for its readers.

    Attributes:
        bytes: The bytes of the memory that its publisher has taken.
        expiry: The timer that forgets it.
    """

    def __init__(self, memory: Memory, name: Name, publisher: Publisher) -> None:
        super().__init__()
        self.name = name
        self.epoch = token_hex(8)
        self.bytes = 0
        self.expiry: asyncio.TimerHandle | None = None
        self._memory = memory
        self._publisher: Publisher | None = publisher

    def tell(self, reason: str | None) -> bool:
        publisher = self._publisher
        return publisher is not None and publisher.tell(reason)

    def take(self, size: int) -> LimitExceededError | None:
        return self._memory.take(self, size)

    def append(self, events: Sequence[Event]) -> None:
        publisher = self._publisher
        if publisher is not None and self.add(events, None):
            publisher.written(events)

    def end(self, events: Sequence[Event], end: End, then: Callable[[], None]) -> None:
        self.add(events, end)
        self._publisher = None  # a log that is kept must not keep its source
        self._memory.forget_later(self)
        then()

    def leave(self) -> None:
        pass
