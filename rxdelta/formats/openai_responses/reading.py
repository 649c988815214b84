"""What the parts of the decoder share: names of types, and access to the fields of a chunk."""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.core import Event, real_id
from rxdelta.formats.decoding import NOTHING, Fields
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, SYNTHETIC_ID

__all__ = [
    "FORMAT",
    "READ",
    "Content",
    "Json",
    "Out",
    "call_id_of",
    "mapping_or_none",
    "object_at",
    "rest",
    "word_at",
]


Json: TypeAlias = Mapping[str, Any]
Content: TypeAlias = dict[str, Any]
Out: TypeAlias = list[Event]
FORMAT = "openai-responses"
READ = Fields(FORMAT)


def rest(item: Json, *read: str | None) -> Content:
    """What an object says beyond the fields that are read, each under a name that is free."""
    return {
        (f"item_{name}" if name in _TAKEN else name): value
        for name, value in item.items()
        if name not in read and value not in NOTHING
    }


def call_id_of(value: object) -> str | None:
    return real_id(value.strip()) and value if isinstance(value, str) else None


def mapping_or_none(value: object) -> Json | None:
    return value if isinstance(value, Mapping) else None


def object_at(fields: Json, name: str) -> Json:
    """An object that has to be there."""
    value = fields.get(name)
    if value is None:
        raise READ.fail(name, "an object", None)
    return READ.mapping(value, name)


def word_at(fields: Json, name: str, path: str) -> str:
    value = READ.text(fields.get(name), path)
    if not value:
        raise READ.fail(path, "a word", fields.get(name))
    return value


# Names that mean something in the protocol, and would be read as that.
_TAKEN = frozenset([
    "id", "type", "index", "name", "call_id", "args", "arguments", "input", "error", "execution_status",
    "tool_call_id", "output", PROVIDER_TYPE, ITEM_ID, "citations", "data", "text", "thinking",
    "refusal", "reasoning", "signature", "mime_type", "part_lengths", SYNTHETIC_ID,
])  # fmt: skip
