"""Calls of a store, which are made again while it is away, and what an operator sees of the connections."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from rxdelta.core import RxDeltaError, StreamInterrupted
from rxdelta.relay.store import Store

if TYPE_CHECKING:
    from rxdelta.relay.metrics import Tally
    from rxdelta.relay.valkey.urls import Address

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


class Patient(Store):
    """Its methods raise a `StreamInterrupted` when its servers have been away for `Terms.patience`, and no `OSError`.

    Attributes:
        traffic: Where it notes how its calls go, from `open` on.
    """

    traffic: Traffic


P = ParamSpec("P")
T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE, _PAUSES_A_LEASE = 0.01, 0.4, 20


class Asking:
    """Calls a store's methods.

    Args:
        traffic: Notes how the calls go.
        patience: Seconds for which a call that fails with an `OSError` is made again; `None` if the store does that itself.
        lease: Seconds in which several attempts must be possible.
    """

    def __init__(self, traffic: Traffic, patience: float | None, lease: float) -> None:
        self.traffic = traffic
        self._patience = patience
        self._longest = min(_LONGEST_PAUSE, lease / _PAUSES_A_LEASE)

    async def __call__(self, method: Callable[P, Awaitable[T]], *arguments: P.args, **named: P.kwargs) -> T:
        """Call a method of the store.

        Raises:
            StreamInterrupted: The store has been away for too long, or the call has failed in another way.
        """
        until = None if self._patience is None else time.monotonic() + self._patience
        pause = _FIRST_PAUSE
        while True:
            begin = time.monotonic()
            try:
                answer = await method(*arguments, **named)
            except OSError as error:
                self.traffic.failed(None, error)
                if until is None or time.monotonic() + pause > until:
                    away = f"the relay's store has been away for too long: {error}"
                    raise StreamInterrupted(away) from error
            # No outage: another call would fail in the same way.
            except RxDeltaError:
                raise
            except Exception as error:
                raise StreamInterrupted(f"the relay's store has failed: {error}") from error
            else:
                if until is not None:
                    self.traffic.worked(None, begin, wrote=True)
                    self.traffic.tally.round_trip(time.monotonic() - begin)
                return answer
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._longest)
