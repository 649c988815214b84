"""Pace a fast stream for a slow reader, and never lose the last word."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, Disposable, SerialDisposable, SingleAssignmentDisposable

from rxdelta.core import InvalidValueError
from rxdelta.core.events import EVENT_TYPES
from rxdelta.operators._clock import check_seconds, clock

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

    For values of which a later one contains the earlier, such as snapshots. None waits longer than `seconds`, and a
    value still held back is emitted before the source's completion, or its error, is passed on.

    Args:
        seconds: The least time between two emissions.
        scheduler: Whose time it is. By default the subscriber's, else the running asyncio loop's, else that of a
            thread which lives as long as the subscription.

    Raises:
        InvalidValueError: At once, if `seconds` isn't a positive number.

    Errors: The source's own. `InvalidValueError` when an event would be dropped, because the next one doesn't contain
    it: `scan_deltas()` goes in front.

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
            throttle = _Throttle(observer, interval, time)
            upstream = source.subscribe(
                throttle.on_next, throttle.on_error, throttle.on_completed, scheduler=inherited
            )
            return CompositeDisposable(Disposable(throttle.stop), throttle.window, upstream, owned)

        return Observable(subscribe)

    return apply


class _Throttle(Generic[T]):
    """One subscription's state. Source and timer may call from different threads."""

    def __init__(self, observer: abc.ObserverBase[T], interval: float, time: abc.SchedulerBase) -> None:
        self._observer = observer
        self._interval = interval
        self._time = time
        self._lock = RLock()
        self._held: tuple[T, ...] = ()
        self._open = False  # a window: what comes meanwhile is held
        self._stopped = False
        self.window = SerialDisposable()

    def stop(self) -> None:
        self._stopped = True

    def on_next(self, value: T) -> None:
        with self._lock:
            if self._stopped:
                return
            if self._held and type(self._held[0]) in EVENT_TYPES:
                self._fail(
                    InvalidValueError(
                        f"throttle_latest would drop {self._held[0]!r}, which the next event does not contain; "
                        "put scan_deltas() in front of it",
                        field="value",
                        value=self._held[0],
                    )
                )
                return
            self._held = (value,)
            if not self._open:
                self._release()

    def on_error(self, error: Exception) -> None:
        with self._lock:
            self._flush()
            self._fail(error)

    def on_completed(self) -> None:
        with self._lock:
            self._flush()
            if not self._stopped:
                self._stopped = True
                self._observer.on_completed()

    def _release(self, *_: Any) -> None:
        """Open a window and emit what is held; with nothing held, let the next value through at once."""
        with self._lock:
            if self._stopped:
                return
            self._open = bool(self._held)
            if self._open:
                timer = SingleAssignmentDisposable()
                self.window.disposable = timer
                timer.disposable = self._time.schedule_relative(self._interval, self._release)
                self._flush()

    def _flush(self) -> None:
        held, self._held = self._held, ()
        for value in held:
            if not self._stopped:
                self._observer.on_next(value)

    def _fail(self, error: Exception) -> None:
        if not self._stopped:
            self._stopped = True
            self._observer.on_error(error)
