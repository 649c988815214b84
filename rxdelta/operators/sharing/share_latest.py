"""One subscription for many readers of snapshots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rxdelta.core import InvalidValueError, Limits, Seconds, Snapshot
from rxdelta.operators.sharing.share import Replay, Rules, Unread, share
from rxdelta.runtime import KeyOf, NewestForLate, operator_maker, refuse_pieces

if TYPE_CHECKING:
    from reactivex import Observable, abc


T = TypeVar("T")


@operator_maker
def share_latest(
    *,
    unread: Unread = "close",
    grace: Seconds | None = None,
    reset_on_error: bool = False,
    key: KeyOf | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """Share one subscription to snapshots: a late reader first gets the newest, then live ones.

    ::

        snapshots  a--b---c--d|
                   share_latest()
        snapshots  a--b---c--d|
        from 0.5s       b-c--d|

    For values that a newer one replaces, such as snapshots. A late reader gets the newest value of each key that may
    still change, and of those that have finished only the newest: so the panels of all open blocks, and the last reply
    of a conversation. `throttle_latest` says what a key is.

    The first reader subscribes the source, and the last one to leave disposes it, after the time of `grace`. A later
    reader then gets the newest values and a `StreamInterrupted`: a paid request is never repeated by accident.

    An asynchronous source runs on the loop of its first reader, and ends with that loop. In synchronous code, pass one
    `loop` to all `to_iterable`.

    Each reader has its own pace and its own policy: `to_async_iterable(shared)` and its kin queue values for a slow
    reader (`block`), or give it the `latest` value, or an `error`. The source waits only while no reader has room, so
    a stuck or late reader doesn't block the others; `to_async_iterable` says how long its queue may get. Observers of
    your own are called by the source, which waits for them; put `ops.observe_on(EventLoopScheduler())` in front of one
    that may block.

    A reader that raises is removed; the others are not affected. Its exception is raised once, by its `for_each` or
    `async for`, or goes to the loop's exception handler or the log without such a reader. Readers may subscribe,
    leave and read on several threads.

    Completes with the source, for late readers after the newest values.

    Args:
        unread: The fate of the source when the last reader has left. `"close"` closes it, and a later reader gets the
            error above. `"keep"` lets it go on to its end, so that a reply is finished, and can be stored, without readers.
            `"restart"` closes it, and subscribes it again for a later reader. A source that has ended by itself stays
            ended.
        grace: Seconds, or a `timedelta`, between the last reader's leaving and the closing of the source. A reader that comes back in time,
            such as a page that was reloaded, goes on with the same request. When the loop that counts the seconds
            ends, the source is closed at once. Not with `"keep"`.
        reset_on_error: Subscribe the source again for a reader that comes after an error, such as `ops.retry()` or
            `retry_stream`, instead of replaying the error. Nothing of the failed attempt is replayed. That all
            readers have left is such an error, but one that a reader gets first.
        key: A function that returns the key of a value, see `throttle_latest`. The newest value of each is kept
            for late readers as long as the source goes on.
        scheduler: The scheduler of `grace`. By default that of the reader which leaves, else the running asyncio loop,
            else a thread that ends with the timer.

    Raises:
        InvalidValueError: At once, if `grace` is no positive number, or given with `unread="keep"`; for another word. In `pipe`, if an operator of rxdelta in front emits what no later value contains: events,
            pieces of text, calls, frames. The error names the operator to use instead.

    Errors: The source's own, replayed after the newest values. `InvalidValueError` for an event: use `share_events()`.
    `StreamInterrupted`, see above.

    Example:
        >>> import rxdelta as rd
        >>> from reactivex.subject import Subject
        >>> source = Subject()
        >>> shared = source.pipe(rd.share_latest())
        >>> first = shared.subscribe(lambda value: print("first", value))
        >>> source.on_next(1)
        first 1
        >>> second = shared.subscribe(lambda value: print("second", value))
        second 1
        >>> source.on_next(2)
        first 2
        second 2
    """
    rules = Rules(unread=unread, grace=grace, reset_on_error=reset_on_error, scheduler=scheduler)
    if key is not None and not callable(key):
        raise InvalidValueError.of([("key", key, "must be a function of a value")])

    def replay(_: Limits) -> Replay[Any]:
        return _ReplayNewest(key)

    def apply(source: Observable[T]) -> Observable[T]:
        if key is None:
            refuse_pieces(source, "share_latest")
        return share("share_latest", replay, rules, emits="newest")(source)

    return apply


class _ReplayNewest:
    """The newest value of each key."""

    def __init__(self, key: KeyOf | None) -> None:
        self._values: NewestForLate[Any] = NewestForLate("share_latest", key)
        self._latest: Any = None

    def take(self, value: Any) -> None:
        self._values.append(value)
        self._latest = value

    def so_far(self) -> Sequence[Any]:
        return self._values.all()

    def snapshot(self) -> Snapshot | None:
        return self._latest if isinstance(self._latest, Snapshot) else None
