"""One subscription for many readers of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rxdelta.core import InvalidValueError, Snapshot
from rxdelta.core.events import EVENT_TYPES
from rxdelta.operators.sharing.share import share
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactivex import Observable

__all__ = ["share_latest"]

T = TypeVar("T")


@operator_maker
def share_latest(*, keep: bool = False, restart: bool = False) -> Callable[[Observable[T]], Observable[T]]:
    """Share one subscription to the source: a late reader first gets the newest value, then live values.

    For values of which a later one contains the earlier, such as snapshots. The first reader subscribes the
    source, and the last one to leave disposes it. A later reader then gets the newest value and a
    `StreamInterrupted`: a paid request is never repeated by accident.

    Each reader has its own pace and its own policy: `to_async_iterable(shared)` and its kin queue values for a slow
    reader (`block`), or give it the `latest` value, or an `error`. The source waits only while no reader has room, so
    a stuck or late reader doesn't block the others; `to_async_iterable` says how long its queue may get. Observers of
    your own are called by the source, which waits for them.

    A reader that raises is removed; the others are not affected. Its exception is raised once, by its `for_each` or
    `async for`, or goes to the loop's exception handler or the log without such a reader. Readers may subscribe,
    leave and read on several threads.

    Completes with the source, for late readers after the newest value.

    Args:
        keep: Go on when the last reader leaves, until the source ends.
        restart: Subscribe the source again for a reader that comes after all have left. A source that has ended by
            itself stays ended.

    Errors: The source's own, replayed after the newest value. `InvalidValueError` for an event, because the
    newest event doesn't contain the earlier ones: use `share_events()`. `StreamInterrupted`, see above.

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
    return share("share_latest", lambda _: _ReplayLatest(), keep, restart)


class _ReplayLatest:
    """The newest value."""

    def __init__(self) -> None:
        self._latest: tuple[Any, ...] = ()

    def take(self, value: Any) -> None:
        if type(value) in EVENT_TYPES:
            raise InvalidValueError(
                f"share_latest would keep a {type(value).__name__} from those who come late, because the next event "
                "does not contain it; use share_events(), or put scan_deltas() in front",
                field="value",
                value=value,
            )
        self._latest = (value,)

    def so_far(self) -> Sequence[Any]:
        return self._latest

    def snapshot(self) -> Snapshot | None:
        latest = self._latest[0] if self._latest else None
        return latest if isinstance(latest, Snapshot) else None
