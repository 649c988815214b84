"""A source that emits what a test wants, when the test wants it, and what its readers get."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from reactivex import Observable
from support.runs import text, turn

import rxdelta as rd

__all__ = ["HELLO", "Source", "read", "said", "told", "until"]

HELLO = turn(text(0, "Hello"))


class Source:
    """Events that a test emits one by one, on the loop, and whether they are subscribed."""

    def __init__(self) -> None:
        self.waiting: asyncio.Queue[rd.Event | None] = asyncio.Queue()
        self.life: list[str] = []
        self.events = rd.from_async_iterable(self._items)

    def emit(self, *events: rd.Event) -> None:
        for event in events:
            self.waiting.put_nowait(event)

    def complete(self) -> None:
        self.waiting.put_nowait(None)

    async def _items(self) -> AsyncIterator[rd.Event]:
        self.life.append("subscribed")
        try:
            while (event := await self.waiting.get()) is not None:
                yield event
        finally:
            self.life.append("closed")


def told(stream: Observable[Any]) -> list[Any]:
    """What a subscriber gets, with the end: `|`, or the error."""
    got: list[Any] = []
    stream.subscribe(got.append, got.append, lambda: got.append("|"))
    return got


async def read(stream: Observable[Any], got: list[Any] | None = None) -> list[Any]:
    """What a stream emits, until its end and with it: `|`, or the error. Meanwhile `got` has it, too."""
    got = [] if got is None else got
    try:
        await rd.for_each(stream, got.append)
    except Exception as error:
        return [*got, error]
    return [*got, "|"]


def said(got: list[Any]) -> str:
    return "".join(getattr(event, "text", "") for event in got)


async def until(is_so: Callable[[], Any], every: float = 0.002) -> None:
    """Wait for what the loop, a thread or another process does, and leave these the time."""
    while not is_so():
        await asyncio.sleep(every)
