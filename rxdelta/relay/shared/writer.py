"""The publisher's side of a log that is shared."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from rxdelta.core import Event, LimitExceededError, RxDeltaError, StreamInterrupted, quote
from rxdelta.relay.logs import End, Publisher, bytes_of
from rxdelta.relay.store import Answer, LogKey, Record, Topic
from rxdelta.runtime import call_on

if TYPE_CHECKING:
    from rxdelta.relay.shared.place import Place

    _Ending: TypeAlias = tuple[End, int, Callable[[], None]]  # how many of the events belong to it


_log = logging.getLogger("rxdelta")

_AT_ONCE = 1000
_MOST_BYTES = 1 << 20
"""How many events one record has at most, and how long these are, unless it is a single one. Others follow in the next."""
_REFUSALS = {
    "gone": "the relay's store has this log no more",
    "ended": "the publisher gave no sign for its lease, and was taken for dead",
    "lost": "the relay's store has lost events of this log that it had acknowledged",
}
_STOPPED = "stopped"


class Writer:
    """Writes the appended events: one record is under way at a time, and the next one takes all that have come
    meanwhile.

    Args:
        over: Called when nothing more will be written.

    Attributes:
        ended: Done when nothing more will be written.
    """

    def __init__(
        self, place: Place, key: LogKey, publisher: Publisher, over: Callable[[Writer], None]
    ) -> None:
        self.key = key
        self.publisher = publisher
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._place = place
        self._form = place.form(key)
        self._over = over
        self._lock = Lock()
        self._pending: list[Event] = []
        self._end: _Ending | None = None
        self._is_due = False  # a call of `_write_soon`
        self._number = 0  # of the last event that the store has
        self._at_once = _AT_ONCE  # events of the next record: fewer after long ones
        self._has_begun = False
        self._writes = False  # a call is under way, for a record or a sign
        self._renews = False  # a sign is due
        self._signs = False  # a sign is under way beside a record
        self._hears = False  # a stop may have come since the last sign
        self._unfollow = place.store.follow(Topic("stopped", *key), self._hear)

    async def listen(self) -> None:
        """Hear a stop that was faster than the answer to `Store.begin`, before the publisher subscribes its source."""
        if self._hears:
            await self._sign()

    def begin(self) -> None:
        """The store has the log: what waits can be written."""
        self._has_begun = True
        self._write_soon()

    def leave(self) -> None:
        """The log hasn't begun, and won't."""
        self._unfollow()

    def take(self, size: int) -> LimitExceededError | None:
        total = self._place.total
        return None if total is None else total.take(size)

    def append(self, events: Sequence[Event]) -> None:
        with self._lock:
            if self._end is not None:
                return
            self._pending.extend(events)
            due, self._is_due = self._is_due, True
        if not due:
            call_on(self._loop, self._write_soon)

    def end(self, events: Sequence[Event], end: End, then: Callable[[], None]) -> None:
        with self._lock:
            self._pending.extend(events)
            self._end = end, len(events), then
            due, self._is_due = self._is_due, True
        if not due:
            call_on(self._loop, self._write_soon)

    @property
    def _has_work(self) -> bool:
        return bool(self._pending or self._end or self._renews) and not self.ended.done()

    def _write_soon(self) -> None:
        with self._lock:
            self._is_due = False
        if self._has_begun and not self._writes and self._has_work:
            self._writes = True
            self._place.spawn(self._write())

    async def _write(self) -> None:
        try:
            while self._has_work:
                await self._write_next()
        except RxDeltaError as error:
            self.lose(error)
        finally:
            self._writes = False

    async def _write_next(self) -> None:
        """Give the sign that is due, or write what waits."""
        ask, append = self._place.ask, self._place.store.append
        if self._renews:
            # Cleared before the call: news during it asks for another sign.
            self._renews = self._hears = False
            self._heed(await ask(append, self.key, self._number, None))
            return
        record, events, end = self._next()
        answer = await ask(append, self.key, self._number, record)
        if self._is_refused(answer):
            return
        self._number += len(events)
        # The events that belong to the end are emitted with it.
        news = events[: len(events) - end[1]] if end else events
        if news:
            self.publisher.written(news)
        if end is not None:
            self._finish()
            end[2]()
        else:
            self._heed(answer)

    def _next(self) -> tuple[Record, Sequence[Event], _Ending | None]:
        """The next record to write, its events, and the end if it has one."""
        with self._lock:
            events = self._pending[: self._at_once]
            end = self._end if len(self._pending) == len(events) else None
        size = 0 if self._place.total is None else sum(map(bytes_of, events))
        try:
            record = self._form.written(self._number, events, end and end[0], size=size)
            while len(record.events) > _MOST_BYTES and len(events) > 1:
                self._at_once = max(1, len(events) * _MOST_BYTES // len(record.events))
                events, end = events[: self._at_once], None
                size = 0 if self._place.total is None else sum(map(bytes_of, events))
                record = self._form.written(self._number, events, None, size=size)
        except StreamInterrupted as error:
            self._give_up(error)
            raise
        except Exception as error:
            why = StreamInterrupted("an event can't be written into the relay's log")
            why.__cause__ = error
            self._give_up(why)
            raise why from error
        if len(record.events) < _MOST_BYTES // 2:
            self._at_once = min(2 * self._at_once, _AT_ONCE)
        with self._lock:
            del self._pending[: len(events)]
        return record, events, end

    def renew(self) -> None:
        """Give a sign of life. A record that is under way may need longer than a lease, so the sign doesn't wait for it."""
        if not self._writes:
            self._renews = True
            self._write_soon()
        elif not self._signs:
            self._signs = True
            self._place.spawn(self._sign())

    async def _sign(self) -> None:
        # Cleared before the call: news during it asks for another sign.
        self._hears = False
        try:
            self._heed(await self._place.ask(self._place.store.append, self.key, None, None))
        except RxDeltaError:
            pass  # the record that is under way will say why
        finally:
            self._signs = False
            if self._hears:
                self.renew()

    def _hear(self) -> None:
        """A stop may have come: the answer to a sign says so."""
        self._hears = True
        self.renew()

    def _is_refused(self, answer: Answer) -> bool:
        """Whether the publisher is at its end, or was already."""
        if answer.state == "written" or self.ended.done():
            return self.ended.done()
        why = StreamInterrupted(_REFUSALS[answer.state])
        self._place.traffic.tally.fences += answer.state == "ended"
        _log.warning("the publisher of the stream %s is stopped: %s", quote(self.key.id), why)
        # A log with a gap ends for its readers, too.
        if answer.state == "lost":
            self._give_up(why)
        self.lose(why)
        return True

    def _heed(self, answer: Answer) -> None:
        """Stop if the answer says so."""
        if self._is_refused(answer):
            return
        if answer.stop is not None:
            self.publisher.tell(self._reason(answer.stop))
        elif not answer.is_named:
            self.publisher.tell("deleted")

    def _reason(self, data: bytes) -> str | None:
        try:
            said = self._form.read_reason(data)
        except Exception:  # a reason that can't be read is none, and the stop counts all the same
            return _STOPPED
        return said if isinstance(said, str) or said is None else _STOPPED

    def _give_up(self, error: StreamInterrupted) -> None:
        """End the log at once, for its readers too. If the end can't be encrypted either, they find the lease over."""

        async def bury() -> None:
            try:
                record = self._form.death(self._number + 1, error)
                await self._place.ask(self._place.store.bury, self.key, None, record)
            except RxDeltaError:
                pass

        self._place.spawn(bury())

    def lose(self, error: RxDeltaError) -> None:
        """The log can't be written any more."""
        if not self.ended.done():
            self._finish()
            self.publisher.failed(error)

    def _finish(self) -> None:
        self._unfollow()
        self._pending.clear()
        if not self.ended.done():
            self.ended.set_result(None)
        self._over(self)
