"""How readers on any loops and threads wait for a change."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from rxdelta.runtime import call_on

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

__all__ = ["Latch"]


class Latch:
    """Counts changes. Who reads the count, looks, and waits behind that count misses none, whatever thread makes them."""

    __slots__ = ("count", "waiting")

    def __init__(self) -> None:
        self.count = 0
        self.waiting: list[Callable[[], object]] = []

    def changed(self) -> None:
        """Wake all who wait. It is called after the change."""
        self.count += 1
        if self.waiting:  # who comes later sees the count, also one whose `waiting` is still the old list
            woken, self.waiting = self.waiting, []
            for wake in woken:
                wake()

    async def wait(self, loop: asyncio.AbstractEventLoop, known: int) -> None:
        """Wait on this loop until there is another change than those known."""
        change: asyncio.Future[None] = loop.create_future()
        wake = partial(call_on, loop, partial(_answer, change))
        self.waiting.append(wake)
        try:
            if self.count == known:
                await change
        finally:
            self._forget(wake)

    def wait_here(self, known: int, seconds: float | None = None) -> None:
        """Block this thread until then, or so many seconds."""
        change = Event()
        self.waiting.append(change.set)
        try:
            if self.count == known:
                change.wait(seconds)
        finally:
            self._forget(change.set)

    def _forget(self, wake: Callable[[], object]) -> None:
        if wake in self.waiting:
            with suppress(ValueError):  # another thread wakes it
                self.waiting.remove(wake)


def _answer(change: asyncio.Future[None]) -> None:
    if not change.done():  # else its task was cancelled
        change.set_result(None)
