"""A shared log, mirrored once for all its readers in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from rxdelta.core import RxDeltaError, StreamInterrupted
from rxdelta.relay.logs import End, News
from rxdelta.relay.memory import Events
from rxdelta.relay.store import LogKey, Record, Topic
from rxdelta.runtime import call_on

if TYPE_CHECKING:
    from rxdelta.relay.shared.place import Place


_AT_ONCE, _A_RECORD, _BYTES_AN_EVENT = 1000, 4, 512
"""How many events are decoded at once, and for how many a record and its bytes count besides."""
EARLY = 0.005  # seconds: a lease is over when it is over for the store
_GONE = "the relay's store has this log no more"
_LOST = "the relay's store has lost events of this log that it had"


class Pace:
    """How far the feeds of a process, one after another, decode what they read before others on the loop have their turn."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._left = _AT_ONCE

    async def rest(self) -> None:
        """Leave the others their turn, if it is time. Called before a record, with the lock."""
        if self._left <= 0:
            self._left = _AT_ONCE
            await asyncio.sleep(0)

    def spend(self, record: Record) -> None:
        """Say what a record was."""
        self._left -= record.count + _A_RECORD + len(record.events) // _BYTES_AN_EVENT


class Feed:
    """The events of one log, as far as they are here. It lives in the loop's thread; its events are read on any.

    Args:
        place: The store.
        pace: Shared by all feeds of this process.
        forget: Called when no reader is left, and when no more can be known of the log. It may be called twice.
    """

    def __init__(self, place: Place, key: LogKey, pace: Pace, forget: Callable[[Feed], None]) -> None:
        self.key = key
        self._place = place
        self._form = place.form(key)
        self._pace = pace
        self._forget = forget
        self._readers = 0
        self.events = Events()
        self._number = 0  # of the last record that is here
        self._changed = asyncio.Event()
        self._waiting: list[asyncio.Future[None]] = []  # for the next reading
        self._unfollow = place.store.follow(Topic("written", *key), self._changed.set)
        self._following = place.spawn(self._follow())

    def enter(self) -> FeedLog:
        self._readers += 1
        return FeedLog(self)

    def leave(self) -> None:
        self._readers -= 1
        if not self._readers:
            self._following.cancel()
            self._rest()

    async def catch_up(self) -> None:
        """Read what the log has now. An end that is to be written comes later."""
        if not self._following.done():
            caught_up = asyncio.get_running_loop().create_future()
            self._waiting.append(caught_up)
            self._changed.set()
            await caught_up

    def fail(self, error: RxDeltaError) -> None:
        """End the log for the readers here: no more can be known of it. Later readers ask again."""
        self.events.add((), End(error, is_cut=True))
        self._rest()

    async def _follow(self) -> None:
        """Read the log until its end."""
        try:
            while True:
                # Cleared before the reading: news during it starts another.
                self._changed.clear()
                waiting, self._waiting = self._waiting, []
                try:
                    left = await self._read_all()
                finally:
                    _settle(waiting)
                if self.events.has_ended:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._changed.wait()
        except RxDeltaError as error:
            self.fail(error)
        finally:
            self._rest()

    async def _read_all(self) -> float:
        """Read all present records. Returns for how many seconds the publisher's sign counts, or 0."""
        while True:
            known = self._number
            page, left = await self._place.read(self.key, known)
            if page is None:
                raise StreamInterrupted(_GONE)
            await self._take(page.records)
            if self.events.has_ended:
                return 0.0
            if self._number == known and (page.newest > known or page.has_ended):
                raise StreamInterrupted(_LOST)
            if left and self._number >= page.newest:
                return left + EARLY

    async def _take(self, records: Sequence[Record]) -> None:
        async with self._pace.lock:
            for record in records:
                await self._pace.rest()
                said, newest = self._form.read(record), self.events.newest
                self._pace.spend(record)
                if said.first > newest + 1:
                    missing = f"events {newest + 1} to {said.first - 1} are not in the log"
                    raise StreamInterrupted(missing)
                self.events.add(said.events[newest + 1 - said.first :], said.end)
                self._number = record.number
                if self.events.has_ended:
                    return

    def _rest(self) -> None:
        self._unfollow()
        self._forget(self)
        waiting, self._waiting = self._waiting, []
        _settle(waiting)


def _settle(waiting: Sequence[asyncio.Future[None]]) -> None:
    for caught_up in waiting:
        if not caught_up.done():
            caught_up.set_result(None)


class FeedLog:
    """The log for one reader."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._loop = asyncio.get_running_loop()

    @property
    def epoch(self) -> str:
        return self._feed.key.epoch

    def read(self, after: int, take: Callable[[News], None]) -> None:
        self._feed.events.read(after, take)

    def forget(self, take: Callable[[News], None]) -> None:
        self._feed.events.forget(take)

    def leave(self) -> None:
        call_on(self._loop, self._feed.leave)
