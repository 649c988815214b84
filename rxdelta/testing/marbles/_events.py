"""Lines of model events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import InvalidValueError, RxDeltaError, events
from rxdelta.testing.marbles._forms import STRUCTURE, forms, lane_of, switch
from rxdelta.testing.marbles._items import read_item
from rxdelta.testing.marbles._scanner import Scanner, quoted, shown_literal
from rxdelta.testing.marbles._told import Told

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["EventNotation"]


class EventNotation:
    """The notation of model events, and what the line has told so far."""

    has_words = True

    def __init__(self) -> None:
        self._told = Told()

    def read(self, scanner: Scanner) -> list[Any]:
        """The events of the item that comes next; a change of the lane has none."""
        begin = scanner.at
        try:
            found = read_item(scanner, self._told)
        except (RxDeltaError, ValueError) as error:
            if isinstance(error, InvalidValueError) and error.field == "line":
                raise
            scanner.fail(str(error), begin)
        self._told.note(found)
        return found

    def finish(self) -> list[Any]:
        found = self._told.finish()
        self._told.note(found)
        return found

    def drawn(self, values: Sequence[Any], completes: bool) -> tuple[list[str], bool]:
        """The items that say these values, which come at one time, and whether `|` completes them.

        Args:
            values: The values.
            completes: Whether the stream completes at this time.
        """
        left = [*values]
        items: list[str] = []
        while left:
            if completes and _are_same(self._told.finish(), left):
                return items, True
            item, said = self._item(left)
            items.append(item)
            left = left[said:]
        return items, completes and not self._told.finish()

    def _item(self, left: Sequence[Any]) -> tuple[str, int]:
        """The shortest form of the next item, and how many of the values it says."""
        first, told = left[0], self._told
        if type(first) not in events.EVENT_TYPES:
            return shown_literal(first), 1
        here = told.lane
        told.lane = lane = lane_of(first, here)
        best, most = "", 0
        for item in forms(left, told):
            said = _said(item, told)
            if len(said) > most and _are_same(said, left[: len(said)]):
                best, most = item, len(said)
                if most == len(left) or type(left[most - 1]) not in STRUCTURE:
                    break
        if most:
            told.note(left[:most])
            return switch(here, lane) + best, most
        told.lane = here
        item = f"({quoted(first.to_dict())})"
        told.note([first])
        return item if _are_same(_said(item, told), [first]) else shown_literal(first), 1


def _are_same(said: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether these are the same events, in the fields too that aren't compared."""
    return len(said) == len(wanted) and all(
        type(one) is type(other) and one == other and one.to_dict() == other.to_dict()
        for one, other in zip(said, wanted, strict=True)
    )


def _said(item: str, told: Told) -> Sequence[Any]:
    scanner = Scanner(item)
    try:
        found = read_item(scanner, told)
    except (RxDeltaError, ValueError):
        return ()
    return found if scanner.at == len(item) else ()
