"""Pace a fast stream for a slow reader, and never lose the last word."""

from __future__ import annotations

from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import (
    CompositeDisposable,
    Disposable,
    SerialDisposable,
    SingleAssignmentDisposable,
)

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

    For values of which a later one contains the earlier, such as snapshots. None waits longer than `seconds`,
    and a value still held back is emitted before the source's completion, or its error, is passed on.

    Source and timer may be on different threads, and a source on several: what goes out is serialised, and no
    caller waits for another's observer. An observer that raises in a timer ends the subscription; its
    exception goes on to whoever runs the timer (the asyncio loop's exception handler,
    `threading.excepthook`).

    Args:
        seconds: The least time between two emissions.
        scheduler: Whose time it is. By default the subscriber's, else the running asyncio loop's, else that
            of a thread which ends with the subscription.

    Raises:
        InvalidValueError: At once, if `seconds` isn't a positive number.

    Errors: The source's own. `InvalidValueError` when an event would be dropped, because the next one doesn't
    contain it: `scan_deltas()` goes in front.

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
            upstream = SingleAssignmentDisposable()
            throttle.everything = CompositeDisposable(
                Disposable(throttle.stop), throttle.window, upstream, owned
            )
            upstream.disposable = source.subscribe(
                throttle.on_next, throttle.on_error, throttle.on_completed, scheduler=inherited
            )
            return throttle.everything

        return Observable(subscribe)

    return apply


class _Throttle(Generic[T]):
    """One subscription's state. Under the lock nobody's code is called but the scheduler's."""

    everything: abc.DisposableBase

    def __init__(self, observer: abc.ObserverBase[T], interval: float, time: abc.SchedulerBase) -> None:
        self._observer = observer
        self._interval = interval
        self._time = time
        self._lock = RLock()
        self._held: tuple[T, ...] = ()
        self._end: Callable[[], None] | None = None  # comes after what is held
        self._open = False  # a window: what comes meanwhile is held
        self._emitting = False
        self._stopped = False
        self.window = SerialDisposable()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._held = ()

    def on_next(self, value: T) -> None:
        with self._lock:
            if self._stopped:
                return
            held = self._held
            if held and type(held[0]) in EVENT_TYPES:
                self._end = partial(self._observer.on_error, _refusal(held[0]))
            else:
                self._held = (value,)
                if self._open:
                    return
        self._emit()

    def on_error(self, error: Exception) -> None:
        self._finish(partial(self._observer.on_error, error))

    def on_completed(self) -> None:
        self._finish(self._observer.on_completed)

    def _finish(self, end: Callable[[], None]) -> None:
        with self._lock:
            self._end = self._end or end
        self._emit()

    def _close_window(self, *_: Any) -> None:
        with self._lock:
            self._open = False
        try:
            self._emit()
        except BaseException:
            self.everything.dispose()
            raise

    def _emit(self) -> None:
        """Emit what is due. One thread does it at a time, and finds what others have left meanwhile."""
        with self._lock:
            if self._emitting:
                return
            self._emitting = True
        try:
            while (notify := self._due()) is not None:
                notify()
        except BaseException:
            self._emitting = False
            raise

    def _due(self) -> Callable[[], None] | None:
        """The next thing to emit; where there is none, whoever comes next may look."""
        with self._lock:
            ending = self._end is not None
            if self._held and (ending or not self._open):
                (value,), self._held = self._held, ()
                if not ending:
                    self._open_window()
                return partial(self._observer.on_next, value)
            if ending and not self._stopped:
                self._stopped = True
                return self._end
            self._emitting = False
            return None

    def _open_window(self) -> None:
        self._open = True
        timer = SingleAssignmentDisposable()
        self.window.disposable = timer
        timer.disposable = self._time.schedule_relative(self._interval, self._close_window)


def _refusal(event: object) -> InvalidValueError:
    return InvalidValueError(
        f"throttle_latest would drop a {type(event).__name__}, which the next event does not contain; "
        "put scan_deltas() in front of it",
        field="value",
        value=event,
    )
