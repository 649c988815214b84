"""Whether a match may still be on its way: the same pattern, which also matches where the text ends too early.

`re` can't say that more text might change a result. So the pattern is rewritten. Wherever its search would ask for
the next character, and there is none, the rewritten pattern succeeds at once; all that follows then succeeds, too, at the
end of the text. It tries everything in the order of the original, so its first success at a place means one of three
things. It ends before the end of the text: the original matches here, the same, whatever comes. It ends at the end of
the text: undecided. It fails: nothing that begins here will ever match.

The parts of `re` that read and compile a pattern are private, but as old as `re`; there is no public way to a pattern's
structure.
"""

from __future__ import annotations

import math
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Reach", "reach_of", "unfinished"]

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
