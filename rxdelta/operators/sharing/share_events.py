"""One paid request, however many watch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.core import DEFAULT_LIMITS, Event, EventsSoFar, Limits, refusal
from rxdelta.operators.sharing.share import share

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

__all__ = ["share_events"]


def share_events(
    *, keep: bool = False, restart: bool = False, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[Event]]:
    """One subscription to the source for all who read: who comes late is told all so far, then what comes.

    What has come is told as the shortest list of events that leads there, `to_events(now)`: for each message of
    a conversation, and each choice of it, with its usage, the failed attempts' usage, and the news of its tools.
    Whatever folds the events gets the same snapshot as one who was there from the start. A `ProviderEvent` is
    told to those who are there.

    The first reader subscribes the source; the last who leaves disposes it, and whoever comes after that is told
    what had come, and a `StreamInterrupted`: a paid request is never repeated by accident.

    Stands behind `run_tools`, or each reader would run the tools. Each reader reads at its own pace, by the door
    through which it reads, as with `share_latest`: the source waits only while none of them has room. (`latest` is
    for snapshots.) A reader that raises is not told any more; the others don't notice. Readers may come, go and
    read on several threads.

    Completes with the source, also for those who come later, after all that had come.

    Args:
        keep: Go on when the last reader leaves, until the source ends. So a reply is finished, and can be
            stored, though nobody looks.
        restart: Who comes after all have left subscribes the source anew. One that has ended by itself stays
            ended.
        limits: What the stream may make us hold for those who come late.

    Errors: The source's own, replayed after the events so far. `ProviderError` for a `StreamError`;
    `LimitExceededError`; `InvalidValueError` for what is no event. `StreamInterrupted`, see above.

    Example:
        >>> import rxdelta as rd
        >>> from reactivex.subject import Subject
        >>> source = Subject()
        >>> shared = source.pipe(rd.share_events())
        >>> first = shared.subscribe()
        >>> for event in [rd.events.BlockStart(0, {"type": "text"}), *(rd.events.TextDelta(0, x) for x in "abc")]:
        ...     source.on_next(event)
        >>> late = shared.subscribe(lambda event: print(event.event, event.to_dict().get("content", "")))
        message-start
        content-block-start {'type': 'text', 'text': 'abc'}
    """
    return share(lambda: _ReplayEvents(limits, whole=True), keep, restart)


class _ReplayEvents(EventsSoFar):
    """All that has come."""

    name = "share_events"

    def take(self, value: Event) -> None:
        failure = refusal(value)
        if failure is not None:
            raise failure
        super().take(value)
