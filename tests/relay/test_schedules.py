"""A stream watched from anywhere, cut off and watched again, at random in virtual time: all have what was published."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter

import pytest
from relay.schedules import LEASE, Schedule

from rxdelta.relay import Relay


def play(seeds: range) -> None:
    async def main() -> None:
        async with Relay.open(lease=LEASE) as relay:
            for seed in seeds:
                try:
                    Schedule(relay, seed).run()
                except BaseException as error:
                    error.add_note(f"in the schedule {seed}")
                    raise
            assert await relay.streams() == []
            gc.collect()
            assert left_behind() == Counter({"Relay": 1, "Memory": 1})
        del relay

    asyncio.run(main())
    gc.collect()
    assert left_behind() == Counter()


def left_behind() -> Counter[str]:
    return Counter(
        type(one).__name__ for one in gc.get_objects() if type(one).__module__.startswith("rxdelta.relay")
    )


def test_each_reader_has_what_was_published() -> None:
    play(range(50))


@pytest.mark.slow
def test_each_reader_has_what_was_published_more_often() -> None:
    play(range(50, 400))


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_each_reader_has_what_was_published_ten_thousand_times() -> None:
    play(range(400, 10_400))
