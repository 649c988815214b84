"""The places of results that don't follow their call, for protocols in which a browser keeps both together.

A provider's tool may call another one, whose call and result then stand between its own. Such a result travels with its
place: how many blocks of the message, as the client has them, are before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

__all__ = ["PLACE", "place_in", "place_marks", "put_back"]

T = TypeVar("T")

PLACE: Final = "place"
"""The mark of such a result."""


def place_marks(call: int, result: int) -> dict[str, int]:
    """The mark of a result, by the places of its call and its own; none for one that follows its call."""
    return {} if result == call + 1 else {PLACE: result}


def place_in(marks: Mapping[str, Any]) -> int | None:
    found = marks.get(PLACE)
    return found if type(found) is int and found >= 0 else None


def put_back(blocks: list[T], late: Iterable[tuple[int, T]]) -> list[T]:
    """The blocks, and the late ones at their places.

    Example:
        >>> put_back(["call a", "call b", "result b", "text"], [(3, "result a")])
        ['call a', 'call b', 'result b', 'result a', 'text']
    """
    for place, block in sorted(late, key=lambda one: one[0]):
        blocks.insert(min(place, len(blocks)), block)
    return blocks
