"""One paid request for any number of readers of its events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from rxdelta.core import Event, EventsSoFar, Limits, Seconds
from rxdelta.operators.sharing.share import Replay, Rules, Unread, share
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from reactivex import Observable, abc


@operator_maker
def share_events(
    *,
    unread: Unread = "close",
    grace: Seconds | None = None,
    reset_on_error: bool = False,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """Share one subscription to events: a late reader first gets the events so far, then live events.

    ::

        events     The _tide-_is                                            -_high|
                   share_events()
        events     The _tide-_is                                            -_high|
        from 0.3s            (block:{"type": "text", "text": "The tide is"})-_high|

    The events so far are replayed as the shortest list that folds to the same reply, `to_events(now)`: for each
    message of a conversation and each of its choices, with usage, the failed attempts' usage, and the updates of
    tools. A fold gets the same snapshot as a fold of the whole stream. A `ProviderEvent` is not replayed, nor a `Custom`
    that is transient.

    The first reader subscribes the source, and the last one to leave disposes it, after the time of `grace`. A later
    reader then gets the events so far and a `StreamInterrupted`: a paid request is never repeated by accident.

    An asynchronous source runs on the loop of its first reader, and ends with that loop. In synchronous code, pass one
    `loop` to all `to_iterable`.

    Put it behind `run_tools`, otherwise each reader runs the tools, and behind `redact` and `guard`, otherwise what they
    hide is kept, and replayed to a reader without them. Each reader has its own pace and its own policy for
    overflow, as with `share_latest`: the source waits only while no reader has room. (`latest` is for snapshots.) A
    reader that raises is removed; the others are not affected. Readers may subscribe, leave and read on several
    threads.

    Completes with the source, for late readers after the replay.

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
        scheduler: The scheduler of `grace`. By default that of the reader which leaves, else the running asyncio loop,
            else a thread that ends with the timer.

    Raises:
        InvalidValueError: At once, if `grace` is no positive number, or given with `unread="keep"`; for another word.

    Errors: The source's own, replayed after the events so far. `ProviderError` for a `StreamError`;
    `LimitExceededError`; `InvalidValueError` for a value that is no event. `StreamInterrupted`, see above.

    Example:
        >>> import rxdelta as rd
        >>> from reactivex.subject import Subject
        >>> source = Subject()
        >>> shared = source.pipe(rd.share_events(grace=30))  # a page that is reloaded has 30 seconds to come back
        >>> shared.subscribe().dispose()
        >>> for event in [rd.events.BlockStart(0, {"type": "text"}), *(rd.events.TextDelta(0, x) for x in "abc")]:
        ...     source.on_next(event)
        >>> late = shared.subscribe(lambda event: print(event.event, event.to_dict().get("content", "")))
        message-start
        content-block-start {'type': 'text', 'text': 'abc'}
    """
    rules = Rules(unread=unread, grace=grace, reset_on_error=reset_on_error, scheduler=scheduler)
    return share("share_events", partial(EventsSoFar, whole=True, name="share_events"), rules, emits="events")


def share_kept(replay: Callable[[Limits], Replay[Event]]) -> Callable[[Observable[Event]], Observable[Event]]:
    """`share_events()` with another way to keep the events so far."""
    rules = Rules(unread="close", grace=None, reset_on_error=False, scheduler=None)
    return share("share_events", replay, rules, emits="events")
