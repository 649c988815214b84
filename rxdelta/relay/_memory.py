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
    from rxdelta.relay._logs import End, Name, Publisher, Seeker

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
            publisher.failed(no_room_for_all(int(self._most)))
        else:
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
        bytes: What its publisher has taken of the memory's bytes.
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
