"""What all parts of a shared relay have in common: the store, the bytes of all streams, and which publishers are dead."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from math import inf
from threading import Lock
from typing import Any

import attrs

from rxdelta.core import LimitExceededError, StreamInterrupted, quote
from rxdelta.relay.logs import LEAST, Name, store_is_full
from rxdelta.relay.scope import is_epoch
from rxdelta.relay.shared.asking import Asking, Patient, Traffic
from rxdelta.relay.shared.records import Form, Values
from rxdelta.relay.store import LogKey, Page, Store, Terms


class Total:
    """What the store said last, and what this process has taken since it asked.

    Events that wait to be written at that moment are missing until it asks again.

    Args:
        most: The most bytes.
        every: Seconds for which an answer is good.
        ask: Asks the store.
    """

    def __init__(self, most: int, every: float, ask: Callable[[], Awaitable[int]]) -> None:
        self._most = most
        self._every = every
        self._ask = ask
        self._lock = Lock()
        self._loop = asyncio.get_running_loop()
        self._known = 0  # the store's sum
        self._taken = 0  # by this process, since it asked
        self._asked = -inf
        self._asking: asyncio.Task[None] | None = None

    @property
    def bytes(self) -> int:
        return self._known + self._taken

    def take(self, size: int) -> LimitExceededError | None:
        """Count so many bytes that are to be written, or return the error if the store is full. Any thread may call."""
        with self._lock:
            if self.bytes + size > self._most:
                return store_is_full(self._most)
            self._taken += size
        return None

    def ask(self) -> asyncio.Task[None]:
        """Ask the store for its sum, or for the answer to a question that is under way."""
        if self._asking is None or self._asking.done():
            self._asking = self._loop.create_task(self._learn())
            self._asking.add_done_callback(lambda asked: asked.cancelled() or asked.exception())
        return self._asking

    async def _learn(self) -> None:
        # The answer may lack what is taken during the question, so only earlier bytes are settled by it.
        before = self._taken
        known = await self._ask()
        with self._lock:
            self._known = known
            self._taken -= before
        self._asked = self._loop.time()

    async def refusal(self) -> LimitExceededError | None:
        """The error for a stream that would begin now, if the store is too full for its first event.

        Raises:
            StreamInterrupted: The store can't tell.
        """
        if self._loop.time() - self._asked > self._every:
            # The question is shared: a caller that leaves must not cancel it for the others.
            await asyncio.shield(self.ask())
        return store_is_full(self._most) if self.bytes + LEAST > self._most else None

    def close(self) -> None:
        if self._asking is not None:
            self._asking.cancel()


SIGNS = 5
"""How many signs a publisher gives in a lease: one of these always falls into the quarter that is waited for it."""
_FEW = 1000  # sightings that are kept without being looked through


@attrs.define
class _Seen:
    """A sign of a publisher, as this process saw it.

    Attributes:
        first: When it saw it first.
        missed: Since when it misses the next one.
        until: When this can be forgotten.
    """

    sign: int
    first: float
    missed: float | None
    until: float


class Leases:
    """The signs of publishers as this process has seen them, by its own clock, which doesn't jump.

    A sign counts for a lease. It is over when the store's clock says so, or when the sign has been the newest for that long
    here. Then the next sign is missed, and gets another quarter of a lease: after an outage of the store the publisher may
    be alive, and the reader that looks may only be the first to come back; or the store's clock has jumped. The death
    names the sign that was seen, and a store compares it: so a publisher that gives one meanwhile lives.
    """

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}  # by epoch
        self._many = _FEW

    def left(self, page: Page, asked: float) -> float:
        """Return for how many seconds a publisher whose log hasn't ended is to be waited for; 0 if it is to be buried now.

        Args:
            page: What the store said of the log.
            asked: When it was asked, by `time.monotonic`.
        """
        now, lease = time.monotonic(), page.lease
        seen = self._seen.get(page.epoch)
        if seen is None or seen.sign != page.sign:
            self._forget_some(now)
            seen = self._seen[page.epoch] = _Seen(page.sign, now, None, 0.0)
        seen.until = now + 3 * lease
        left = seen.first + lease - now
        if page.age >= 0:  # else the clock has gone back
            left = min(left, lease - page.age)
        if left > 0:
            seen.missed = None
            return left
        was_away = now - asked > lease / 4  # the publisher couldn't reach the store either
        if seen.missed is None or was_away or now > seen.missed + 2 * lease:
            seen.missed = now
        return max(seen.missed + lease / 4 - now, 0.0)

    def _forget_some(self, now: float) -> None:
        if len(self._seen) >= self._many:
            self._seen = {epoch: seen for epoch, seen in self._seen.items() if seen.until > now}
            self._many = max(_FEW, 2 * len(self._seen))


_MOST_BYTES = 1 << 19
"""How much of a log is asked for at once."""
_ALL = 1 << 62
"""A number that no record has."""
_DEAD = "the publisher gave no sign for its lease, and is taken for dead"
_log = logging.getLogger("rxdelta")


class Place:
    """What the parts share.

    Args:
        store: Open already.
        values: How what it keeps is written.

    Attributes:
        ask: Calls a method of the store, see `Asking`.
        total: Counts the bytes of all streams, if these are bounded.
    """

    def __init__(self, store: Store, terms: Terms, values: Values, max_total_bytes: int | None) -> None:
        self.store = store
        self.terms = terms
        if isinstance(store, Patient):
            self.traffic, patience = store.traffic, None
        else:
            self.traffic, patience = Traffic(repr(store), terms.tally), terms.patience
        self.ask = Asking(self.traffic, patience, terms.lease)
        self.total: Total | None = None
        if max_total_bytes is not None:
            self.total = Total(max_total_bytes, terms.lease / SIGNS, lambda: self.ask(store.total))
        self._values = values
        self._leases = Leases()
        self._loop = asyncio.get_running_loop()
        self.tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task

    async def close(self) -> None:
        if self.total is not None:
            self.total.close()
        await self.store.close()

    def form(self, key: LogKey) -> Form:
        return Form(self._values, key)

    async def find(self, name: Name) -> LogKey | None:
        """The log that has a name."""
        page = await self._page(*name, None, _ALL, 0)
        return None if page is None else LogKey(*name, page.epoch)

    async def live(self, name: Name) -> LogKey | None:
        """The log that has a name, if its publisher lives."""
        begin = time.monotonic()
        page = await self._page(*name, None, _ALL, 0)
        if page is None:
            return None
        key = LogKey(*name, page.epoch)
        return key if await self._left(key, page, begin, 0) else None

    async def read(self, key: LogKey, after: int = _ALL) -> tuple[Page | None, float | None]:
        """Read a log behind a number, and bury its publisher if that is dead.

        Returns:
            What it has, `None` if it isn't there; and for how many seconds its publisher is to be waited for, `None` if it
            has ended. 0: it has just been buried, so read again.
        """
        begin = time.monotonic()
        page = await self._page(*key, after, _MOST_BYTES)
        return page, None if page is None else await self._left(
            key, page, begin, after if after < _ALL else 0
        )

    async def _page(self, *which: Any) -> Page | None:
        """What the store has, checked: readers wait by its numbers, and its epoch goes into the ids of entries.

        Raises:
            StreamInterrupted: It isn't what a store may answer, since somebody else has written there.
        """
        page = await self.ask(self.store.read, *which)
        if page is None or _is_sound(page):
            return page
        raise StreamInterrupted("the relay's store has a log that can't be read here")

    async def _left(self, key: LogKey, page: Page, asked: float, known: int) -> float | None:
        if page.has_ended:
            return None
        left = self._leases.left(page, asked)
        if not left:
            await self._bury(key, page, known)
        return left

    async def _bury(self, key: LogKey, page: Page, known: int) -> None:
        number = max(page.newest, known) + 1
        record = self.form(key).death(number, StreamInterrupted(_DEAD), unused=number == 1)
        if await self.ask(self.store.bury, key, page.sign, record):
            self.traffic.tally.deaths += 1
            _log.warning(
                "the publisher of the stream %s gave no sign for its lease, and is taken for dead",
                quote(key.id),
            )


def _is_sound(page: Page | Any) -> bool:
    return (
        isinstance(page, Page)
        and is_epoch(page.epoch)
        and type(page.newest) is int
        and isinstance(page.age, (int, float))
        and isinstance(page.lease, (int, float))
        and 0 < page.lease < inf
    )
