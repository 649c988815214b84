"""The text of one block on its way: its filter, and what is shown of it.

`Units` is the filter whose units a function may replace; `Lanes` says which of a stream's replies are over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from rxdelta.core import Event, InvalidValueError, freeze, is_mapping
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    MessageFinish,
    MessageStart,
    StreamError,
    ToolCallDelta,
    reasoning_delta,
    text_delta,
)
from rxdelta.cutting import By, Splitter, splitter_of

Lane: TypeAlias = tuple[str | None, int]
"""A run and a choice."""


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


class Lanes:
    """The replies that have begun: a choice of a run each."""

    def __init__(self) -> None:
        self._is_over: dict[Lane, bool] = {}
        self.ended: set[Lane] = set()
        """Those that were ended here."""

    def begin(self, event: Event) -> Lane | None:
        """Note an event; return its reply, if it names one. An error concerns all, whatever it names."""
        choice: int | None = getattr(event, "choice", None)
        if choice is None or type(event) is StreamError:
            if type(event) is AttemptReset:  # takes back also those that are over
                again = [lane for lane in self._is_over if event.run_id in (None, lane[0])]
                self._is_over.update(dict.fromkeys(again, False))
                self.ended.difference_update(again)
            return None
        lane = (event.run_id, choice)
        if type(event) is MessageStart or lane not in self._is_over:
            self._is_over[lane] = False
        if type(event) is MessageFinish:
            self._is_over[lane] = True
        return lane

    def end(self, lane: Lane) -> None:
        self.ended.add(lane)

    def all_over(self) -> bool:
        """Whether no reply that has begun still comes."""
        return all(over or lane in self.ended for lane, over in self._is_over.items())


class Units:
    """A filter of one text: takes it in any lengths, and returns its units, or what a function makes of them.

    The units depend on the text alone. Joined, they are the text.
    """

    __slots__ = ("_at", "_fn", "_splitter", "changes")

    def __init__(self, splitter: Splitter, fn: Callable[[str], str] | None = None) -> None:
        self._splitter = splitter
        self._fn = fn
        self._at = 0  # of the next unit, in the source's text
        self.changes: list[tuple[int, int, int]] = []
        """(position in the source's text, length there, length now) of each unit that has another length now."""

    def feed(self, text: str) -> Sequence[str]:
        """Take more of the text, and return what is certain now: one string for each unit."""
        units = self._splitter.feed(text)
        return units if self._fn is None or not units else self._replaced(units, self._fn)

    def close(self) -> Sequence[str]:
        """Return the rest: the text has ended."""
        units = self._splitter.close()
        return units if self._fn is None else self._replaced(units, self._fn)

    def _replaced(self, units: list[str], fn: Callable[[str], str]) -> list[str]:
        replaced: list[str] = []
        for unit in units:
            text: object = fn(unit)
            if not isinstance(text, str):
                raise InvalidValueError.of([("fn", text, "must return a text")])
            replaced.append(text)
            if len(text) != len(unit):
                self.changes.append((self._at, len(unit), len(text)))
            self._at += len(unit)
        return replaced


def units_of(by: By, name: str = "by") -> Callable[[Callable[[str], str] | None], Units]:
    """Return a factory for a text's filter, which takes the function for its units or `None`.

    Args:
        by: The kind of units, as in `map_text`.
        name: The name of the caller's argument, for errors.

    Raises:
        InvalidValueError: For an unknown kind, and for a pattern that matches the empty text.
    """
    make = splitter_of(by, name)
    return lambda fn: Units(make(), fn)
