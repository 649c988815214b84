"""How a reader at one end of a pipeline and the pump at the other find each other.

Observables carry neither "slow down" nor "have you closed?". The asyncio forms need both, so while they subscribe
they leave a session in the context, and every pump that is started by that subscription signs in.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

__all__ = ["CLOSE_SECONDS", "Session", "current_session"]

CLOSE_SECONDS = 5.0
"""How long leaving waits for a source to close before it goes without."""

current_session: ContextVar[Session | None] = ContextVar("rxdelta_session", default=None)


class Session:
    """One reader's subscription: the pumps behind it, and whether they should wait."""

    def __init__(self) -> None:
        self._pumps: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._room.set()

    def sign_in(self, pump: asyncio.Task[None]) -> None:
        self._pumps.add(pump)
        pump.add_done_callback(self._pumps.discard)

    def pause(self) -> None:
        """The reader is full: pumps wait before their next item."""
        self._room.clear()

    def resume(self) -> None:
        self._room.set()

    async def room(self) -> None:
        """Wait until the reader has room."""
        await self._room.wait()

    async def closed(self) -> None:
        """Wait, for a while, until every source behind the subscription has closed."""
        self.resume()
        if self._pumps:
            await asyncio.wait(set(self._pumps), timeout=CLOSE_SECONDS)
