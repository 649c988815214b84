"""The publisher's side of a log on the server."""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import TYPE_CHECKING

from rxdelta.core import RxDeltaError, StreamInterrupted
from rxdelta.relay._server._entries import FORMAT, written_form
from rxdelta.relay._server._scripts import APPEND, CHECK
from rxdelta.relay._store import End
from rxdelta.runtime import call_on

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rxdelta.core import Event
    from rxdelta.relay._server._connections import Word
    from rxdelta.relay._server._server import Run, Server
    from rxdelta.relay._store import Publisher

__all__ = ["Writer"]

_AT_ONCE = 1000
"""Events of one entry. The others follow in the next."""
_REFUSALS = {
    -1: "the relay's server has this log no more",
    -2: "the publisher gave no sign for its lease, and was taken for dead",
    -3: "the relay's server has lost events of this log that it had acknowledged",
}
_NAME_TAKEN = 2


class Writer:
    """Writes what is appended: one entry is under way at a time, and what is appended meanwhile is the next.

    Args:
        over: Called when nothing more will be written.
    """

    def __init__(
        self, server: Server, run: Run, publisher: Publisher, over: Callable[[Writer], None]
    ) -> None:
        self.run = run
        self.publisher = publisher
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._server = server
        self._over = over
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._pending: list[Event] = []
        self._end: tuple[End, Callable[[], None]] | None = None
        self._is_due = False  # a call of `_write`
        self._number = 0  # of the last event that the server has
        self._writes = False
        self._renews = False
        self._is_over = False

    def append(self, events: Sequence[Event]) -> None:
        with self._lock:
            self._pending.extend(events)
            due, self._is_due = self._is_due, True
        if not due:
            call_on(self._loop, self._write)

    def end(self, events: Sequence[Event], end: End, then: Callable[[], None]) -> None:
        with self._lock:
            self._pending.extend(events)
            self._end = end, then
            due, self._is_due = self._is_due, True
        if not due:
            call_on(self._loop, self._write)

    def renew(self) -> None:
        """Give a sign of life, and renew what expires."""
        self._renews = True
        self._write()

    def _write(self) -> None:
        if self._writes or self._is_over:
            return
        with self._lock:
            self._is_due = False
            events, self._pending = self._pending[:_AT_ONCE], self._pending[_AT_ONCE:]
            end = self._end if not self._pending else None
        if not (events or end or self._renews):
            return
        renews, self._renews = self._renews, False
        run, server = self.run, self._server
        try:
            written, how = written_form(
                server.values, run.place, self._number, events, end[0] if end else None
            )
        except Exception as error:
            self._give_up(StreamInterrupted("an event can't be written into the relay's log"), error)
            return
        arguments: list[Word] = [
            FORMAT, run.epoch, server.lease_for, server.live_for, server.inbox(run.tag), run.id,
            self._number, len(events), written, how, int(renews), server.kept_for,
        ]  # fmt: skip
        self._writes = True
        call = server.call(run.tag, APPEND, run.keys, arguments)
        call.add_done_callback(lambda call: self._written(call, events, end))

    def _written(
        self,
        call: asyncio.Future[int],
        events: Sequence[Event],
        end: tuple[End, Callable[[], None]] | None,
    ) -> None:
        self._writes = False
        if self._is_over or call.cancelled():
            return
        error = call.exception()
        if error is not None:
            failed = error if isinstance(error, RxDeltaError) else StreamInterrupted.by(error)
            self.lose(failed)
            return
        code = call.result()
        if code in _REFUSALS:
            if code == -3:
                self._give_up(StreamInterrupted(_REFUSALS[code]))
            else:
                self.lose(StreamInterrupted(_REFUSALS[code]))
            return
        self._number += len(events)
        if events:
            self.publisher.written(events)
        if end is not None:
            self._finish()
            end[1]()
            return
        if code == _NAME_TAKEN:
            self.publisher.tell("deleted")
        self._write()

    def _give_up(self, error: StreamInterrupted, cause: Exception | None = None) -> None:
        """End the log at once, for its readers too."""
        error.__cause__ = cause
        run = self.run
        self._server.call(
            run.tag, CHECK, run.keys, run.check_arguments(self._number, must=True)
        ).add_done_callback(lambda call: call.cancelled() or call.exception())
        self.lose(error)

    def lose(self, error: RxDeltaError) -> None:
        """The log can't be written any more."""
        self._finish()
        self.publisher.failed(error)

    def _finish(self) -> None:
        self._is_over = True
        self._pending.clear()
        if not self.ended.done():
            self.ended.set_result(None)
        self._over(self)
