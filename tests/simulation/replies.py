"""The uses of `rd.stream`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import rxdelta as rd
from simulation.pipeline import Played
from simulation.readers import Log, take


def _open(played: Played) -> Any:
    world, lane = played.world, played.new_lane()
    source = rd.from_async_iterable(lambda: played.request(lane)).pipe(*played.parse())
    return rd.stream(source, world.format, through=played.operators(lane), every=world.every, timeout=5.0)


async def _iterated(log: Log, played: Played) -> None:
    async with _open(played) as reply:
        async for snapshot in reply:
            await take(log, snapshot)
        if log.got and log.got[-1] != reply.snapshot:
            log.wrong.append("the last snapshot of the loop isn't that of the reply")


async def _result(log: Log, played: Played) -> None:
    async with _open(played) as reply:
        log.got.append(await reply.result())


async def _awaited(log: Log, played: Played) -> None:
    log.got.append(await _open(played))


async def _text_deltas(log: Log, played: Played) -> None:
    async with _open(played) as reply:
        async for text in reply.text_deltas:
            await take(log, text)


async def _two_loops(log: Log, played: Played) -> None:
    """One over the snapshots, and one over the texts, which is never cancelled."""
    texts: list[str] = []
    async with _open(played) as reply:

        async def read_texts() -> None:
            texts.extend([text async for text in reply.text_deltas])

        both = asyncio.ensure_future(read_texts())
        try:
            async for snapshot in reply:
                await take(log, snapshot)
        except BaseException:
            both.cancel()
            raise
        finally:
            await asyncio.gather(both, return_exceptions=True)
        if log.got and "".join(texts) != log.got[-1].text:
            log.wrong.append("the text deltas aren't the text of the last snapshot")


async def _left(log: Log, played: Played) -> None:
    async with _open(played):
        await asyncio.sleep(0.3)


async def _stopped(log: Log, played: Played) -> None:
    async with _open(played) as reply:
        await asyncio.sleep(0.3)
        reply.stop("enough")
        async for snapshot in reply:
            await take(log, snapshot)


USES: dict[str, Callable[[Log, Played], Coroutine[Any, Any, None]]] = {
    "stream: iterated": _iterated,
    "stream: result": _result,
    "stream: awaited": _awaited,
    "stream: text_deltas": _text_deltas,
    "stream: two loops": _two_loops,
    "stream: left": _left,
    "stream: stopped": _stopped,
}
