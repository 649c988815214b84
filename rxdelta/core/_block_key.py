"""The key that names a block within its message, and how it is shown, written and read."""

from __future__ import annotations

from typing import Any, TypeAlias

from rxdelta.core._frozen import is_list
from rxdelta.core._values import Problem, index_or_none

__all__ = ["Key", "key_from_json", "message_order", "place_repr", "place_to_dict", "wrong_key"]

Key: TypeAlias = int | str | tuple[str, int | str | None] | None
"""The index of the block's events; or `("part", slot)`, `("call", index)` of a block that was merged from deltas."""


def message_order(key: Key) -> tuple[int, int]:
    """What blocks that end together are sorted by: numbered blocks by their numbers, others as they began."""
    return (0, key) if isinstance(key, int) else (1, 0)


def place_to_dict(key: Key, open: bool) -> dict[str, Any]:
    """The members of a block's JSON object that only a block of a snapshot has; elsewhere they are `None`."""
    return {"key": list(key) if isinstance(key, tuple) else key, "open": True if open else None}


def key_from_json(value: Any) -> Any:
    return tuple(value) if is_list(value) else value


def place_repr(key: Key, open: bool) -> list[str]:
    return ([] if key is None else [f"key={key!r}"]) + (["open=True"] if open else [])


def wrong_key(key: object) -> Problem | None:
    number = key
    if is_list(key):
        if isinstance(key, list) or len(key) != 2 or key[0] not in ("part", "call"):
            return ("key", key, "is invalid", "key is a number, a text, ('part', slot) or ('call', index)")
        number = key[1]
    return None if isinstance(number, str) else index_or_none("key", number, lowest=None)
