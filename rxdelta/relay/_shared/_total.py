"""What this process knows of the bytes of all streams."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from threading import Lock
from typing import TYPE_CHECKING

from rxdelta.relay._bounds import LEAST, no_room_for_all

if TYPE_CHECKING:
    from rxdelta.core import LimitExceededError

__all__ = ["Total"]


class Total:
    """What the store said last, and what this process has taken since it asked.

    What waits then for being written is missing until it asks again.

    Args:
        most: The most bytes.
        every: Seconds for which an answer is good.
        ask: Asks the store.
    """

    def __init__(self, most: int, every: float, ask: Callable[[], Awaitable[int]]) -> None:
        self._most = most
        self._every = every
        self._ask = ask
        self._lock = Lock()
        self._loop = asyncio.get_running_loop()
        self._known = 0  # the store's sum
        self._taken = 0  # by this process, since it asked
        self._asked = -inf
        self._asking: asyncio.Task[None] | None = None

    @property
    def bytes(self) -> int:
        return self._known + self._taken

    def take(self, size: int) -> LimitExceededError | None:
        """Count so many bytes that are to be written, or return the error if there is no room. Any thread may call."""
        with self._lock:
            if self.bytes + size > self._most:
                return no_room_for_all(self._most)
            self._taken += size
        return None

    def ask(self) -> asyncio.Task[None]:
        """Ask the store for its sum, or for the answer to a question that is under way."""
        if self._asking is None or self._asking.done():
            self._asking = self._loop.create_task(self._learn())
            self._asking.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        return self._asking

    async def _learn(self) -> None:
        before = self._taken
        known = await self._ask()
        with self._lock:
            self._known = known
            self._taken -= before
        self._asked = self._loop.time()

    async def refusal(self) -> LimitExceededError | None:
        """The error for a stream that would begin now, if there is no room for its first event.

        Raises:
            StreamInterrupted: The store can't tell.
        """
        if self._loop.time() - self._asked > self._every:
            await asyncio.shield(self.ask())
        return no_room_for_all(self._most) if self.bytes + LEAST > self._most else None

    def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
