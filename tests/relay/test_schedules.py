"""A stream watched from anywhere, cut off and watched again, at random in virtual time: all have what was published."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from random import Random

import pytest
from relay.schedules import LEASE, OPENED, Schedule, conversation, folded, left_behind, relay_objects

import rxdelta as rd
from rxdelta.relay import Entry, Relay
from rxdelta.testing import VirtualTime


def play(seeds: range) -> None:
    before = relay_objects()

    async def main() -> None:
        async with Relay.open(lease=LEASE) as relay:
            for seed in seeds:
                try:
                    Schedule(relay, seed).run()
                except BaseException as error:
                    error.add_note(f"in the schedule {seed}")
                    raise
            assert await relay.streams() == []
            assert left_behind(before) == Counter(OPENED)
        del relay

    asyncio.run(main())
    assert left_behind(before) == Counter()


def test_each_reader_has_what_was_published() -> None:
    play(range(40))


@pytest.mark.parametrize("seed", range(30))
def test_readers_at_doors_that_are_slow_or_leave_in_the_middle_have_it_too(seed: int) -> None:
    chance = Random(seed)
    published = conversation(chance)

    async def events() -> AsyncIterator[rd.Event]:
        for event in published:
            await asyncio.sleep(chance.choice((0, 0, 0.5, 3)))
            yield event

    async def read(relay: Relay) -> list[rd.Event]:
        got: list[Entry] = []
        while True:
            await asyncio.sleep(chance.uniform(0, 40))
            room, rest = chance.choice((1, 2, 50)), chance.choice((0, 1, 5))
            entries = relay.entries("chat", got[-1].id if got else None)
            async with rd.to_async_iterable(entries, maxsize=room) as door:
                async for entry in door:
                    got.append(entry)
                    await asyncio.sleep(rest)
                    if chance.random() < 0.03:
                        break
                else:
                    return [entry.event for entry in got]

    async def main() -> None:
        async with Relay.open(keep=100_000) as relay:
            assert await relay.start("chat", rd.from_async_iterable(events))
            for got in await asyncio.gather(*(read(relay) for _ in range(4))):
                assert folded(got) == folded(published)

    VirtualTime().run(main())


@pytest.mark.slow
def test_each_reader_has_what_was_published_more_often() -> None:
    play(range(40, 200))


@pytest.mark.soak
@pytest.mark.parametrize("first", range(200, 10_200, 500))
def test_each_reader_has_what_was_published_ten_thousand_times(first: int) -> None:
    play(range(first, first + 500))
