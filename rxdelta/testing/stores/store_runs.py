"""Random runs of publishers, readers, and calls that stop, free and bury, over bad lines, and the rules that hold after
each."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from random import Random
from secrets import token_hex
from typing import Any, TypeVar

from rxdelta.relay import Answer, LogKey, Record, Store
from rxdelta.testing.stores.bench import Bench, broken_unless, expect, gathered
from rxdelta.testing.stores.traced import Faulty, Traced, as_broken

T = TypeVar("T")
_SECONDS = 60.0
_TRACED = 40


class StoreRun:
    """One run over two stores of one place: a name that some publish one after the other, and others read, stop, free and bury.

    Nobody gives up because of a fault: each calls again, as a relay does. Nothing expires.

    Args:
        bench: Has the stores, which are open.
        seed: Decides what each one does, and what happens to each call.
    """

    def __init__(self, bench: Bench, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311
        self.trace: deque[str] = deque(maxlen=_TRACED)
        self._lines = [
            Faulty(Traced(name, store, self.trace), self.chance, self.trace.append)
            for name, store in (("a", bench.a), ("b", bench.b))
        ]
        self._plain = Traced("b", bench.b, self.trace)
        self._tenant, self._id = self.chance.choice(("", "a tenant")), f"run-{token_hex(6)}"
        self._begun: list[LogKey] = []
        self._written: dict[LogKey, list[Record]] = {}  # what was acknowledged
        self._sent: dict[LogKey, dict[int, Record]] = {}  # what may be there, without ends of others
        self._freed: set[LogKey] = set()
        self._buried: dict[LogKey, list[Record]] = {}
        self._burying: set[LogKey] = set()
        self._stopping: dict[LogKey, set[bytes]] = {}
        self._stopped: dict[LogKey, int] = {}
        self._read: list[tuple[LogKey, list[Record]]] = []
        self._publishes = True

    async def play(self) -> None:
        """Play it, and compare.

        Raises:
            Broken: Something doesn't hold.
        """
        publishers = [self._publish(count) for count in (2, 2, 1)]
        others = [*(self._read_all() for _ in range(3)), self._stop(), self._bury(), self._free()]

        async def publish() -> None:
            await gathered(publishers)
            self._publishes = False

        try:
            async with as_broken(self.trace, _SECONDS):
                await gathered([publish(), *others])
                for line in self._lines:
                    await line.settle()
                for key in self._begun:
                    await self._compare(key)
        finally:
            for line in self._lines:
                await line.close()

    def _line(self) -> Store:
        return self.chance.choice(self._lines)

    async def _pause(self, longest: float = 0.02) -> None:
        await asyncio.sleep(self.chance.choice((0, self.chance.uniform(0, longest))))

    async def _sure(self, call: Callable[..., Awaitable[T]], *given: Any) -> T:
        """Call until there is an answer."""
        while True:
            try:
                return await call(*given)
            except OSError:
                await self._pause(0.005)

    async def _publish(self, times: int) -> None:
        for _ in range(times):
            line, key = self._line(), LogKey(self._tenant, self._id, token_hex(8))
            self._sent[key], self._written[key] = {}, []
            while (owner := await self._sure(line.begin, key)) not in (None, key.epoch):
                if self.chance.random() < 0.1:
                    await self._take_name(key._replace(epoch=owner or ""))
                await self._pause()
            others = [other for other in self._begun if other not in self._freed]
            is_alone = not others or owner is not None or key in self._freed
            broken_unless(is_alone, "begin: two logs have begun with one name, and neither was freed")
            self._begun.append(key)
            await self._write(line, key)

    async def _write(self, line: Store, key: LogKey) -> None:
        last, count, before = self.chance.randrange(3, 25), 0, 0
        crashes = self.chance.random() < 0.25
        while True:
            await self._pause(0.01)
            ends = count == last
            if ends and crashes:
                return
            each = self.chance.choice((1, 1, 3))
            end = b"completed" if ends else None
            record = Record(before + each, each, b"%d" % before * self.chance.choice((1, 40)), end)
            signs = self.chance.random() < 0.2
            if not signs:
                self._sent[key][record.number] = record
            given = (None if self.chance.random() < 0.5 else before, None) if signs else (before, record)
            stops = self._stopped.get(key, 0)
            answer = await self._sure(line.append, key, *given)
            if not self._goes_on(key, answer, is_stopped=stops > 0 and signs):
                return
            if not signs:
                self._written[key].append(record)
                before, count = record.number, count + 1
            if answer.stop is not None or not answer.is_named:
                last = min(last, count)
            if ends and not signs:
                return

    def _goes_on(self, key: LogKey, answer: Answer, *, is_stopped: bool) -> bool:
        reasons = self._stopping.get(key, set[bytes]())
        broken_unless(answer.stop is None or answer.stop in reasons, "append: a reason that nobody gave")
        broken_unless(
            answer.is_named or key in self._freed, "append: a log has lost its name that nobody freed"
        )
        if answer.state == "ended":
            broken_unless(key in self._burying, "append: a log has ended that nobody has ended")
            return False
        expect("append: the state for a publisher that has written all before", answer.state, "written")
        broken_unless(
            answer.stop is not None or not is_stopped,
            "append: a stop that was acknowledged is missing in an answer",
        )
        return True

    async def _take_name(self, key: LogKey) -> None:
        self._freed.add(key)
        expect("free", await self._sure(self._line().free, key), True)

    async def _now(self) -> tuple[LogKey, int] | None:
        """The log that has the name, and its sign."""
        page = await self._sure(self._line().read, self._tenant, self._id, None, 0, 1)
        return None if page is None else (LogKey(self._tenant, self._id, page.epoch), page.sign)

    async def _stop(self) -> None:
        while self._publishes:
            await self._pause(0.2)
            if found := await self._now():
                key, token = found[0], token_hex(4)
                self._stopping.setdefault(key, set()).add(token.encode())
                if await self._sure(self._line().stop, key, token, token.encode()):
                    self._stopped[key] = self._stopped.get(key, 0) + 1
                    expect("stop: calls with different tokens that got True", self._stopped[key], 1)

    async def _free(self) -> None:
        while self._publishes:
            await self._pause(0.2)
            if self.chance.random() < 0.5 and (found := await self._now()):
                await self._take_name(found[0])

    async def _bury(self) -> None:
        while self._publishes:
            if found := await self._now():
                key, sign = found
                await self._pause(0.03)
                end = Record(1000, 0, b"", token_hex(4).encode(), dead=1)
                self._burying.add(key)
                if await self._sure(self._line().bury, key, sign, end):
                    self._buried.setdefault(key, []).append(end)
            await self._pause(0.1)

    async def _read_all(self) -> None:
        """Read logs that have the name, each until it ends or another one has the name."""
        while self._publishes:
            await self._pause(0.05)
            if found := await self._now():
                key, line, got = found[0], self._line(), list[Record]()
                self._read.append((key, got))
                while self._publishes and not (got and got[-1].end is not None):
                    after, most = got[-1].number if got else 0, self.chance.choice((1, 100, 2**20))
                    page = await self._sure(line.read, *key, after, most)
                    broken_unless(page, "read: a log is gone that is kept")
                    got += page.records if page else ()
                    await self._pause()

    async def _compare(self, key: LogKey) -> None:
        """What another store reads in the end must be what was written, and what all readers got."""
        log: list[Record] = []
        while (page := await self._plain.read(*key, log[-1].number if log else 0, 2**20)) and page.records:
            log += page.records
        broken_unless(page, "read: a log is gone that is kept")
        written, sent, buried = self._written[key], self._sent[key], self._buried.get(key, [])
        for record in written:
            broken_unless(
                record in log,
                f"append: record {record.number} was acknowledged, and is missing for a reader in another store",
            )
        number = 0
        for place, record in enumerate(log):
            broken_unless(
                record == sent.get(record.number) or record.dead,
                f"read: record {record.number} isn't what was written",
            )
            broken_unless(
                record.dead or record.number - record.count == number,
                "read: a gap, or a record that is there twice",
            )
            broken_unless(
                record.end is None or record == log[-1], f"read: there is something behind the end at {place}"
            )
            number = record.number
        broken_unless(len(buried) < 2, "bury: two calls with ends of one log got True")
        broken_unless(not buried or buried[0] == log[-1], "bury: an end whose call got True isn't the log's")
        for reader, got in self._read:
            if reader == key:
                broken_unless(
                    got == log[: len(got)], "read: a reader got other records than are there in the end"
                )
