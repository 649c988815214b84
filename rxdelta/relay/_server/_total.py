"""What this process knows of the bytes of all streams."""

from __future__ import annotations

import asyncio
from functools import partial
from math import inf
from threading import Lock
from typing import TYPE_CHECKING

from rxdelta.relay._bounds import LEAST, no_room_for_all
from rxdelta.relay._server._keys import TAGS, bytes_keys
from rxdelta.relay._server._scripts import BYTES, SIGNS

if TYPE_CHECKING:
    from rxdelta.core import LimitExceededError
    from rxdelta.relay._server._server import Server

__all__ = ["Total"]


class Total:
    """What the server said last, and what this process has taken since it asked.

    What waits then for being written is missing until it asks again.
    """

    def __init__(self, server: Server, most: int) -> None:
        self._server = server
        self._most = most
        self._lock = Lock()
        self._loop = asyncio.get_running_loop()
        self._known = 0  # the server's sums
        self._taken = 0  # by this process, since it asked
        self._asked = -inf
        self._asking: asyncio.Future[list[int]] | None = None

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

    def ask(self) -> asyncio.Future[list[int]]:
        """Ask the server for its sums."""
        if self._asking is None:
            server = self._server
            calls = (server.call(tag, BYTES, bytes_keys(server.prefix, tag), []) for tag in range(TAGS))
            self._asking = asyncio.gather(*calls)
            self._asking.add_done_callback(partial(self._told, self._taken))
        return self._asking

    def _told(self, before: int, asked: asyncio.Future[list[int]]) -> None:
        self._asking = None
        if asked.cancelled() or asked.exception() is not None:
            return
        with self._lock:
            self._known = sum(asked.result())
            self._taken -= before
        self._asked = self._loop.time()

    async def refusal(self) -> LimitExceededError | None:
        """The error for a stream that would begin now, if there is no room for its first event."""
        if self._loop.time() - self._asked > self._server.lease / SIGNS:
            await self.ask()
        return no_room_for_all(self._most) if self.bytes + LEAST > self._most else None
