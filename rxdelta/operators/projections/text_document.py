"""The text of a message as one document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.operators.projections.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rxdelta.core import Block, BlockFold, Change
    from rxdelta.operators.projections.projection import Growth

__all__ = ["TextDocument"]


class TextDocument:
    """The text blocks of a message as one document, in their order.

    A block is read when the block before it has ended. A change before the reading position restarts the reading.
    """

    def __init__(self) -> None:
        self._prose = Prose("text")
        self._order: list[BlockFold] = []
        self._known: set[BlockFold] = set()
        self._reached = 0  # the number of blocks that have been read; all but the last of them have ended

    def keeps(self, _: Block) -> bool:
        """Whether the document needs a block after its end: any, since a second finish may make a text of it."""
        return True

    def grown(self, fold: BlockFold, piece: str) -> str:
        """Return more text of the document, which is empty if the block isn't being read."""
        piece = self._prose.grown(fold, piece)
        return piece if fold is self._last() else ""

    def changed(self, changes: Iterable[Change]) -> Iterator[Growth]:
        """Return more text of the document, or the beginning of a new one."""
        for change in changes:
            growth = self._prose.changed(change)
            if growth is None:
                continue
            fold = change.fold
            if fold not in self._known:
                self._insert(fold)
            elif fold is self._last() and growth[0] == "more":
                yield growth
            elif fold in self._order[: self._reached]:
                self._reached = 0
        while self._reached < len(self._order):
            last = self._last()
            if last is not None and last.block.open and self._prose.owns(last.block):
                return
            text = self._prose.text(self._order[self._reached].block)
            self._reached += 1
            yield ("begun" if last is None else "more"), text

    def _last(self) -> BlockFold | None:
        """The last block that has been read."""
        return self._order[self._reached - 1] if self._reached else None

    def _insert(self, fold: BlockFold) -> None:
        """Insert a block as a message does: a number before the next higher one, any other key at the end."""
        key, place = fold.block.key, len(self._order)
        if isinstance(key, int):
            for at in range(place - 1, -1, -1):
                other = self._order[at].block.key
                if isinstance(other, int):
                    if other < key:
                        break
                    place = at
        self._order.insert(place, fold)
        self._known.add(fold)
        if place < self._reached:
            self._reached = 0
