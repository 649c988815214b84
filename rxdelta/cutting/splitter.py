"""Splits text into units, all that are certain at once. For filters of text, which have no clock.

**The ends of sentences**, in any script, by the text alone. Most scripts end a sentence with a mark and white space. A
small letter behind them continues the sentence. A dot may also belong to a number or an abbreviation, such as `3.50`,
`Dr.` or `U.S.`. In doubt (`in the U.S. The`), two sentences are taken as one. Chinese, Hindi, Arabic, Amharic and others
have marks of their own, which always end a sentence. A line break ends a sentence: a heading, an item of a list or a line
of a table. A small letter at the beginning of the next line continues the sentence, because text may be wrapped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from rxdelta.core import InvalidValueError, did_you_mean
from rxdelta.cutting.cutter import LONGEST, WORD, AtOnce, Cutter, Rule, rule_of
from rxdelta.cutting.graphemes import graphemes, has_joining, is_border

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
        name: The name of the caller's argument, for errors.
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


LONGEST_SENTENCE = 600
"""A longer sentence is cut, at a line, a comma or a space if there is one in its second half."""

_SOFT = ".!?\u2026\u037e"
_FINAL = (
    "\u3002\uff01\uff1f\uff61\u203c\u2047\u2048\u2049"  # Chinese, Japanese
    "\u0964\u0965\u061f\u06d4\u0589\u1362\u1367\u1368"  # Indic, Arabic, Urdu, Armenian, Ethiopic
    "\u104b\u17d4\u17d5\u0f0d\u0f0e"  # Burmese, Khmer, Tibetan
)
_SOFT_MARKS, _FINAL_MARKS = frozenset(_SOFT), frozenset(_FINAL)
_CLOSING = "\"')\\]}*_~`\u2019\u201d\u2018\u201c\u00bb\u00ab\u203a\u2039\u300d\u300f\u3011\u3015\u3009\u300b\uff09\uff3d\uff5d"
_ANY_MARK = re.compile(rf"[{_SOFT}{_FINAL}\n;]")
_MARK = re.compile(rf"[{_SOFT}{_FINAL}\n]|(?<=[\u0370-\u03ff\u1f00-\u1fff]);")  # the Greek question mark
_END = re.compile(
    rf"""(
        \n
        | .
        (?:
            [{_SOFT}{_FINAL}{_CLOSING}]
            | [\ \u00a0\u202f]\u00bb(?!\w)     # a French quotation's end
            | \[\^?\d{{1,3}}\]                 # the number of a source
            | \[\^?\d{{0,3}}\Z                 # which may become one
        )*
    )(\s*)""",
    re.VERBOSE,
)

_BETWEEN_WORDS = re.compile(r"[^\w.\-]|_")
_LONGEST_WORD = 12  # that may be shortened
_LETTERS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")  # U.S, z.B, e.g
_SPACED_LETTERS = re.compile(r"(?:\b[^\W\d_]\.\s[^\W\d_]|\bp\.\sex)\Z")  # i. d. R, u. a, p. ex
_ITEM = re.compile(r"(?:\A|\n)[\s>#*_+\-]*(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})\Z")  # the number of an item
_OWN_LINE = re.compile(r"(?:\A|\n)(?:#{1,6}\s|```|~~~)[^\n]*\Z")  # a heading, a fence

_BEFORE_NAMES = re.compile(
    "mrs?|m[sx]|dr|ph\\.d|prof|st|rev|gen|col|capt|lt|sgt|sen|gov|vs|cf|approx"  # English
    "|hr|fr|z|ca|bzw|vgl|ggf|evtl|inkl|sog|mme|mlle|sra?|srta|dra|uds?|sig|dott|ing"  # German, French, Spanish, Italian
    "|\u0433|\u0443\u043b|\u0438\u043c|\u043f\u0440\u043e\u0444",  # Russian
    re.IGNORECASE,
)
_BEFORE_NUMBERS = re.compile(
    "n[or]|nos|n[u\u00fa]m|figs?|abb|tab|vol|bd|pp?|p\u00e1g|ch|kap|sec|abs|art|eq|v"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec",
    re.IGNORECASE,
)

_PAUSES = (
    ("\n",),
    (", ", "; ", ": ", "\u060c ", "\u061b ", "\u104a", "\u1363", "\u3001", "\uff0c", "\uff1b"),
    (" ",),
)


class BySentence:
    """A rule for one `Cutter`: a sentence with the white space after it. Certain when the next character has come."""

    __slots__ = ("_at", "is_undecided")

    def __init__(self) -> None:
        self._at = 0  # in front of it no sentence ends
        self.is_undecided = False  # whether a mark stands there

    def __call__(self, window: str, seen: int) -> int:
        size = len(window)
        at = (self._at if seen else 0) or size - len(window.lstrip())
        self.is_undecided = False
        while (mark := _MARK.search(window, at)) is not None:
            at = mark.start()
            end = _END.match(window, at)
            if end is None or end.end() == size:
                self.is_undecided = True
                break
            if _is_end(window, end):
                return end.end()
            at = end.end(1)
        else:
            at = size
        self._at = 0 if window.isspace() else at
        return 0 if size < LONGEST_SENTENCE else _pause(window)


def may_end(text: str) -> bool:
    """Whether a sentence may end within this text, whatever stands before and behind."""
    return _ANY_MARK.search(text) is not None


def _is_end(text: str, end: re.Match[str]) -> bool:
    marks, space = end.groups()
    follows = text[end.end()]
    lines = end[0].count("\n")
    goes_on = follows.islower() and not "\u10d0" <= follows <= "\u10ff"  # Georgian has small letters only
    if lines:
        is_wrapped = lines == 1 and goes_on and end[0][-1] == "\n"
        return not is_wrapped or _OWN_LINE.search(text, 0, end.start()) is not None
    if not _FINAL_MARKS.isdisjoint(marks):
        return True
    if not space or goes_on:
        return False
    if marks != "." and (marks[0] != "." or not _SOFT_MARKS.isdisjoint(marks[1:])):
        return True
    return not _is_part(text, end.start(), follows)


def _is_part(text: str, at: int, follows: str) -> bool:
    """Whether the dot at this position belongs to a shortened word or to the number of an item."""
    word = _BETWEEN_WORDS.split(text[max(0, at - _LONGEST_WORD) : at])[-1]
    if len(word) == _LONGEST_WORD:
        return False
    return (
        (
            len(word) == 1 and word.isupper() and word != "I" and text[at - 2 : at - 1] != "\u00b0"
        )  # an initial
        or _BEFORE_NAMES.fullmatch(word) is not None
        or (follows.isdigit() and _BEFORE_NUMBERS.fullmatch(word) is not None)
        or ("." in word and _LETTERS.fullmatch(word) is not None)
        or (len(word) <= 2 and _SPACED_LETTERS.search(text, max(0, at - 5), at) is not None)
        or (len(word) <= 4 and _ITEM.search(text, 0, at) is not None)
    )


def _pause(window: str) -> int:
    """Return the place to cut a sentence without an end."""
    half = len(window) // 2
    for marks in _PAUSES:
        cut = max(at + len(mark) if (at := window.rfind(mark, half)) > 0 else 0 for mark in marks)
        if cut:
            return cut
    return len(window)
