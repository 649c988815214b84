"""The filter of `redact`: a text with the matches of a pattern replaced."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core import InvalidValueError
from rxdelta.operators.text.told_errors import told_error
from rxdelta.operators.text.unfinished import reach_of, unfinished

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Matches", "Redaction", "Replacement"]

Replacement: TypeAlias = str | Callable[[re.Match[str]], str]

_ALWAYS = 512  # held text up to this length is searched again with each piece
_MORE = 8  # a longer one when it has grown by this part of it, so that the work stays linear


class Redaction:
    """A pattern and what replaces its matches, checked.

    Raises:
        InvalidValueError: The pattern is none, can match the empty text, or the replacement doesn't fit it.
    """

    def __init__(
        self, pattern: re.Pattern[str] | str, replacement: Replacement, holdback: int | None
    ) -> None:
        self.pattern = _compiled(pattern)
        reach = reach_of(self.pattern)
        if not reach.least:
            raise InvalidValueError.of([("pattern", self.pattern.pattern, "must not match the empty text")])
        self.ahead, self.behind = reach.ahead, reach.behind
        self.waiting, self.is_exact = unfinished(self.pattern)
        self.holdback = _holdback(holdback)
        self.replaced = _replaced(self.pattern, replacement)

    def all_of(self, text: str) -> str:
        """The text with all matches replaced."""
        return self.pattern.sub(self.replaced, text)

    def all_certain(self, text: str) -> str:
        """As `all_of` for a text that may go on: without its undecided end."""
        return "".join(Matches(self).feed(text))


def _compiled(pattern: re.Pattern[str] | str) -> re.Pattern[str]:
    given: Any = pattern
    if isinstance(given, str):
        try:
            return re.compile(given)
        except (re.error, RecursionError, OverflowError) as error:
            raise InvalidValueError.of([("pattern", given, f"is no regular expression: {error}")]) from None
    if not isinstance(given, re.Pattern) or not isinstance(pattern.pattern, str):  # type: ignore[union-attr]
        wrong = "must be a regular expression for text, as a string or compiled by re"
        raise InvalidValueError.of([("pattern", pattern, wrong)])
    return pattern  # type: ignore[return-value]


def _holdback(given: Any) -> int | None:
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 1):
        raise InvalidValueError.of([("holdback", given, "must be a number of characters, from 1")])
    return None if given is None else int(given)


def _replaced(pattern: re.Pattern[str], replacement: Any) -> Callable[[re.Match[str]], str]:
    if callable(replacement):

        def call(match: re.Match[str]) -> str:
            try:
                text = replacement(match)
                if not isinstance(text, str):
                    raise InvalidValueError.of([("replacement", text, "must return a text")])
                return text
            except Exception as error:
                failure = told_error(error, lambda said: _without(match, said))
            raise failure  # not inside of `except`: the first one would be its context

        return call
    if not isinstance(replacement, str):
        raise InvalidValueError.of([("replacement", replacement, "must be a text, or a function of a match")])
    if "\\" not in replacement:
        return lambda _: replacement
    try:
        pattern.sub(replacement, "")
    except (re.error, IndexError) as error:
        raise InvalidValueError.of(
            [("replacement", replacement, f"doesn't fit the pattern: {error}")]
        ) from None
    return lambda match: match.expand(replacement)


def _without(match: re.Match[str], text: str) -> str:
    """The text without what the match and its groups have found, such as that of a `KeyError`."""
    for found in sorted(filter(None, (match[0], *match.groups())), key=len, reverse=True):
        text = text.replace(found, "[redacted]")
    return text


class Matches:
    """One block's text, with the matches replaced. What comes out depends on the text alone, not on its pieces.

    Text is certain as soon as no match can begin in it any more. The rest is held.

    Attributes:
        changes: For each replaced match: its place in the text, its length, and the length of what replaces it.
    """

    __slots__ = ("_at", "_gone", "_held", "_next", "_redaction", "_text", "changes")

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._text = ""  # what is held, behind what the pattern may look back at
        self._at = 0  # where what is held begins
        self._gone = 0  # the characters in front of `_text`
        self._held: list[str] = []  # further pieces, which wait for the next search
        self._next = 0  # how many characters they must have, together, before it
        self.changes: list[tuple[int, int, int]] = []

    def feed(self, text: str) -> Sequence[str]:
        """Take more of the text, and return what is certain."""
        if self._next > 0:
            self._held.append(text)
            self._next -= len(text)
            if self._next > 0:
                return ()
            text = "".join(self._held)
            self._held.clear()
        redaction, at = self._redaction, self._at
        whole = self._text + text
        found = redaction.waiting.search(whole, at)
        if found is None or found.start() == len(whole):
            self._keep(whole, len(whole))
            return (text,) if at == len(whole) - len(text) else (whole[at:],)
        return self._search(whole, final=False)

    def close(self) -> Sequence[str]:
        """Return the rest: the text has ended."""
        self._next = 0
        whole = self._text + "".join(self._held)
        self._held.clear()
        return self._search(whole, final=True)

    def _search(self, text: str, *, final: bool) -> Sequence[str]:
        redaction, size = self._redaction, len(text)
        search = (redaction.pattern if final else redaction.waiting).search
        out: list[str] = []
        passed = place = self._at  # what is in front of `passed` is in `out`
        while True:
            found = search(text, place)
            start = size if found is None else found.start()
            if found is None or start == size:
                place = size
                break
            if not self._is_decided(text, found, final=final):
                place = start
                break
            match = redaction.pattern.match(text, start) if self._is_recognised(text, start) else None
            if match is None:
                place = start + 1
                continue
            new = redaction.replaced(match)
            out += (text[passed:start], new)
            passed = place = match.end()
            self.changes.append((self._gone + start, place - start, len(new)))
        out.append(text[passed:place])
        self._keep(text, place)
        held = size - place
        if held > _ALWAYS:
            self._next = held // _MORE
        whole = "".join(out)
        return (whole,) if whole else ()

    def _is_decided(self, text: str, found: re.Match[str], *, final: bool) -> bool:
        """Whether no further text changes what is at this place."""
        redaction, size, start = self._redaction, len(text), found.start()
        if final or (found.end() < size if redaction.is_exact else start + redaction.ahead <= size):
            return True
        holdback = redaction.holdback or math.inf
        return start + holdback <= size and not self._is_recognised(text, start)

    def _is_recognised(self, text: str, start: int) -> bool:
        """Whether a match shows within `holdback` characters of its beginning; only if so, it counts."""
        holdback = self._redaction.holdback
        return holdback is None or self._redaction.pattern.match(text, start, start + holdback) is not None

    def _keep(self, text: str, at: int) -> None:
        """Forget what is certain, but for what the pattern may look back at."""
        first = max(0, at - self._redaction.behind)
        self._text, self._at = text[first:], at - first
        self._gone += first
