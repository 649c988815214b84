"""One subscription, many who draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from rxdelta.core import InvalidValueError, Snapshot
from rxdelta.core.events import EVENT_TYPES
from rxdelta.operators.sharing.share import share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactivex import Observable

__all__ = ["share_latest"]

T = TypeVar("T")


def share_latest(*, keep: bool = False, restart: bool = False) -> Callable[[Observable[T]], Observable[T]]:
    """One subscription to the source for all who read: who comes late gets the newest value, then what comes.

    For values of which a later one contains the earlier, such as snapshots. The first reader subscribes the
    source; the last who leaves disposes it, and whoever comes after that gets the newest value and a
    `StreamInterrupted`: a paid request is never repeated by accident.

    Each reader reads at its own pace, by the door through which it reads: `to_async_iterable(shared)` and its kin
    queue for a slow one (`block`), or give it the `latest` value, or an `error`. The source waits only while none
    of its readers has room, so that one which is stuck, or is read later, holds up nobody; see there for what is
    queued at most. An observer of your own is called by the source and holds it up while it works.

    One that raises is not told any more, and its exception goes once to its `for_each` or `async for`, or
    where it has none to the loop's exception handler or the log; the others don't notice. Readers may come,
    go and read on several threads.

    Completes with the source, also for those who come later, after the newest value.

    Args:
        keep: Go on when the last reader leaves, until the source ends.
        restart: Who comes after all have left subscribes the source anew. One that has ended by itself stays
            ended.

    Errors: The source's own, replayed after the newest value. `InvalidValueError` for an event, because the
    newest doesn't contain those before it: `share_events()` keeps them. `StreamInterrupted`, see above.

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
    return share(_ReplayLatest, keep, restart)


class _ReplayLatest:
    """The newest value."""

    name = "share_latest"

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
