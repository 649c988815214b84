"""One reply from whichever of several sources has something to say first."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from rxdelta.core import Event, Seconds, check_seconds
from rxdelta.operators.resilience.contest import Source, contest
from rxdelta.runtime import checks_options

if TYPE_CHECKING:
    from reactivex import Observable, abc


@checks_options
def race(
    *sources: Source, after: Seconds = 0.0, scheduler: abc.SchedulerBase | None = None
) -> Observable[Event]:
    """Emit the reply of the source whose first content comes first; the others are disposed at that moment.

    ::

        first   (start)----      --   -   Well _no|
        second            (start)-Yes _sir|
                race(first, second, after=0.4)
        events  -      ----      -Yes _sir|

    Content, losing and the end of the stream are as in `fallback`; only the asking differs. Without `after` the
    subscription asks all sources at once, in their order. With it, the next source is asked when these seconds have
    passed without content, and at once when a source fails or its reply is empty. The earlier ones go on meanwhile.
    Nothing of a loser is seen. It is paid for up to that moment, at least.

    Functions are called one after another on the thread that asks, so one that blocks delays the next, unless its seconds
    pass on another thread. A blocking client's request can't be closed before it has been answered: the reply comes
    meanwhile, but a reader that is left waits for such a loser, for five seconds at most. An asyncio client has no such wait.

    Put it where `fallback` belongs: in the place of one request, in front of all that reads the reply.

    Completes with the source that has won.

    Args:
        *sources: As in `fallback`.
        after: The seconds, or a `timedelta`, after which the next source is asked as well.
        scheduler: The scheduler of these seconds. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, without a source, for one that is neither an Observable nor a function, and if `after`
            is no number of seconds from 0.

    Errors: As in `fallback`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> silent = rx.concat(rx.of(rd.events.MessageStart("m1")), rx.never())
        >>> quick = rx.of(rd.events.BlockStart(0, {"type": "text", "text": "Hello"}))
        >>> rd.race(silent, quick, after=0.01).pipe(rd.text_deltas()).run()
        'Hello'
    """
    at_once = not isinstance(after, bool) and after in (0, timedelta())
    return contest("race", sources, 0.0 if at_once else check_seconds("after", after), scheduler)
