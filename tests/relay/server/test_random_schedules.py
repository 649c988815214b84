"""Streams on a server that two machines publish, read, stop, delete and publish again at random, against plain lists.

The lines between them and the server are cut now and then, also between a command and its answer.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from random import Random
from secrets import token_hex
from typing import Any

import attrs
import pytest
from relay.schedules import conversation, folded, is_transient, number_of
from support.cutting_proxy import CuttingProxy
from support.loops import run
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.relay import Entry, Relay

ev = rd.events
LEASE = 3.0
NAMES = [("", "x"), ("a", "x"), ("b", "x"), ("a", "y")]
STOPS = ("publisher left", "enough", "deleted")


@attrs.define(eq=False)
class Publication:
    """One publication of a name: what its source has emitted, and what its own subscriber got."""

    sourced: list[rd.Event] = attrs.Factory(list)
    written: list[Any] = attrs.Factory(list)
    has_left: bool = False
    error: Exception | None = None
    length: int | None = None  # of its log
    stop: rd.Event | None = None  # the log's last event, if somebody stopped it

    @property
    def log(self) -> list[rd.Event]:
        """The log as its first reader to the end has found it."""
        assert self.length is not None
        if self.stop is None:
            return self.sourced[: self.length]
        return [*self.sourced[: self.length - 1], self.stop]


class Machines:
    """Two relays on one server, and what has been published by either."""

    def __init__(self, seed: int, relays: list[Relay]) -> None:
        self.chance = Random(seed)
        self.seed = seed
        self.relays = relays
        self.publications: list[Publication] = []
        self.known: dict[str, Publication] = {}  # by epoch
        self.ids: dict[tuple[str, str], list[str]] = {name: [] for name in NAMES}
        self.complete = 0

    def relay(self, tenant: str) -> Relay:
        relay = self.chance.choice(self.relays)
        return relay.scope(tenant) if tenant else relay

    async def pause(self, longest: float) -> None:
        await asyncio.sleep(self.chance.choice((0, self.chance.uniform(0, longest))))

    async def publish(self) -> None:
        chance = self.chance
        for _ in range(4):
            await self.pause(0.2)
            tenant, name = chance.choice(NAMES)
            publication = Publication()
            how = chance.choice(("complete", "complete", "raise", "fail", "wait", "leave"))
            source = rd.from_async_iterable(lambda one=publication, how=how: self._events(one, how))
            own = source.pipe(self.relay(tenant).publish(name))
            try:
                await self._follow(own, publication, how)
            except rd.InvalidValueError as error:
                self._refused(error, publication)
                continue
            self.publications.append(publication)

    def _refused(self, error: rd.InvalidValueError, publication: Publication) -> None:
        assert "is live" in str(error) or "is kept" in str(error)
        assert publication.sourced == []

    async def _events(self, publication: Publication, how: str) -> AsyncIterator[rd.Event]:
        # Each event says of which publication it is.
        mark = ev.Custom("publication", len(self.publications) + id(publication))
        self._marks[mark.data] = publication
        for event in (mark, *conversation(self.chance)):
            await asyncio.sleep(self.chance.choice((0, 0, 0, 0.001, 0.01)))
            publication.sourced.append(event)
            yield event
        if how == "wait":
            await asyncio.sleep(0.5)
        if how == "raise":
            publication.error = RuntimeError("secret")
            raise publication.error
        if how == "fail":
            publication.error = rd.ProviderError("busy", code="529")
            raise publication.error

    _marks: dict[Any, Publication]

    async def _follow(self, own: Any, publication: Publication, how: str) -> None:
        leave = self.chance.randrange(1, 20) if how == "leave" else None
        try:
            async with rd.to_async_iterable(own) as events:
                async for event in events:
                    publication.written.append(event)
                    if len(publication.written) == leave:
                        publication.has_left = True
                        return
        except (RuntimeError, rd.ProviderError) as error:
            if error is not publication.error:
                raise

    async def meddle(self) -> None:
        for _ in range(6):
            await self.pause(0.25)
            tenant, name = self.chance.choice(NAMES)
            relay, what = self.relay(tenant), self.chance.choice(("cancel", "delete", "delete", "look"))
            if what == "cancel":
                await relay.cancel(name, "enough")
            elif what == "delete":
                await relay.delete(name)
            else:
                await relay.is_live(name)
                assert set(await relay.streams()) <= {one for owner, one in NAMES if owner == tenant}

    async def read(self) -> None:
        for _ in range(6):
            await self.pause(0.1)
            await self._read_chain(*self.chance.choice(NAMES))

    async def _read_chain(self, tenant: str, name: str) -> None:
        """Read a stream, leave and come back behind the last entry, until it ends or the reader has had enough."""
        chance, chain = self.chance, list[Entry]()
        ids = self.ids[tenant, name]
        after = first = chance.choice(ids) if ids and chance.random() < 0.3 else None
        split = chance.choice(ids) if ids and after is None and chance.random() < 0.3 else None
        for _ in range(20):
            leave, exact, had = chance.choice((None, 3, 10)), after is not None, len(chain)
            try:
                async with asyncio.timeout(chance.choice((0.1, 0.4))):
                    entries = self.relay(tenant).entries(name, after, split_at=split)
                    async with rd.to_async_iterable(entries) as door:
                        async for entry in door:
                            self._take(entry, chain, first, ids, exact=exact)
                            after = entry.id
                            leave = leave and leave - 1
                            if leave == 0:
                                break
                        else:
                            self._end(chain, first, None)
                            return
            except TimeoutError:
                if len(chain) == had:
                    return
            except rd.InvalidValueError as error:
                await self._check_refusal(error, tenant, name)
                return
            except rd.RxDeltaError as error:
                self._end(chain, first, error)
                return
            split = None

    async def _check_refusal(self, error: rd.InvalidValueError, tenant: str, name: str) -> None:
        """The id is of an earlier stream of this name."""
        assert error.field in ("after", "split_at")
        assert await self._epoch(tenant, name) != str(error.value)[:16]

    async def _epoch(self, tenant: str, name: str) -> str | None:
        """The epoch of the stream that has the name now."""
        with suppress(TimeoutError, rd.RxDeltaError):
            async with asyncio.timeout(1):
                entry = await rd.first_value(self.relay(tenant).entries(name))
                return str(entry.id[:16])
        return None

    def _take(
        self, entry: Entry, chain: list[Entry], first: str | None, ids: list[str], *, exact: bool
    ) -> None:
        if chain:
            assert entry.id[:16] == chain[-1].id[:16]
        before = number_of(chain[-1].id) if chain else number_of(first) if first else 0
        number = number_of(entry.id)
        assert number > before
        chain.append(entry)
        ids.append(entry.id)
        if number == 1:
            mark = getattr(entry.event, "data", None)  # none if it was stopped before its first event
            self.known.setdefault(entry.id[:16], self._marks.get(mark) or Publication())
        publication = self.known[entry.id[:16]]
        if exact:  # behind an id comes each event as it was published
            log = [*publication.sourced[before : number - 1]]
            assert all(is_transient(event) for event in log)
            if not isinstance(entry.event, ev.MessageInterrupted):
                assert entry.event == publication.sourced[number - 1]

    def _end(self, chain: list[Entry], first: str | None, error: rd.RxDeltaError | None) -> None:
        if not chain:
            return  # the id was of the last event, or nobody has published
        publication = self.known[chain[-1].id[:16]]
        last, length = chain[-1].event, number_of(chain[-1].id)
        stopped = isinstance(last, ev.MessageInterrupted)
        stop = last if stopped and getattr(last, "reason", None) in STOPS else None
        if publication.length is None:
            publication.length, publication.stop = length if stop else len(publication.sourced), stop
        log = publication.log
        assert publication.stop == stop
        known = log[: number_of(first)] if first else []
        assert folded([*known, *(entry.event for entry in chain)]) == folded(log)
        own = publication.error
        if stop is not None or own is None:
            assert error is None
        else:
            assert type(error) is (
                rd.ProviderError if isinstance(own, rd.ProviderError) else rd.StreamInterrupted
            )
            assert error.snapshot is not None
            assert "secret" not in str(error)
        self.complete += 1

    async def check_all(self) -> None:
        """What is left is read once more, and each publisher had what is in its log."""
        for tenant, name in NAMES:
            relay = self.relay(tenant)
            for one in await relay.streams():
                assert (tenant, one) in NAMES
                chain = list[Entry]()
                error = None
                try:
                    async for entry in rd.iterate(relay.entries(one)):
                        self._take(entry, chain, None, [], exact=False)
                except rd.RxDeltaError as raised:
                    error = raised
                self._end(chain, None, error)
        for publication in self.publications:
            if publication.length is None:
                continue
            log = publication.log
            if publication.has_left:
                assert publication.written == log[: len(publication.written)]
            else:
                assert publication.written == log, (publication.written[-2:], log[-2:], publication.stop)


async def play(seed: int, server: ValkeyServer) -> int:
    chance = Random(seed)

    def fate() -> Any:
        return chance.choice(("cut before", "cut after", "delay")) if chance.random() < 0.03 else "pass"

    async with AsyncExitStack() as stack:
        relays: list[Relay] = []
        prefix = token_hex(4)
        for _ in range(2):
            proxy = await stack.enter_async_context(CuttingProxy(server.port, chance=fate))
            proxy.delay = 0.01
            url = f"valkey://127.0.0.1:{proxy.port}"
            relays.append(await stack.enter_async_context(Relay.open(url, lease=LEASE, prefix=prefix)))
        machines = Machines(seed, relays)
        machines._marks = {}
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(4):
                    group.create_task(machines.publish())
                    group.create_task(machines.read())
                    group.create_task(machines.read())
                group.create_task(machines.meddle())
                group.create_task(machines.meddle())
            await machines.check_all()
        except BaseException as error:
            error.add_note(f"in the schedule {seed}")
            raise
    return machines.complete


def play_all(seeds: range, server: ValkeyServer) -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            played = [group.create_task(play(seed, server)) for seed in seeds]
        assert sum(task.result() for task in played) > 3 * len(seeds)

    run(main)
    assert server.has_no_clients()


def test_random_schedules_on_two_machines_agree_with_plain_lists(server: ValkeyServer) -> None:
    play_all(range(3), server)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(3, 13, 5))
def test_more_random_schedules_agree_with_plain_lists(first: int, server: ValkeyServer) -> None:
    play_all(range(first, first + 5), server)


@pytest.mark.soak
@pytest.mark.parametrize("first", range(1000, 2000, 10))
def test_a_thousand_random_schedules_agree_with_plain_lists(first: int, server: ValkeyServer) -> None:
    play_all(range(first, first + 10), server)
