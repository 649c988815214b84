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
    "given_id_of",
    "mapping_or_none",
    "object_of",
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


def mapping_or_none(value: object) -> Json | None:
    return value if isinstance(value, Mapping) else None


def given_id_of(item: Json, name: str) -> str | None:
    """The id that an item has under a name, unless it is blank or a placeholder."""
    value = item.get(name)
    return given_id(value) if isinstance(value, str) else None
