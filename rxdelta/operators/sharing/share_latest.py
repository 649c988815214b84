"""One subscription for many readers of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rxdelta.core import InvalidValueError, Snapshot
from rxdelta.operators.sharing.share import Replay, share
from rxdelta.runtime import NewestForLate, operator_maker, refuse_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactivex import Observable

    from rxdelta.core import Limits
    from rxdelta.runtime import KeyOf

__all__ = ["share_latest"]

T = TypeVar("T")


@operator_maker
def share_latest(
    *, keep: bool = False, restart: bool = False, key: KeyOf | None = None
) -> Callable[[Observable[T]], Observable[T]]:
    """Share one subscription to the source: a late reader first gets the newest values, then live values.

    For values that a newer one replaces, such as snapshots. A late reader gets the newest value of each thing that may
    still change, and of those that have finished only the newest: so the panels of all open blocks, and the last reply
    of a conversation. `throttle_latest` says what a thing is.

    The first reader subscribes the source, and the last one to leave disposes it. A later reader then gets the newest
    values and a `StreamInterrupted`: a paid request is never repeated by accident.

    Each reader has its own pace and its own policy: `to_async_iterable(shared)` and its kin queue values for a slow
    reader (`block`), or give it the `latest` value, or an `error`. The source waits only while no reader has room, so
    a stuck or late reader doesn't block the others; `to_async_iterable` says how long its queue may get. Observers of
    your own are called by the source, which waits for them.

    A reader that raises is removed; the others are not affected. Its exception is raised once, by its `for_each` or
    `async for`, or goes to the loop's exception handler or the log without such a reader. Readers may subscribe,
    leave and read on several threads.

    Completes with the source, for late readers after the newest values.

    Args:
        keep: Go on when the last reader leaves, until the source ends.
        restart: Subscribe the source again for a reader that comes after all have left. A source that has ended by
            itself stays ended.
        key: The name of the thing that a value is a state of, see `throttle_latest`. The newest value of each is kept
            for late readers as long as the source goes on.

    Raises:
        InvalidValueError: In `pipe`, if an operator of rxdelta in front emits what no later value contains: events,
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
    if key is not None and not callable(key):
        raise InvalidValueError.of([("key", key, "must be a function of a value")])

    def replay(_: Limits) -> Replay[Any]:
        return _ReplayNewest(key)

    def apply(source: Observable[T]) -> Observable[T]:
        if key is None:
            refuse_pieces(source, "share_latest")
        return share("share_latest", replay, keep, restart, emits="newest")(source)

    return apply


class _ReplayNewest:
    """The newest value of each thing."""

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
