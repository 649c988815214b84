"""The store in this process's memory."""

from __future__ import annotations

from functools import partial
from math import inf
from secrets import token_hex
from threading import RLock
from typing import TYPE_CHECKING

from reactivex.disposable import Disposable

from rxdelta.core import StreamInterrupted
from rxdelta.relay._bounds import LEAST, no_room_for_all
from rxdelta.relay._events import Events
from rxdelta.runtime import call_on

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from reactivex import abc

    from rxdelta.core import Event, LimitExceededError
    from rxdelta.relay._store import End, Name, News, Publisher, Seeker

__all__ = ["Memory"]

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
        log = _Log(publisher, partial(self._ended, name), self.take)
        with self._lock:
            why = self._refusal(name)
            full = why is None and self._bytes + LEAST > self._most
            if why is None and not full:
                self._logs[name] = log
            seekers = () if why or full else tuple(self._seekers.pop(name, ()))
        if full:
            publisher.failed(no_room_for_all(int(self._most)))
            return
        if why is not None:
            publisher.refused(why, taken=why != _CLOSED)
            return
        for seeker in seekers:
            seeker.found(log, log.news())
        publisher.claimed(log)

    def _refusal(self, name: Name) -> str | None:
        if self._closed:
            return _CLOSED
        log = self._logs.get(name)
        return None if log is None else _LIVE if log.is_live() else _KEPT

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

    def _ended(self, name: Name, log: _Log) -> None:
        """Forget the log when its time is over."""

        def start() -> None:
            with self._lock:
                if self._logs.get(name) is log:
                    log.expiry = self._loop.call_later(self._keep, self._forget, name, log)

        call_on(self._loop, start)

    def _forget(self, name: Name, log: _Log) -> None:
        with self._lock:
            if self._logs.get(name) is log:
                del self._logs[name]
                self._bytes -= log.bytes
        if log.expiry is not None:
            call_on(self._loop, log.expiry.cancel)

    def take(self, log: _Log, size: int) -> LimitExceededError | None:
        """Count bytes of a log, or return the error if there is no room for them."""
        with self._lock:
            if self._bytes + size > self._most:
                return no_room_for_all(int(self._most))
            self._bytes += size
            log.bytes += size
        return None

    def kept_bytes(self) -> int:
        return self._bytes

    def _log(self, name: Name) -> _Log | None:
        """The log, if there is one, for who asks by a call."""
        if self._closed:
            raise StreamInterrupted(_CLOSED)
        return self._logs.get(name)

    async def tell(self, name: Name, reason: str | None) -> bool:
        log = self._log(name)
        return log is not None and log.tell(reason)

    async def is_live(self, name: Name) -> bool:
        log = self._log(name)
        return log is not None and log.is_live()

    async def names(self, tenant: str) -> list[str]:
        with self._lock:
            if self._closed:
                raise StreamInterrupted(_CLOSED)
            return [name.id for name in self._logs if name.tenant == tenant]

    async def delete(self, name: Name) -> bool:
        log = self._log(name)
        if log is None:
            return False
        self._forget(name, log)
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
            logs, seekers = dict(self._logs), [*self._seekers.values()]
            self._seekers.clear()
        for name, log in logs.items():
            log.tell(_CLOSED)
            self._forget(name, log)
        for each in seekers:
            for seeker in each:
                seeker.failed(StreamInterrupted(_CLOSED))


class _Log:
    """One log: for its publisher, and for its readers."""

    def __init__(
        self,
        publisher: Publisher,
        ended: Callable[[_Log], None],
        take: Callable[[_Log, int], LimitExceededError | None],
    ) -> None:
        self.epoch = token_hex(8)
        self.expiry: asyncio.TimerHandle | None = None
        self._publisher: Publisher | None = publisher
        self._ended = ended
        self._take = take
        self.bytes = 0  # that its publisher has taken
        self._events = Events()

    def is_live(self) -> bool:
        return not self._events.has_ended

    def tell(self, reason: str | None) -> bool:
        publisher = self._publisher
        return publisher is not None and publisher.tell(reason)

    def take(self, size: int) -> LimitExceededError | None:
        return self._take(self, size)

    def append(self, events: Sequence[Event]) -> None:
        publisher = self._publisher
        if publisher is not None and self._events.add(events, None):
            publisher.written(events)

    def end(self, events: Sequence[Event], end: End, then: Callable[[], None]) -> None:
        self._events.add(events, end)
        self._publisher = None  # a log that is kept must not keep its source
        self._ended(self)
        then()

    def news(self) -> News:
        return self._events.news()

    def read(self, after: int, take: Callable[[News], None]) -> None:
        self._events.read(after, take)

    def forget(self, take: Callable[[News], None]) -> None:
        self._events.forget(take)

    def leave(self) -> None:
        pass
