"""How much a stream's log may have, and a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import PIECE_FIELDS, LimitExceededError, is_list, is_mapping

if TYPE_CHECKING:
    from rxdelta.core import Event
    from rxdelta.relay._logs import Writer

__all__ = ["LEAST", "Room", "bytes_of", "no_room_for_all"]

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


def no_room_for_all(maximum: int) -> LimitExceededError:
    """The error of a publisher for whose next event the store has no room."""
    return _no_room("max_total_bytes", maximum, "all streams together have")


def _no_room(limit: str, maximum: int, what: str = "the stream has") -> LimitExceededError:
    unit = limit.rpartition("_")[2]
    return LimitExceededError(
        f"{what} more than {maximum:,} {unit}; Relay.open({limit}=…) says how many a relay keeps",
        limit=limit,
        maximum=maximum,
    )


class Room:
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
        """Take the room of an event of so many bytes, here and in the store, or return the error if there isn't enough."""
        if self.events >= self._most_events:
            return _no_room("max_events", self._most_events)
        if self._most_bytes is not None and self.bytes + size > self._most_bytes:
            return _no_room("max_bytes", self._most_bytes)
        if (error := writer.take(size)) is not None:
            return error
        self.events += 1
        self.bytes += size
        return None
