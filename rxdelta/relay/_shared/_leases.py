"""Which publishers are dead."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from rxdelta.relay._store import Page

__all__ = ["SIGNS", "Leases"]

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
    """What this process knows of the signs of publishers, by its own clock, which doesn't jump.

    A sign counts for a lease. It is over when the store's clock says so, or when the sign has been the newest for that long
    here. Then the next sign is missed, and gets another quarter of a lease: after an outage of the store the publisher may
    be alive, and who looks may only be the first to come back; or the store's clock has jumped. The death names the sign that was
    seen, and a store compares it: so a publisher that gives one meanwhile lives.
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
