"""Runs on a server that fails, or the line to it, at a random moment: what is so for each server. See `relay.stores.runs`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import attrs
from relay.stores import runs
from relay.stores.runs import LEASE, STREAM, Run
from support.cutting_proxy import Fate

from rxdelta.relay import Relay

__all__ = ["KINDS", "ServerRun", "prepare"]


@attrs.define(kw_only=True)
class ServerRun(Run):
    """A run on one server, behind a proxy.

    Attributes:
        server: One of `support`.
        forgets: The server may lose what it has acknowledged, when it is killed.
    """

    server: Any
    proxy: Any
    forgets: bool = False

    async def check_store(self) -> None:
        await asyncio.to_thread(self.server.has_no_clients)

    async def restart_server(self, away: float = 0) -> None:
        self.note(f"kill -9 of the server, away for {away:.1f} s; it may forget: {self.forgets}")
        self.loses |= self.forgets
        await asyncio.to_thread(self.server.kill)
        await asyncio.sleep(away)
        await asyncio.to_thread(self.server.start)
        self.note("the server is back")


async def kill_the_server(run: ServerRun) -> None:
    for _ in range(run.chance.choice((1, 1, 2))):
        await run.somewhen()
        await run.restart_server(run.chance.choice((0, 0, 0.3, LEASE * 1.3)))


async def kill_server_and_publisher(run: ServerRun) -> None:
    await run.somewhen()
    down = asyncio.create_task(run.restart_server(run.chance.choice((0, 0.3))))
    await run.somewhen(0.3)
    await run.kill_publisher()
    await down


async def stop_the_server(run: ServerRun) -> None:
    await run.somewhen()
    run.note("SIGSTOP of the server")
    run.server.pause()
    await asyncio.sleep(run.chance.choice((0.2, 0.6, LEASE * 1.5)))
    run.server.resume()
    run.note("SIGCONT")


async def cut_the_lines(run: ServerRun) -> None:
    run.proxy.chance = _fates(
        run.chance, ("pass", "pass", "pass", "cut before", "cut after", "cut after", "delay")
    )
    await _disturb(run, 1.2)


async def cut_the_lines_and_kill(run: ServerRun) -> None:
    run.proxy.chance = _fates(run.chance, ("pass", "pass", "pass", "cut before", "cut after", "delay"))
    disturbing = asyncio.create_task(_disturb(run, 1.0))
    await run.somewhen()
    await run.kill_publisher()
    await disturbing


async def be_away_for_too_long(run: ServerRun) -> None:
    run.patience = 0.8
    await run.somewhen(0.5)
    run.note("the line is down for more than the patience")
    run.proxy.is_down = True
    run.proxy.cut()
    await asyncio.sleep(run.chance.choice((1.0, 2.5)))
    run.proxy.is_down = False
    run.note("it is up")


async def cancel_while_lines_are_cut(run: ServerRun) -> None:
    run.proxy.chance = _fates(run.chance, ("pass", "pass", "pass", "cut before", "cut after", "delay"))
    disturbing = asyncio.create_task(_disturb(run, 0.8))
    await run.somewhen(0.7)
    async with Relay.open(run.url(directly=True), **run.options()) as other:
        run.told = await other.cancel(STREAM, "enough")
        run.note(f"cancel: {run.told}")
    await disturbing


async def go_silent(run: ServerRun) -> None:
    """A router forgets the connections."""
    for _ in range(run.chance.choice((1, 2))):
        await run.somewhen()
        run.note(f"{run.proxy.silence()} connections are silent; lease {run.lease}")


async def lose_the_claim(run: ServerRun) -> None:
    """The answers to the publisher are lost for longer than its patience, from the beginning."""
    await run.somewhen(1.5 * run.patience)
    await asyncio.sleep(run.patience)
    run.proxy.chance = lambda: "pass"
    run.note("answers come again")


KINDS: list[Callable[[Any], Awaitable[None]]] = [
    *runs.KINDS,
    kill_the_server,
    kill_server_and_publisher,
    stop_the_server,
    cut_the_lines,
    cut_the_lines_and_kill,
    be_away_for_too_long,
    cancel_while_lines_are_cut,
    go_silent,
    lose_the_claim,
]


def prepare(run: ServerRun, kind: Callable[[Any], Awaitable[None]]) -> None:
    """What a kind of these needs before the processes start."""
    runs.prepare(run, kind)
    if kind is be_away_for_too_long:
        run.patience = 0.8
    elif kind is go_silent:
        run.lease = run.chance.choice((0.6, 1.5, 3.0, 5.0, 10.0))
        run.stays = run.lease >= 3  # a shorter one may be over before the line is given up
    elif kind is lose_the_claim:
        run.patience, run.is_early = 0.8, True
        run.publishes["begins_again"] = True
        run.proxy.chance = lambda: "cut after"


def _fates(chance: Random, fates: tuple[Fate, ...]) -> Callable[[], Fate]:
    return lambda: chance.choice(fates)


async def _disturb(run: ServerRun, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        await run.somewhen(0.3)
        what = run.chance.choice(("cut", "cut", "down", "hole"))
        run.note(what)
        if what == "cut":
            run.proxy.cut()
            continue
        setattr(run.proxy, f"is_{what}", True)
        await run.somewhen(0.3)
        setattr(run.proxy, f"is_{what}", False)
        run.proxy.cut()
    run.proxy.chance = lambda: "pass"
    run.note("the lines are whole")
