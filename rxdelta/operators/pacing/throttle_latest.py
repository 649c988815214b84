"""A fast stream at a pace for a screen, without losing its last value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from rxdelta.core import Seconds, check_pace
from rxdelta.operators.pacing.paced import PacedLatest, newest_only
from rxdelta.runtime import KeyOf, Sink, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable, abc


T = TypeVar("T")


@operator_maker
def throttle_latest(
    seconds: Seconds, *, key: KeyOf | None = None, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[T]], Observable[T]]:
    """Emit at once, then the newest value every `seconds`.

    ::

        snapshots  ab-c------d--e|
                   throttle_latest(0.4)
        snapshots  a---c-----d---[e|]

    For values that a newer one replaces, such as snapshots. The newest value of each *key* is kept: two merged replies,
    the blocks of `per_block` and parallel calls each keep their last state (see `key`). A value waits for
    `seconds` at most, then for the reader: while a reader such as `for_each` is busy, a newer value
    still replaces the held one, so that the picture doesn't fall behind a slow drawing. With `overflow="buffer"` or
    `"error"`, and for an observer of your own, nothing waits for the reader. Held values are emitted before the source's
    completion or error is passed on.

    Source and timer may be on different threads, and a source on several: emissions are serialised, and no
    caller waits for another caller's observer. An observer that raises in a timer ends the subscription. Its
    exception is raised by the `for_each` or `async for` that reads the pipeline; without such a reader it goes to the
    asyncio loop's exception handler or the log `rxdelta`.

    Args:
        seconds: The least time between two emissions.
        key: A function that returns the key of a value: the newest value of each key is kept. By default a snapshot has the
            key of its message, a block its own, a `PartialValue` that of its call, and all other values share one. With a
            function nothing is refused.
        scheduler: The scheduler of the timers. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, if `seconds` isn't a positive number.
        InvalidValueError: In `pipe`, if an operator of rxdelta in front emits what no later value contains: events,
            pieces of text, calls, frames. The error names the operator to use instead.

    Errors: The source's own. `InvalidValueError` at the first event or Observable, and whatever `key` raises.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> rx.of(1, 2, 3).pipe(rd.throttle_latest(0.05)).subscribe(print).dispose()
        1
        3
    """
    interval = check_pace("seconds", seconds)

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
