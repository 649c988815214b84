"""One blocking read for all that this process follows on the server: heads, logs, and its own messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from rxdelta.core import RxDeltaError, StreamInterrupted
from rxdelta.relay.valkey.lines import Away
from rxdelta.relay.valkey.scripts import WAKE

if TYPE_CHECKING:
    from rxdelta.relay.valkey.connections import Connections


_LONGEST_BLOCK = 10.0
"""Seconds after which a blocking read is made again, or a lease, if that is less: a line may have gone silent unnoticed."""
_INBOX_MILLISECONDS = 3_600_000
_REST_A_KEY, _LONGEST_REST = 0.00002, 0.02
"""Seconds between two reads: the server needs about a microsecond and a half for each key of a read."""
_AT_ONCE = 250  # entries that are given out, after which others on the loop have their turn
_FEW = 10  # keys: up to so many, reads follow each other without a rest


@attrs.define
class Follower:
    """A follower of one key.

    Attributes:
        cursor: The id of the last entry that it has.
        take: Called with what comes behind it, in the loop's thread. Entries may come that it has already.
        fail: Called if the server is away for too long. Nothing comes after that.
    """

    cursor: bytes
    take: Callable[[Sequence[tuple[bytes, Mapping[bytes, bytes]]]], None]
    fail: Callable[[RxDeltaError], None]


class Hub:
    """The followers of this process.

    Args:
        connections: The server.
        inbox: The key of this process's inbox with a tag.
        patience: Seconds that the server may be away.
        lease: Seconds after which the news of a publisher is late.
    """

    def __init__(
        self, connections: Connections, inbox: Callable[[int], bytes], *, patience: float, lease: float
    ) -> None:
        self.connections = connections
        self.inbox = inbox
        self.patience = patience
        self.block = min(_LONGEST_BLOCK, lease)
        self._lanes: dict[int, _Lane] = {}

    def follow(self, tag: int, key: bytes, follower: Follower) -> None:
        """Follow a key that nothing of this process follows yet."""
        number = self.connections.lane_of(tag)
        if number not in self._lanes:
            self._lanes[number] = _Lane(self, number, tag)
        self._lanes[number].follow(key, follower)

    def leave(self, tag: int, key: bytes) -> None:
        lane = self._lanes.get(self.connections.lane_of(tag))
        if lane is not None:
            lane.followers.pop(key, None)

    async def aclose(self) -> None:
        tasks = [lane.task for lane in self._lanes.values() if lane.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class _Lane:
    """What one connection reads."""

    def __init__(self, hub: Hub, number: int, tag: int) -> None:
        self._hub = hub
        self._connections = hub.connections
        self._number = number
        self._tag = tag
        self._wake = hub.inbox(tag)
        self._wake_cursor = self._asked = b"0-0"  # the newest, and that of the read that is under way
        self._reads = False  # a set of keys that may lack the newest
        self.followers: dict[bytes, Follower] = {}
        self.task: asyncio.Task[None] | None = None

    def follow(self, key: bytes, follower: Follower) -> None:
        self.followers[key] = follower
        if self.task is None or self.task.done():
            self.task = asyncio.get_running_loop().create_task(self._run())
        elif self._reads:
            # The blocking read doesn't know the new key: an entry in the inbox, which it reads too, ends it.
            self._reads = False
            woken = self._connections.call(self._tag, WAKE, [self._wake], [_INBOX_MILLISECONDS, self._asked])
            woken.add_done_callback(_seen)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        away: float | None = None
        while self.followers:
            asked = dict(self.followers)
            cursors = {key: follower.cursor for key, follower in asked.items()}
            # In the same read: it ends when the process is woken, or has a message.
            cursors.setdefault(self._wake, self._wake_cursor)
            self._asked, self._reads = cursors[self._wake], True
            try:
                found = await self._connections.read(self._number, cursors, self._hub.block)
            except Away as error:
                away = loop.time() if away is None else away
                if loop.time() - away >= self._hub.patience:
                    self._fail(error)
                    away = None
                continue
            except RxDeltaError as error:  # somebody has put something else into the place of a key
                self._fail(error)
                continue
            finally:
                self._reads = False
            away = None
            given = 0
            for key, entries in found:
                self._give(key, entries, asked.get(key))
                given += len(entries)
                if given >= _AT_ONCE:
                    given = 0
                    await asyncio.sleep(0)
            if len(cursors) > _FEW:
                await asyncio.sleep(min(_LONGEST_REST, _REST_A_KEY * len(cursors)))
        self._connections.rest(self._number)

    def _give(
        self, key: bytes, entries: Sequence[tuple[bytes, Mapping[bytes, bytes]]], asker: Follower | None
    ) -> None:
        if not entries:
            return
        if key == self._wake:
            self._wake_cursor = entries[-1][0]
        follower = self.followers.get(key)
        if follower is not None and follower is asker:  # another one has a cursor of its own
            follower.cursor = entries[-1][0]
            try:
                follower.take(entries)
            except Exception as error:  # what isn't ours in one key must not end the reading of all others
                self.followers.pop(key, None)
                damaged = StreamInterrupted("the relay's store has an entry that can't be read here")
                damaged.__cause__ = error
                follower.fail(damaged)

    def _fail(self, cause: Exception) -> None:
        is_away = isinstance(cause, Away)
        why = "the relay's store has been away for too long" if is_away else str(cause)
        followers, self.followers = self.followers, {}
        for follower in followers.values():
            error = StreamInterrupted(why)
            error.__cause__ = cause
            follower.fail(error)


def _seen(call: asyncio.Future[object]) -> None:
    """A wake-up that fails is nothing: the read fails, too, or ends by itself."""
    if not call.cancelled():
        call.exception()
