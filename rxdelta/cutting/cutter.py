"""Cuts text into pieces. The cuts depend on the text alone, not on the deltas in which it arrived.

A rule reads the text since the last cut as if it came one character at a time. As soon as the next cut is certain, the
rule returns it. The cut is then moved to the next border between graphemes. Every rule has a longest piece, so that
the work for a character is bounded for any text.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from time import thread_time
from typing import Literal, TypeAlias

from rxdelta.core import SPACELESS, InvalidValueError, did_you_mean
from rxdelta.cutting.graphemes import grapheme_end, is_border, is_unfinished

Chunking: TypeAlias = Literal["word", "line", "char"] | re.Pattern[str] | Callable[[str], str | None]
Rule: TypeAlias = Callable[[str, int], int]
"""Returns the position of the next cut in this text, or 0 if it isn't certain yet. The rule has already read the given
number of characters."""

AtOnce: TypeAlias = Callable[[str], "list[str] | None"]
"""Returns all pieces of this text, the last of which may grow, or `None` if the text needs the rule."""

_LOG = logging.getLogger("rxdelta")

LONGEST = {"word": 256, "line": 4096, "char": 1}  # in code points; "word" also for patterns and functions
_LONGEST_RISKY = 20  # for a pattern whose time may be exponential in this length

_SLOW = 0.02  # seconds of this thread's time for one search
_MAX_SLOW = 3  # slow searches before a pattern is given up

_TRAILING = (
    "\u3001\u3002\u300d\u300f\uff01\uff09\uff0c\uff1a\uff1b\uff1f"  # punctuation of scripts without spaces
)
WORD = re.compile(rf"\s*(?:[{SPACELESS}][{_TRAILING}]*|[^\s{SPACELESS}]+)\s*")


def rule_of(
    chunking: Chunking, name: str = "chunking", *, timed: bool = True
) -> tuple[Callable[[], Rule], int]:
    """Return a factory for a subscription's rule, and the longest piece. `InvalidValueError` for an unknown rule.

    Args:
        chunking: The kind of pieces.
        name: The name of the caller's argument, for errors.
        timed: Whether a slow pattern is given up, so that the cuts may depend on the machine. Otherwise they depend on
            the text alone.
    """
    if isinstance(chunking, re.Pattern):
        if not isinstance(chunking.pattern, str):
            raise InvalidValueError.of([(name, chunking, "must be a pattern for text, not for bytes")])
        _refuse_empty(chunking, name)
        pattern = _ByTimedPattern if timed else _ByPattern
        return lambda: pattern(chunking), _LONGEST_RISKY if _is_risky(chunking) else LONGEST["word"]
    if isinstance(chunking, str):
        named: Rule | None = {"word": _by_word, "line": _by_line, "char": _by_character}.get(chunking)
        if named is not None:
            return lambda: named, LONGEST[chunking]
    elif callable(chunking):
        return lambda: _ByFunction(chunking, name), LONGEST["word"]
    wanted = "must be 'word', 'line', 'char', a compiled pattern or a function"
    raise InvalidValueError.of([(name, chunking, wanted, did_you_mean(chunking, LONGEST))])


class Cutter:
    """Takes text in any lengths, and gives it out in pieces."""

    __slots__ = ("_cut", "_edge", "_longest", "_new", "_rule", "_seen", "_start", "_text")

    def __init__(self, rule: Rule, longest: int) -> None:
        self._rule = rule
        self._longest = longest
        self._text = ""
        self._new: list[str] = []
        self._start = 0  # of the next piece
        self._edge = 0  # the last known border between graphemes
        self._seen = 0  # how many characters from the start the rule has read
        self._cut = 0  # the rule's next cut; 0 if it isn't certain yet

    def feed(self, text: str) -> None:
        self._new.append(text)

    def piece(self, *, final: bool) -> str:
        """Take the next piece; empty if it isn't certain yet, which can't be if the text is `final`."""
        text, start = self._text, self._start
        if not self._cut:
            window = text[start : start + self._longest]
            cut = self._rule(window, self._seen)
            self._seen = len(window)
            if cut or len(window) == self._longest:
                self._cut = start + (cut or self._longest)
            elif not final:
                return ""
        end = self._border(self._cut) if self._cut else len(text)
        if end < 0:
            if not final:
                return ""
            end = len(text)
        return self._take(end)

    def pieces(self, text: str, at_once: AtOnce | None = None, *, final: bool = False) -> list[str]:
        """Take more of the text, and return all pieces that are certain now. This replaces the other methods.

        The pieces are those of `piece`: `at_once` is only faster than the rule.
        """
        self._text += text
        known = at_once(self._text) if at_once is not None and not self._cut and not final else None
        if known is not None:
            self._text = known.pop() if known else ""
            self._edge = self._seen = 0
            return known
        pieces: list[str] = []
        while self.has_some and (piece := self.piece(final=final)):
            pieces.append(piece)
        self._append("")
        return pieces

    def rest(self) -> str:
        """Take all joined text, whole piece or not, except an incomplete grapheme at its end."""
        text = self._text
        end = self._border(len(text))
        if end < 0:
            end = self._edge if is_unfinished(text[self._edge :]) else len(text)
        return self._take(end)

    def all(self) -> str:
        return self._take(len(self._text))

    def join(self) -> None:
        """Append the fed text to the text to be cut.

        `feed` and `join` need one lock. The other methods may run during `feed`, on another thread.
        """
        if self._new:
            self._append("".join(self._new))
            self._new.clear()

    @property
    def has_some(self) -> bool:
        """Whether joined text is left."""
        return self._start < len(self._text)

    @property
    def left(self) -> int:
        """How many joined characters are left."""
        return len(self._text) - self._start

    @property
    def is_undecided(self) -> bool:
        """Whether a cut is known whose border isn't certain yet."""
        return self._cut > 0

    @property
    def is_empty(self) -> bool:
        return not self._new and not self.has_some

    def _border(self, cut: int) -> int:
        """The first border between graphemes at or after `cut`; -1 if it isn't certain yet."""
        text, edge = self._text, self._edge
        if cut > edge and (text[cut - 1] == "\n" or is_border(text, cut)):
            return cut
        while 0 <= edge < cut:
            self._edge = edge
            edge = grapheme_end(text, edge)
        return edge

    def _append(self, text: str) -> None:
        """Forget what has been taken, and append this text."""
        start, self._start = self._start, 0
        self._text = self._text[start:] + text
        self._edge -= start
        self._cut = max(0, self._cut - start)

    def _take(self, end: int) -> str:
        piece = self._text[self._start : end]
        self._start = self._edge = end
        self._seen = self._cut = 0
        return piece


def _by_character(window: str, seen: int) -> int:  # noqa: ARG001
    return 1 if window else 0


def _by_line(window: str, seen: int) -> int:
    return window.find("\n", seen) + 1


def _by_word(window: str, seen: int) -> int:  # noqa: ARG001
    """A word with the white space after it (and before the first). Scripts without spaces are cut at each letter."""
    word = WORD.match(window)
    return word.end() if word is not None and word.end() < len(window) else 0


class _ByPattern:
    """A match is certain as soon as another character has come that doesn't extend it."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def __call__(self, window: str, seen: int) -> int:
        for end in range(seen + 1, len(window) + 1):
            cut = self._cut(window, end)
            if cut:
                return cut
        return 0

    def _cut(self, window: str, end: int) -> int:
        match = self._pattern.search(window, 0, end)
        return match.end() if match is not None and match.start() < match.end() < end else 0


class _ByTimedPattern(_ByPattern):
    """A pattern for a stage that promises a time: after a few slow searches, words are cut instead."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        super().__init__(pattern)
        self._slow_searches_left = _MAX_SLOW

    def __call__(self, window: str, seen: int) -> int:
        return super().__call__(window, seen) if self._slow_searches_left else _by_word(window, seen)

    def _cut(self, window: str, end: int) -> int:
        began = thread_time()
        cut = super()._cut(window, end)
        if thread_time() - began <= _SLOW:
            return cut
        self._count_slow_search()
        return end

    def _count_slow_search(self) -> None:
        self._slow_searches_left -= 1
        if not self._slow_searches_left:
            _LOG.warning("the pattern %r takes too long; words are cut instead", self._pattern.pattern)


class _ByFunction:
    """The function is called with each beginning of the text in turn; its first answer counts."""

    def __init__(self, function: Callable[[str], str | None], name: str) -> None:
        self._function = function
        self._name = name

    def __call__(self, window: str, seen: int) -> int:
        for end in range(seen + 1, len(window) + 1):
            piece = self._function(window[:end])
            if piece is None:
                continue
            if not piece or not isinstance(piece, str) or not window.startswith(piece):
                wanted = "must return a beginning of the text that it is given, which is not empty, or None"
                raise InvalidValueError.of([(self._name, piece, wanted)])
            return len(piece)
        return 0


def _refuse_empty(pattern: re.Pattern[str], name: str) -> None:
    """Raise `InvalidValueError` for a pattern that matches the empty text, which is no piece."""
    for text in ("", "a", " ", "a b. c\n"):
        match = pattern.search(text)
        if match is not None and match.start() == match.end():
            raise InvalidValueError.of([(name, pattern, "must not match the empty text")])


_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?|\{(\d*)(,?)(\d*)\}|.", re.DOTALL)


def _is_risky(pattern: re.Pattern[str]) -> bool:
    """Whether the pattern repeats a group that contains a repetition, an option or a choice, such as `(a+)+`."""
    open_groups, varies, closed = [False], False, False  # `varies`: of the group that closed last
    for token in _TOKEN.finditer(pattern.pattern):
        text = token[0]
        repeats = text in "*+" or (text[0] == "{" and len(text) > 1 and _is_many(token))
        if closed and varies and repeats:
            return True
        closed = text == ")"
        if text[0] == "(":
            open_groups.append(False)
        elif closed and len(open_groups) > 1:
            varies = open_groups.pop()
            open_groups[-1] |= varies
        elif repeats or text in "?|":
            open_groups[-1] = True
    return False


def _is_many(count: re.Match[str]) -> bool:
    least, comma, most = count.groups()
    return bool(comma and not most) or int(most or least or 0) >= 10
