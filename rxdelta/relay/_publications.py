"""The publications of a relay in this process: all that began here and aren't over."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

from rxdelta.core import StreamInterrupted
from rxdelta.relay._publishing import Publication
from rxdelta.runtime import call_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

    from rxdelta.core import Event
    from rxdelta.relay._bounds import Room
    from rxdelta.relay._logs import Logs, Name
    from rxdelta.runtime import Sink

__all__ = ["Publications"]

_DRAINS = "the relay is draining: it publishes no new streams in this process"
_END_SECONDS = 5.0
_AT_ONCE = 100
"""How many streams are ended before the loop's other tasks have a turn."""
_log = logging.getLogger("rxdelta")


class Publications:
    """What a relay and its scopes publish in this process. Any thread may call.

    Args:
        store: Where the logs are.
        room: What one stream's log may take.
        patience: Seconds that the store tries to write an end.
        window: Seconds in which neighbouring deltas are joined, or `None`.

    Attributes:
        drains: Whether none begins any more.
    """

    def __init__(self, store: Logs, room: Callable[[], Room], patience: float, window: float | None) -> None:
        self._store = store
        self._room = room
        self._window = window
        self._end_seconds = min(_END_SECONDS, patience)
        self._lock = Lock()
        self._live: dict[Publication, None] = {}  # in the order in which they began
        self._past = 0, 0  # events and bytes of those that are over
        self.drains = False
        self._waiting: dict[object, Callable[[], None]] = {}  # for the last one to be over

    def begin(
        self,
        sink: Sink[Event],
        source: Observable[Event],
        name: Name,
        began: Callable[[bool], None] | None = None,
    ) -> None:
        """Begin a publication, see `Publication`.

        Raises:
            StreamInterrupted: The relay is draining.
        """
        publication = Publication(sink, source, name, self._room(), began, self._forget, self._window)
        with self._lock:
            if self.drains:
                raise StreamInterrupted(_DRAINS)
            self._live[publication] = None
        publication.begin(self._store)

    def counts(self) -> dict[str, int]:
        """The fields of `RelayMetrics` that are about publications."""
        with self._lock:
            live, (events, size) = [*self._live], self._past
        return {
            "publishing": len(live),
            "backlog": sum(each.backlog for each in live),
            "events_published": events + sum(each.room.events for each in live),
            "bytes_published": size + sum(each.room.bytes for each in live),
        }

    def _forget(self, publication: Publication) -> None:
        with self._lock:
            if publication in self._live:
                del self._live[publication]
                events, size = self._past
                self._past = events + publication.room.events, size + publication.room.bytes
            calls = () if self._live else tuple(self._waiting.values())
        for call in calls:
            call()

    async def drain(self, seconds: float, reason: str) -> list[str]:
        """See `Relay.drain`."""
        with self._lock:
            self.drains = True
        if await self._are_over(seconds):
            return []
        with self._lock:
            left = [*self._live]
        told = list[Publication]()
        for number, publication in enumerate(left, 1):
            if publication.tell(reason):
                told.append(publication)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        if not await self._are_over(self._end_seconds):
            _log.warning(
                "the relay is drained, but after %g seconds it has no end in the logs of %d streams: their readers "
                "find the publisher dead when the lease is over",
                self._end_seconds,
                len(self._live),
            )
        return [publication.name.id for publication in told if not publication.was_refused]

    async def _are_over(self, seconds: float) -> bool:
        """Wait until no publication is left, for so many seconds at most, and return whether there is none."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        who = object()
        with self._lock:
            if not self._live:
                return True
            self._waiting[who] = partial(call_on, loop, partial(_settle, over))
        try:
            async with asyncio.timeout(seconds):
                await over
        except TimeoutError:
            return False
        finally:
            with self._lock:
                del self._waiting[who]
        return True


def _settle(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)
