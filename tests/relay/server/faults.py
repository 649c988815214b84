"""Runs on a Valkey server that fails, or the line to it, at a random moment. See `relay.stores.runs`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import reactivex as rx
from relay.stores import server_runs
from relay.stores.runs import LEASE, play_out
from relay.stores.server_runs import ServerRun
from relay.stores.workers import Nursery
from support.cutting_proxy import CuttingProxy
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.relay import Relay

__all__ = ["KINDS", "ValkeyRun", "play"]

ev = rd.events


class ValkeyRun(ServerRun):
    """A run on one Valkey server, behind a proxy."""

    def url(self, *, directly: bool = False) -> str:
        """Who opens a relay has any of the packages and protocols."""
        package, protocol = self.chance.choice(("valkey", "redis")), self.chance.choice((2, 3))
        return f"{package}{self.place(directly)}?protocol={protocol}"

    def place(self, directly: bool) -> str:
        """What a URL has behind the package."""
        return f"://127.0.0.1:{self.server.port if directly else self.proxy.port}"

    def command(self, *words: str | int) -> Any:
        self.note(" ".join(map(str, words)))
        return self.server.command(*words)

    def keys(self, kind: str) -> list[str]:
        answer = self.server.command("KEYS", f"*}}:{kind}:*")
        assert isinstance(answer, list)
        return [str(key) for key in answer]


async def fill_the_memory(run: ValkeyRun) -> None:
    await run.somewhen(0.6)
    run.command("CONFIG", "SET", "maxmemory", "1mb")
    await asyncio.sleep(run.chance.choice((0.3, 1.0, LEASE * 1.5)))
    run.command("CONFIG", "SET", "maxmemory", "0")


async def evict_keys(run: ValkeyRun) -> None:
    run.loses = True
    await run.somewhen(0.8)
    run.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    run.command("CONFIG", "SET", "maxmemory", "1mb")
    await asyncio.sleep(0.3)
    run.command("CONFIG", "SET", "maxmemory", "0")


async def trim_by_hand(run: ValkeyRun) -> None:
    run.loses = True
    await run.somewhen(0.8)
    for key in run.keys("log"):
        run.command("XTRIM", key, "MAXLEN", run.chance.choice((0, 1, 5)))


async def delete_a_key_by_hand(run: ValkeyRun) -> None:
    run.loses = True
    await run.somewhen(0.8)
    for key in run.keys(run.chance.choice(("log", "log", "own", "head", "inbox", "*"))):
        run.command("DEL", key)


async def flush_everything(run: ValkeyRun) -> None:
    run.loses = True
    await run.somewhen(0.8)
    run.command("FLUSHALL")


async def read_over_a_slow_line(run: ValkeyRun) -> None:
    run.note("the line is slow")
    run.proxy.rate = run.chance.choice((1e6, 3e6))
    await run.somewhen(2)


async def prepare(run: ValkeyRun, kind: Callable[[Any], Awaitable[None]]) -> None:
    """What a kind needs before the processes start."""
    server_runs.prepare(run, kind)
    if kind is read_over_a_slow_line:
        run.publishes["herd"], run.stays = 30, True
        run.lease, run.patience = 6.0, 4.0
        page = [ev.Custom("page", "x" * 5000) for _ in range(20)]
        async with Relay.open(run.url(directly=True), **run.options()) as relay:
            for number in range(30):
                events = rx.from_iterable(page).pipe(relay.publish(f"kept-{number}"))
                await rd.for_each(events, lambda _: None)


KINDS: list[Callable[[Any], Awaitable[None]]] = [
    *server_runs.KINDS,
    fill_the_memory,
    evict_keys,
    trim_by_hand,
    delete_a_key_by_hand,
    flush_everything,
    read_over_a_slow_line,
]


async def play(seed: int, nursery: Nursery) -> None:
    """Play one run and check it. An error names the seed."""
    kind = KINDS[seed % len(KINDS)]
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rxf-")))
        chance = Random(seed)
        synced = chance.choice(("always", "always", "everysec"))
        server = ValkeyServer("--appendfsync", synced)
        stack.push_async_callback(asyncio.to_thread, server.remove)
        await asyncio.to_thread(server.start)
        proxy = await stack.enter_async_context(CuttingProxy(server.port))
        run = ValkeyRun(
            seed=seed,
            nursery=nursery,
            folder=folder,
            chance=chance,
            server=server,
            proxy=proxy,
            forgets=synced != "always",  # while its file is synced, it puts off what it writes into that
        )
        await prepare(run, kind)
        await play_out(run, kind)
