"""Keep-alive values: they prove that the connection lives, and carry nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.core import PIECE_FIELDS
from rxdelta.core.events import EVENT_TYPES, ProviderEvent

__all__ = ["is_ping"]

_PINGS = ("ping", "keepalive")


def is_ping(value: Any) -> bool:
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in EVENT_TYPES:
        if isinstance(value, ProviderEvent):
            return value.name in _PINGS
        field = PIECE_FIELDS.get(kind)
        return field is not None and not getattr(value, field)
    if isinstance(value, (bytes, bytearray)):
        return all(not line.strip() or line.startswith(b":") for line in value.splitlines())
    if isinstance(value, Mapping):
        named: Any = value.get("type")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    else:
        named = getattr(value, "type", None)
    return isinstance(named, str) and named in _PINGS
