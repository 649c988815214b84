"""A busy observer gets the newest value next, and no queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from rxdelta.operators.pacing.paced import PacedLatest
from rxdelta.runtime import errors_to_session

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["conflate"]

T = TypeVar("T")


def conflate(*, scheduler: abc.SchedulerBase | None = None) -> Callable[[Observable[T]], Observable[T]]:
    """Emit each value at once while the observer is idle; while it is busy, keep only the newest.

    ::

        source  -a--bcd--e|
        output  -a--bcd--e|   conflate()

    For values of which a later one contains the earlier, such as snapshots. An observer is busy while it is inside
    `on_next`: on another thread, or further up the stack if the observer makes the source emit. A source that emits
    meanwhile leaves its value and goes on. When the observer returns, it gets the newest of these values. At most one
    value waits, and the last one is emitted before the source's completion or error.

    The observer is called on the thread that found it idle. A source that emits on one thread only therefore waits
    for it, as everywhere in Rx, and nothing is conflated, unless `scheduler` gives the observer its own thread.
    `for_each`, `to_async_iterable` and their kin are never busy, because they queue values for their readers: use
    their `overflow="latest"` instead of `conflate()`.

    An observer that raises on the scheduler ends the subscription. Its exception is raised by the `for_each` or
    `async for` that reads the pipeline; without such a reader it is raised in the scheduler.

    Args:
        scheduler: Where to call the observer, such as `EventLoopScheduler()` (a thread) or
            `AsyncIOThreadSafeScheduler(loop)`. By default where the source emits; the subscriber's is not used.

    Errors: The source's own. `InvalidValueError` when an event would be dropped, because the next event doesn't
    contain it: put `scan_deltas()` in front, or use `compact_deltas()` instead.

    Example:
        >>> import rxdelta as rd
        >>> from reactivex.subject import Subject
        >>> source = Subject[int]()
        >>> def draw(value: int) -> None:
        ...     print(value)
        ...     if value == 1:  # busy: what comes meanwhile is 2, 3 and 4
        ...         for newer in (2, 3, 4):
        ...             source.on_next(newer)
        >>> subscription = source.pipe(rd.conflate()).subscribe(draw)
        >>> source.on_next(1)
        1
        4
    """

    def apply(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: abc.ObserverBase[T], inherited: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            return _Conflation(observer, scheduler).connect(source, inherited, Disposable())

        return Observable(subscribe)

    return apply


class _Conflation(PacedLatest[T]):
    """One subscription's state."""

    _operator = "conflate"

    def __init__(self, observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None) -> None:
        super().__init__(observer)
        self._scheduler = scheduler
        self._scheduled = False  # an emission

    def _emit(self) -> None:
        if self._scheduler is None:
            super()._emit()
            return
        with self._lock:
            if self._scheduled or self._emitting:
                return
            self._scheduled = True
        call = SingleAssignmentDisposable()
        self._timer.disposable = call
        call.disposable = self._scheduler.schedule(self._fire)

    def _fire(self, *_: object) -> None:
        with self._lock:
            self._scheduled = False
        with errors_to_session(self._subscription, self._session):
            super()._emit()
