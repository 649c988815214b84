"""A fast stream at a pace for a screen, without losing its last value."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rxdelta.operators.pacing.paced import PacedLatest, newest_only
from rxdelta.runtime import check_seconds, operator_maker

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

    from rxdelta.runtime import KeyOf, Sink

__all__ = ["throttle_latest"]

T = TypeVar("T")


@operator_maker
def throttle_latest(
    seconds: float, *, key: KeyOf | None = None, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[T]], Observable[T]]:
    """Emit at most one value per `seconds`: the first at once, then the newest.

    ::

        source  -ab-c------d--e|
        output  -a---c-----d---(e|)   throttle_latest(4)

    For values of which a later one contains the earlier, such as snapshots. No value waits longer than `seconds`,
    and a held value is emitted before the source's completion or error is passed on.

    Source and timer may be on different threads, and a source on several: emissions are serialised, and no
    caller waits for another caller's observer. An observer that raises in a timer ends the subscription. Its
    exception is raised by the `for_each` or `async for` that reads the pipeline; without such a reader it goes to the
    asyncio loop's exception handler or the log `rxdelta`.

    Args:
        seconds: The least time between two emissions.
        scheduler: The scheduler of the timers. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, if `seconds` isn't a positive number.

    Errors: The source's own. `InvalidValueError` when an event would be dropped, because the next event doesn't
    contain it: put `scan_deltas()` in front, or use `compact_deltas()` instead.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> rx.of(1, 2, 3).pipe(rd.throttle_latest(0.05)).subscribe(print).dispose()
        1
        3
    """
    interval = check_seconds("seconds", seconds)

    return newest_only(
        "throttle_latest", lambda sink: _Throttle(sink, interval, sink.clock(scheduler), key), key
    )


class _Throttle(PacedLatest[T]):
    """One subscription's state."""

    def __init__(self, sink: Sink[T], interval: float, time: abc.SchedulerBase, key: KeyOf | None) -> None:
        super().__init__(sink, time, key)
        self._interval = interval
        self._window_open = False  # values are held while it is open

    def _hold(self, value: T) -> bool:
        self._held.append(value)
        return not self._window_open

    def _on_timer(self) -> None:
        self._window_open = False

    def _may_go(self) -> bool:
        return not self._window_open

    def _has_gone(self) -> None:
        self._window_open = True
        self._start_timer(self._interval)
