"""Values that say nothing of the provider: keep-alives, and the application's own events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from rxdelta.core import PIECE_FIELDS, Fold, Snapshot
from rxdelta.core.events import EVENT_TYPES, Custom, ProviderEvent

__all__ = ["Pings", "is_ping"]

_PINGS = ("ping", "keepalive")


class Pings:
    """Tells these values among all of a stream. Of snapshots, it knows those that add data of the application alone."""

    def __init__(self) -> None:
        self._last: Snapshot | None = None

    def __call__(self, value: Any) -> bool:
        if type(value) is not Snapshot:
            return is_ping(value)
        last, self._last = self._last or Fold(choice=value.choice).snapshot, value
        head, before = value._head, last._head
        return (
            head.custom is not before.custom
            and value.blocks == last.blocks
            and attrs.evolve(head, custom=before.custom) == before
        )


def is_ping(value: Any) -> bool:
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    field = PIECE_FIELDS.get(kind)
    if field is not None:
        return not getattr(value, field)
    if kind in EVENT_TYPES:
        return kind is Custom or (isinstance(value, ProviderEvent) and value.name in _PINGS)
    if isinstance(value, (bytes, bytearray)):
        return all(not line.strip() or line.startswith(b":") for line in value.splitlines())
    if isinstance(value, Mapping):
        named: Any = value.get("type")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    else:
        named = getattr(value, "type", None)
    return isinstance(named, str) and named in _PINGS
