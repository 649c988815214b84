"""A reader that takes 10 ms a snapshot, on a stream of 10,000 chunks a second, in virtual time."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

import rxdelta as rd
from rxdelta.testing import VirtualTime

CHUNKS = 2_500
CHUNK, FRAME = 0.0001, 0.01  # seconds


class Reading:
    """What a slow reader saw of a quick stream."""

    def __init__(self) -> None:
        self.given = 0
        self.before = alive()  # other tests' snapshots
        self.source_took = self.reader_took = 0.0
        self.seen: list[int] = []
        self.lags: list[float] = []  # of the picture that is being drawn, in seconds of the stream
        self.waiting: list[int] = []  # snapshots alive while one is drawn

    async def chunks(self) -> AsyncIterator[rd.Snapshot]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(CHUNKS):
            await asyncio.sleep(CHUNK)
            self.given += 1
            yield rd.MessageDelta(content="x")
        self.source_took = loop.time() - began

    async def draw(self, snapshot: rd.Snapshot) -> None:
        drawn = len(snapshot.text)
        self.seen.append(drawn)
        self.lags.append((self.given - drawn) * CHUNK)
        if len(self.seen) in (10, 20, CHUNKS // 2, CHUNKS - 1):
            self.waiting.append(alive() - self.before)
        await asyncio.sleep(FRAME)


def alive() -> int:
    gc.collect()
    return sum(type(one) is rd.Snapshot for one in gc.get_objects())


def read(overflow: Any, *operators: Any, maxsize: int | None = None) -> Reading:
    reading = Reading()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        snapshots = rd.from_async_iterable(reading.chunks).pipe(rd.scan_deltas(), *operators)
        more = {} if maxsize is None else {"maxsize": maxsize}
        async with rd.to_async_iterable(snapshots, overflow, **more) as values:
            async for snapshot in values:
                await reading.draw(snapshot)
        reading.reader_took = loop.time()

    VirtualTime().run(main())
    assert reading.given == CHUNKS
    assert reading.seen[-1] == CHUNKS
    return reading


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operators", "oldest"),
    [
        pytest.param((), 0.0, id="alone"),
        pytest.param((rd.conflate(),), 0.0, id="conflate"),
        pytest.param((rd.throttle_latest(FRAME),), FRAME, id="throttle_latest"),
    ],
)
def test_with_latest_the_producer_is_not_slowed_and_the_picture_is_a_frame_old_at_most(
    operators: Any, oldest: float
) -> None:
    reading = read("latest", *operators)
    assert reading.source_took == pytest.approx(CHUNKS * CHUNK, rel=0.01)
    assert reading.reader_took <= reading.source_took + 2.01 * FRAME
    assert max(reading.lags) <= oldest + CHUNK
    assert max(reading.waiting) <= 8


@pytest.mark.slow
def test_with_block_the_producer_goes_at_the_readers_pace() -> None:
    reading = read("block", maxsize=4)
    assert reading.seen == list(range(1, CHUNKS + 1))
    assert reading.source_took == pytest.approx(CHUNKS * FRAME, rel=0.01)
    assert max(reading.lags) <= 6 * CHUNK
    assert max(reading.waiting) <= 12


@pytest.mark.slow
def test_with_buffer_the_queue_grows_and_that_is_what_latest_is_for() -> None:
    reading = read("buffer")
    assert reading.seen == list(range(1, CHUNKS + 1))
    assert reading.source_took == pytest.approx(CHUNKS * CHUNK, rel=0.01)
    assert max(reading.waiting) > 0.4 * CHUNKS
