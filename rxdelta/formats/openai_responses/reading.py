"""Access to the fields of a chunk of the Responses API."""

# Chunks are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.core import Event
from rxdelta.formats.decoding import Fields
from rxdelta.formats.tool_calls import given_id

__all__ = [
    "FORMAT",
    "READ",
    "Content",
    "Json",
    "Out",
    "delta_of",
    "given_id_of",
    "mapping_or_none",
    "object_of",
    "optional_text",
    "type_of",
]

Json: TypeAlias = Mapping[str, Any]
Content: TypeAlias = dict[str, Any]
Out: TypeAlias = list[Event]

FORMAT = "openai-responses"
READ = Fields(FORMAT)


def object_of(fields: Json, name: str) -> Json:
    """An object that has to be there."""
    value = fields.get(name)
    if value is None:
        raise READ.fail(name, "an object", None)
    return READ.mapping(value, name)


def type_of(fields: Json, path: str) -> str:
    """The type of an item or part, which has to be there. `path` is the object's own."""
    kind = READ.text_of(fields, "type", path)
    if not kind:
        raise READ.fail(f"{path}.type", "a word", fields.get("type"))
    return kind


def delta_of(chunk: Json) -> str:
    """The piece of a delta, which has to be there.

    Null is an empty one, such as gateways write, unless another field may have the piece.
    """
    piece = chunk.get("delta")
    if piece is None and (
        "delta" not in chunk or any(chunk[name] for name in chunk.keys() - _BESIDE_A_PIECE)
    ):
        raise READ.fail("delta", "a string", None)
    return READ.text(piece, "delta")


_BESIDE_A_PIECE = frozenset([
    "type", "item_id", "output_index", "content_index", "summary_index", "command_index", "sequence_number",
    "logprobs", "obfuscation", "response_id", "event_id", "stream_id",
])  # fmt: skip


def optional_text(fields: Json, name: str, path: str) -> str | None:
    """The string that an object has under a name; `None` if there is none. `path` is the object's own."""
    return None if fields.get(name) is None else READ.text_of(fields, name, path)


def mapping_or_none(value: object) -> Json | None:
    return value if isinstance(value, Mapping) else None


def given_id_of(item: Json, name: str) -> str | None:
    """The id that an item has under a name, unless it is blank or a placeholder."""
    value = item.get(name)
    return given_id(value) if isinstance(value, str) else None
