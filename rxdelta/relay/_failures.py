"""The error of a stream as its readers get it."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any

from rxdelta.core import EventsSoFar, RxDeltaError, StreamInterrupted
from rxdelta.relay._replay import from_the_start

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from rxdelta.core import Event, Limits

__all__ = [
    "StreamUnreadableError",
    "error_from_dict",
    "error_to_dict",
    "for_readers",
    "unreadable",
    "with_snapshot",
]

_MOST_BITS = 14_000
_MASKED = "the stream broke off because of an error where it is published"


class StreamUnreadableError(StreamInterrupted):
    """A relay can't tell a reader more of a stream: its server is away for too long, has lost it, or the relay was closed.

    This is no end of the stream, which may be live, and `.snapshot` is no more than what the reader's process has of it. A
    reader can come back. Nobody should go on with such a reply.
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
