"""What a relay costs an event, beside the bare source: to publish, and for each reader that follows or comes late.

Run with `python benchmarks/relay.py [events]`. The source emits a hundred events a turn of the loop.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine

from reactivex import Observable

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events
BURST = 100


def source(count: int) -> Observable[rd.Event]:
    async def events() -> AsyncIterator[rd.Event]:
        yield ev.MessageStart("m1")
        yield ev.BlockStart(0, {"type": "text"})
        for number in range(count):
            if number % BURST == 0:
                await asyncio.sleep(0)
            yield ev.TextDelta(0, "some word ")

    return rd.from_async_iterable(events)


async def bare(count: int) -> float:
    start = time.process_time()
    await rd.last_value(source(count))
    return time.process_time() - start


async def followed(count: int, readers: int) -> float:
    async with Relay.open() as relay:
        start = time.process_time()
        following = [rd.last_value(relay.watch("chat")) for _ in range(readers)]
        await asyncio.gather(rd.last_value(source(count).pipe(relay.publish("chat"))), *following)
        return time.process_time() - start


async def late(count: int) -> float:
    async with Relay.open() as relay:
        await rd.last_value(source(count).pipe(relay.publish("chat")))
        start = time.process_time()
        await rd.last_value(relay.watch("chat"))
        return time.process_time() - start


def main(count: int) -> None:
    def best(run: Callable[..., Coroutine[None, None, float]], *arguments: int) -> float:
        return min(asyncio.run(run(count, *arguments)) for _ in range(5)) / count * 1e6

    alone, published = best(bare), best(followed, 0)
    one, ten = best(followed, 1), best(followed, 10)
    print("µs an event")
    print(f"the bare source      {alone:6.2f}")
    print(f"published            {published:6.2f}  (+{published - alone:.2f})")
    print(f"a reader that follows        +{one - published:.2f}")
    print(f"each of ten readers          +{(ten - published) / 10:.2f}")
    print(f"a reader that is late {best(late):5.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
