"""Stores that break one law each: `check_store` must find it, and say which one it is."""

from __future__ import annotations

import asyncio
import threading
import unicodedata
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import attrs
import pytest

import rxdelta.testing.stores.bench as bench
import rxdelta.testing.stores.lasting as lasting
import rxdelta.testing.stores.traced as traced
from rxdelta.relay import Answer, LogKey, Page, Record, Terms, Topic
from rxdelta.testing import MemoryStore, StoreFault, check_store

Broken = TypeVar("Broken", bound=type[MemoryStore])
BROKEN: list[tuple[type[MemoryStore], str, str]] = []
"""Each with the part of the check that finds it, and the words that name it."""


def breaks(part: str, words: str) -> Callable[[Broken], Broken]:
    def add(store: Broken) -> Broken:
        BROKEN.append((store, part, words))
        return store

    return add


def changed(page: Page | None, change: Callable[[list[Record]], list[Record]]) -> Page | None:
    return page and attrs.evolve(page, records=change([*page.records]))


@breaks("append", "a record that was acknowledged is missing: [2]")
class LosesAnEvent(MemoryStore):
    async def read(self, *given: Any) -> Page | None:
        return changed(
            await super().read(*given), lambda records: [one for one in records if one.number != 2]
        )


@breaks("append", "there are more than 1 records")
class WritesTwice(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        log = self._find(key)
        if record is not None and log is not None and log.last == record:
            self._write(log, record)
            return Answer("written")
        return await super().append(key, before, record)


@breaks("append", "`end` of record 3: None and not b'completed'")
class ForgetsTheEnd(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        return await super().append(key, before, record and attrs.evolve(record, end=None))


@breaks("append", "the state behind 2, when the log's last record is 3: 'written' and not 'lost'")
class WritesBehindAnything(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        log = self._find(key)
        return await super().append(key, log and log.last.number, record)


@breaks("append", "the state: 'written' and not 'gone'")
class TakesAnyEpoch(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        named = self._named(key)
        return await super().append(named.key if named else key, before, record)


@breaks("append", "`events` of record 1")
class ChangesBytes(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        if record is not None:
            record = attrs.evolve(record, events=record.events.decode("utf-8", "replace").encode())
        return await super().append(key, before, record)


@breaks("append", "another reason comes with a record")
class GivesTheLastReason(MemoryStore):
    async def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        told = await super().stop(key, token, reason)
        if (log := self._find(key)) is not None:
            log.stop = token, reason
        return told


@breaks("append", "the answer to a sign: written and not written, stop b'enough'")
class ForgetsAStop(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        return attrs.evolve(await super().append(key, before, record), stop=None)


@breaks("append", "the answer: written and not written, no name")
class HidesThatItHasNoName(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        return attrs.evolve(await super().append(key, before, record), is_named=True)


@breaks("append", "different signs after five calls: 1 and not 5")
class HasOneSign(MemoryStore):
    async def read(self, *given: Any) -> Page | None:
        page = await super().read(*given)
        return page and attrs.evolve(page, sign=1)


@breaks("append", "append raised KeyError")
class Raises(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        if self._find(key) is None:
            raise KeyError(key)
        return await super().append(key, before, record)


@breaks("append", "append hasn't answered for")
class Hangs(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        if before is None:
            await asyncio.Event().wait()
        return await super().append(key, before, record)


@breaks("begin", "logs that have begun, by their answers: 20 and not 1")
class LetsTwoBegin(MemoryStore):
    async def begin(self, key: LogKey) -> str | None:
        self.place.names.pop(key[:2], None)
        return await super().begin(key)


@breaks("begin", "begin again: ")
class RefusesItsOwn(MemoryStore):
    async def begin(self, key: LogKey) -> str | None:
        named = self._named(key)
        return named.key.epoch if named else await super().begin(key)


@breaks("begin", "after a second begin of one that was freed")
class TakesAFreedNameAgain(MemoryStore):
    async def begin(self, key: LogKey) -> str | None:
        log = self._find(key)
        if log is not None:
            self.place.names.setdefault(key[:2], log)
        return await super().begin(key)


@breaks("begin", "begin of a name that another tenant has")
class MixesTenants(MemoryStore):
    async def begin(self, key: LogKey) -> str | None:
        return await super().begin(key._replace(tenant=""))


@breaks("begin", "begin of 'tenant-")
class FoldsCase(MemoryStore):
    async def begin(self, key: LogKey) -> str | None:
        return await super().begin(key._replace(id=key.id.lower()))


@breaks("begin", "begin of 'tenant-")
class NormalizesNames(MemoryStore):
    async def begin(self, key: LogKey) -> str | None:
        return await super().begin(key._replace(id=unicodedata.normalize("NFC", key.id)))


@breaks("bury", "bury with an older sign: True and not False")
class BuriesTheLiving(MemoryStore):
    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        return await super().bury(key, None, record)


@breaks("bury", "bury of a log that has ended: True and not False")
class BuriesTheEnded(MemoryStore):
    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        log = self._find(key)
        if log is not None and log.last.end is not None and not log.last.dead:
            log.records[-1] = attrs.evolve(log.last, end=None)
        return await super().bury(key, sign, record)


@breaks("bury", "a publisher's append and a bury with the sign before answered")
class BuriesInTwoSteps(MemoryStore):
    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        log = self._find(key)
        may = log is not None and sign in (None, log.sign) and log.last.end is None
        await asyncio.sleep(0)
        return await super().bury(key, None, record) if may else log is not None and log.last == record


@breaks("bury", "bury, the first and again: False and not True")
class BuriesOnce(MemoryStore):
    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        log = self._find(key)
        ended = log is not None and log.last.end is not None
        return await super().bury(key, sign, record) and not ended


@breaks("read", "a page of 6300000 bytes, when 1 were asked for")
class BoundsNoPage(MemoryStore):
    async def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        return await super().read(tenant, id, epoch, after, 2**40)


@breaks("read", "the numbers on all pages")
class ReadsNothingWithoutRoom(MemoryStore):
    async def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        page = await super().read(tenant, id, epoch, after, most)
        return changed(page, lambda records: records if most > 1 else [])


@breaks("read", "the records behind 0: [13, 12, 9, 6, 3] and not [3, 6, 9, 12, 13]")
class ReadsBackwards(MemoryStore):
    async def read(self, *given: Any) -> Page | None:
        return changed(await super().read(*given), lambda records: records[::-1])


@breaks("read", "`age` is 0.00 half a second after the last sign")
class NeverAges(MemoryStore):
    async def read(self, *given: Any) -> Page | None:
        page = await super().read(*given)
        return page and attrs.evolve(page, age=0.0)


@breaks("read", "`lease` for a reader with another one: 60.0 and not 7.0")
class ReadsItsOwnLease(MemoryStore):
    async def read(self, *given: Any) -> Page | None:
        page = await super().read(*given)
        return page and attrs.evolve(page, lease=self._terms.lease)


@breaks("read", "a log that has begun isn't there for a reader in another store")
class ReadsOnlyNames(MemoryStore):
    async def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        page = await super().read(tenant, id, None, after, most)
        return page if page and epoch in (None, page.epoch) else None


@breaks("stop", "stop with the token t2: True and not False")
class StopsAgain(MemoryStore):
    async def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        return await super().stop(key, token, reason) or (
            (log := self._find(key)) is not None and log.stop is not None
        )


@breaks("stop", "stop of a log that has ended or isn't there: True and not False")
class StopsTheEnded(MemoryStore):
    async def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        log = self._find(key)
        return await super().stop(key, token, reason) or (log is not None and log.stop is None)


@breaks("free", "a log has lost its name by `free` of another log")
class FreesAnothersName(MemoryStore):
    async def free(self, key: LogKey) -> bool:
        self.place.names.pop(key[:2], None)
        return True


@breaks("free", "free: False and not True")
class FreesOnce(MemoryStore):
    async def free(self, key: LogKey) -> bool:
        named = self._named(key)
        return await super().free(key) and named is not None


@breaks("names", "the names: ")
class SortsNames(MemoryStore):
    async def names(self, tenant: str) -> list[str]:
        return sorted(await super().names(tenant))


@breaks("names", "the names of a tenant without logs")
class ListsAllTenants(MemoryStore):
    async def names(self, tenant: str) -> list[str]:
        return [name for _, name in self.place.names] or ["nobody's"]


@breaks("follow", "the news `written` hasn't woken a follower in another store")
class WakesNobody(MemoryStore):
    def _tell(self, topic: Topic) -> None:
        pass


@breaks("follow", "the news `begun` hasn't woken a follower in another store")
class WakesItself(MemoryStore):
    def _tell(self, topic: Topic) -> None:
        self._hear(topic)


@breaks("follow", "hasn't woken a follower in the publisher's store, when another one stops it")
class WakesNoPublisher(MemoryStore):
    def _tell(self, topic: Topic) -> None:
        if topic.what != "stopped":
            super()._tell(topic)


@breaks("follow", "calls of followers that had ended: ")
class GoesOnCalling(MemoryStore):
    def follow(self, topic: Topic, changed: Callable[[], None]) -> Callable[[], None]:
        super().follow(topic, changed)
        return lambda: None


@breaks("follow", "`changed` was called on another thread than the loop's")
class CallsOnAThread(MemoryStore):
    def _hear(self, topic: Topic) -> None:
        thread = threading.Thread(target=super()._hear, args=(topic,))
        thread.start()
        thread.join()


@breaks("total", "it has grown by 0.0 e9")
class CountsNothing(MemoryStore):
    async def total(self) -> int:
        return 0


@breaks("total", "total still counts logs that have expired")
class CountsTheGone(MemoryStore):
    sizes: ClassVar[dict[LogKey, int]] = {}

    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        self.sizes[key] = record.size if record is not None else 0
        return await super().append(key, before, record)

    async def total(self) -> int:
        return sum(self.sizes.values())


@breaks("probe", "names of the application itself that are new")
class ProbesAndLeaves(MemoryStore):
    async def probe(self) -> None:
        await self.begin(LogKey("", "-", "0" * 16))


@breaks("expiry", "a log that has ended, behind `keep`, is still there")
@breaks("expiry", "a live log without signs, behind a lease and `keep`, is still there")
@breaks("expiry", "a log that was freed, behind a lease, is still there")
class NeverExpires(MemoryStore):
    def _expire(self) -> None:
        pass


@breaks("expiry", "it's gone ")
class ExpiresWithItsLease(MemoryStore):
    async def open(self, terms: Terms) -> None:
        await super().open(attrs.evolve(terms, keep=0.0))


@breaks("expiry", "a log that has begun isn't there for a reader in another store")
class KeepsNoEnd(MemoryStore):
    def _keep(self, log: Any) -> None:
        super()._keep(log)
        if log.has_ended:
            log.expires = self.place.clock() + log.lease


@breaks("calls", "a page has other records than were written")
class FailsUnderLoad(MemoryStore):
    busy = 0

    async def read(self, *given: Any) -> Page | None:
        self.busy += 1
        await asyncio.sleep(0)
        busy, self.busy = self.busy, self.busy - 1
        return changed(await super().read(*given), lambda records: [] if busy > 200 else records)


@breaks("calls", "append after one that was cancelled: 'lost' and not 'written'")
class WritesHalf(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        log = self._find(key)
        if log is not None and record is not None and log.last.number == before:
            self._write(log, attrs.evolve(record, count=0))
            await asyncio.sleep(0.001)
            log.records.pop()
        return await super().append(key, before, record)


@breaks("close", "calls haven't ended 0.5 seconds after `close`")
class ForgetsCalls(MemoryStore):
    closed = False

    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        await asyncio.sleep(0)
        if self.closed:
            await asyncio.sleep(5)
        return await super().append(key, before, record)

    async def close(self) -> None:
        self.closed = True
        await super().close()


@breaks("close", "tasks and threads of a closed store that are still there")
class LeavesATask(MemoryStore):
    async def close(self) -> None:
        await super().close()
        self.task = asyncio.ensure_future(asyncio.sleep(10))


@breaks("close", "calls of followers of a closed store: ")
class CallsWhenClosed(MemoryStore):
    async def close(self) -> None:
        pass


@breaks("reopen", "a log that has begun isn't there for a reader in another store")
class ForgetsAll(MemoryStore):
    async def close(self) -> None:
        await super().close()
        if not self.place.stores:
            self.place.logs, self.place.names = {}, {}


@breaks("reopen", "the publisher's state and reason: ")
class ForgetsStopsWhenClosed(MemoryStore):
    async def close(self) -> None:
        await super().close()
        for log in self.place.logs.values():
            log.stop = None


@pytest.mark.parametrize(("store", "part", "words"), BROKEN, ids=lambda one: getattr(one, "__name__", ""))
def test_a_broken_store_is_told_what_it_breaks(
    store: type[MemoryStore], part: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traced, "_ANSWER_SECONDS", 0.3 if store is Hangs else 2.0)
    for module in (bench, lasting):  # for what never happens; what happens has more time than it needs
        monkeypatch.setattr(module, "SOON", 2.0 if part in ("expiry", "total") else 0.5)
    place = MemoryStore().place
    with pytest.raises(StoreFault) as caught:
        check_store(lambda: store(place), only=[part])
    assert words in str(caught.value)
