"""The protocol of every decoder, and typed access to the values in a chunk, which names the path of a wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol

import attrs

from rxdelta.core import DEFAULT_LIMITS, Event, LimitExceededError, MalformedChunkError, Snapshot, quote
from rxdelta.core.events import EVENT_TYPES

__all__ = ["Chunk", "Decoder", "Fields", "as_mapping", "dumped"]

Chunk = Mapping[str, Any]


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


def as_mapping(chunk: object, wire_format: str) -> Chunk:
    """The chunk as a mapping: a dict as it is, an SDK's (pydantic) object with the fields that were sent."""
    if type(chunk) is dict or isinstance(chunk, Mapping):
        return chunk  # pyright: ignore[reportUnknownVariableType]
    fields = dumped(chunk)
    if fields is None:
        raise MalformedChunkError.at(wire_format, "", _wanted(chunk), chunk)
    return fields


def dumped(chunk: object) -> Chunk | None:
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

    def mapping(self, value: object, path: str) -> Chunk:
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
