"""From async or blocking iterables to Observables, and back."""

from rxdelta.aio._from_async_iterable import from_async_iterable
from rxdelta.aio._from_iterable import from_iterable
from rxdelta.aio._meter import ReaderMeter, ReaderMetrics
from rxdelta.aio._readers import first_value, for_each, iterate, last_value
from rxdelta.aio._stream import BlockingReply, Reply, ReplyOpener, stream
from rxdelta.aio._to_async_iterable import Overflow, Reading, to_async_iterable
from rxdelta.aio._to_iterable import BlockingReading, to_iterable

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
