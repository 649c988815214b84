"""Values that nobody can read without the keys, or move to another place.

Encryption alone doesn't say where a value belongs: anyone who can write to the server could put one user's events into
another's stream. So the place is encrypted with the value, and compared when it is read.

The form in which a log's records are stored. Workers of different versions share a stream, so it is a promise.

An event is its wire form. Deltas, which are nearly all events, are shorter: `[kind, index, piece]`, and then for each
next delta of that kind and block its piece alone. A delta with a choice, a run or unknown fields has its wire form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, cast

import attrs

from rxdelta.core import JOINABLE, EmptyStreamError, Event, StreamInterrupted, is_list
from rxdelta.core.events import DataDelta, ReasoningDelta, TextDelta, ToolCallDelta, from_dict
from rxdelta.relay.logs import End
from rxdelta.relay.replay import error_from_dict, error_to_dict
from rxdelta.relay.store import LogKey, Record
from rxdelta.runtime import is_interrupt

SEALED = b"\xc1"
"""What a sealed value begins with. No other does: msgpack leaves this byte unused, and JSON is ASCII."""


@attrs.frozen
class Sealed:
    """Values in the form of `inside`, encrypted and decrypted by the user's two functions.

    Both methods raise a `StreamInterrupted` whose cause is what a function raised. A value that wasn't sealed, or not for
    its place, is refused likewise.
    """

    inside: Values
    encrypt: Callable[[bytes], bytes]
    decrypt: Callable[[bytes], bytes]

    def dump(self, value: Any, place: Place, /) -> bytes:
        return SEALED + _called("encrypt", self.encrypt, _label(place) + self.inside.dump(value, place))

    def load(self, data: bytes, place: Place, /) -> Any:
        if not data.startswith(SEALED):
            raise StreamInterrupted(
                "the log has a value that isn't encrypted, and this relay was opened with keys"
            )
        opened, label = _called("decrypt", self.decrypt, data[len(SEALED) :]), _label(place)
        if not opened.startswith(label):
            raise StreamInterrupted("the log has a value that was written for another place and moved here")
        return self.inside.load(opened[len(label) :], place)


def _label(place: Place) -> bytes:
    # A name has no control characters besides the one between its tenant and its id, so no label begins another one.
    return f"{place.epoch}-{place.number}\0{place.name}\0".encode()


def _called(name: str, function: Callable[[bytes], bytes], given: bytes) -> bytes:
    try:
        made: object = function(given)
    except BaseException as error:
        if is_interrupt(error):
            raise
        # Without the error's own text, which may have a part of the value.
        raise StreamInterrupted(f"the relay's {name} raised {type(error).__name__}") from error
    if isinstance(made, bytes):
        return made
    raise StreamInterrupted(f"the relay's {name} returned {type(made).__name__}, and must return bytes")


DIED, DIED_UNUSED = 1, 2
"""`Record.dead` of a publisher that died, or has given up; and of one that died before its first event, which frees the name."""
_DELTAS: Mapping[int, Any] = {0: TextDelta, 1: ReasoningDelta, 2: ToolCallDelta, 3: DataDelta}
_KINDS = {type_: kind for kind, type_ in _DELTAS.items()}


@attrs.frozen
class Place:
    """Where a value stands: a value that is sealed for one place can't be read at another."""

    name: str
    epoch: str
    number: int


class Values(Protocol):
    """Writes and reads the values of entries."""

    def dump(self, value: Any, place: Place, /) -> bytes: ...

    def load(self, data: bytes, place: Place, /) -> Any: ...


class Plain:
    """Values as they are, in JSON.

    Args:
        packs: In MessagePack, where it can hold them.
    """

    def __init__(self, packs: bool = False) -> None:
        self._packs = packs

    def dump(self, value: Any, _place: Place, /) -> bytes:
        if self._packs:
            import msgspec

            try:
                return msgspec.msgpack.encode(value)
            except (OverflowError, TypeError, UnicodeEncodeError):
                # An integer of more than 64 bits, a subclass, or half a surrogate pair, whose other half is in the next
                # delta. No array or map of MessagePack begins like JSON's.
                pass
        return json.dumps(value, separators=(",", ":")).encode()

    def load(self, data: bytes, _place: Place, /) -> Any:
        if data.startswith(SEALED):
            why = "the log has a value that is encrypted, and this relay was opened without keys"
            raise StreamInterrupted(why)
        if data[:1] in (b"[", b"{"):
            return json.loads(data)
        import msgspec

        return msgspec.msgpack.decode(data)


@attrs.frozen
class Said:
    """What a record says.

    Attributes:
        first: The number of its first event; of a record without events the number behind the last.
        events: Its events.
        end: The log's end, which comes behind them.
    """

    first: int
    events: Sequence[Event]
    end: End | None


class Form:
    """Writes and reads the records of one log."""

    def __init__(self, values: Values, key: LogKey) -> None:
        self._values = values
        self._place = partial(Place, f"{key.tenant}\0{key.id}", key.epoch)

    def written(self, before: int, events: Sequence[Event], end: End | None, *, size: int = 0) -> Record:
        """The record of these events and this end behind the number `before`."""
        number = before + max(len(events), 1)
        dump, place = self._values.dump, self._place(number)
        how = None if end is None else dump({} if end.error is None else error_to_dict(end.error), place)
        return Record(number, len(events), dump([*_stored(events)], place) if events else b"", how, size=size)

    def death(self, number: int, why: StreamInterrupted, *, unused: bool = False) -> Record:
        """The record of an end that isn't the publisher's own."""
        # A store may write it behind another number, so its place has none.
        how = self._values.dump(error_to_dict(why), self._place(0))
        return Record(number, 0, b"", how, DIED_UNUSED if unused else DIED)

    def reason(self, reason: str | None) -> bytes:
        return self._values.dump([reason], self._place(0))

    def read_reason(self, data: bytes) -> Any:
        [reason] = self._values.load(data, self._place(0))
        return reason

    def read(self, record: Record) -> Said:
        """What a record says.

        Raises:
            StreamInterrupted: It isn't readable here.
        """
        load, place = self._values.load, self._place
        try:
            first = record.number - max(record.count, 1) + 1
            if type(first) is not int or first < 1 or record.count < 0:
                raise ValueError(f"{record.count!r} events up to number {record.number!r}")
            events = [*_read(load(record.events, place(record.number)))] if record.count else []
            if len(events) != record.count:
                raise ValueError(f"{len(events)} events instead of {record.count}")
            end = None
            if record.end is not None:
                how = load(record.end, place(0 if record.dead else record.number))
                end = End(None if how == {} else error_from_dict(how))
            if record.dead == DIED_UNUSED:
                end = End(EmptyStreamError(_UNUSED))
        except StreamInterrupted:
            raise
        except Exception as error:  # written by somebody else, or damaged
            raise StreamInterrupted("the log has an entry that can't be read here") from error
        return Said(first, events, end)


_UNUSED = "the publisher has died before its first event: nobody has published the stream"


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
