"""Access to the fields of a chunk of Google's Interactions API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.formats.decoding import Fields

__all__ = ["FORMAT", "READ", "Json", "type_of"]

Json: TypeAlias = Mapping[str, Any]

FORMAT = "gemini-interactions"
READ = Fields(FORMAT)


def type_of(step: Json, path: str) -> str:
    """The type of a step, which has to be there."""
    kind = step.get("type")
    if not isinstance(kind, str) or not kind:
        raise READ.fail(f"{path}.type", "the type of a step", kind)
    return kind
