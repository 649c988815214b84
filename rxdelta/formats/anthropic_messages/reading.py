"""Typed access to a chunk's fields, beyond what all formats share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.formats.anthropic_messages.tables import FORMAT
from rxdelta.formats.decoding import Chunk, Fields

__all__ = ["READ", "others", "required_object", "required_word"]

READ = Fields(FORMAT)


def required_object(fields: Chunk, name: str, path: str = "") -> Chunk:
    value = fields.get(name)
    if value is None:
        raise READ.fail(f"{path}{name}", "an object", None)
    return READ.mapping(value, f"{path}{name}")


def required_word(fields: Chunk, name: str, path: str) -> str:
    value = READ.text(fields.get(name), f"{path}.{name}")
    if not value:
        raise READ.fail(f"{path}.{name}", "a word", fields.get(name))
    return value


def others(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The fields with other names, without nulls."""
    return {name: value for name, value in fields.items() if name not in names and value is not None}
