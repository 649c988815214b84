"""The store in this process's memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from secrets import token_hex
from threading import RLock
from typing import TYPE_CHECKING, overload

from reactivex.disposable import Disposable

from rxdelta.core import Event
from rxdelta.relay._store import End, News, Publisher, Seeker
from rxdelta.runtime import call_on

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from reactivex import abc

__all__ = ["Memory"]

_CLOSED = "the relay was closed"
_LIVE = "it is live"
_KEPT = "it has ended, and is kept until it is deleted or its time is over"


class Memory:
    """Logs for readers and publishers on any thread.

    Args:
        keep: Seconds after which a log that has ended is forgotten.
        loop: The loop whose timers do that. They keep neither the loop nor the process alive.
    """

    def __init__(self, keep: float, loop: asyncio.AbstractEventLoop) -> None:
        self._keep = keep
        self._loop = loop
        self._lock = RLock()
        self._logs: dict[str, _Log] = {}
        self._seekers: dict[str, dict[Seeker, None]] = {}
        self._closed = False

    def claim(self, stream_id: str, publisher: Publisher) -> None:
        log = _Log(publisher, partial(self._ended, stream_id))
        with self._lock:
            why = self._refusal(stream_id)
            if why is None:
                self._logs[stream_id] = log
            seekers = () if why else tuple(self._seekers.pop(stream_id, ()))
        if why is not None:
            publisher.refused(why, taken=why != _CLOSED)
            return
        for seeker in seekers:
            seeker.found(log, log.news())
        publisher.claimed(log)

    def _refusal(self, stream_id: str) -> str | None:
        if self._closed:
            return _CLOSED
        log = self._logs.get(stream_id)
        return None if log is None else _LIVE if log.is_live() else _KEPT

    def find(self, stream_id: str, seeker: Seeker) -> abc.DisposableBase:
        with self._lock:
            log, closed = self._logs.get(stream_id), self._closed
            if log is None and not closed:
                self._seekers.setdefault(stream_id, {})[seeker] = None
        if log is not None:
            seeker.found(log, log.news())
        elif closed:
            seeker.closed()
        return Disposable(partial(self._forget_seeker, stream_id, seeker))

    def _forget_seeker(self, stream_id: str, seeker: Seeker) -> None:
        with self._lock:
            seekers = self._seekers.get(stream_id, {})
            seekers.pop(seeker, None)
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
            logs, seekers = dict(self._logs), [*self._seekers.values()]
            self._seekers.clear()
        for stream_id, log in logs.items():
            log.tell(_CLOSED)
            self._forget(stream_id, log)
        for each in seekers:
            for seeker in each:
                seeker.closed()


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
        self._write(events, end)
        self._publisher = None  # a log that is kept must not keep its source
        self._ended(self)
        then()

    def _write(self, events: Sequence[Event], end: End | None) -> bool:
        """Write these, tell those who wait, and return whether the log was live."""
        with self._lock:
            if self._end is not None:
                return False
            after = len(self._events)
            self._events.extend(events)
            self._end = end
            waiting, self._waiting = self._waiting, {}
            news = self._behind(after) if waiting else None
        if news is not None:
            for take in waiting.values():
                take(news)
        return True

    def news(self) -> News:
        with self._lock:
            return self._behind(0)

    def _behind(self, after: int) -> News:
        newest = len(self._events)
        return News(_Part(self._events, range(after, newest)), newest, self._end)

    def read(self, after: int, take: Callable[[News], None]) -> abc.DisposableBase:
        who = object()
        with self._lock:
            there = self._end is not None or len(self._events) > after
            news = self._behind(after) if there else None
            if news is None:
                self._waiting[who] = take
        if news is not None:
            take(news)
        return Disposable(partial(self._forget, who))

    def _forget(self, who: object) -> None:
        with self._lock:
            self._waiting.pop(who, None)


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
