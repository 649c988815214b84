"""What every decoder is and needs: the protocol it keeps, and access to a chunk that says where it went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    LimitExceededError,
    MalformedChunkError,
    TokenUsage,
    freeze,
    real_id,
)
from rxdelta.core.events import ProviderEvent, StreamError

__all__ = [
    "BROKEN_OFF",
    "CUT_OFF",
    "CUT_OFF_AMID_ARGUMENTS",
    "CUT_OFF_BEFORE_ARGUMENTS",
    "CUT_OFF_BY_FILTER",
    "NOTHING",
    "Decoder",
    "Fields",
    "as_mapping",
    "by_word",
    "error_code",
    "error_in",
    "given_id",
    "invalid_call",
    "kept",
    "made_up_id",
    "others",
    "remember",
    "told_error",
    "usage_of",
    "word",
]

Chunk = Mapping[str, Any]

NOTHING: tuple[object, ...] = (None, "", [], {})
"""The values that say nothing."""

BROKEN_OFF: Final = "broken off by an error"
CUT_OFF: Final = "cut off by the token limit"
CUT_OFF_BEFORE_ARGUMENTS: Final = f"{CUT_OFF} before its arguments came"
CUT_OFF_AMID_ARGUMENTS: Final = f"{CUT_OFF} while its arguments came"
CUT_OFF_BY_FILTER: Final = "cut off by the content filter"


class Decoder(Protocol):
    """Chunks of one stream in, events out. Holds what the format's grammar forces it to remember, never text."""

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk, a mapping or the SDK's object.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: A block's index is absurd.
        """
        ...

    def close(self) -> Sequence[Event]:
        """End of input: what the format leaves open is finished, but only if the provider said that it was done."""
        ...


def as_mapping(chunk: object, wire_format: str) -> Chunk:
    """The chunk as a mapping: a dict as it is, an SDK's (pydantic) object with the fields that were sent."""
    if type(chunk) is dict or isinstance(chunk, Mapping):
        return chunk  # pyright: ignore[reportUnknownVariableType]
    dump = getattr(chunk, "model_dump", None)
    if callable(dump) and not isinstance(chunk, type):
        fields = dump(by_alias=True, exclude_unset=True, warnings=False)
        if isinstance(fields, Mapping):
            kind = getattr(
                chunk, "type", None
            )  # which of the SDK's classes it is, where the class alone says so
            known: dict[str, Any] = {"type": kind} if isinstance(kind, str) else {}
            return {**known, **fields}
    raise MalformedChunkError.at(
        wire_format, "", "an object (bytes and text go through parse_sse() or parse_ndjson() first)", chunk
    )


@attrs.frozen
class Fields:
    """Typed access to the values in a chunk; what has the wrong type is named by its path.

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
        return self.text(value, f"{path}.{name}" if path else name)

    def index(self, value: object, path: str) -> int:
        """A block's or choice's index. A bool, a float, a string and a negative number are mistakes."""
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.fail(path, "an index (a whole number from 0)", value)
        if value >= DEFAULT_LIMITS.index:
            raise LimitExceededError.of("index", DEFAULT_LIMITS.index, f"the index at {path}")
        return value


def usage_of(raw: Mapping[str, Any], input_tokens: object, output_tokens: object) -> TokenUsage:
    """A usage of the provider's object and the two counts in it. A count that is none is unknown, which is not 0."""
    return TokenUsage(_count(input_tokens), _count(output_tokens), freeze(raw, "usage", lenient=True))


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def word(value: object) -> str | None:
    """A string that says something, where anything else is as good as nothing."""
    return value if isinstance(value, str) and value else None


def given_id(value: str) -> str | None:
    """The id unchanged, or `None` for one of the known spellings of no id."""
    return None if real_id(value.strip()) is None else value


def by_word(words: Mapping[str, str]) -> dict[str, str]:
    """A table from each provider's word to ours, from one of ours to theirs.

    Example:
        >>> by_word({"stop": "stop eos", "length": "max_tokens"})
        {'stop': 'stop', 'eos': 'stop', 'max_tokens': 'length'}
    """
    return {theirs: ours for ours, found in words.items() for theirs in found.split()}


def kept(source: Mapping[str, Any]) -> dict[str, Any]:
    """A copy that nobody can change."""
    return {name: freeze(value, lenient=True) for name, value in source.items()}


def others(source: Mapping[str, Any], read: frozenset[str]) -> dict[str, Any]:
    """What an object says beyond the fields that are read."""
    if read.issuperset(source):
        return {}
    return kept({name: value for name, value in source.items() if name not in read and value not in NOTHING})


def remember(known: dict[str, Any], found: Mapping[str, Any]) -> None:
    """Of each field the last value that says something; of an object within, its fields each for themselves."""
    for name, value in found.items():
        before = known.get(name)
        if value in NOTHING or value == before:
            continue
        now = freeze(value, lenient=True)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            now = {**before, **now}  # pyright: ignore[reportUnknownVariableType]
        if now is not None:
            known[name] = now


def error_in(source: object) -> Chunk | None:
    """The error that an object has, as an object; `None` if it has none."""
    if not isinstance(source, Mapping):
        return None
    error: Any = source.get("error")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not error:
        return None
    if isinstance(error, Mapping):
        return error  # pyright: ignore[reportUnknownVariableType]
    return {"message": error} if isinstance(error, str) else {"error": error}


def error_code(value: object) -> str | None:
    """An error's code as text, be it a word or a number; a number that is too long to be a code is none."""
    if type(value) is int:
        return str(value) if abs(value) < 2**31 else None
    return word(value)


def told_error(provider: str, error: Mapping[str, Any], kind: object, read: frozenset[str]) -> list[Event]:
    """An error object as the end of a stream; what it says beyond the fields that are read goes before it."""
    message = word(error.get("message"))
    more = any(value not in NOTHING for name, value in error.items() if name not in read)
    passed_on: list[Event] = []
    if more or message is None:  # such as Groq's `failed_generation`
        passed_on.append(ProviderEvent(provider, "error", kept(error)))
    return [*passed_on, StreamError(message or "unknown error", word(kind), error_code(error.get("code")))]


def invalid_call(error: str) -> dict[str, Any]:
    """The content with which a call finishes that must not be run, and the reason why."""
    return {"type": "invalid_tool_call", "error": error}


def made_up_id(message_id: str | None, index: int) -> str:
    """An id for a call without one: that of its message makes it unique in a conversation.

    Example:
        >>> made_up_id("m1", 2), made_up_id(None, 2)
        ('call-m1-2', 'call-2')
    """
    return "-".join(filter(None, ["call", message_id, str(index)]))
