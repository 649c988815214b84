"""Two agents answer at the same time, in one stream. Each keeps its own reply."""

import asyncio

import reactivex as rx
from reactivex import Observable, operators as ops

import rxdelta as rd
from rxdelta.testing import sample_chunks


def agent(name: str, sample: str) -> Observable[rd.Event]:
    chunks = rd.from_async_iterable(lambda: sample_chunks(sample, pause=0.001))  # in your code: a request
    return chunks.pipe(rd.decode("auto"), rd.with_run(name))


def fold(run: rd.types.RunStream) -> Observable[rd.Snapshot]:
    return run.pipe(rd.scan_deltas())


def draw(snapshots: dict[str | None, rd.Snapshot], snapshot: rd.Snapshot) -> None:
    snapshots[snapshot.run_id] = snapshot  # in your code: draw the panel of this agent


async def main() -> None:
    events = rx.merge(agent("guide", "forecast"), agent("sailor", "tides"))
    drawn = events.pipe(
        rd.group_by_run(),
        ops.flat_map(fold),
        rd.throttle_latest(0.05),
    )
    snapshots: dict[str | None, rd.Snapshot] = {}
    await rd.for_each(drawn, lambda snapshot: draw(snapshots, snapshot))
    for name in ("guide", "sailor"):
        print(f"{name}: {snapshots[name].text}")


asyncio.run(main())
