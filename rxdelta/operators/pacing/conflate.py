"""A busy observer gets the newest value next, and no queue."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from reactivex.scheduler import CurrentThreadScheduler

from rxdelta.operators.pacing.paced import PacedLatest, newest_only
from rxdelta.runtime import KeyOf, Sink, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable, abc


T = TypeVar("T")


@operator_maker
def conflate(
    *, key: KeyOf | None = None, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[T]], Observable[T]]:
    """Emit each value at once while the observer is idle, else keep only the newest: no values are merged.

    ::

        snapshots  a-bcd-----e|
                   conflate(scheduler=slow(0.3))
        snapshots  a--c--d---e--|

    `slow(0.3)` stands for a thread on which the observer needs 0.3 s for each value.

    For values that a newer one replaces, such as snapshots. The newest value of each *key* is kept: two merged replies,
    the blocks of `per_block` and parallel calls each keep their last state (see `key`).

    An observer is busy while it is inside `on_next`: on another thread, or further up the stack if the observer makes the
    source emit. A reader such as `for_each` is busy until it asks for its next value, unless its policy is
    `overflow="buffer"` or `"error"`. A source that emits meanwhile leaves its value and goes on. Held values are emitted
    before the source's completion or error.

    An observer of your own is called on the thread that found it idle. A source that emits on one thread only therefore
    waits for it, as everywhere in Rx, and nothing is conflated, unless `scheduler` gives the observer its own thread.

    An observer that raises on the scheduler ends the subscription. Its exception is raised by the `for_each` or
    `async for` that reads the pipeline; without such a reader it goes to the asyncio loop's exception handler or the log.

    Args:
        key: A function that returns the key of a value, see `throttle_latest`.
        scheduler: Where to call the observer, such as `EventLoopScheduler()` (a thread) or
            `AsyncIOThreadSafeScheduler(loop)`. By default where the source emits; the subscriber's is not used.

    Raises:
        InvalidValueError: In `pipe`, if an operator of rxdelta in front emits what no later value contains: events,
            pieces of text, calls, frames. The error names the operator to use instead.

    Errors: The source's own. `InvalidValueError` at the first event or Observable, and whatever `key` raises.

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
