"""What grows piece by piece, but is emitted only as a whole because no delta can carry the pieces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

__all__ = ["GrowingList", "due"]


def due(size: int, emitted: int) -> bool:
    """Whether the whole has grown by an eighth since it was last emitted. All emissions together stay linear."""
    return size > emitted and size * 8 >= emitted * 9


class GrowingList:
    """A list that grows, but that events carry only as a whole, such as the citations of a text.

    The list is emitted after growth by an eighth. All emissions together stay linear in its length.

    Args:
        emitted: The items that it has from the start, which have been emitted.
        size: Their size.

    Example:
        >>> citations = GrowingList()
        >>> citations.add("a")
        >>> citations.take(), citations.take()
        (['a'], None)
    """

    __slots__ = ("_emitted", "_items", "_size")

    def __init__(self, emitted: Iterable[Any] = (), size: int = 0) -> None:
        self._items = list(emitted)
        self._size = self._emitted = size

    def add(self, item: Any, size: int = 1) -> None:
        self._items.append(item)
        self._size += size

    def take(self, *, at_end: bool = False) -> list[Any] | None:
        """The whole list, to be emitted now, if it is due; at the end, if it has grown at all."""
        if not (self._size > self._emitted if at_end else due(self._size, self._emitted)):
            return None
        self._emitted = self._size
        return self._items
