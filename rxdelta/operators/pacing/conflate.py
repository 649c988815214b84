"""A busy observer gets the newest value next, and no queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from reactivex.scheduler import CurrentThreadScheduler

from rxdelta.operators.pacing.paced import PacedLatest, newest_only
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

    from rxdelta.runtime import KeyOf, Sink

__all__ = ["conflate"]

T = TypeVar("T")


@operator_maker
def conflate(
    *, key: KeyOf | None = None, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[T]], Observable[T]]:
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
    `async for` that reads the pipeline; without such a reader it goes to the asyncio loop's exception handler or the log.

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

    def begin(sink: Sink[T]) -> _Conflation[T]:
        return _Conflation(sink, scheduler, key)

    return newest_only("conflate", begin, key)


class _Conflation(PacedLatest[T]):
    """One subscription's state."""

    def __init__(self, sink: Sink[T], scheduler: abc.SchedulerBase | None, key: KeyOf | None) -> None:
        super().__init__(sink, scheduler or CurrentThreadScheduler.singleton(), key)
        self._is_scheduled = scheduler is not None

    def _take_turn(self) -> None:
        if self._is_scheduled:
            self._timer.start(0, self._emit_due)
        else:
            super()._take_turn()
