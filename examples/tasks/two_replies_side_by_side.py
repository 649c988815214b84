"""Two models answer, drawn side by side."""

import asyncio

import reactivex as rx
from reactivex import Observable
from rich.columns import Columns
from rich.console import Console
from rich.live import Live
from rich.panel import Panel

import rxdelta as rd
from rxdelta.testing import sample_chunks


def ask(sample: str) -> Observable[rd.Snapshot]:
    chunks = rd.from_async_iterable(lambda: sample_chunks(sample, pause=0.002))  # in your code: a request
    return chunks.pipe(rd.decode("auto"), rd.scan_deltas())


def draw(pair: tuple[rd.Snapshot, ...]) -> Columns:
    return Columns([Panel(snapshot.text, title=snapshot.model, width=36, height=7) for snapshot in pair])


async def main() -> None:
    pairs = rx.combine_latest(ask("forecast"), ask("tides")).pipe(rd.throttle_latest(0.05))
    with Live(console=Console(width=76), auto_refresh=False) as live:
        await rd.for_each(pairs, lambda pair: live.update(draw(pair), refresh=True))
    print()


asyncio.run(main())
