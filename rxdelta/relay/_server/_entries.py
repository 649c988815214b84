"""The form in which a log's entries are stored. Workers of different versions share a stream, so it is a promise.

An entry is numbered by its last event, and has these fields: the number of the form (`f`), how many events (`c`), the
events (`e`), and in the last entry the end (`z`). Unknown fields are left alone; a newer form is refused.

An event is its wire form. Deltas, which are nearly all events, are shorter: `[kind, index, piece]`, and then for each
next delta of that kind and block its piece alone. A delta with a choice, a run or unknown fields has its wire form.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Protocol, cast

import attrs
import msgspec

from rxdelta.core import JOINABLE, EmptyStreamError, StreamInterrupted, is_list
from rxdelta.core.events import DataDelta, ReasoningDelta, TextDelta, ToolCallDelta, from_dict
from rxdelta.relay._failures import error_from_dict, error_to_dict
from rxdelta.relay._server._sealed import SEALED
from rxdelta.relay._store import End

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rxdelta.core import Event

__all__ = [
    "BEGIN",
    "FORMAT",
    "Entry",
    "Place",
    "Plain",
    "Values",
    "number_of",
    "read_entry",
    "read_head",
    "written_form",
]

FORMAT = 1
_EPOCH = re.compile("[0-9a-f]{16}")
_UNUSED = b"2"
BEGIN = b"0-1"
"""The first entry's id: the stream has begun."""
_DELTAS: Mapping[int, Any] = {0: TextDelta, 1: ReasoningDelta, 2: ToolCallDelta, 3: DataDelta}
_KINDS = {type_: kind for kind, type_ in _DELTAS.items()}


@attrs.frozen
class Place:
    """Where a value stands: what is sealed for one place can't be read at another."""

    name: str
    epoch: str
    number: int


class Values(Protocol):
    """Writes and reads the values of entries."""

    def dump(self, value: Any, place: Place, /) -> bytes: ...

    def load(self, data: bytes, place: Place, /) -> Any: ...


class Plain:
    """Values as they are: arrays and maps, in MessagePack where it can hold them, else in JSON."""

    def dump(self, value: Any, _place: Place, /) -> bytes:
        try:
            return msgspec.msgpack.encode(value)
        except (OverflowError, TypeError, UnicodeEncodeError):
            # An integer of more than 64 bits, a subclass, or half a surrogate pair, whose other half is in the next delta.
            # No array or map of MessagePack begins like JSON's.
            return json.dumps(value, separators=(",", ":")).encode()

    def load(self, data: bytes, _place: Place, /) -> Any:
        if data.startswith(SEALED):
            why = "the log has a value that is encrypted, and this relay was opened without keys"
            raise StreamInterrupted(why)
        if data[:1] in (b"[", b"{"):
            return json.loads(data)
        return msgspec.msgpack.decode(data)


@attrs.frozen
class Entry:
    """What an entry says.

    Attributes:
        first: The number of its first event; of an entry without events the number behind the last.
        events: Its events.
        end: The log's end, which comes behind them.
    """

    first: int
    events: Sequence[Event]
    end: End | None


def number_of(entry_id: bytes) -> int:
    """The number of an entry's last event."""
    return int(entry_id.partition(b"-")[0])


def written_form(
    values: Values, place: Callable[[int], Place], before: int, events: Sequence[Event], end: End | None
) -> tuple[bytes, bytes]:
    """The fields `e` and `z` of an entry with these events behind the number `before`; empty without such."""
    number = before + max(len(events), 1)
    written = values.dump([*_stored(events)], place(number)) if events else b""
    if end is None:
        return written, b""
    how = {} if end.error is None else error_to_dict(end.error)
    return written, values.dump(how, place(number))


def read_head(fields: Mapping[bytes, bytes]) -> str:
    """The epoch of the publication that a head names.

    Raises:
        StreamInterrupted: It isn't readable here.
    """
    _check_form(fields)
    epoch = fields.get(b"p", b"").decode(errors="replace")
    if not _EPOCH.fullmatch(epoch):
        raise StreamInterrupted("the stream has a head that can't be read here")
    return epoch


def _check_form(fields: Mapping[bytes, bytes]) -> None:
    form = fields.get(b"f", b"")
    if form != b"%d" % FORMAT:
        raise StreamInterrupted(
            f"the log has an entry of format {form.decode(errors='replace')[:20]!r}, and this rxdelta reads format {FORMAT}"
        )


def read_entry(
    values: Values, place: Callable[[int], Place], entry_id: bytes, fields: Mapping[bytes, bytes]
) -> Entry:
    """What an entry says.

    Raises:
        StreamInterrupted: It isn't readable here: of a newer form, or damaged.
    """
    _check_form(fields)
    try:
        number, count = number_of(entry_id), int(fields[b"c"])
        events = [*_read(values.load(fields[b"e"], place(number)))] if count else []
        if len(events) != count:
            raise ValueError(f"{len(events)} events instead of {count}")
        end = None
        if b"z" in fields:
            # Who finds a publisher dead doesn't know at which number the server will write that.
            how = values.load(fields[b"z"], place(0 if b"d" in fields else number))
            end = End(None if how == {} else error_from_dict(how))
            if fields.get(b"d") == _UNUSED:
                end = End(
                    EmptyStreamError(
                        "the publisher has died before its first event: nobody has published the stream"
                    )
                )
    except StreamInterrupted:
        raise
    except Exception as error:  # written by somebody else, or damaged
        raise StreamInterrupted("the log has an entry that can't be read here") from error
    return Entry(number - max(count, 1) + 1, events, end)


def _stored(events: Iterable[Event]) -> Iterator[Any]:
    block: tuple[int, int] | None = None  # of the last delta
    for event in events:
        kind = _KINDS.get(type(event))
        delta: Any = event
        if kind is None or delta.choice or delta.run_id is not None or delta.more:
            yield event.to_dict()
            continue
        index, piece = delta.index, getattr(delta, JOINABLE[type(event)][0])
        if block == (kind, index):
            yield piece
        else:
            block = kind, index
            yield [kind, index, piece]


def _read(stored: Iterable[Any]) -> Iterator[Event]:
    index, make = 0, cast("Callable[..., Event]", None)  # a piece without a block can't be read
    for each in stored:
        if type(each) is str:
            yield make(index, each)
        elif is_list(each):
            kind, index, piece = each
            event = _DELTAS[kind]
            make = JOINABLE[event][1]  # checks nothing: the index is that of an event that was checked
            yield event(index, piece)
        else:
            yield from_dict(each)
