"""What the relay asks of what has its logs: its process's memory, or a store that several processes share.

A log has one publisher, any number of readers, and one end. Its entries are events, numbered from 1 without gaps.

The relay has the law: refusals, ends, the form that readers get, ids, waiting. A store keeps logs
and passes news on. It may answer during a call or later, on any thread, so it answers by calls of its own. It makes them
without holding a lock. A store that can't be reached for too long answers with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import attrs

from rxdelta.core import PIECE_FIELDS, Event, LimitExceededError, RxDeltaError, is_list, is_mapping

if TYPE_CHECKING:
    from reactivex import abc


class Name(NamedTuple):
    """The name of a log: two tenants' streams with one id are two.

    Attributes:
        tenant: Empty for an application without tenants.
        id: The stream's id.
    """

    tenant: str
    id: str


@attrs.frozen
class End:
    """How a log ended: completed, or with an error as its readers may see it.

    Attributes:
        error: The error.
        is_cut: It is no end of the log: the store can't tell more of it.
    """

    error: RxDeltaError | None = None
    is_cut: bool = False


@attrs.frozen
class News:
    """What a log has behind a number.

    Attributes:
        events: All events behind it. They may be read later, and more than once.
        newest: The number of the last of them.
        end: The log's end, which comes behind them. A reader that can't get more gets an end of its own.
    """

    events: Sequence[Event]
    newest: int
    end: End | None


class Log(Protocol):
    """The reader's side of a log. It can be read to its end also when the store has forgotten it."""

    @property
    def epoch(self) -> str:
        """16 hexadecimal digits that no other log has."""
        ...

    def read(self, after: int, take: Callable[[News], None]) -> None:
        """Call `take` once: as soon as there is an event with a higher number, or the end."""
        ...

    def forget(self, take: Callable[[News], None]) -> None:
        """Don't call it, if it hasn't been called. It may be called at this moment on another thread."""
        ...

    def leave(self) -> None:
        """The reader has gone: it asks nothing more. Called once, on any thread."""
        ...


class Seeker(Protocol):
    """A reader that looks for a log. One of these is called, once; `awaits` may be called before."""

    def awaits(self) -> None:
        """There is none yet. A store that can't be reached doesn't know that."""
        ...

    def found(self, log: Log, news: News) -> None:
        """There is such a log, and it has these events now."""
        ...

    def failed(self, error: RxDeltaError) -> None:
        """Whether there is one can't be found out, or the store has closed."""
        ...


class Publisher(Protocol):
    """What a store calls at a log's publisher."""

    def claimed(self, writer: Writer) -> None:
        """The log is this publisher's, and has begun."""
        ...

    def refused(self, why: str, *, taken: bool) -> None:
        """It isn't: there is a log with this name (`taken`), or the store has closed."""
        ...

    def failed(self, error: RxDeltaError) -> None:
        """The log can't be begun or written any more. Events that aren't `written` don't count, and no call follows."""
        ...

    def written(self, events: Sequence[Event]) -> None:
        """These events are in the log now, in the order in which they were appended."""
        ...

    def tell(self, reason: str | None) -> bool:
        """Stop. Returns whether the publisher hadn't ended before."""
        ...


class Writer(Protocol):
    """The publisher's side of a log."""

    def take(self, size: int) -> LimitExceededError | None:
        """Count the bytes of an event that will be appended, or return the error if the store is full."""
        ...

    def append(self, events: Sequence[Event]) -> None:
        """Write these events, then call the publisher's `written`. Behind the log's end this does nothing."""
        ...

    def end(self, events: Sequence[Event], end: End, then: Callable[[], None]) -> None:
        """Write these events and the end, in one step, then call `then`. Called once."""
        ...


class Logs(Protocol):
    """The logs, by the names of their streams. Once closed, each method raises `StreamInterrupted`."""

    def claim(self, name: Name, publisher: Publisher) -> None:
        """Begin a log, or refuse if the name is taken. One of two claims at the same moment wins.

        In a store that is too full for the first event, none begins, and the publisher's `failed` says so.
        """
        ...

    def find(self, name: Name, seeker: Seeker) -> abc.DisposableBase:
        """Tell the seeker when a log with this name begins, or now if it has begun.

        Returns:
            Disposing it forgets the seeker.
        """
        ...

    async def tell(self, name: Name, reason: str | None) -> bool:
        """Stop the publisher of a live log. Return whether there was one."""
        ...

    async def is_live(self, name: Name) -> bool: ...

    async def names(self, tenant: str) -> list[str]:
        """The ids of all of a tenant's logs, live or kept, in the order in which they began."""
        ...

    async def delete(self, name: Name) -> bool:
        """Forget a log. Return whether there was one."""
        ...

    async def probe(self, seconds: float) -> float:
        """Try within so many seconds whether logs can be written, and return how many that took.

        Raises:
            StreamInterrupted: They can't, or the store is closed.
        """
        ...

    def away(self) -> float:
        """For how many seconds the store hasn't been usable, as far as it is known; 0 if it is. May be called on any thread."""
        ...

    def kept_bytes(self) -> int:
        """The bytes of all logs, as far as they are counted and known here. May be called on any thread."""
        ...

    async def close(self) -> None:
        """Stop all publishers of this process, and let go of what the store holds for it."""
        ...


_EACH, _VALUE = 64, 8
"""What an event takes besides its texts, about (in memory some more, on a server less), and each value within it."""


LEAST = _EACH
"""The bytes of the smallest event."""


def bytes_of(event: Event) -> int:
    """The bytes of an event in a log: of its texts and data in UTF-8, and some for each event and value. The same for every store."""
    kind: type = event.__class__
    field = PIECE_FIELDS.get(kind)
    if field is not None and not event.more:
        piece: str = getattr(event, field)
        return _EACH + (len(piece) if piece.isascii() else _length(piece))
    size, left = _EACH, list[Any]([event.to_dict()])
    while left:
        value = left.pop()
        size += _VALUE
        if isinstance(value, str):
            size += _length(value)
        elif is_mapping(value):
            left.extend(value)  # its keys
            left.extend(value.values())
        elif is_list(value):
            left.extend(value)
    return size


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def store_is_full(maximum: int) -> LimitExceededError:
    """The error of a publisher whose next event doesn't fit into the store."""
    return _limit_reached("max_total_bytes", maximum, "all streams together have")


def _limit_reached(limit: str, maximum: int, what: str = "the stream has") -> LimitExceededError:
    unit = limit.rpartition("_")[2]
    return LimitExceededError(
        f"{what} more than {maximum:,} {unit}; Relay.open({limit}=…) says how many a relay keeps",
        limit=limit,
        maximum=maximum,
    )


class Budget:
    """What one stream's log may still take.

    Args:
        max_events: The most events.
        max_bytes: The most bytes, as `bytes_of` counts them; `None` for any number.

    Attributes:
        events, bytes: What it has taken.
    """

    def __init__(self, max_events: int, max_bytes: int | None) -> None:
        self._most_events, self._most_bytes = max_events, max_bytes
        self.events = self.bytes = 0

    def take(self, size: int, writer: Writer) -> LimitExceededError | None:
        """Count an event of so many bytes, here and in the store, or return the error if it doesn't fit."""
        if self.events >= self._most_events:
            return _limit_reached("max_events", self._most_events)
        if self._most_bytes is not None and self.bytes + size > self._most_bytes:
            return _limit_reached("max_bytes", self._most_bytes)
        if (error := writer.take(size)) is not None:
            return error
        self.events += 1
        self.bytes += size
        return None
