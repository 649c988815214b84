"""The protocol of every decoder, and its typed access to the values in a chunk: an error names the path of a wrong one.

Beside it the values that formats share: empty ones, words, base64 in pieces that each have their own padding, and what grows
piece by piece but is emitted whole, because no delta can carry the pieces.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TypeAlias

import attrs

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    LimitExceededError,
    MalformedChunkError,
    Snapshot,
    check_members,
    freeze,
    quote,
)
from rxdelta.core.events import EVENT_TYPES

Json: TypeAlias = Mapping[str, Any]
"""A JSON object that is read."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object that is written."""


class Decoder(Protocol):
    """Chunks of one stream in, events out. It remembers only what the format's grammar requires, and no prose."""

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk, a mapping or the SDK's object.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: A block's index is absurd.
        """
        ...

    def close(self) -> Sequence[Event]:
        """End of input: finish what the format leaves open, but only if the provider has ended the message."""
        ...


def as_mapping(chunk: object, wire_format: str) -> Json:
    """The chunk as a mapping: a dict as it is, an SDK's (pydantic) object with the fields that were sent."""
    if type(chunk) is dict or isinstance(chunk, Mapping):
        return chunk  # pyright: ignore[reportUnknownVariableType]
    fields = dumped(chunk)
    if fields is None:
        raise MalformedChunkError.at(wire_format, "", _wanted(chunk), chunk)
    return fields


def dumped(chunk: object) -> Json | None:
    """The fields of a pydantic object that were sent; `None` for all else."""
    dump = getattr(chunk, "model_dump", None)
    if not callable(dump) or isinstance(chunk, type):
        return None
    fields = dump(by_alias=True, exclude_unset=True, warnings=False)
    if not isinstance(fields, Mapping):
        return None
    kind = getattr(chunk, "type", None)  # which of the SDK's classes it is, where the class alone says so
    known: dict[str, Any] = {"type": kind} if isinstance(kind, str) else {}
    return {**known, **fields}


def _wanted(chunk: object) -> str:
    if isinstance(chunk, (bytes, bytearray, str)):
        return "an object (bytes and text go through parse_sse() or parse_ndjson() first)"
    if type(chunk) in EVENT_TYPES or isinstance(chunk, Snapshot):
        return "a provider's object (what decode() or scan_deltas() has made isn't decoded again)"
    return "an object"


@attrs.frozen
class Fields:
    """Typed access to the values in a chunk. The error of a value that has the wrong type names its path.

    Every method takes the value as found and the path to it. `None` is read as absent.
    """

    wire_format: str

    def fail(self, path: str, expected: str, found: object) -> MalformedChunkError:
        return MalformedChunkError.at(self.wire_format, path, expected, found)

    def mapping(self, value: object, path: str) -> Json:
        """An object; the empty one for `None`."""
        if type(value) is dict or isinstance(value, Mapping):
            return value  # pyright: ignore[reportUnknownVariableType]
        if value is None:
            return {}
        raise self.fail(path, "an object", value)

    def items(self, value: object, path: str) -> Sequence[Any]:
        """A list; the empty one for `None`."""
        if isinstance(value, (list, tuple)):
            return value  # pyright: ignore[reportUnknownVariableType]
        if value is None:
            return ()
        raise self.fail(path, "a list", value)

    def text(self, value: object, path: str) -> str:
        """A string; the empty one for `None`."""
        if isinstance(value, str):
            return value
        if value is None:
            return ""
        raise self.fail(path, "a string", value)

    def text_of(self, source: Mapping[str, Any], name: str, path: str) -> str:
        """The string that an object has under a name. `path` is the object's own."""
        value = source.get(name)
        if type(value) is str:
            return value
        return "" if value is None else self.text(value, f"{path}.{name}" if path else name)

    def require(self, source: Mapping[str, Any], names: Iterable[str], path: str = "") -> None:
        """Raise unless an object has these fields. The error names the fields there are: one may be the renamed one."""
        for name in names:
            if name not in source:
                there = ", ".join(quote(str(other)) for other in islice(source, 10)) or "none"
                raise self.fail(f"{path}.{name}" if path else name, f"a value (fields there: {there})", None)

    def required_text(self, source: Mapping[str, Any], name: str, path: str) -> str:
        """The string that an object must have under a name; the empty one for `None`, which says that there is none."""
        value = source.get(name)
        if type(value) is str:
            return value
        self.require(source, (name,), path)
        return self.text_of(source, name, path)

    def index(self, value: object, path: str) -> int:
        """A block's or choice's index. A bool, a float, a string and a negative number are mistakes."""
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.fail(path, "an index (a whole number from 0)", value)
        if value >= DEFAULT_LIMITS.index:
            raise LimitExceededError.of("index", DEFAULT_LIMITS.index, f"the index at {path}")
        return value


NOTHING: tuple[object, ...] = (None, "", [], {})
"""The values that mean nothing."""


def word(value: object) -> str | None:
    """The string, or `None` for an empty one and for all other types."""
    return value if isinstance(value, str) and value else None


def by_word(words: Mapping[str, str]) -> dict[str, str]:
    """The table from each provider's word to ours. In `words`, each of ours has the provider's, with spaces between.

    Example:
        >>> by_word({"stop": "stop eos", "length": "max_tokens"})
        {'stop': 'stop', 'eos': 'stop', 'max_tokens': 'length'}
    """
    return {theirs: ours for ours, found in words.items() for theirs in found.split()}


def kept(source: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of an object, whose values are immutable."""
    return {name: freeze(value, lenient=True) for name, value in source.items()}


def others(source: Mapping[str, Any], read: frozenset[str]) -> dict[str, Any]:
    """A copy of the fields that are neither read nor empty."""
    if read.issuperset(source):
        return {}
    return kept({name: value for name, value in source.items() if name not in read and value not in NOTHING})


def remember(known: dict[str, Any], found: Mapping[str, Any]) -> None:
    """Update the known fields with those that are not empty. The fields of an object within are updated likewise.

    Raises:
        LimitExceededError: There are more than `Limits.members`, of the fields or within one.
    """
    for name, value in found.items():
        before = known.get(name)
        if value in NOTHING or value == before:
            continue
        now = freeze(value, lenient=True)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            now = {**before, **now}  # pyright: ignore[reportUnknownVariableType]
            check_members(now, DEFAULT_LIMITS, "an object in the metadata")  # pyright: ignore[reportUnknownArgumentType]
        if now is not None:
            known[name] = now
    check_members(known, DEFAULT_LIMITS, "the metadata")


class Base64Pieces:
    """Joins the pieces of one block to a single base64 text. Holds two bytes at most.

    Example:
        >>> pieces = Base64Pieces()
        >>> pieces.add("aA=="), pieces.add("aWo="), pieces.rest()
        ('', 'aGlq', '')
    """

    def __init__(self) -> None:
        self._carry = b""  # bytes that don't fill a group of three yet

    def add(self, data: str) -> str:
        """The next part of the text. A piece that is no base64 is part of it unchanged."""
        if not self._carry and not data.endswith("="):
            return data
        try:
            found = self._carry + base64.b64decode(data, validate=True)
        except ValueError:
            return self.rest() + data
        whole = len(found) - len(found) % 3
        self._carry = found[whole:]
        return base64.b64encode(found[:whole]).decode()

    def rest(self) -> str:
        """The end of the text, with its padding."""
        found, self._carry = self._carry, b""
        return base64.b64encode(found).decode()


def due(size: int, emitted: int) -> bool:
    """Whether the whole has grown by an eighth since it was last emitted. All emissions together stay linear."""
    return size > emitted and size * 8 >= emitted * 9


class GrowingList:
    """A list that grows, but that events carry only as a whole, such as the citations of a text.

    The list is emitted after growth by an eighth. All emissions together stay linear in its length.

    Args:
        emitted: The items that it has from the start, which have been emitted.
        size: Their size.

    Example:
        >>> citations = GrowingList()
        >>> citations.add("a")
        >>> citations.take(), citations.take()
        (['a'], None)
    """

    __slots__ = ("_emitted", "_items", "_size")

    def __init__(self, emitted: Iterable[Any] = (), size: int = 0) -> None:
        self._items = list(emitted)
        self._size = self._emitted = size

    def add(self, item: Any, size: int = 1) -> None:
        self._items.append(item)
        self._size += size

    def take(self, *, at_end: bool = False) -> list[Any] | None:
        """The whole list, to be emitted now, if it is due; at the end, if it has grown at all."""
        if not (self._size > self._emitted if at_end else due(self._size, self._emitted)):
            return None
        self._emitted = self._size
        return self._items
