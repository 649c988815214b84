"""Splits text into units, all that are certain at once. For filters of text, which have no clock."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from rxdelta.core import InvalidValueError, did_you_mean
from rxdelta.cutting.cutter import LONGEST, WORD, AtOnce, Cutter, Rule, rule_of
from rxdelta.cutting.graphemes import graphemes, has_joining, is_border
from rxdelta.cutting.sentences import LONGEST_SENTENCE, BySentence, may_end

__all__ = ["By", "Splitter", "splitter_of"]

By: TypeAlias = (
    Literal["word", "line", "sentence", "char", "block"] | int | re.Pattern[str] | Callable[[str], str | None]
)

_NAMES = ("word", "line", "sentence", "char", "block")


class Splitter(Protocol):
    """Takes one text in any lengths, and returns it in units, which depend on the text alone."""

    def feed(self, text: str, /) -> list[str]:
        """Take more of the text, and return the units that are certain now."""
        ...

    def close(self) -> list[str]:
        """Return the rest: the text has ended."""
        ...


def splitter_of(by: By, name: str = "by") -> Callable[[], Splitter]:
    """Return a factory for a text's splitter. `InvalidValueError` for an unknown kind of units.

    Args:
        by: The kind of units.
        name: What the caller's argument is called, for errors.
    """
    if by == "block":
        return _Whole
    if by == "char":
        return lambda: _ByNumber(1)
    if isinstance(by, int) and not isinstance(by, bool) and by > 0:
        return lambda: _ByNumber(by)
    if by == "sentence":
        return _BySentence
    if isinstance(by, re.Pattern) or callable(by) or by in ("word", "line"):
        make_rule, longest = rule_of(by, name, timed=False)
        if by == "line":
            return lambda: _ByLine(make_rule(), longest, _lines)
        at_once = _words if by == "word" else None
        return lambda: _ByRule(make_rule(), longest, at_once)
    wanted = (
        f"must be {', '.join(map(repr, _NAMES))}, a number of characters, a compiled pattern or a function"
    )
    raise InvalidValueError.of([(name, by, wanted, did_you_mean(by, _NAMES))])


class _ByRule:
    """Units by a rule. Ordinary text is split at once, the rest by the cutter."""

    __slots__ = ("_at_once", "_cutter")

    def __init__(self, rule: Rule, longest: int, at_once: AtOnce | None = None) -> None:
        self._cutter = Cutter(rule, longest)
        self._at_once = at_once

    def feed(self, text: str) -> list[str]:
        return self._cutter.pieces(text, self._at_once)

    def close(self) -> list[str]:
        return self._cutter.pieces("", final=True)


class _ByLength(_ByRule):
    """Units with a length, or an end that is seen in the new text alone. Text is joined when there may be one.

    Joining copies all of the text that is held, so it isn't done for each delta.
    """

    __slots__ = ("_held", "_longest", "_missing")

    def __init__(self, rule: Rule, longest: int, at_once: AtOnce | None = None) -> None:
        super().__init__(rule, longest, at_once)
        self._held: list[str] = []
        self._longest = longest
        self._missing = longest  # the longest unit is certain when one character more has come

    def feed(self, text: str) -> list[str]:
        self._held.append(text)
        self._missing -= len(text)
        return self._join() if self._missing < 0 or self._may_end(text) else []

    def close(self) -> list[str]:
        return [*self._join(), *super().close()]

    def _may_end(self, text: str) -> bool:  # noqa: ARG002
        return False

    def _join(self) -> list[str]:
        text = "".join(self._held)
        self._held.clear()
        units = self._cutter.pieces(text, self._at_once)
        self._missing = self._longest - self._cutter.left
        return units


class _ByNumber(_ByLength):
    __slots__ = ()

    def __init__(self, number: int) -> None:
        super().__init__(_never, number, _graphemes if number == 1 else self._slices)

    def _slices(self, text: str) -> list[str] | None:
        number = self._longest
        return None if has_joining(text) else [text[at : at + number] for at in range(0, len(text), number)]


class _ByLine(_ByLength):
    __slots__ = ()

    def _may_end(self, text: str) -> bool:
        return "\n" in text


class _BySentence(_ByLength):
    __slots__ = ("_rule",)

    def __init__(self) -> None:
        self._rule = BySentence()
        super().__init__(self._rule, LONGEST_SENTENCE)

    def _may_end(self, text: str) -> bool:
        return self._rule.is_undecided or self._cutter.is_undecided or may_end(text)


class _Whole:
    """The whole text is one unit."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: list[str] = []

    def feed(self, text: str) -> list[str]:
        self._held.append(text)
        return []

    def close(self) -> list[str]:
        whole = "".join(self._held)
        self._held.clear()
        return [whole] if whole else []


def _never(window: str, seen: int) -> int:  # noqa: ARG001
    return 0


def _graphemes(text: str) -> list[str]:
    return graphemes(text) if has_joining(text) else list(text)


def _words(text: str) -> list[str] | None:
    words = WORD.findall(text)
    if not words or not _are_short(text, words, LONGEST["word"]):
        return None
    if not text.isascii() and has_joining(text):
        at = 0
        for word in words[:-1]:
            at += len(word)
            if not is_border(text, at):
                return None
    return words


def _lines(text: str) -> list[str] | None:
    *whole, rest = text.split("\n")
    lines = [line + "\n" for line in whole]
    lines.append(rest)
    return lines if _are_short(text, lines, LONGEST["line"]) else None


def _are_short(text: str, units: list[str], longest: int) -> bool:
    return len(text) <= longest or max(map(len, units)) <= longest
