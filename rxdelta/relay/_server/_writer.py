"""The publisher's side of a log on the server."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core import RxDeltaError, StreamInterrupted, quote
from rxdelta.relay._bounds import bytes_of
from rxdelta.relay._server._connections import Kind
from rxdelta.relay._server._entries import FORMAT, written_form
from rxdelta.relay._server._scripts import APPEND, CHECK
from rxdelta.relay._store import End
from rxdelta.runtime import call_on

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rxdelta.core import Event, LimitExceededError
    from rxdelta.relay._server._connections import Word
    from rxdelta.relay._server._server import Run, Server
    from rxdelta.relay._store import Publisher

    _Ending: TypeAlias = tuple[End, int, Callable[[], None]]  # how many of the events belong to it

__all__ = ["Writer"]

_log = logging.getLogger("rxdelta")

_AT_ONCE = 1000
_MOST_BYTES = 1 << 20
"""How many events one entry has at most, and how long these are, unless it is a single one. Others follow in the next."""
_REFUSALS = {
    -1: "the relay's server has this log no more",
    -2: "the publisher gave no sign for its lease, and was taken for dead",
    -3: "the relay's server has lost events of this log that it had acknowledged",
}
_NAME_TAKEN, _DEAD = 2, -2
_SIGN = -1
"""The number behind which a sign of life writes nothing, whatever the log has meanwhile."""
_STOPPED = "stopped"


class Writer:
    """Writes what is appended: one call is under way at a time, and takes the events that are pending when it is sent.

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
        self._end: _Ending | None = None
        self._is_due = False  # a call of `_write`
        self._number = 0  # of the last event that the server has
        self._at_once = _AT_ONCE  # events of the next entry: fewer after long ones
        self._writes = False  # a call is under way
        self._sent: tuple[Sequence[Event], _Ending | None] = (), None  # with it
        self._renews = False
        self._signs = False  # a sign of life of its own is under way
        self._is_over = False

    def take(self, size: int) -> LimitExceededError | None:
        total = self._server.total
        return None if total is None else total.take(size)

    def append(self, events: Sequence[Event]) -> None:
        with self._lock:
            if self._end is not None:
                return
            self._pending.extend(events)
            due, self._is_due = self._is_due, True
        if not due:
            call_on(self._loop, self._write)

    def end(self, events: Sequence[Event], end: End, then: Callable[[], None]) -> None:
        with self._lock:
            self._pending.extend(events)
            self._end = end, len(events), then
            due, self._is_due = self._is_due, True
        if not due:
            call_on(self._loop, self._write)

    def renew(self) -> None:
        """Give a sign of life, and renew what expires.

        What is under way may need longer than a lease, so the sign doesn't wait for it.
        """
        if not self._writes:
            self._renews = True
            self._write()
        elif not self._signs and not self._is_over:
            self._signs = True
            sign = self._about(_SIGN, 0, b"", b"", 0, renews=True)
            # A server that is nearly full refuses a sign that comes with an append as it refuses the append.
            call = self._server.call(self.run.tag, APPEND, self.run.keys, sign, Kind.SIGN)
            call.add_done_callback(self._signed)

    def _write(self) -> None:
        if self._writes or self._is_over:
            return
        with self._lock:
            self._is_due = False
            if not (self._pending or self._end or self._renews):
                return
        self._writes = True
        call = self._server.call(self.run.tag, APPEND, self.run.keys, self._arguments)
        call.add_done_callback(self._written)

    def _arguments(self) -> Sequence[Word]:
        """The next entry, made when its call is sent."""
        with self._lock:
            events = self._pending[: self._at_once]
            end = self._end if len(self._pending) == len(events) else None
        try:
            written, how = self._form(events, end)
            while len(written) > _MOST_BYTES and len(events) > 1:
                self._at_once = max(1, len(events) * _MOST_BYTES // len(written))
                events, end = events[: self._at_once], None
                written, how = self._form(events, end)
        except StreamInterrupted as error:
            self._give_up(error)
            raise
        except Exception as error:
            why = StreamInterrupted("an event can't be written into the relay's log")
            why.__cause__ = error
            self._give_up(why)
            raise
        if len(written) < _MOST_BYTES // 2:
            self._at_once = min(2 * self._at_once, _AT_ONCE)
        with self._lock:
            del self._pending[: len(events)]
        self._sent = events, end
        size = 0 if self._server.total is None else sum(map(bytes_of, events))
        renews, self._renews = self._renews, False
        return self._about(self._number, len(events), written, how, size, renews=renews)

    def _about(
        self, before: int, count: int, written: bytes, how: bytes, size: int, *, renews: bool
    ) -> Sequence[Word]:
        run, server = self.run, self._server
        return (
            FORMAT, run.epoch, server.lease_for, server.live_for, server.inbox(run.tag), run.id,
            before, count, written, how, int(renews), server.kept_for, size,
        )  # fmt: skip

    def _form(self, events: Sequence[Event], end: _Ending | None) -> tuple[bytes, bytes]:
        values, place = self._server.values, self.run.place
        return written_form(values, place, self._number, events, end[0] if end else None)

    def _written(self, call: asyncio.Future[int | list[bytes]]) -> None:
        self._writes = False
        error = None if call.cancelled() else call.exception()
        if self._is_over or call.cancelled():
            return
        if error is not None:
            failed = error if isinstance(error, RxDeltaError) else StreamInterrupted.by(error)
            self.lose(failed)
            return
        code = call.result()
        if self._is_refused(code):
            return
        events, end = self._sent
        self._number += len(events)
        news = events[: len(events) - end[1]] if end else events
        if news:
            self.publisher.written(news)
        if end is not None:
            self._finish()
            end[2]()
            return
        self._heed(code)
        self._write()

    def _signed(self, call: asyncio.Future[int | list[bytes]]) -> None:
        self._signs = False
        if call.cancelled() or call.exception() is not None or self._is_over:
            return  # what is under way will say why
        code = call.result()
        if not self._is_refused(code):
            self._heed(code)

    def _is_refused(self, code: int | list[bytes]) -> bool:
        if not isinstance(code, int) or code not in _REFUSALS:
            return False
        why = StreamInterrupted(_REFUSALS[code])
        self._server.connections.traffic.tally.fences += code == _DEAD
        _log.warning("the publisher of the stream %s is stopped: %s", quote(self.run.name.id), why)
        if code == -3:
            self._give_up(why)
        else:
            self.lose(why)
        return True

    def _heed(self, code: int | list[bytes]) -> None:
        """Stop if a sign's answer says so."""
        if isinstance(code, list):
            self.tell(code[0])
        elif code == _NAME_TAKEN:
            self.publisher.tell("deleted")

    def tell(self, reason: bytes | None) -> None:
        """Somebody elsewhere wants the publisher to stop."""
        said: Any = _STOPPED
        with suppress(Exception):  # a reason that can't be read is none, and the stop counts all the same
            [said] = self._server.values.load(reason or b"", self.run.place(0))
        self.publisher.tell(said if isinstance(said, str) or said is None else _STOPPED)

    def _give_up(self, error: StreamInterrupted) -> None:
        """End the log at once, for its readers too. If the end can't be encrypted either, they find the lease over."""
        run = self.run
        with suppress(StreamInterrupted):
            check = run.check_arguments(self._number, why=error)
            call = self._server.call(run.tag, CHECK, run.keys, check)
            call.add_done_callback(lambda call: call.cancelled() or call.exception())
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
