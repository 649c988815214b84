"""Pace a fast stream for a slow reader, and never lose the last word."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from reactivex import Observable, abc

from rxdelta.operators.pacing.paced import PacedLatest
from rxdelta.runtime import check_seconds, clock

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["throttle_latest"]

T = TypeVar("T")


def throttle_latest(
    seconds: float, *, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[T]], Observable[T]]:
    """At most one value in `seconds`: the first at once, then the newest.

    ::

        source  -ab-c------d--e|
        output  -a---c-----d---(e|)   throttle_latest(4)

    For values of which a later one contains the earlier, such as snapshots. None waits longer than `seconds`,
    and a value still held back is emitted before the source's completion, or its error, is passed on.

    Source and timer may be on different threads, and a source on several: what goes out is serialised, and no
    caller waits for another's observer. An observer that raises in a timer ends the subscription; its
    exception is raised by the `for_each` or `async for` that reads the pipeline, and goes on to whoever runs the
    timer (the asyncio loop's exception handler, `threading.excepthook`) where none does.

    Args:
        seconds: The least time between two emissions.
        scheduler: Whose time it is. By default the subscriber's, else the running asyncio loop's, else that
            of a thread which ends with the subscription.

    Raises:
        InvalidValueError: At once, if `seconds` isn't a positive number.

    Errors: The source's own. `InvalidValueError` when an event would be dropped, because the next one doesn't
    contain it: `scan_deltas()` goes in front, or `compact_deltas()` in its place.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> rx.of(1, 2, 3).pipe(rd.throttle_latest(0.05)).subscribe(print).dispose()
        1
        3
    """
    interval = check_seconds("seconds", seconds)

    def apply(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: abc.ObserverBase[T], inherited: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            time, owned = clock(scheduler, inherited)
            return _Throttle(observer, interval, time).connect(source, inherited, owned)

        return Observable(subscribe)

    return apply


class _Throttle(PacedLatest[T]):
    """One subscription's state."""

    _operator = "throttle_latest"

    def __init__(self, observer: abc.ObserverBase[T], interval: float, time: abc.SchedulerBase) -> None:
        super().__init__(observer)
        self._interval = interval
        self._time = time
        self._window_open = False  # a window: what comes meanwhile is held

    def _hold(self, value: T) -> bool:
        self._held = (value,)
        return not self._window_open

    def _on_timer(self) -> None:
        self._window_open = False

    def _take_due(self) -> tuple[T] | tuple[()]:
        if not self._held or (self._window_open and self._end is None):
            return ()
        if self._end is None:
            self._window_open = True
            self._start_timer(self._time, self._interval)
        return super()._take_due()
