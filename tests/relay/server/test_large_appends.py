"""A publisher whose event takes longer than a lease to reach the server gives signs of life meanwhile, and hears the answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from relay.reading import HELLO, Source, read, until
from support.cutting_proxy import CuttingProxy
from support.loops import run
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events
LARGE = ev.Custom("image", "x" * 2_000_000)
LEASE = 0.6
STOPPED = ev.MessageInterrupted("enough")


@asynccontextmanager
async def a_large_append_under_way(
    server: ValkeyServer, got: list[Any], rate: float = 1e6
) -> AsyncIterator[tuple[Source, Relay, Relay, asyncio.Task[list[Any]], CuttingProxy]]:
    """A publisher, its relay behind a slow line, and one beside it. The event needs more than three leases."""
    options: Any = {"lease": LEASE, "patience": 20.0}
    async with (
        CuttingProxy(server.port) as proxy,
        Relay.open(f"valkey://127.0.0.1:{proxy.port}", **options) as here,
        Relay.open(server.url, **options) as there,
    ):
        source = Source()
        publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
        source.emit(HELLO[0])
        await until(lambda: len(got) == 1)
        proxy.rate = rate
        source.emit(LARGE)
        yield source, here, there, publishing, proxy
        proxy.rate = None


def key(server: ValkeyServer, kind: str) -> str:
    (found,) = server.command("KEYS", f"*}}:{kind}:*")  # type: ignore[misc]
    return str(found)


@pytest.mark.slow
@pytest.mark.parametrize("completes", [False, True])
def test_it_isnt_taken_for_dead(completes: bool, server: ValkeyServer) -> None:
    async def main() -> None:
        got = list[Any]()
        async with a_large_append_under_way(server, got) as (source, _, there, publishing, _):
            following = asyncio.create_task(read(there.watch("chat")))
            if completes:  # the end goes with the event
                source.complete()
            await until(lambda: server.command("XLEN", key(server, "log")) in (3, "3"))
            if not completes:
                source.complete()
            assert await publishing == [HELLO[0], LARGE, "|"]
            assert await following == [HELLO[0], LARGE, "|"]

    run(main)


@pytest.mark.slow
def test_a_stop_that_only_a_sign_hears_of_is_heard_before_it_is_written(server: ValkeyServer) -> None:
    async def main() -> None:
        got = list[Any]()
        async with a_large_append_under_way(server, got) as (source, _, there, publishing, _):
            server.command("HSET", key(server, "own"), "t", "somebody", "r", '["enough"]')
            await until(lambda: source.life == ["subscribed", "closed"])
            assert got == [HELLO[0]]
            assert await publishing == [HELLO[0], LARGE, STOPPED, "|"]
            assert await read(there.watch("chat")) == [HELLO[0], LARGE, STOPPED, "|"]

    run(main)


@pytest.mark.slow
def test_a_name_that_was_taken_away_is_heard_before_it_is_written(server: ValkeyServer) -> None:
    async def main() -> None:
        got = list[Any]()
        async with a_large_append_under_way(server, got) as (source, _, _, publishing, _):
            server.command("DEL", key(server, "head"))
            await until(lambda: source.life == ["subscribed", "closed"])
            assert got == [HELLO[0]]
            assert await publishing == [HELLO[0], LARGE, ev.MessageInterrupted("deleted"), "|"]

    run(main)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["dead", "gone"])
def test_a_death_is_heard_before_it_is_written(how: str, server: ValkeyServer) -> None:
    async def main() -> None:
        got = list[Any]()
        async with a_large_append_under_way(server, got) as (source, _, _, publishing, _):
            log, before = key(server, "log"), int(server.info("stats")["total_net_input_bytes"])
            if how == "dead":
                server.command(
                    "XADD",
                    log,
                    "2-0",
                    "f",
                    "1",
                    "c",
                    "0",
                    "z",
                    '{"error": "StreamInterrupted", "text": "x", "fields": {}}',
                    "d",
                    "1",
                )
            else:
                server.command("DEL", log)
            await until(lambda: publishing.done())
            assert int(server.info("stats")["total_net_input_bytes"]) - before < len(LARGE.data)
            *events, error = await publishing
            assert events == [HELLO[0]]
            assert isinstance(error, rd.StreamInterrupted)
            assert ("taken for dead" if how == "dead" else "has this log no more") in str(error)
            assert source.life == ["subscribed", "closed"]
            assert server.command("EXISTS", log) == 1 if how == "dead" else True

    run(main)


@pytest.mark.slow
def test_a_line_that_breaks_meanwhile_costs_nothing(server: ValkeyServer) -> None:
    async def main() -> None:
        got = list[Any]()
        async with a_large_append_under_way(server, got) as (source, _, there, publishing, proxy):
            await asyncio.sleep(LEASE)
            proxy.cut()
            await asyncio.sleep(LEASE)
            source.complete()
            assert await publishing == [HELLO[0], LARGE, "|"]
            assert await read(there.watch("chat")) == [HELLO[0], LARGE, "|"]

    run(main)
