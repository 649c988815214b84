"""The reader's side of a session; see `rxdelta.operators._session`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rxdelta.operators import current_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.operators import Pump

__all__ = ["CLOSE_SECONDS", "Session", "current_session"]

CLOSE_SECONDS = 5.0
"""How long leaving waits for a source to close before it cancels the closing and goes."""


class Session:
    """One reader's subscription: the pumps behind it, and whether they should wait."""

    def __init__(self, fail: Callable[[Exception], None]) -> None:
        self._fail = fail
        self._pumps: dict[asyncio.Task[None], Pump] = {}
        self._left = False
        self.room = asyncio.Event()
        """Cleared while the reader is full: pumps wait before their next item."""
        self.room.set()

    def sign_in(self, pump: Pump) -> None:
        self._pumps[pump.task] = pump
        pump.task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._pumps.pop(task, None)

    def pause(self) -> None:
        if not self._left:
            self.room.clear()

    def fail(self, error: Exception) -> bool:
        """Tell the reader what was raised on the way to it; `False` if it is no longer there."""
        if not self._left:
            self._fail(error)
        return not self._left

    async def closed(self) -> None:
        """The reader leaves. Wait, for a while, until every source that was stopped with it has closed.

        A source that others share goes on, and isn't waited for.
        """
        self._left = True
        self.room.set()
        closing = {task for task, pump in self._pumps.items() if pump.stopped}
        for task in self._pumps.keys() - closing:  # which may go on for long, and needn't remember us
            task.remove_done_callback(self._ended)
        if closing:
            _, late = await asyncio.wait(closing, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
