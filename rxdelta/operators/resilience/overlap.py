"""The beginning of a continuation that repeats the end of the text which broke off."""

from __future__ import annotations

import re
from unicodedata import category

from rxdelta.core import SPACELESS

__all__ = ["Overlap"]

_IN_WORD = re.compile(rf"[^\W{SPACELESS}]")


class Overlap:
    """Finds the longest overlap, and gives the text behind it.

    An overlap is the end of the broken text and the beginning of the new one. It begins where a word begins, and has
    at least one letter or digit. It ends where the text broke off, which may be within a word. The new text is held only
    while it may be the beginning of an overlap. This is the search of Knuth, Morris and Pratt for the new text in the
    broken one, so that the work is linear in both.

    Args:
        broken: The text that broke off.
        least: The least number of characters of an overlap.

    Attributes:
        length: The number of characters of the overlap; 0 if there is none, or none yet.
    """

    def __init__(self, broken: str, least: int) -> None:
        self.length = 0
        self._broken = broken
        self._at = 0  # where the overlap would begin in the broken text
        self._last = min(len(broken) - least, _last_letter(broken))  # where it may begin at the latest
        self._settled = self._last < 0
        self._new: list[str] = []  # the characters that are held
        self._matched = 0  # how many of them are those of the broken text
        # For each of them: the length of the longest end here that is a beginning of the new text, too.
        self._borders: list[int] = []

    @property
    def holds(self) -> bool:
        """Whether new text is held."""
        return bool(self._new) and not self._settled

    def feed(self, piece: str) -> str:
        """Take a piece of the new text; return what is certainly behind the overlap."""
        if self._settled:
            return piece
        room = len(self._broken) - len(self._new)
        for letter in piece[:room]:
            self._hold(letter)
        found = self._search(final=False)
        return found + piece[room:] if self._settled else ""

    def close(self) -> str:
        """The new text has ended: return what was held and is no overlap."""
        return self._search(final=True) if self._new and not self._settled else ""

    def _hold(self, letter: str) -> None:
        border = self._borders[-1] if self._borders else 0
        while border and self._new[border] != letter:
            border = self._borders[border - 1]
        if self._new and self._new[border] == letter:
            border += 1
        self._new.append(letter)
        self._borders.append(border)

    def _search(self, *, final: bool) -> str:
        broken, new = self._broken, self._new
        while self._at <= self._last:
            place = self._at + self._matched
            if place == len(broken):
                self.length = self._matched
                break
            if self._matched < len(new) and broken[place] == new[self._matched]:
                self._matched += 1
            elif self._matched == len(new) and not final:
                return ""
            else:
                self._shift()
        self._settled = True
        return "".join(new[self.length :])

    def _shift(self) -> None:
        """Go to the next place where the new text begins like this part of the broken one, and a word begins."""
        while self._at <= self._last:
            if self._matched:
                border = self._borders[self._matched - 1]
                self._at += self._matched - border
                self._matched = border
            else:
                found = self._broken.find(self._new[0], self._at + 1)
                self._at = found if found >= 0 else len(self._broken)
            if self._at <= self._last and _begins_word(self._broken, self._at):
                return


def _last_letter(text: str) -> int:
    """The place of the last letter or digit; -1 if there is none."""
    return next((at for at in range(len(text) - 1, -1, -1) if text[at].isalnum()), -1)


def _begins_word(text: str, at: int) -> bool:
    return not (_is_in_word(text[at - 1]) and _is_in_word(text[at]))


def _is_in_word(letter: str) -> bool:
    """Whether the letter and a neighbour like it are of one word. In scripts without spaces each letter is a word."""
    return _IN_WORD.match(letter) is not None or category(letter).startswith("M")
