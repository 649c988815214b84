"""What a live stream holds in memory: many of them that have had 20 deltas and wait for more, each case in a process of its own."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import streams
from harness import Table

import rxdelta as rd

STREAMS, DELTAS = 800, 20
FORMAT = "openai-chat"


def resident() -> float:
    """KiB of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4


def chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


async def source(gate: asyncio.Event) -> AsyncIterator[dict[str, Any]]:
    yield chunk({"role": "assistant", "content": ""})
    for number in range(DELTAS):
        yield chunk({"content": f"tok{number} "})
    await gate.wait()
    yield chunk({}, "stop")


async def listed(gate: asyncio.Event) -> None:
    texts = []
    async for one in source(gate):
        texts.append(one["choices"][0]["delta"].get("content"))  # noqa: PERF401


async def by_hand(gate: asyncio.Event) -> None:
    decoder, fold = rd.providers.decoder(FORMAT), rd.Fold(choice=0)
    async for one in source(gate):
        for event in decoder.decode(one):
            fold.step(event)


async def last(gate: asyncio.Event) -> None:
    await rd.last_value(rd.from_async_iterable(source(gate)).pipe(rd.decode(FORMAT), rd.scan_deltas()))


async def throttled(gate: asyncio.Event) -> None:
    events = rd.from_async_iterable(source(gate)).pipe(rd.decode(FORMAT))
    await rd.for_each(events.pipe(rd.scan_deltas(), rd.throttle_latest(0.05)), lambda snapshot: None)


async def watched(gate: asyncio.Event) -> None:
    async with rd.stream(source(gate), FORMAT) as reply:
        async for _ in reply:
            pass


BASE = "a loop by hand: decoder and fold"
CASES: dict[str, tuple[Callable[[asyncio.Event], Awaitable[None]], float | None]] = {
    BASE: (by_hand, None),
    "a loop that lists the texts": (listed, None),
    "`decode`, `scan_deltas`, `last_value`": (last, 28),
    "`decode`, `scan_deltas`, `throttle_latest`, `for_each`": (throttled, None),
    "`async for` over `rd.stream`": (watched, 70),
}


async def live(read: Callable[[asyncio.Event], Awaitable[None]]) -> float:
    """KiB a live stream, after a few that bring in what all share."""

    async def opened(count: int, gate: asyncio.Event) -> asyncio.Future[Any]:
        reading = asyncio.gather(*(read(gate) for _ in range(count)))
        for _ in range(6 * DELTAS):
            await asyncio.sleep(0)
        await asyncio.sleep(0.2)
        return reading

    first = asyncio.Event()
    warm = await opened(20, first)
    first.set()
    await warm
    gc.collect()
    before, gate = resident(), asyncio.Event()
    reading = await opened(STREAMS, gate)
    gc.collect()
    held = (resident() - before) / STREAMS
    gate.set()
    await reading
    return held


def measured(name: str) -> float:
    done = subprocess.run([sys.executable, __file__, name], check=True, capture_output=True, text=True)
    return float(done.stdout)


def kept(events: list[rd.Event]) -> float:
    """Bytes for each snapshot when all are kept."""
    fold = rd.Fold(choice=0)
    gc.collect()
    tracemalloc.start()
    try:
        snapshots = [fold.step(event) for event in events]
        return tracemalloc.get_traced_memory()[0] / len(snapshots)
    finally:
        tracemalloc.stop()


def tables() -> Iterator[Table]:
    table = Table("Memory", "KiB a live stream", scale=1, base="-", rounds=2)
    for name, (_, goal) in CASES.items():
        table.row(name, partial(measured, name), goal=goal, told=True)
    yield table
    table = Table("Every snapshot kept", "bytes a snapshot", scale=1, base="-", rounds=1)
    table.row("of a text", lambda: kept(streams.events(10_000)), told=True)
    table.row("of a call's arguments", lambda: kept(streams.arguments(10_000)), told=True)
    yield table


if __name__ == "__main__":
    print(asyncio.run(live(CASES[sys.argv[1]][0])))
