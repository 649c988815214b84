"""Text that grows by pieces without being copied, in values that never change.

A growing text is a `(Leaf, n)` pair: the first `n` pieces of a leaf, on top of everything sealed below it.
Extending the text appends the piece to the leaf's list. The older value does not see the piece, because it counts
fewer. A full leaf is sealed into a chain of blocks whose sizes double, so that a text of n pieces
hangs on log n blocks and is copied log n times in all, not n times.

Two values may grow from the same value, on two threads. If the next place in the list is already taken, a value gets
a leaf of its own; the check after `append` (is the piece at my place mine?) settles a tie without a lock. Likewise,
the first leaf on top of a full one continues the lineage, and any other begins its own. So of two texts of one
lineage, the shorter is always the beginning of the longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from rxdelta.core.json_values import clean_text

if TYPE_CHECKING:
    from rxdelta.core.partial_json_parser import PartialJsonParser

SPACELESS = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
"""The letters of scripts without spaces between words, for a pattern: Thai, Lao, Burmese, Khmer, kana, Han."""


_LEAF_PIECES = 64
_has_surrogate = re.compile("[\ud800-\udfff]").search


class Leaf:
    """The newest pieces of a text, and the sealed blocks under them."""

    __slots__ = ("below", "heirs", "lineage", "pieces", "sealed")

    def __init__(self, sealed: Sealed | None, below: int, pieces: list[str], lineage: Lineage) -> None:
        self.sealed = sealed
        self.below = below  # characters in the sealed blocks
        self.pieces = pieces
        self.lineage = lineage
        self.heirs: list[object] = []  # the candidates to continue the lineage of a full leaf; the first does


class Lineage:
    """The caches of one line of growing texts: the newest joined text, and a parser that has read it.

    Each cache holds what it was computed from (a leaf and a number of pieces, or a number of characters of the
    lineage), so that a stale one is detected.
    """

    __slots__ = ("joined", "preview")

    def __init__(self) -> None:
        self.joined: tuple[Leaf | None, int, str] = (None, 0, "")
        # At most one. A reader takes it out while it reads.
        self.preview: list[tuple[int, PartialJsonParser]] = []


Sealed: TypeAlias = "tuple[Sealed | None, int, str]"
"""Older blocks, the size in leaves, the text. Sizes decrease towards the newest block."""
WithHalf: TypeAlias = tuple[Leaf, int, str]
"""n pieces of a leaf, and the first half of a surrogate pair that waits for its second."""
Grown: TypeAlias = tuple[Leaf, int] | WithHalf
GrowingText: TypeAlias = str | Grown


def has_half(text: GrowingText) -> TypeGuard[WithHalf]:
    """Whether the text ends with the first half of a surrogate pair."""
    return type(text) is tuple and len(text) == 3


def extend(text: GrowingText, piece: str) -> Grown:
    """`text + piece` in O(len(piece)), leaving `text` as it was."""
    # `len(text) == 2` is `not has_half(text)` without the cost of a call for each piece.
    if type(text) is tuple and len(text) == 2 and (piece.isascii() or not _has_surrogate(piece)):
        leaf, n = text
        pieces = leaf.pieces
        if len(pieces) == n < _LEAF_PIECES:
            pieces.append(piece)
            # Another thread may have appended first: the text that finds another piece at its place gets a new leaf.
            if pieces[n] is piece:
                return (leaf, n + 1)
        return _branch(leaf, n, piece)
    return _extend_with_care(text, piece)


def _branch(leaf: Leaf, n: int, piece: str) -> tuple[Leaf, int]:
    """A new leaf for the piece: on top of a full leaf, or beside a leaf that another text has extended."""
    if n == _LEAF_PIECES:
        full = "".join(leaf.pieces[:n])  # a piece that lost a tie may follow them
        mine = object()
        # Appending is atomic, so of two texts on two threads exactly one is first.
        leaf.heirs.append(mine)
        lineage = leaf.lineage if leaf.heirs[0] is mine else Lineage()
        return (Leaf(_seal(leaf.sealed, full), leaf.below + len(full), [piece], lineage), 1)
    return (Leaf(leaf.sealed, leaf.below, [*leaf.pieces[:n], piece], Lineage()), n + 1)


def _extend_with_care(text: GrowingText, piece: str) -> Grown:
    """The rare cases: the first piece, and a surrogate pair that is cut in two."""
    half = ""
    if isinstance(text, str):
        text = (Leaf(None, 0, [text] if text else [], Lineage()), 1 if text else 0)
    elif has_half(text):
        piece = text[2] + piece
        text = text[:2]
    if piece and "\ud800" <= piece[-1] <= "\udbff":
        piece, half = piece[:-1], piece[-1]
    if piece:
        text = extend(text, clean_text(piece))
    return (text[0], text[1], half) if half else text


def _seal(older: Sealed | None, text: str) -> Sealed:
    size = 1
    while older is not None and older[1] == size:
        text = older[2] + text
        older = older[0]
        size += size
    return (older, size, text)


def read_text(text: GrowingText) -> str:
    """The text as one string. The string is cached, so that a later reading copies as little as possible."""
    if isinstance(text, str):
        return text
    leaf, n = text[0], text[1]
    known, count, joined = leaf.lineage.joined
    if known is leaf:
        if count == n:
            return joined
        if count < n:
            joined += "".join(leaf.pieces[count:n])
            leaf.lineage.joined = (leaf, n, joined)
            return joined
    parts: list[str] = []
    older = leaf.sealed
    while older is not None:
        parts.append(older[2])
        older = older[0]
    parts.reverse()
    parts += leaf.pieces[:n]
    whole = "".join(parts)
    # Written as one tuple, so that another thread sees an old cache or the new one.
    if known is not leaf and len(whole) >= len(joined):  # keep only the newest text of a lineage alive
        leaf.lineage.joined = (leaf, n, whole)
    return whole


def last_characters(text: Grown, count: int) -> str:
    """The last `count` characters of the text, in O(count)."""
    leaf, n = text[0], text[1]
    found: list[str] = []
    pieces, older = leaf.pieces[:n], leaf.sealed
    while count > 0:
        if pieces:
            piece = pieces.pop()
        elif older is not None:
            older, _, piece = older
        else:
            break
        found.append(piece[-count:])
        count -= len(piece)
    return "".join(reversed(found))


def text_length(text: GrowingText) -> int:
    """The number of characters in the text, without joining it."""
    if isinstance(text, str):
        return len(text)
    leaf = text[0]
    return leaf.below + sum(map(len, leaf.pieces[: text[1]]))


def finish_text(text: GrowingText) -> str:
    """The text as a plain string. A half surrogate pair that still waits becomes U+FFFD."""
    whole = read_text(text)
    return whole + "\ufffd" if has_half(text) else whole


def join_when_read(cls: type, name: str) -> Callable[[Any], Any]:
    """Let this slot of an attrs class hold a growing text, which the attribute shows as a string.

    Equality, `repr`, `attrs.evolve`, pickling and matching use the attribute, so they see the string.

    Returns:
        A function that reads the value of the slot itself.
    """
    slot = cls.__dict__[name]
    held: Callable[[Any], Any] = slot.__get__

    def read(self: object) -> Any:
        value: Any = held(self)
        return value if value.__class__ is not tuple else read_text(value)

    setattr(cls, name, property(read, slot.__set__, doc=slot.__doc__))
    return held
