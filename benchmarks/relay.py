"""What a relay in a process's memory costs an event, beside the bare source: to publish, and for each reader.

The source emits a hundred events a turn of the loop, so that readers are behind and get deltas joined; or one in so many
turns that all readers have it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

from harness import Table
from reactivex import Observable

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events
N, BURST = 10_000, 100


def source(count: int = N, turns: int = 0) -> Observable[rd.Event]:
    async def events() -> AsyncIterator[rd.Event]:
        yield ev.MessageStart("m1")
        yield ev.BlockStart(0, {"type": "text"})
        for number in range(count):
            for _ in range(turns or number % BURST == 0):
                await asyncio.sleep(0)
            yield ev.TextDelta(0, "some word ")

    return rd.from_async_iterable(events)


async def bare() -> float:
    start = time.process_time()
    await rd.last_value(source())
    return (time.process_time() - start) / N


async def followed(readers: int, count: int = N, turns: int = 0) -> float:
    async with Relay.open() as relay:
        start = time.process_time()
        following = [rd.last_value(relay.watch("chat")) for _ in range(readers)]
        await asyncio.gather(rd.last_value(source(count, turns).pipe(relay.publish("chat"))), *following)
        return (time.process_time() - start) / count


async def late() -> float:
    async with Relay.open() as relay:
        await rd.last_value(source().pipe(relay.publish("chat")))
        start = time.process_time()
        await rd.last_value(relay.watch("chat"))
        return (time.process_time() - start) / N


BARE = "the bare source, read by `last_value`"
CASES: dict[str, Callable[[], Coroutine[None, None, float]]] = {
    BARE: bare,
    "published": lambda: followed(0),
    "published, with a reader that follows": lambda: followed(1),
    "published, with ten readers that follow": lambda: followed(10),
    "published one by one, with a hundred readers that keep up": lambda: followed(100, 1000, 5),
    "a reader that comes late, which gets the deltas joined": late,
}


def tables() -> Iterator[Table]:
    table = Table("Through the relay", "µs an event", rounds=7)
    for name, case in CASES.items():
        table.row(name, lambda case=case: asyncio.run(case()), told=True)
    yield table
