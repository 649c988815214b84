"""Calls of a store, which are made again while it is away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from rxdelta.core import RxDeltaError, StreamInterrupted

if TYPE_CHECKING:
    from rxdelta.relay._shared._traffic import Traffic

__all__ = ["Asking"]

P = ParamSpec("P")
T = TypeVar("T")

_FIRST_PAUSE, _LONGEST_PAUSE, _PAUSES_A_LEASE = 0.01, 0.4, 20


class Asking:
    """Calls a store's methods.

    Args:
        traffic: What notes how the calls go.
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
