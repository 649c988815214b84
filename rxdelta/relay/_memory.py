"""The store in this process's memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from secrets import token_hex
from threading import RLock
from typing import TYPE_CHECKING, Any, overload

from reactivex.disposable import Disposable

from rxdelta.core import Event
from rxdelta.relay._store import End, Log, News, Publisher
from rxdelta.runtime import call_on

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from reactivex import abc

__all__ = ["Memory"]

_CLOSED = "the relay was closed"
_LIVE = "it is live, so it can be watched"
_KEPT = "one has ended and is kept, so it can be watched; delete() makes the name free"


class Memory:
    """Logs in this process's memory, for readers and publishers on any thread.

    Args:
        keep: Seconds after which a log that has ended is forgotten.
        loop: The loop whose timers do that. They keep neither the loop nor the process alive.
    """

    def __init__(self, keep: float, loop: asyncio.AbstractEventLoop) -> None:
        self._keep = keep
        self._loop = loop
        self._lock = RLock()
        self._logs: dict[str, _Log] = {}
        self._seekers: dict[str, dict[object, Callable[[Log | None], None]]] = {}
        self._closed = False

    def claim(self, stream_id: str, publisher: Publisher) -> None:
        with self._lock:
            why = self._refusal(stream_id)
            log = _Log(publisher, partial(self._ended, stream_id))
            if why is None:
                self._logs[stream_id] = log
                seekers = self._seekers.pop(stream_id, {})
            else:
                seekers = {}
        if why is not None:
            publisher.refused(why)
            return
        for found in seekers.values():
            found(log)
        publisher.claimed(log)

    def _refusal(self, stream_id: str) -> str | None:
        if self._closed:
            return _CLOSED
        log = self._logs.get(stream_id)
        return None if log is None else _LIVE if log.is_live() else _KEPT

    def find(self, stream_id: str, found: Callable[[Log | None], None]) -> abc.DisposableBase:
        with self._lock:
            log, closed = self._logs.get(stream_id), self._closed
            if log is None and not closed:
                who = object()
                self._seekers.setdefault(stream_id, {})[who] = found
                return Disposable(partial(self._forget_seeker, stream_id, who))
        found(log)
        return Disposable()

    def _forget_seeker(self, stream_id: str, who: object) -> None:
        with self._lock:
            seekers = self._seekers.get(stream_id, {})
            seekers.pop(who, None)
            if not seekers:
                self._seekers.pop(stream_id, None)

    def _ended(self, stream_id: str, log: _Log) -> None:
        """Forget the log when its time is over."""

        def start() -> None:
            with self._lock:
                if self._logs.get(stream_id) is log:
                    log.expiry = self._loop.call_later(self._keep, self._forget, stream_id, log)

        call_on(self._loop, start)

    def _forget(self, stream_id: str, log: _Log) -> None:
        with self._lock:
            if self._logs.get(stream_id) is log:
                del self._logs[stream_id]
        if log.expiry is not None:
            call_on(self._loop, log.expiry.cancel)

    async def tell(self, stream_id: str, reason: str | None) -> bool:
        log = self._logs.get(stream_id)
        return log is not None and log.tell(reason)

    async def is_live(self, stream_id: str) -> bool:
        log = self._logs.get(stream_id)
        return log is not None and log.is_live()

    async def names(self) -> list[str]:
        with self._lock:
            return [*self._logs]

    async def delete(self, stream_id: str) -> bool:
        log = self._logs.get(stream_id)
        if log is None:
            return False
        self._forget(stream_id, log)
        return True

    async def close(self) -> None:
        with self._lock:
            self._closed = True
            logs = dict(self._logs)
            seekers = [found for each in self._seekers.values() for found in each.values()]
            self._seekers.clear()
        for stream_id, log in logs.items():
            log.tell(_CLOSED)
            self._forget(stream_id, log)
        for found in seekers:
            found(None)


class _Log:
    """One log: for its publisher, and for its readers."""

    def __init__(self, publisher: Publisher, ended: Callable[[_Log], None]) -> None:
        self.epoch = token_hex(8)
        self.expiry: asyncio.TimerHandle | None = None
        self._publisher: Publisher | None = publisher
        self._ended = ended
        self._lock = RLock()
        self._events: list[Event] = []
        self._end: End | None = None
        self._waiting: dict[object, Callable[[News], None]] = {}

    def is_live(self) -> bool:
        return self._end is None

    def tell(self, reason: str | None) -> bool:
        publisher = self._publisher
        return publisher is not None and publisher.tell(reason)

    def append(self, events: Sequence[Event]) -> None:
        publisher = self._publisher
        if publisher is not None and self._write(events, None):
            publisher.written(events)

    def end(self, events: Sequence[Event], end: End, then: Callable[[], None]) -> None:
        if self._write(events, end):
            self._publisher = None  # a log that is kept must not keep the source
            self._ended(self)
            then()

    def _write(self, events: Sequence[Event], end: End | None) -> bool:
        with self._lock:
            if self._end is not None:
                return False
            after = len(self._events)
            self._events.extend(events)
            self._end = end
            waiting = self._waiting
            if not waiting:
                return True
            self._waiting = {}
            news = self._behind(after)
        for take in waiting.values():
            take(news)
        return True

    def _behind(self, after: int) -> News:
        newest = len(self._events)
        return News(_Part(self._events, range(after, newest)), newest, self._end)

    def read(self, after: int, take: Callable[[News], None]) -> abc.DisposableBase:
        with self._lock:
            if self._end is None and len(self._events) <= after:
                who = object()
                self._waiting[who] = take
                return Disposable(partial(self._forget_reader, who))
            news = self._behind(after)
        take(news)
        return Disposable()

    def _forget_reader(self, who: object) -> None:
        with self._lock:
            self._waiting.pop(who, None)

    def look(self, take: Callable[[News], None]) -> abc.DisposableBase:
        with self._lock:
            news = self._behind(0)
        take(news)
        return Disposable()


class _Part(Sequence[Event]):
    """A part of a list that only grows, without a copy: a slow reader costs nothing but the log."""

    __slots__ = ("_all", "_numbers")

    def __init__(self, events: list[Event], numbers: range) -> None:
        self._all = events
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Event: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Event]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return _Part(self._all, self._numbers[place])
        return self._all[self._numbers[place]]

    def __iter__(self) -> Any:
        return map(self._all.__getitem__, self._numbers)
