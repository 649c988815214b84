"""What a relay promises, on each store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import reactivex as rx
from relay.conftest import Opener
from support.loops import run
from support.runs import text, turn

import rxdelta as rd

ev = rd.events
HELLO = turn(text(0, "Hello"))


async def read(stream: rx.Observable[Any]) -> list[Any]:
    got: list[Any] = []
    try:
        await rd.for_each(stream, got.append)
    except rd.RxDeltaError as error:
        return [*got, error]
    return [*got, "|"]


async def told(*events: rd.Event) -> AsyncIterator[rd.Event]:
    for event in events:
        yield event


def test_a_stream_is_published_once_and_watched_by_any_number(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            early = [asyncio.create_task(read(relay.watch("chat"))) for _ in range(3)]
            await asyncio.sleep(0.05)
            assert await relay.start("chat", rd.from_async_iterable(lambda: told(*HELLO)))
            assert not await relay.start("chat", rx.never())
            assert [await task for task in early] == [[*HELLO, "|"]] * 3
            late = await read(relay.watch("chat"))
            assert "".join(getattr(event, "text", "") for event in late) == "Hello"
            assert not await relay.is_live("chat")
            assert await relay.streams() == ["chat"]
            assert await relay.delete("chat")
            assert await relay.streams() == []

    run(main)
