"""The text of one block on its way: its filter, and what is shown of it."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Protocol

from rxdelta.core import freeze, is_mapping
from rxdelta.core.events import BlockDelta, ToolCallDelta, reasoning_delta, text_delta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rxdelta.core import Event
    from rxdelta.operators.text.lanes import Lane

__all__ = ["Filter", "Text"]


class Filter(Protocol):
    """One block's text: pieces in, pieces out."""

    @property
    def changes(self) -> Sequence[tuple[int, int, int]]:
        """For each part that was replaced: its place in the text, its length there, and its length now."""
        ...

    def feed(self, text: str, /) -> Sequence[str]:
        """Take more of the text, and return what is certain."""
        ...

    def close(self) -> Sequence[str]:
        """Return the rest: the text has ended."""
        ...


class Text:
    """The text of one block, as the source has it and as readers get it."""

    __slots__ = (
        "_counted",
        "_ends",
        "_half",
        "_moved",
        "_shown",
        "cited",
        "contradicts",
        "filter",
        "index",
        "is_over",
        "kind",
        "lane",
    )

    def __init__(self, filter: Filter, kind: str, event: Any, *, contradicts: bool = False) -> None:
        self.kind = kind
        """The type of the part; `arguments` of a call."""
        self.index = event.index
        self.cited: Any = None
        """The newest citations of an open block: their places may have to move again."""
        self.contradicts = contradicts
        """Whether it replaces what the block's text was before."""
        self.is_over = False
        """Whether it has ended, and not been cut off."""
        self.filter = filter
        self.lane: Lane = (event.run_id, event.choice)
        self._half = ""  # of a surrogate pair
        self._shown: list[str] = []
        self._counted: object = None  # the changes of which the next two tell
        self._ends: list[int] = []  # of the replaced parts
        self._moved: list[int] = []  # how far what is behind them has moved

    @property
    def moves(self) -> bool:
        """Whether places in the text have moved."""
        return bool(self.filter.changes)

    def feed(self, piece: str) -> Sequence[str]:
        if self._half or not piece.isascii():
            piece, self._half = self._half + piece, ""
            if piece and "\ud800" <= piece[-1] <= "\udbff":
                piece, self._half = piece[:-1], piece[-1]
            piece = freeze(piece)
        return self.filter.feed(piece) if piece else ()

    def go_on(self, more: str) -> Sequence[str]:
        """As `feed` for what an event has that says the text whole, so that no half of a character is left."""
        self._half = ""
        return self.feed(more)

    def close(self, *, is_whole: bool = True) -> Sequence[str]:
        """The rest. Half of a character is shown as broken at the text's own end; where it was cut off, the rest may come."""
        half, self._half = freeze(self._half) if is_whole else "", ""
        return (*(self.filter.feed(half) if half else ()), *self.filter.close())

    def whole(self, text: str) -> Sequence[str]:
        return (*self.feed(text), *self.close()) if text else ()

    def show(self, pieces: Sequence[str]) -> None:
        self._shown += pieces

    @property
    def shown(self) -> str:
        if len(self._shown) > 1:
            self._shown = ["".join(self._shown)]
        return self._shown[0] if self._shown else ""

    def place(self, place: int) -> int:
        """Where a place in the text is now."""
        number = self._changes_before(place)
        moved = self._moved[number]
        if number < len(self.filter.changes):
            start, _, now = self.filter.changes[number]
            if start < place:
                return start + moved + min(place - start, now)
        return place + moved

    def has_changed(self, citation: Any) -> bool:
        """Whether the place that a citation names has another text now."""
        start, end = (
            citation.get(name) if is_mapping(citation) else None for name in ("start_index", "end_index")
        )
        if type(start) is not int or type(end) is not int:
            return False
        changes, number = self.filter.changes, self._changes_before(start)
        return number < len(changes) and changes[number][0] < end

    def _changes_before(self, place: int) -> int:
        """How many of the replaced parts end at or in front of a place.

        A text may have as many places as parts, so no part is counted twice.
        """
        changes = self.filter.changes
        if self._counted is not changes:
            self._counted, self._ends, self._moved = changes, [], [0]
        for start, length, now in changes[len(self._ends) :]:
            self._ends.append(start + length)
            self._moved.append(self._moved[-1] + now - length)
        return bisect_right(self._ends, place)

    def citing(self) -> Event:
        run_id, choice = self.lane
        return BlockDelta(self.index, {"citations": self.cited}, choice=choice, run_id=run_id)

    def delta(self, piece: str) -> Event:
        run_id, choice = self.lane
        if self.kind == "arguments":
            return ToolCallDelta(self.index, piece, choice=choice, run_id=run_id)
        make = reasoning_delta if self.kind == "reasoning" else text_delta
        return make(self.index, piece, choice, run_id=run_id)
