"""What all parts of a shared relay have in common: the store, and what this process knows of its logs."""

from __future__ import annotations

import asyncio
import logging
import time
from math import inf
from typing import TYPE_CHECKING, Any

from rxdelta.core import StreamInterrupted, quote
from rxdelta.relay._ids import is_epoch
from rxdelta.relay._logs import Name
from rxdelta.relay._shared._asking import Asking
from rxdelta.relay._shared._leases import SIGNS, Leases
from rxdelta.relay._shared._patient import Patient
from rxdelta.relay._shared._records import Form
from rxdelta.relay._shared._total import Total
from rxdelta.relay._shared._traffic import Traffic
from rxdelta.relay._store import LogKey, Page

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from rxdelta.relay._shared._records import Values
    from rxdelta.relay._store import Store, Terms

__all__ = ["Place"]

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
        total: What counts the bytes of all streams, if these are bounded.
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
