"""How fast a stream is, told beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from rxdelta.core import InvalidValueError
from rxdelta.operators.watching.side_call import SideCall
from rxdelta.operators.watching.tap import Listener, tap
from rxdelta.runtime import check_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

    from rxdelta.core import Snapshot
    from rxdelta.operators.watching.metrics import StreamMetrics

__all__ = ["tap_metrics"]

T = TypeVar("T")


def tap_metrics(
    fn: Callable[[StreamMetrics], object],
    *,
    every: float | None = None,
    through: Callable[[Observable[T]], Observable[T]] | None = None,
    choice: int = 0,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """The same values; and when it is over, `fn` is called with what was measured of them.

    ::

        source  -ab---c--|
        output  -ab---c--|   tap_metrics(print)

    Exactly once for each subscription, however it ends: when the source completes or fails, before that is passed
    on; when it is disposed; when an observer raises. With `every`, also now and then while it goes on, and also in
    silence.

    Chunks and times are those of the place where this stands, and tokens are known from events and snapshots: behind
    `decode` there are both. In front of it, every chunk of the provider counts, and no tokens.

    With `through`, how late a paced reader is: the values go through that operator too, and how long those that leave
    it had waited in it is the lag. A snapshot that was let go of for a newer one doesn't count.

    `fn` may be a coroutine function: it then runs as a task on the loop that was running at the subscription, and isn't
    waited for. What it raises goes to that loop's exception handler, or without one to the log `rxdelta`, and never
    into the stream.

    Completes with the source.

    Args:
        fn: What to call, with `StreamMetrics`, whose `outcome` is `None` while the stream goes on.
        every: Seconds from one call to the next. By default there is one at the end.
        through: An operator that paces, such as `throttle_latest(0.05)`, whose lag is measured.
        choice: Which of several alternative replies the events' usage is of.
        scheduler: Whose time it is. By default the subscriber's, else the running asyncio loop's, else that of a thread
            which ends with the subscription.

    Raises:
        InvalidValueError: At once, if `fn` or `through` can't be called, or `every` isn't a positive number.

    Errors: The source's own, and those of `through`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> pieces = rx.of(rd.Snapshot(content="Hel"), rd.Snapshot(content="lo"))
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
    return tap("tap_metrics", lambda: _MetricsListener(fn), scheduler, choice, every=every, through=through)


class _MetricsListener(Listener):
    def __init__(self, fn: Callable[[StreamMetrics], object]) -> None:
        self._fn = SideCall(fn, "tap_metrics")

    def progress(self, metrics: StreamMetrics) -> None:
        self._fn(metrics)

    def settled(self, metrics: StreamMetrics, reply: Snapshot | None) -> None:  # noqa: ARG002
        self._fn(metrics)
