"""What an operator has to know of the connections to a server: in numbers and in the log."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rxdelta.relay._metrics import Tally
    from rxdelta.relay._valkey._urls import Address

__all__ = ["Traffic"]

_log = logging.getLogger("rxdelta")


class Traffic:
    """Notes in a relay's tally what goes over the connections of a store, and in the log when its servers can't be used.

    An outage is one, and one line of the log, however many connections and calls notice it. It begins with the first
    exchange that fails, and ends with an exchange that began behind the last failure and succeeded.

    Args:
        shown: The store's URL, for messages.
        tally: Where it is counted.
    """

    def __init__(self, shown: str, tally: Tally) -> None:
        self._shown = shown
        self.tally = tally
        # The servers that are away, and those that can't write (`True`): since when, the last failure, and its reason.
        self._away: dict[tuple[Address | None, bool], tuple[float, float, BaseException]] = {}

    def failed(self, address: Address | None, why: BaseException, *, only_writes: bool = False) -> None:
        """An exchange with this server has failed, or what writes was refused for now."""
        now = time.monotonic()
        key = address, only_writes
        first = self._away[key][0] if key in self._away else now
        if (address, True) not in self._away and (address, False) not in self._away:
            self.tally.outages += 1
            _log.warning("the relay's store %s can't be used: %s", self._shown, why)
        self._away[key] = first, now, why

    def worked(self, address: Address | None, begin: float, *, wrote: bool = False) -> None:
        """An exchange that began at this time, by `time.monotonic`, has succeeded."""
        if not self._away:
            return
        firsts = [
            self._away.pop(key)[0]
            for key in ((address, False), (address, True))
            if key in self._away and begin > self._away[key][1] and wrote >= key[1]
        ]
        if firsts and (address, True) not in self._away and (address, False) not in self._away:
            self.tally.reconnects += 1
            seconds = time.monotonic() - min(firsts)
            _log.warning("the relay's store %s is back after %.1f seconds", self._shown, seconds)

    def away(self) -> float:
        """For how many seconds a server hasn't been usable; 0 if all are."""
        return max((time.monotonic() - first for first, *_ in self._away.copy().values()), default=0.0)

    def why(self) -> str:
        """Why not, with a colon in front; empty if all are usable."""
        return next((f": {why}" for *_, why in self._away.values()), "")

    def forget(self, address: Address | None) -> None:
        """This is no server of the store any more."""
        for key in ((address, False), (address, True)):
            self._away.pop(key, None)
