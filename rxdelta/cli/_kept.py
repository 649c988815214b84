"""What is kept of a stream that may be of any length: some items of many, and how densely events came."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

__all__ = ["Some", "Ticks"]

T = TypeVar("T")

_FARTHEST = 1e15  # bins; a file may claim any time


class Some(Generic[T]):
    """The first and the last of many items.

    Args:
        first: How many of the first items are kept.
        last: How many of the last ones, beyond those.
    """

    def __init__(self, first: int, last: int) -> None:
        self._most = first
        self.first: list[T] = []
        self.last: deque[T] = deque(maxlen=last)
        self._count = 0

    def add(self, item: T) -> None:
        self._count += 1
        if len(self.first) < self._most:
            self.first.append(item)
        else:
            self.last.append(item)

    def __len__(self) -> int:
        """The number of all items, also of those that weren't kept."""
        return self._count

    @property
    def left_out(self) -> int:
        """The number of items between the first ones and the last ones that weren't kept."""
        return self._count - len(self.first) - len(self.last)


class Ticks:
    """How much came where, along an axis whose length isn't known: bins, which double in width when there are too many.

    Args:
        width: The width of the first bins, in units of the axis.
        most: The number of bins that are kept.
    """

    def __init__(self, width: float, most: int = 1000) -> None:
        self._most = most
        self.width = width
        self._bins: dict[int, int] = {}

    def add(self, position: float, weight: int) -> None:
        """Count a weight at a position, which is 0 or more."""
        place = int(min(position / self.width, _FARTHEST))
        self._bins[place] = self._bins.get(place, 0) + weight
        while len(self._bins) > self._most:
            self.width *= 2
            wider: dict[int, int] = {}
            for old, weighed in self._bins.items():
                wider[old // 2] = wider.get(old // 2, 0) + weighed
            self._bins = wider

    def at(self) -> list[tuple[float, int]]:
        """The positions of the bins' beginnings that have something, with their weights, in order."""
        return [(place * self.width, weight) for place, weight in sorted(self._bins.items())]
