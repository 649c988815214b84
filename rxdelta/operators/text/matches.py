"""The filter of `redact`: a text with the matches of a pattern replaced.

**Whether a match may still be on its way.** `re` can't say that more text might change a result. So the pattern is
rewritten, to match also where the text ends too early. Wherever its search would ask for the next character, and there is
none, the rewritten pattern succeeds at once; all that follows then succeeds, too, at the end of the text. It tries
everything in the order of the original, so its first success at a place has one of three meanings. It ends before the end
of the text: the original matches here, the same, whatever comes. It ends at the end of the text: undecided. It fails:
nothing that begins here will ever match.

The parts of `re` that read and compile a pattern are private, but as old as `re`; there is no public way to a pattern's
structure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias

from rxdelta.core import InvalidValueError
from rxdelta.operators.text.quotes import rewritten_error

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
                failure = rewritten_error(error, lambda said: _without(match, said))
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
    """One block's text, with the matches replaced. The result depends on the text alone, not on its pieces.

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


_PARSER: Any = import_module("re._parser")
_COMPILER: Any = import_module("re._compiler")
_IS: Any = import_module("re._constants")

_ONE = frozenset([_IS.LITERAL, _IS.NOT_LITERAL, _IS.IN, _IS.ANY])  # of these, each takes one character
_REPEATS = frozenset([_IS.MAX_REPEAT, _IS.MIN_REPEAT, _IS.POSSESSIVE_REPEAT])
_ENDED = (_IS.AT, _IS.AT_END_STRING)  # `\Z`
_ANYTHING: Any = _PARSER.parse(r"[\s\S]*")[0]
_NOT_KEPT = re.DEBUG


class Reach(NamedTuple):
    """How far the search at one place looks.

    Attributes:
        least: The least number of characters of a match.
        ahead: The greatest number of characters from the place on that decide whether there is a match, and which;
            infinite if it has no bound.
        behind: The number of characters before the place that it looks at.
    """

    least: int
    ahead: float
    behind: int


def reach_of(pattern: re.Pattern[str]) -> Reach:
    """How far the search of a pattern looks at one place.

    Example:
        >>> reach_of(re.compile(r"(?<=no )[a-z]{2,4}\\b"))
        Reach(least=2, ahead=5, behind=4)
    """
    parsed = _PARSER.parse(pattern.pattern, pattern.flags & ~_NOT_KEPT)
    return Reach(parsed.getwidth()[0], _ahead(parsed), _behind(parsed) + 1)


def _width(parsed: Any) -> float:
    widest = parsed.getwidth()[1]
    return math.inf if widest >= int(_IS.MAXREPEAT) else int(widest)


def _ahead(parsed: Any) -> float:
    passed: float = 0
    furthest: float = 0
    for node in parsed:
        one = _PARSER.SubPattern(parsed.state, [node])
        furthest = max(furthest, passed + _ahead_of(node[0], node[1], one))
        passed += _width(one)
    return furthest


def _ahead_of(kind: Any, value: Any, one: Any) -> float:
    if kind is _IS.AT:
        return 2 if value is _IS.AT_END else 1  # `$` may stand before a line break at the end of the text
    if kind is _IS.ASSERT or kind is _IS.ASSERT_NOT:
        direction, inner = value
        return _ahead(inner) if direction > 0 else max(0, _ahead(inner) - _width(inner))
    if kind in _REPEATS:
        _, most, inner = value
        return (
            max(_width(one) - _width(inner), 0) + _ahead(inner)
            if most and _width(one) < math.inf
            else _width(one)
        )
    inner = [part for part in _inside(kind, value) if part is not None]
    return max([_width(one), *map(_ahead, inner)])


def _behind(parsed: Any) -> int:
    """The sum of what all of the pattern's looks behind see: one may stand in another."""
    seen = 0
    for kind, value in parsed:
        if kind in (_IS.ASSERT, _IS.ASSERT_NOT) and value[0] < 0:
            seen += int(value[1].getwidth()[1])
        seen += sum(_behind(part) for part in _inside(kind, value) if part is not None)
    return seen


def _inside(kind: Any, value: Any) -> Sequence[Any]:
    """The parts of a node that are patterns."""
    if kind is _IS.BRANCH:
        branches: Sequence[Any] = value[1]
        return branches
    if kind in _REPEATS or kind is _IS.SUBPATTERN:
        return (value[-1],)
    if kind in (_IS.ASSERT, _IS.ASSERT_NOT):
        return (value[1],)
    if kind is _IS.GROUPREF_EXISTS:
        return (value[1], value[2])
    return (value,) if kind is _IS.ATOMIC_GROUP else ()


def unfinished(pattern: re.Pattern[str]) -> tuple[re.Pattern[str], bool]:
    """The rewritten pattern, and whether it tries all in the original's order.

    If it doesn't (the original looks ahead, or repeats what a group has matched), it lets more pass there, and takes none
    of that for good. Then only a failure means something: that nothing matches here.

    Example:
        >>> waiting, _ = unfinished(re.compile(r"sk-[a-z]+"))
        >>> [found and found.span() for found in map(waiting.search, ("a sk", "a sk-ab", "a sk-ab.", "a sky"))]
        [(2, 4), (2, 7), (2, 7), None]
    """
    flags = pattern.flags & ~_NOT_KEPT
    parsed = _PARSER.parse(pattern.pattern, flags)
    new = _Rewriting(parsed.state).pattern(parsed, flags | parsed.state.flags, nothing_yet=True)
    return _COMPILER.compile(new, flags), _is_all_kept(parsed)


class _Rewriting:
    def __init__(self, state: Any) -> None:
        self._state = state

    def pattern(self, parsed: Any, flags: int, *, nothing_yet: bool) -> Any:
        """The pattern rewritten.

        Args:
            nothing_yet: Whether nothing has been taken before it, so that the text can't have ended: a match that begins
                behind the text is of no interest.
        """
        new: list[Any] = []
        for node in parsed:
            new += self._node(node[0], node[1], flags, nothing_yet)
            nothing_yet = nothing_yet and node[0] in (_IS.AT, _IS.ASSERT, _IS.ASSERT_NOT)
        return self._of(new)

    def _of(self, nodes: list[Any]) -> Any:
        return _PARSER.SubPattern(self._state, nodes)

    def _either(self, *choices: list[Any]) -> Any:
        return (_IS.BRANCH, (None, [self._of(nodes) for nodes in choices]))

    def _node(self, kind: Any, value: Any, flags: int, nothing_yet: bool) -> list[Any]:
        node = (kind, value)
        if kind in _ONE:
            return [node] if nothing_yet else [self._either([node], [_ENDED])]
        if kind is _IS.AT:
            return self._place(value, flags, nothing_yet)
        if kind in _REPEATS:
            return self._repeat(node, flags, nothing_yet)
        if kind is _IS.SUBPATTERN:
            group, more, fewer, inner = value
            inner = self.pattern(inner, (flags | more) & ~fewer, nothing_yet=nothing_yet)
            return [(kind, (group, more, fewer, inner))]
        if kind is _IS.ATOMIC_GROUP:
            inner = self.pattern(value, flags, nothing_yet=nothing_yet)
            return [(kind, inner) if _is_all_kept(value) else (_IS.SUBPATTERN, (None, 0, 0, inner))]
        if kind is _IS.BRANCH:
            choices = [self.pattern(one, flags, nothing_yet=nothing_yet) for one in value[1]]
            return [(kind, (None, choices))]
        if kind is _IS.FAILURE:
            return [node]
        if not _is_kept(node):
            return [] if kind in (_IS.ASSERT, _IS.ASSERT_NOT) else [_ANYTHING]
        return [node] if nothing_yet else [self._either([node], [_ENDED])]

    def _place(self, place: Any, flags: int, nothing_yet: bool) -> list[Any]:
        if place is _IS.AT_END and not flags & re.MULTILINE:
            last = [(_IS.LITERAL, ord("\n")), _ENDED]
            return [(_IS.ASSERT, (1, self._of(last)))] if nothing_yet else [self._either([_ENDED], last)]
        return [(_IS.AT, place)] if nothing_yet else [self._either([(_IS.AT, place)], [_ENDED])]

    def _repeat(self, node: Any, flags: int, nothing_yet: bool) -> list[Any]:
        kind, (least, most, inner) = node
        if kind is _IS.POSSESSIVE_REPEAT and not _is_all_kept(inner):
            kind = _IS.MAX_REPEAT
        if len(inner) != 1 or inner[0][0] not in _ONE:
            return [(kind, (least, most, self.pattern(inner, flags, nothing_yet=False)))]
        # One kind of character, which `re` repeats quickly if it stays alone. Without a least number, what follows
        # finds the end of the text.
        whole = (kind, (least, most, inner))
        if least <= nothing_yet:
            return [whole]
        fewer = (_IS.MAX_REPEAT, (int(nothing_yet), least - 1, inner))
        return [self._either([whole], [fewer, _ENDED])]


def _nodes_in(parsed: Any) -> Iterator[Any]:
    for node in parsed:
        yield node
        for part in _inside(*node):
            if part is not None:
                yield from _nodes_in(part)


def _is_all_kept(parsed: Any) -> bool:
    return all(map(_is_kept, _nodes_in(parsed)))


def _is_kept(node: Any) -> bool:
    """Whether the rewritten pattern can have this, rather than something that lets more pass."""
    kind, value = node
    if kind in (_IS.ASSERT, _IS.ASSERT_NOT):
        # A look behind may look ahead from there, or at what a group has matched.
        return value[0] < 0 and all(one[0] is not _IS.AT and _is_kept(one) for one in _nodes_in(value[1]))
    return kind not in (_IS.GROUPREF, _IS.GROUPREF_EXISTS)
