"""`rd.stream`, the first thing that a user writes, beside a loop by hand over the same chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from harness import Table
from streams import REPLIES

import rxdelta as rd

N, FORMAT = 3_000, "anthropic-messages"
CHUNKS = [*REPLIES[FORMAT](N)]
Source = Callable[[], AsyncIterator[dict[str, Any]]]


async def at_once() -> AsyncIterator[dict[str, Any]]:
    for chunk in CHUNKS:
        yield chunk


async def paced() -> AsyncIterator[dict[str, Any]]:
    for chunk in CHUNKS:
        await asyncio.sleep(0)
        yield chunk


async def by_hand(source: Source) -> None:
    decoder, fold = rd.providers.decoder(FORMAT), rd.Fold(choice=0)
    async for chunk in source():
        for event in decoder.decode(chunk):
            fold.step(event)


async def with_queue(source: Source) -> None:
    """The least that a reader in another task costs."""
    queue = asyncio.Queue[rd.Snapshot | None]()

    async def pump() -> None:
        decoder, fold = rd.providers.decoder(FORMAT), rd.Fold(choice=0)
        async for chunk in source():
            for event in decoder.decode(chunk):
                queue.put_nowait(fold.step(event))
        queue.put_nowait(None)

    task = asyncio.create_task(pump())
    while await queue.get() is not None:
        pass
    await task


async def watched(source: Source) -> None:
    async with rd.stream(source(), FORMAT) as reply:
        async for _ in reply:
            pass


async def awaited(source: Source) -> None:
    await rd.stream(source(), FORMAT)


async def for_each(source: Source) -> None:
    events = rd.from_async_iterable(source()).pipe(rd.decode(FORMAT))
    await rd.for_each(events.pipe(rd.scan_deltas()), lambda snapshot: None)


async def last(source: Source) -> None:
    events = rd.from_async_iterable(source()).pipe(rd.decode(FORMAT))
    await rd.last_value(events.pipe(rd.scan_deltas()))


def blocking_hand() -> None:
    decoder, fold = rd.providers.decoder(FORMAT), rd.Fold(choice=0)
    for chunk in iter(CHUNKS):
        for event in decoder.decode(chunk):
            fold.step(event)


def blocking() -> None:
    with rd.stream(iter(CHUNKS), FORMAT) as reply:
        for _ in reply:
            pass


def blocking_result() -> None:
    with rd.stream(iter(CHUNKS), FORMAT) as reply:
        reply.result()


Way = Callable[[Source], Awaitable[None]]
BASE = "a loop by hand"
QUEUE = "a loop by hand, read through an `asyncio.Queue`"
WAYS: dict[str, tuple[Way, float | None, float | None]] = {
    BASE: (by_hand, None, None),
    QUEUE: (with_queue, None, None),
    "`async for` over `rd.stream`": (watched, 2.0, 2.5),
    "`await rd.stream`": (awaited, 2.0, 2.5),
    "`for_each` of a pipeline": (for_each, 2.2, None),
    "`last_value` of a pipeline": (last, None, None),
}


def tables() -> Iterator[Table]:
    for number, (title, source) in enumerate(
        {"chunks at once": at_once, "a chunk a turn of the loop": paced}.items()
    ):
        table = Table(title[0].upper() + title[1:], "µs a delta")
        for name, (way, *goals) in WAYS.items():
            table.row(
                name,
                lambda way=way, source=source: asyncio.run(way(source)),
                N,
                goal=goals[number],
                peer=name == QUEUE,
            )
        yield table
    table = Table(
        "Without asyncio",
        "µs a delta",
        note="The reply is read on a thread of its own; its CPU time is in the figure.",
    )
    table.row(BASE, blocking_hand, N)
    table.row("`for` over `rd.stream`", blocking, N, goal=2.0)
    table.row("`result()` of `rd.stream`", blocking_result, N, goal=2.0)
    yield table
