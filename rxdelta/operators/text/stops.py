"""The filter of `until_sequence`: a text up to the first of some sequences."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rxdelta.core import InvalidValueError, is_list
from rxdelta.operators.text.unfinished import unfinished

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Sequences", "Stops"]


class Sequences:
    """The sequences, checked. Where two begin at one place, the shorter one is found.

    Raises:
        InvalidValueError: There are none, or one is no text or empty.
    """

    def __init__(self, sequences: Sequence[Any]) -> None:
        wrong = next((one for one in sequences if not isinstance(one, str) or not one), None)
        if not sequences or wrong is not None or any(one == "" for one in sequences):
            advice = "write until_sequence(*sequences)" if is_list(wrong) else ""
            wanted = "must be one or more texts that aren't empty"
            raise InvalidValueError.of([("sequences", sequences if wrong is None else wrong, wanted, advice)])
        self.pattern = re.compile("|".join(map(re.escape, sorted(sequences, key=len))))
        self.waiting, _ = unfinished(self.pattern)


class Stops:
    """One block's text up to the first sequence. It holds only what may be the beginning of one.

    Attributes:
        hit: The sequence that has been found; the text ends before it.
    """

    __slots__ = ("_held", "_sequences", "hit")

    @property
    def changes(self) -> Sequence[tuple[int, int, int]]:
        return ()  # no part has another length

    def __init__(self, sequences: Sequences) -> None:
        self._sequences = sequences
        self._held = ""
        self.hit: str | None = None

    def feed(self, text: str) -> Sequence[str]:
        """Take more of the text, and return what is certain."""
        if self.hit is not None:
            return ()
        whole = self._held + text if self._held else text
        found = self._sequences.waiting.search(whole)
        if found is None or found.start() == len(whole):
            self._held = ""
            return (whole,)
        return self._until(whole, found.start())

    def close(self) -> Sequence[str]:
        """Return the rest: the text has ended."""
        whole, self._held = self._held, ""
        found = self._sequences.pattern.search(whole)
        if found is not None:
            return self._until(whole, found.start())
        return (whole,) if whole else ()

    def _until(self, text: str, place: int) -> Sequence[str]:
        """The text up to where a sequence begins, or may have begun."""
        found = self._sequences.pattern.match(text, place)
        self.hit = None if found is None else found[0]
        self._held = text[place:] if found is None else ""
        return (text[:place],) if place else ()
