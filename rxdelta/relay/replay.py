"""What a reader gets that comes late or is behind: entries joined to fewer ones, and the stream's error."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any

from rxdelta.core import (
    JOINABLE,
    Event,
    EventsSoFar,
    Joined,
    Limits,
    RxDeltaError,
    StreamInterrupted,
    TokenUsage,
)
from rxdelta.core.events import AttemptReset, Custom, MessageStart, ProviderEvent, UsageUpdate
from rxdelta.runtime import is_ping

_NO_USAGE = TokenUsage()  # replaces none

AT_ONCE = 250
"""How many events are looked through at once."""


def from_the_start(
    events: Sequence[Event], split_at: int | None = None
) -> Iterator[tuple[int, Event] | None]:
    """A log from its first event on, in a short form that folds to the same reply: `in_short`, and

    - of the application's data with one name and id the newest stand at the place of the first;
    - transient data are left out.

    Args:
        events: The whole log.
        split_at: See `in_short`.
    """
    entries: Iterable[tuple[int, Event | None]] = enumerate(events, 1)
    for number, event in enumerate(events, 1):
        if type(event) is Custom:
            newest, replaced = yield from _newest_data(events, split_at)
            entries = _kept(events, newest, replaced, split_at)
            break
        if not number % AT_ONCE:
            yield None
    yield from in_short(entries, split_at)


def in_short(
    entries: Iterable[tuple[int, Event | None]], split_at: int | None = None
) -> Iterator[tuple[int, Event] | None]:
    """Events with their numbers, for a reader that is behind, in fewer events that fold to the same.

    - Neighbouring deltas of a block are one delta.
    - A usage that a later one replaces is left out, if only deltas are between them: some providers send one with each
      delta. Pings are left out, too.

    Each event has the number of its last. A reader that continues behind a number of these misses nothing. Between them
    there may be any number of `None`: a long log has few events in this form, and to look it through must not hold up
    others.

    Args:
        entries: The events, and `None` in the place of one that is left out.
        split_at: A number that nothing spans: what comes behind it doesn't change what comes before. Its own event is
            never left out, so that a reader can tell by its id where it was.
    """
    group = _Group()
    for seen, (number, event) in enumerate(entries, 1):
        if not seen % AT_ONCE:
            yield None
        if type(event) in JOINABLE or (isinstance(event, UsageUpdate) and event.usage != _NO_USAGE):
            if not group.takes(number, event):
                yield from group.taken_out()
                group.takes(number, event)
        elif event is not None and (number == split_at or not _is_ping(event)):
            yield from group.taken_out()
            yield number, event
        if number == split_at:
            yield from group.taken_out()
    yield from group.taken_out()


def _kept(
    events: Sequence[Event], newest: Mapping[int, Event], replaced: Collection[int], split_at: int | None
) -> Iterator[tuple[int, Event | None]]:
    for number, event in enumerate(events, 1):
        if isinstance(event, Custom):
            is_left_out = number != split_at and (number in replaced or event.transient)
            yield number, None if is_left_out else newest.get(number, event)
        else:
            yield number, event


def _is_ping(event: Event) -> bool:
    return isinstance(event, ProviderEvent) and is_ping(event)


def without_transient(events: Sequence[Event], first: int) -> Iterator[tuple[int, Event]]:
    """Each event with its number, without transient data."""
    for number, event in enumerate(events, first):
        if not (type(event) is Custom and event.transient):
            yield number, event


def _newest_data(
    events: Sequence[Event], split_at: int | None
) -> Generator[None, None, tuple[dict[int, Event], Collection[int]]]:
    """The newest of the application's data by the number of the first with their name and id, and the numbers of the others.

    They belong to a message, and to the runs that have begun. So search again at every event that may begin another
    message. Data that name no run replace those of each run, and the other way round, so no data may pass over such
    others.
    """
    newest: dict[int, Event] = {}
    replaced: set[int] = set()
    first: dict[tuple[str, str], dict[str | None, int]] = {}  # by run
    runs: set[str | None] = set()
    for number, event in enumerate(events, 1):
        if not number % AT_ONCE:
            yield
        if not isinstance(event, Custom):
            is_known = event.run_id in runs
            if (is_known and isinstance(event, (MessageStart, AttemptReset))) or (runs and not is_known):
                first.clear()
            runs.add(event.run_id)
        elif event.id is not None and not event.transient:
            places = first.setdefault((event.name, event.id), {})
            for run_id in [other for other in places if (other is None) != (event.run_id is None)]:
                del places[run_id]
            place = places.setdefault(event.run_id, number)
            newest[place] = event
            if place != number:
                replaced.add(number)
        if number == split_at:
            first.clear()
    return newest, replaced


class _Group:
    """Neighbouring deltas of a block, and the newest usage among them: at most deltas, a usage, and deltas again."""

    def __init__(self) -> None:
        self._deltas: Joined | None = None
        self._last = 0
        self._usage: tuple[int, UsageUpdate] | None = None
        self._more: Joined | None = None  # behind the usage
        self._last_more = 0

    def takes(self, number: int, event: Any) -> bool:
        """Add a delta or a usage, and return whether it belongs here."""
        return (
            self._takes_usage(number, event)
            if type(event) is UsageUpdate
            else self._takes_delta(number, event)
        )

    def _takes_usage(self, number: int, event: UsageUpdate) -> bool:
        if self._usage is not None:
            older = self._usage[1]
            if (older.run_id, older.choice) != (event.run_id, event.choice):
                return False
            if self._more is not None:
                if self._deltas is None:
                    self._deltas = self._more
                else:
                    self._deltas.pieces += self._more.pieces
                self._last, self._more = self._last_more, None
        self._usage = number, event
        return True

    def _takes_delta(self, number: int, event: Any) -> bool:
        known = self._more or self._deltas
        if known is not None and not known.takes(event):
            return False
        piece = getattr(event, JOINABLE[type(event)][0])
        if self._usage is None:
            self._deltas, self._last = _joined(self._deltas, event, piece), number
        else:
            self._more, self._last_more = _joined(self._more, event, piece), number
        return True

    def taken_out(self) -> Iterator[tuple[int, Event]]:
        """The events of the group, which is empty then."""
        deltas, usage, more = self._deltas, self._usage, self._more
        self._deltas = self._usage = self._more = None
        if deltas is not None:
            yield self._last, deltas.event()
        if usage is not None:
            yield usage
        if more is not None:
            yield self._last_more, more.event()


def _joined(known: Joined | None, event: Any, piece: str) -> Joined:
    if known is None:
        return Joined(event, piece)
    known.pieces.append(piece)
    return known


_MOST_BITS = 14_000
_MASKED = "the stream broke off because of an error where it is published"


class StreamUnreadableError(StreamInterrupted):
    """A relay can't tell a reader more of a stream: its server is away for too long, has lost it, or the relay was closed.

    This is no end of the stream, which may be live, and `.snapshot` is no more than what the reader's process has of it. A
    reader can come back. Nobody should continue with such a reply.
    """


def unreadable(error: RxDeltaError) -> RxDeltaError:
    """The error of a reader whose store can't tell it more."""
    if not isinstance(error, StreamInterrupted) or isinstance(error, StreamUnreadableError):
        return error
    shown = StreamUnreadableError(str(error))
    shown.__cause__ = error.__cause__
    return shown


def for_readers(error: Exception) -> RxDeltaError:
    """The error that readers get: of our type and with our text, but without what it holds; others are masked."""
    ours = next((kind for kind in type(error).__mro__ if kind.__module__ == RxDeltaError.__module__), None)
    if ours is None or (isinstance(error, StreamInterrupted) and error.__cause__ is not None):
        return StreamInterrupted(_MASKED)  # the text of ours quotes its cause
    fields = {
        name: value if isinstance(value, (str, int, float)) else None
        for name, value in vars(error).items()
        if name != "__notes__"  # Python wants a list or nothing there
    }
    return _made(ours, str(error), fields)


def error_to_dict(error: RxDeltaError) -> dict[str, Any]:
    """An error of `for_readers`, for a log that other processes read."""
    fields = {name: None if _is_huge(value) else value for name, value in vars(error).items()}
    return {"error": type(error).__name__, "text": str(error), "fields": fields}


def _is_huge(value: Any) -> bool:
    """Whether it is an integer with more digits than Python writes (about 4,300)."""
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def error_from_dict(data: Mapping[str, Any]) -> RxDeltaError:
    """The error again. An unknown class becomes a `StreamInterrupted` with the same text."""
    kind, text = _kinds(RxDeltaError).get(data["error"]), str(data["text"])
    fields = {name: value for name, value in data["fields"].items() if not name.startswith("_")}
    if kind is not None:
        with suppress(Exception):  # it lacks a field, since somebody else has written it
            return copy(_made(kind, text, fields))  # as each reader gets one
    return StreamInterrupted(text)


def _kinds(kind: type[RxDeltaError]) -> dict[str, type[RxDeltaError]]:
    """The library's errors by their names, without an application's own subclasses."""
    known = {kind.__name__: kind} if kind.__module__ == RxDeltaError.__module__ else {}
    for narrower in kind.__subclasses__():
        known |= _kinds(narrower)
    return known


def _made(kind: type[Any], text: str, fields: Mapping[str, Any]) -> RxDeltaError:
    made: Any = kind.__new__(kind, text)
    made.__dict__.update(fields)
    return made  # type: ignore[no-any-return]


def with_snapshot(
    error: RxDeltaError, events: Sequence[Event], limits: Limits
) -> Generator[None, None, RxDeltaError]:
    """Return a copy of the error for one reader, with the fold of the whole log. Yields as `from_the_start` does."""
    own = copy(error)
    own.__cause__ = error.__cause__  # `copy` leaves the cause out
    so_far = EventsSoFar(limits)
    with suppress(RxDeltaError):  # what can't be folded, or was refused: the reply up to there
        for entry in from_the_start(events):
            if entry is None:
                yield
            else:
                so_far.take(entry[1])
    own.snapshot = so_far.snapshot()
    return own
