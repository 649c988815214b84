"""A store whose logs are in a dict: as short as a store can be."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Sequence
from time import monotonic

import attrs

from rxdelta.relay import Answer, LogKey, Page, Record, Store, Terms, Topic


@attrs.define(eq=False)
class _Log:
    key: LogKey
    lease: float
    keep: float
    records: list[Record] = attrs.Factory(list[Record])
    sign: int = 0
    signed: float = 0.0  # when
    expires: float = 0.0
    stop: tuple[str, bytes] | None = None

    @property
    def last(self) -> Record:
        return self.records[-1] if self.records else Record(0, 0)

    @property
    def has_ended(self) -> bool:
        return self.last.end is not None


@attrs.define(eq=False)
class MemoryPlace:
    """Where the logs are. All stores on one place are used on one loop.

    Attributes:
        clock: The only clock, in seconds.
    """

    clock: Callable[[], float] = monotonic
    logs: dict[LogKey, _Log] = attrs.Factory(dict[LogKey, _Log])
    names: dict[tuple[str, str], _Log] = attrs.Factory(dict[tuple[str, str], _Log])
    stores: list[MemoryStore] = attrs.Factory(list["MemoryStore"])


class MemoryStore(Store):
    """A store in memory, to read and to test with. No method waits in the middle, so each call is one step.

    Args:
        place: Stores with the same one have the same logs, as if each was in another process.

    Attributes:
        place: The same, or a new one.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from rxdelta.relay import Relay
        >>> from rxdelta.testing import MemoryStore
        >>> async def main():
        ...     here = MemoryStore()
        ...     there = MemoryStore(here.place)
        ...     async with Relay.open(here) as relay, Relay.open(there) as other:
        ...         await relay.start("chat-1", rx.of(rd.events.MessageStart("m1"), rd.events.MessageFinish("stop")))
        ...         return (await rd.last_value(other.watch("chat-1"))).reason
        >>> asyncio.run(main())
        'stop'
    """

    def __init__(self, place: MemoryPlace | None = None) -> None:
        self.place = place or MemoryPlace()
        self._followers: dict[object, tuple[Topic, Callable[[], None]]] = {}

    async def open(self, terms: Terms) -> None:
        self._terms = terms
        self.place.stores.append(self)

    async def close(self) -> None:
        self.place.stores.remove(self)
        self._followers.clear()

    async def begin(self, key: LogKey) -> str | None:
        log, named = self._find(key), self._named(key)
        if log is None:
            if named is not None:
                return named.key.epoch
            log = self.place.logs[key] = self.place.names[key[:2]] = _Log(
                key, self._terms.lease, self._terms.keep
            )
            self._tell(Topic("begun", key.tenant, key.id))
        if log.has_ended:
            return key.epoch
        self._sign(log)
        return None

    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        log = self._find(key)
        if log is None:
            return Answer("gone")
        last = log.last
        if (
            record is None or last.dead or _about(record) != _about(last)
        ):  # it's no earlier call that comes again
            if log.has_ended and (before is not None or last.dead):
                return Answer("ended")
            if before not in (None, last.number):
                return Answer("lost")
            if record is not None:
                self._write(log, record)
        self._sign(log)
        return Answer("written", log.stop and log.stop[1], self._named(key) is log)

    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        log = self._find(key)
        if log is not None and not log.has_ended and sign in (None, log.sign):
            self._write(log, record)
        return log is not None and log.last == record

    async def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        key = LogKey(tenant, id, epoch or "")
        log = self._find(key) if epoch else self._named(key)
        if log is None:
            return None
        begin = end = bisect_right(log.records, after, key=lambda record: record.number)
        while end < len(log.records) and (end == begin or most > 0):
            most -= len(log.records[end].events)
            end += 1
        records, age = log.records[begin:end], self.place.clock() - log.signed
        return Page(log.key.epoch, records, log.last.number, log.has_ended, log.sign, age, log.lease)

    async def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        log = self._find(key)
        if log is None or log.has_ended:
            return False
        if log.stop is None:
            log.stop = token, reason
            self._tell(Topic("stopped", *key))
        return log.stop[0] == token

    async def free(self, key: LogKey) -> bool:
        log = self._find(key)
        if log is not None and self._named(key) is log:
            del self.place.names[key[:2]]
            self._keep(log)
        return True

    async def names(self, tenant: str) -> Sequence[str]:
        self._expire()
        return [name for owner, name in self.place.names if owner == tenant]

    async def total(self) -> int:
        self._expire()
        return sum(record.size for log in self.place.logs.values() for record in log.records)

    def follow(self, topic: Topic, changed: Callable[[], None]) -> Callable[[], None]:
        who = object()
        self._followers[who] = topic, changed
        return lambda: self._followers.pop(who, None) and None

    def _tell(self, topic: Topic) -> None:
        for store in self.place.stores:
            asyncio.get_running_loop().call_soon(store._hear, topic)

    def _hear(self, topic: Topic) -> None:
        for wanted, changed in [*self._followers.values()]:
            if wanted == topic:
                changed()

    def _find(self, key: LogKey) -> _Log | None:
        self._expire()
        return self.place.logs.get(key)

    def _named(self, key: LogKey) -> _Log | None:
        self._expire()
        return self.place.names.get(key[:2])

    def _expire(self) -> None:
        now, place = self.place.clock(), self.place
        place.logs = {key: log for key, log in place.logs.items() if log.expires > now}
        place.names = {name: log for name, log in place.names.items() if log.expires > now}

    def _write(self, log: _Log, record: Record) -> None:
        log.records.append(record)
        self._keep(log)
        self._tell(Topic("written", *log.key))

    def _sign(self, log: _Log) -> None:
        log.sign += 1
        log.signed = self.place.clock()
        self._keep(log)

    def _keep(self, log: _Log) -> None:
        """Let a log expire in time: without its name after a lease."""
        is_named = self.place.names.get(log.key[:2]) is log
        seconds = log.lease if not is_named else log.keep if log.has_ended else log.lease + log.keep
        log.expires = self.place.clock() + seconds


def _about(record: Record) -> tuple[int, int, bytes | None]:
    """The fields by which a record that comes again is known."""
    return record.number, record.count, record.end
