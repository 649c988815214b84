"""Measurements of a stream for a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from rxdelta.core import InvalidValueError, Seconds, Snapshot, check_seconds
from rxdelta.operators.watching.on_settled import SideCall
from rxdelta.operators.watching.tap import Listener, StreamMetrics, tap
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from reactivex import Observable, abc


T = TypeVar("T")


@operator_maker
def tap_metrics(
    fn: Callable[[StreamMetrics], object],
    *,
    every: Seconds | None = None,
    through: Callable[[Observable[T]], Observable[T]] | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """The same values; at the stream's end `fn` is called with its `StreamMetrics`.

    ::

        events    The _tide-_is--|
                  tap_metrics(report)
        events    The _tide-_is--|
        report()  -   -    --  --<3 chunks>

    It is called exactly once for each subscription: before the source's completion or error is passed on, when the
    subscription is disposed, or when an observer raises. With `every`, `fn` is also called at this interval while the
    stream goes on, even in silence.

    Chunks and times are measured at this operator's place in the pipeline; tokens are known from events and snapshots.
    So both are known behind `decode`. In front of it, every chunk of the provider counts, and tokens are unknown.

    With `through`, the lag of a pacing operator is measured: the values pass through that operator too, and the lag is
    the time that emitted values have spent in it. Dropped snapshots don't count.

    `fn` may be a coroutine function: it then runs as a task on the loop that was running at the subscription, and isn't
    awaited. An exception of `fn` goes to that loop's exception handler, or without a loop to the log `rxdelta`, never
    to the observer.

    Completes with the source.

    Args:
        fn: Called with `StreamMetrics`, whose `outcome` is `None` while the stream goes on.
        every: Seconds from one call to the next. By default there is one call, at the end.
        through: A pacing operator, such as `throttle_latest(0.05)`, whose lag is measured.
        scheduler: The scheduler of timers and times. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, if `fn` or `through` can't be called, or `every` isn't a positive number. In `pipe`,
            if `through` refuses the operator in front.

    Errors: The source's own, and those of `through`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> pieces = rx.of(rd.MessageDelta(content="Hel"), rd.MessageDelta(content="lo"))
        >>> def note(metrics):
        ...     print(metrics.outcome.kind, metrics.chunks)
        >>> pieces.pipe(rd.scan_deltas(), rd.tap_metrics(note)).subscribe().dispose()
        completed 2
    """
    wrong = [
        (name, value, "must be a function")
        for name, value in (("fn", fn), ("through", through))
        if not callable(value) and (name, value) != ("through", None)
    ]
    if wrong:
        raise InvalidValueError.of(wrong)
    if every is not None:
        every = check_seconds("every", every)
    return tap("tap_metrics", lambda: _MetricsListener(fn), scheduler, every=every, through=through)


class _MetricsListener(Listener):
    def __init__(self, fn: Callable[[StreamMetrics], object]) -> None:
        self._fn = SideCall(fn, "tap_metrics")

    def progress(self, metrics: StreamMetrics) -> None:
        self._fn(metrics)

    def settled(self, metrics: StreamMetrics, reply: Snapshot | None) -> None:  # noqa: ARG002
        self._fn(metrics)
