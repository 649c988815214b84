"""The newest value of a stream once it rests, or after a longest wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from rxdelta.core import Seconds, check_pace
from rxdelta.operators.pacing.paced import PacedLatest, newest_only
from rxdelta.runtime import ABOUT_NOW, KeyOf, Sink, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable, abc


T = TypeVar("T")


@operator_maker
def debounce_latest(
    seconds: Seconds,
    max_wait: Seconds | None = None,
    *,
    key: KeyOf | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """Emit the newest value when the source has been silent for `seconds`, and after `max_wait` at the latest.

    ::

        snapshots  ab------cdefghijk----|
                   debounce_latest(0.2, max_wait=0.5)
        snapshots  ---b---------h----k--|

    For work that is too expensive to be done for each value, such as storing. After `max_wait` at most, a value or a
    newer one is emitted, if the reader isn't busy (see `throttle_latest`). Held values are emitted before the source's
    completion or error is passed on.

    For values that a newer one replaces, such as snapshots. The newest value of each *key* is kept: two merged replies,
    the blocks of `per_block` and parallel calls each keep their last state (see `key`).

    Source and timer may be on different threads, and a source on several: emissions are serialised, and no
    caller waits for another caller's observer. An observer that raises in a timer ends the subscription. Its
    exception is raised by the `for_each` or `async for` that reads the pipeline; without such a reader it goes to the
    asyncio loop's exception handler or the log `rxdelta`.

    Args:
        seconds: How long the source must be silent.
        max_wait: The longest time that any value waits, also if the source never rests. By default five times `seconds`.
        key: A function that returns the key of a value, see `throttle_latest`.
        scheduler: The scheduler of the timers. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, if either isn't a positive number.
        InvalidValueError: In `pipe`, if an operator of rxdelta in front emits what no later value contains: events,
            pieces of text, calls, frames. The error names the operator to use instead.

    Errors: The source's own. `InvalidValueError` at the first event or Observable, and whatever `key` raises.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> rx.of(1, 2, 3).pipe(rd.debounce_latest(0.5, max_wait=2)).subscribe(print).dispose()
        3
    """
    rest = check_pace("seconds", seconds)
    longest = 5 * rest if max_wait is None else check_pace("max_wait", max_wait)

    return newest_only(
        "debounce_latest", lambda sink: _Debounce(sink, rest, longest, sink.clock(scheduler), key), key
    )


class _Debounce(PacedLatest[T]):
    """One subscription's state. Values don't move the timer: when it fires too early, it waits for the remaining time."""

    def __init__(
        self, sink: Sink[T], rest: float, longest: float, time: abc.SchedulerBase, key: KeyOf | None
    ) -> None:
        super().__init__(sink, time, key)
        self._rest = rest
        self._longest = longest
        self._held_since = self._newest_at = time.now
        self._is_due = False
        self._is_timed = False  # whether the held values wait for the timer

    def _hold(self, value: T) -> bool:
        self._newest_at = self._time.now
        if not self._is_timed:
            self._is_timed = True
            self._held_since = self._newest_at
            self._start_timer(min(self._rest, self._longest))
        self._held.append(value)
        return False

    def _on_timer(self) -> None:
        now = self._time.now
        remaining = min(
            self._rest - (now - self._newest_at).total_seconds(),
            self._longest - (now - self._held_since).total_seconds(),
        )
        self._is_due = bool(self._held) and remaining < ABOUT_NOW
        self._is_timed = bool(self._held)
        if self._is_timed and not self._is_due and not self._sink.closed:
            self._start_timer(remaining)

    def _may_go(self) -> bool:
        return self._is_due

    def _has_gone(self) -> None:
        self._is_due = self._is_timed = False
