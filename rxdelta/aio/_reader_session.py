"""The reader's side of a session; see `rxdelta.runtime.session`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from rxdelta.runtime import Backpressure, Idleness

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.runtime import Journal, Pump

__all__ = ["CLOSE_SECONDS", "ReaderSession"]

CLOSE_SECONDS = 5.0
"""How long leaving waits for a source to close before it cancels the closing."""


class ReaderSession:
    """One reader's subscription: its pumps, and whether they should wait."""

    def __init__(
        self,
        fail: Callable[[Exception], bool],
        has_room: Callable[[], bool],
        is_idle: Callable[[], bool],
        check_lag: Callable[[], None],
        loop: asyncio.AbstractEventLoop,
        journal: Journal | None = None,
    ) -> None:
        self._fail = fail
        self._has_room = has_room
        self._check_lag = check_lag
        self._pumps: dict[asyncio.Task[None], Pump] = {}
        self._loop = loop
        self._left = False
        self.journal = journal
        self.backpressure = Backpressure(self._is_ready)
        self.idleness = Idleness(lambda: self._left or is_idle())

    def register(self, pump: Pump) -> None:
        if pump.task.get_loop() is not self._loop:
            return
        self._pumps[pump.task] = pump
        pump.task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._pumps.pop(task, None)

    def _is_ready(self) -> bool:
        return self._left or self._has_room()

    def fail(self, error: Exception) -> bool:
        """End the reading with an exception of the pipeline. Return `False` if it has already ended."""
        return not self._left and self._fail(error)

    def check_lag(self) -> None:
        """End this reader if it is too far behind a source that goes on for others."""
        self._check_lag()

    async def leave(self) -> None:
        """Wait, for a bounded time, until every source that stopped with this reader has closed.

        A source that other readers share goes on, and isn't waited for.
        """
        self._left = True
        self.backpressure.update()
        self.idleness.notify()  # an operator in front of Rx's own `share` goes on for other subscribers
        if not all(pump.stopped for pump in self._pumps.values()):
            await asyncio.sleep(0)  # Rx's `subscribe_on` disposes in the loop's next turn
        closing = {task for task, pump in self._pumps.items() if pump.stopped}
        for task in self._pumps.keys() - closing:  # these may run for long, and must not keep us alive
            task.remove_done_callback(self._ended)
        if closing:
            _, late = await asyncio.wait(closing, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
