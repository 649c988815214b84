"""What the runs of `check_store` find: stores that break what publishers, readers and relays rely on; and no fault of a right one."""

from __future__ import annotations

import asyncio
import logging
from time import monotonic
from typing import Any

import attrs
import pytest

import rxdelta.testing.stores.relay_runs as relay_runs
from rxdelta.relay import Answer, LogKey, Page, Record
from rxdelta.testing import MemoryStore, StoreFault, check_store
from rxdelta.testing.stores.memory_store import MemoryPlace


class LosesARecord(MemoryStore):
    """For readers, its second one."""

    async def read(self, *given: Any) -> Page | None:
        page = await super().read(*given)
        return page and attrs.evolve(page, records=[one for one in page.records if one.number != 2])


class WritesTwice(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        answer = await super().append(key, before, record)
        if answer.state == "written" and record is not None and record.number == 3:
            self._write(self.place.logs[key], record)
        return answer


class LetsTwoBegin(MemoryStore):
    async def begin(self, key: LogKey) -> str | None:
        self.place.names.pop(key[:2], None)
        return await super().begin(key)


class ForgetsStops(MemoryStore):
    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        return attrs.evolve(await super().append(key, before, record), stop=None)


class EndsTwice(MemoryStore):
    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        await super().bury(key, sign, record)
        return True


class FreesByName(MemoryStore):
    async def free(self, key: LogKey) -> bool:
        self.place.names.pop(key[:2], None)
        return True


class BuriesNobody(MemoryStore):
    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        return False


class BuriesAnybody(MemoryStore):
    """Also who has given signs: the relay asks for each log whose last sign seems old."""

    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        return await super().bury(key, None, record)

    async def read(self, *given: Any) -> Page | None:
        page = await super().read(*given)
        return page and attrs.evolve(page, sign=1, age=1000.0)


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (LosesARecord, "append: record 2 was acknowledged, and is missing for a reader in another store"),
        (WritesTwice, "read: a gap, or a record that is there twice"),
        (LetsTwoBegin, "begin: two logs have begun with one name, and neither was freed"),
        (ForgetsStops, "append: a stop that was acknowledged is missing in an answer"),
        (EndsTwice, "bury: "),
        (FreesByName, "begin: two logs have begun with one name, and neither was freed"),
    ],
)
def test_runs_of_stores_find(store: type[MemoryStore], words: str) -> None:
    place = MemoryStore().place
    with pytest.raises(StoreFault) as caught:
        check_store(lambda: store(place), only=["runs"], seed=1)
    assert f"  {words}" in str(caught.value)
    assert "  the last calls:\n" in str(caught.value)


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (LosesARecord, "the stream ended with "),
        (LetsTwoBegin, "a stream that is live or kept was published again"),
        (BuriesNobody, "a publisher that dies: it isn't through after 8 seconds"),
        (BuriesAnybody, "the stream ended with "),
    ],
)
def test_runs_of_relays_find(store: type[MemoryStore], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_runs, "_SECONDS", 8.0)
    place = MemoryStore().place
    with pytest.raises(StoreFault) as caught:
        check_store(lambda: store(place), only=["relays"], runs=16, seed=1)
    assert words in str(caught.value)


@pytest.mark.parametrize("kind", relay_runs.ENDS)
def test_each_kind_of_run_of_relays_is_played(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_runs, "ENDS", {kind: relay_runs.ENDS[kind]})
    place = MemoryStore().place
    check_store(lambda: MemoryStore(place), only=["relays"], runs=5)


@pytest.mark.soak  # each jump leaves a sign a twentieth of a second: on a busy machine that is little
def test_a_clock_that_jumps_kills_no_publisher(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {
        kind: end for kind, end in relay_runs.ENDS.items() if kind != "is deleted"
    }  # what is freed may expire early
    monkeypatch.setattr(relay_runs, "ENDS", ends)
    # Each jump has a sign missed, and the next one is due a fifth of a lease later, and must come within a quarter.
    monkeypatch.setattr(relay_runs, "EXCUSED", relay_runs.LEASE / 20)
    begin = monotonic()

    def clock() -> float:
        """Jumps back and forth by some minutes, thrice a second."""
        now = monotonic()
        return now + (0.0, 300.0, -300.0, 1000.0)[int((now - begin) * 3) % 4]

    place = MemoryPlace(clock)
    check_store(lambda: MemoryStore(place), only=["relays"], runs=30)


def test_nothing_is_logged_of_faults_that_the_check_makes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "rxdelta")
    place = MemoryStore().place
    check_store(lambda: MemoryStore(place), only=["relays"], runs=5)
    assert caplog.records == []
    assert logging.getLogger("rxdelta").level == logging.INFO


def test_a_law_that_the_machine_is_too_slow_for_is_left_out() -> None:
    class Slow(MemoryStore):
        async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
            if self._terms.lease == 0.5 and record is None:
                await asyncio.sleep(0.9)
            return await super().append(key, before, record)

    place = MemoryStore().place
    report = check_store(lambda: Slow(place), only=["expiry"])
    (left_out,) = [result.left_out for result in report.results if "signs keep" in result.law]
    assert left_out is not None
    assert left_out.endswith("seconds apart, and logs expired after 1")
