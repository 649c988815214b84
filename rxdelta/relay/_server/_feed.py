"""A log of the server, mirrored once for all its readers in this process."""

from __future__ import annotations

import asyncio
from math import inf
from typing import TYPE_CHECKING, Any

from rxdelta.core import RxDeltaError, StreamInterrupted
from rxdelta.relay._events import Events
from rxdelta.relay._server._entries import BEGIN, number_of, read_entry
from rxdelta.relay._server._hub import Follower
from rxdelta.relay._server._scripts import READ
from rxdelta.relay._store import End
from rxdelta.runtime import call_on

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from rxdelta.relay._server._server import Run, Server
    from rxdelta.relay._store import News

__all__ = ["EARLY", "Feed", "FeedLog", "Pace"]

_PAGE = (500, READ.most)
"""Entries and bytes of a log that are read at once."""
_AT_ONCE, _AN_ENTRY, _BYTES_AN_EVENT = 1000, 4, 512
"""How many events are decoded at once, and for how many an entry and its bytes count besides."""
EARLY = 0.005  # seconds: a lease is over when it is over for the server


class Pace:
    """How far the feeds of a process, one after another, decode what they read before others on the loop have their turn."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self._left = _AT_ONCE

    async def rest(self) -> None:
        """Leave the others their turn, if it is time. Called before an entry, with the lock."""
        if self._left <= 0:
            self._left = _AT_ONCE
            await asyncio.sleep(0)

    def spend(self, events: int, size: int) -> None:
        """Say what an entry was."""
        self._left -= events + _AN_ENTRY + size // _BYTES_AN_EVENT


class Feed:
    """The events of one log, as far as they are here. It lives in the loop's thread; its events are read on any.

    Args:
        server: The server.
        run: The publication.
        forget: Called when no reader is left, and when no more can be known of the log. It may be called twice.
    """

    def __init__(self, server: Server, run: Run, forget: Callable[[Feed], None]) -> None:
        self._server = server
        self.run = run
        self._forget = forget
        self._readers = 0
        self._cursor = b"0-0"
        self._heard = -inf  # the loop's time at which the publisher's last sign came
        self._timer: asyncio.TimerHandle | None = None
        self._checking: asyncio.Task[None] | None = None
        self._follows = False
        self._is_left = False
        self.events = Events()

    def enter(self) -> FeedLog:
        self._readers += 1
        return FeedLog(self)

    def leave(self) -> None:
        self._readers -= 1
        if not self._readers:
            self._is_left = True
            self._rest()
            self._forget(self)

    async def catch_up(self) -> None:
        """Read what the log has now, and follow it from there. An end that is to be written comes later."""
        if self.events.has_ended:
            return
        try:
            if await self._check(self.run.check) and not (
                self.events.has_ended or self._is_left or self._follows
            ):
                self._follows = True
                follower = Follower(self._cursor, self._hear, self.fail)
                self._server.hub.follow(self.run.tag, self.run.log, follower)
        except RxDeltaError as error:
            self.fail(error)

    async def _check(self, ask: Callable[[int], Awaitable[Any]]) -> bool:
        """Ask the server whether the log is live, and read what is there. Returns whether more may come."""
        check = ask(number_of(self._cursor))
        if self._cursor == b"0-0":  # there is something to read, in the same round trip
            (state, last, left), page = await asyncio.gather(check, self._page())
        else:
            (state, last, left), page = await check, None
        if state == -1:
            self.fail(StreamInterrupted("the relay's server has this log no more"))
            return False
        newest = _place(last)
        while _place(self._cursor) < newest:
            page = page or await self._page()
            if not page:
                break
            await self._take_page(page)
            if self.events.has_ended:
                return False
            page = None
        if state == 2 and not self.events.has_ended:
            self.fail(StreamInterrupted("the relay's server has lost events of this log that it had"))
            return False
        if not (self._is_left or self.events.has_ended):
            self._look_again(left / 1000 + EARLY)
        return True

    def _page(self) -> asyncio.Future[list[Any]]:
        return self._server.call(self.run.tag, READ, [self.run.log], [b"(" + self._cursor, *_PAGE])

    async def _take_page(self, page: Sequence[Any]) -> None:
        pace = self._server.pace
        async with pace.lock:
            for entry_id, fields in page:
                await pace.rest()
                before = self.events.newest
                self._take_all([(entry_id, _fields(fields))])
                if self.events.has_ended:
                    return
                pace.spend(self.events.newest - before, sum(map(len, fields)))

    def _hear(self, entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> None:
        """Take what was written just now, which is also a sign of the publisher."""
        self._heard = asyncio.get_running_loop().time()
        self._take_all(entries)

    def _take_all(self, entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]]) -> None:
        for entry_id, fields in entries:
            if _place(entry_id) <= _place(self._cursor) or self.events.has_ended:
                continue
            try:
                self._take(entry_id, fields)
            except StreamInterrupted as error:
                self.fail(error)
            self._cursor = entry_id
        if self.events.has_ended:
            self._rest()

    def _take(self, entry_id: bytes, fields: Mapping[bytes, bytes]) -> None:
        if entry_id != BEGIN and self._cursor == b"0-0":
            raise StreamInterrupted(f"events 1 to {number_of(entry_id)} or less are no longer in the log")
        entry = read_entry(self._server.values, self.run.place, entry_id, fields)
        newest = self.events.newest
        if entry_id == BEGIN:
            return
        if entry.first > newest + 1:
            raise StreamInterrupted(f"events {newest + 1} to {entry.first - 1} are not in the log")
        self.events.add(entry.events[newest + 1 - entry.first :] if entry.events else (), entry.end)

    def fail(self, error: RxDeltaError) -> None:
        """End the log for the readers here: no more can be known of it. Later readers ask anew."""
        self.events.add((), End(error, is_cut=True))
        self._rest()
        self._forget(self)

    def _look_again(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._miss, loop.time() + seconds)

    def _miss(self, due: float) -> None:
        """Ask again if the publisher hasn't given a sign here for a lease."""
        lease = self._server.lease
        if self._heard + lease > due:
            self._look_again(self._heard + lease - due)
        elif self._checking is None or self._checking.done():
            self._checking = asyncio.get_running_loop().create_task(self._check_again())

    async def _check_again(self) -> None:
        try:
            await self._check(self.run.decide)
        except RxDeltaError as error:
            self.fail(error)

    def _rest(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._checking is not None and self._checking is not asyncio.current_task():
            self._checking.cancel()
        if self._follows:
            self._follows = False
            self._server.hub.leave(self.run.tag, self.run.log)


class FeedLog:
    """The log for one reader."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._loop = asyncio.get_running_loop()

    @property
    def epoch(self) -> str:
        return self._feed.run.epoch

    def read(self, after: int, take: Callable[[News], None]) -> None:
        self._feed.events.read(after, take)

    def forget(self, take: Callable[[News], None]) -> None:
        self._feed.events.forget(take)

    def leave(self) -> None:
        call_on(self._loop, self._feed.leave)


def _place(entry_id: bytes) -> tuple[int, int]:
    number, _, more = entry_id.partition(b"-")
    return int(number), int(more or 0)


def _fields(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2]))
