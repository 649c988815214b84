"""From async or blocking iterables to Observables, and back.

`pumps` and `threads` make Observables of async and of blocking iterables; `reading` reads an Observable, into a queue of
`queues`; `readers` has the functions that do so. `rd.stream` is `reply`: it opens one of the `sources`, and shows the
`live` reply.
"""

from rxdelta.aio.pumps import from_async_iterable
from rxdelta.aio.queues import ReaderMeter, ReaderMetrics
from rxdelta.aio.readers import BlockingReading, first_value, for_each, iterate, last_value, to_iterable
from rxdelta.aio.reading import Overflow, Reading, to_async_iterable
from rxdelta.aio.reply import BlockingReply, Reply, ReplyOpener, stream
from rxdelta.aio.threads import from_iterable

__all__ = [
    "BlockingReading",
    "BlockingReply",
    "Overflow",
    "ReaderMeter",
    "ReaderMetrics",
    "Reading",
    "Reply",
    "ReplyOpener",
    "first_value",
    "for_each",
    "from_async_iterable",
    "from_iterable",
    "iterate",
    "last_value",
    "stream",
    "to_async_iterable",
    "to_iterable",
]
