"""The units of one block's text, each of which a function may replace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.core import InvalidValueError
from rxdelta.cutting import splitter_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rxdelta.cutting import By, Splitter

__all__ = ["Units", "units_of"]


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
        name: What the caller's argument is called, for errors.

    Raises:
        InvalidValueError: For an unknown kind, and for a pattern that matches the empty text.
    """
    make = splitter_of(by, name)
    return lambda fn: Units(make(), fn)
