"""The text or the reasoning of a message, as pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeGuard

from rxdelta.core import ContentPart, freeze, raw_text
from rxdelta.operators.projections.projection import Growth, text_growth

if TYPE_CHECKING:
    from rxdelta.core import Block, BlockFold, Change

__all__ = ["Prose"]


class Prose:
    """What the changes of a message's blocks mean for the texts of one type."""

    def __init__(self, type: Literal["text", "reasoning"]) -> None:
        self._type = type
        self.halves: dict[BlockFold, str] = {}  # first halves of surrogate pairs, which wait for the second

    def owns(self, block: Block | None) -> TypeGuard[ContentPart]:
        """Whether the block is of the type."""
        return isinstance(block, ContentPart) and block.type == self._type

    def text(self, block: Block | None) -> str:
        """The block's text, if the block is of the type."""
        return (block.text or "") if self.owns(block) else ""

    def grown(self, fold: BlockFold, piece: str) -> str:
        """The whole characters that a piece of a block completes."""
        if fold.block.type != self._type:
            return ""
        if not self.halves and piece.isascii():
            return piece
        piece = self.halves.pop(fold, "") + piece
        if "\ud800" <= piece[-1] <= "\udbff":
            piece, self.halves[fold] = piece[:-1], piece[-1]
        whole: str = freeze(piece)
        return whole

    def changed(self, change: Change) -> Growth | None:
        """What another change means; `None` if it concerns no block of the type. The text may be empty."""
        if change.fold is None:
            return None
        block, before = change.fold.block, change.before
        if not (self.owns(block) or self.owns(before)):
            return None
        anew = change.kind in ("opened", "restarted")
        if not anew and self.owns(block) and self.owns(before) and raw_text(block) is raw_text(before):
            return "more", ""
        self.halves.pop(change.fold, None)
        return ("begun", self.text(block)) if anew else text_growth(self.text(before), self.text(block))
