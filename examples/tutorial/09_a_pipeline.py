import asyncio

import rxdelta as rd
from rxdelta.testing import sample_chunks


def show(snapshot: rd.Snapshot) -> None:
    if snapshot.status == "complete":
        print(len(snapshot.text), "characters,", len(snapshot.tool_calls), "calls")


async def short() -> None:
    async with rd.stream(sample_chunks("weather"), every=0.1) as reply:
        async for snapshot in reply:
            show(snapshot)


async def long() -> None:
    chunks = rd.from_async_iterable(lambda: sample_chunks("weather"))
    snapshots = chunks.pipe(rd.decode("auto"), rd.scan_deltas(), rd.throttle_latest(0.1))
    await rd.for_each(snapshots, show, overflow="latest")


asyncio.run(short())
asyncio.run(long())
