"""The borders between characters as a reader sees them (grapheme clusters, UAX #29).

The rules are those of extended grapheme clusters, made coarser where that saves a table: text is never cut after a
zero-width joiner, a spacing mark always stays with its letter, and a letter joins a virama before it. So a cluster of
the standard is never cut, but two clusters may be taken as one. The kinds of characters come from Python's
`unicodedata`; this file adds only the missing ones.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain
from unicodedata import category, combining

LONGEST_GRAPHEME = 128
"""A cluster is cut after this many code points, so that endless combining marks are no endless cluster.

Text in Unicode's stream-safe format has at most 31 combining characters, and the longest emoji sequences about ten.
"""

_OTHER, _LETTER, _CONTROL, _CR, _LF = range(5)
_EXTEND, _LINKER, _JOINER, _PREPEND, _FLAG = range(5, 10)  # a flag is two regional indicators
_L, _V, _T, _LV, _LVT = range(10, 15)  # Hangul
_HIGH, _LOW = range(15, 17)  # halves of a surrogate pair

_STAYS = frozenset({_EXTEND, _LINKER, _JOINER})
_PARTS = frozenset({_CONTROL, _CR, _LF})
_PAIRS = frozenset(
    {(_CR, _LF), (_HIGH, _LOW), (_L, _L), (_L, _V), (_L, _LV), (_L, _LVT), (_LV, _V), (_LV, _T), (_LVT, _T)}
    | {(_V, _V), (_V, _T), (_T, _T)}
)

_EXTENDING = frozenset(
    chain(
        "\u200c\u0e33\u0eb3\uff9e\uff9f", map(chr, range(0x1F3FB, 0x1F400)), map(chr, range(0xE0020, 0xE0080))
    )
)
_PREPENDED = frozenset(
    map(
        chr,
        chain(
            (0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0xD4E, 0x110BD, 0x110CD, 0x111C2, 0x111C3, 0x113D1, 0x1193F),
            (0x11941, 0x11A3A, 0x11D46, 0x11F02, *range(0x600, 0x606), *range(0x11A84, 0x11A8A)),
        ),
    )
)
_HANGUL = (
    (0x1100, 0x115F, _L),
    (0xA960, 0xA97C, _L),
    (0x1160, 0x11A7, _V),
    (0xD7B0, 0xD7C6, _V),
    (0x16D63, 0x16D63, _V),  # Kirat Rai, which the standard joins as it does Hangul
    (0x16D67, 0x16D6A, _V),
    (0x11A8, 0x11FF, _T),
    (0xD7CB, 0xD7FB, _T),
)

_PLAIN = (
    "\x00-\x0c\x0e-\u02ff\u0370-\u0482\u048a-\u0590\u05d0-\u05ff\u0606-\u060f\u061b-\u064a\u0660-\u066f\u0671-\u06d5"
    "\u0904-\u0939\u0958-\u0961\u0964-\u0980\u0e01-\u0e30\u0e40-\u0e46\u1200-\u135c\u1360-\u1711\u1e00-\u200b\u200e-\u20cf\u2100-\u2cee"
    "\u2e00-\u3029\u3030-\u3098\u309b-\ua66e\uac00-\ud7a3\uf900-\ufb1d\ufe30-\uff9d\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
    "\U00020000-\U0003ffff"
)
"""Characters that join no neighbour of this kind: most letters, signs and white space, but not a carriage return."""

_PLAIN_PAIR = re.compile(rf"[{_PLAIN}]{{2}}")
_JOINING = re.compile(rf"[^{_PLAIN}]")


def has_joining(text: str) -> bool:
    """Whether a character of the text may join a neighbour. Otherwise each character is a cluster."""
    return ("\r" in text) if text.isascii() else _JOINING.search(text) is not None


def is_border(text: str, cut: int) -> bool:
    """Whether the two neighbours of this position alone say that it is a border."""
    before, after = text[cut - 1], text[cut : cut + 1]
    if before < "\u0300" > after:  # most text, for which a pattern costs more
        return before != "\r" and after != ""
    return _PLAIN_PAIR.match(text, cut - 1) is not None


def grapheme_end(text: str, start: int) -> int:
    """Return the end of the cluster that begins at `start`; -1 if later text may still belong to it.

    Example:
        >>> grapheme_end("e\\u0301a", 0), grapheme_end("e\\u0301", 0)
        (2, -1)
    """
    size = len(text)
    if is_border(text, start + 1):
        return start + 1
    last = _kind(text[start])
    linked = last == _LINKER
    flags = False
    for at in range(start + 1, min(size, start + LONGEST_GRAPHEME)):
        kind = _kind(text[at])
        if last in _PARTS or kind in _PARTS:
            joined = (last, kind) == (_CR, _LF)
        elif kind in _STAYS or last in (_PREPEND, _JOINER) or (linked and kind == _LETTER):
            joined = True
        elif last == kind == _FLAG:
            joined = not flags
            flags = True
        else:
            joined = (last, kind) in _PAIRS
        if not joined:
            return at
        linked = kind == _LINKER or (linked and kind in _STAYS)
        last = kind
    if size - start >= LONGEST_GRAPHEME:
        return start + LONGEST_GRAPHEME
    return size if last in (_CONTROL, _LF) else -1


def graphemes(text: str) -> list[str]:
    """Return the clusters of this text, the last of which may grow or be empty.

    Example:
        >>> graphemes("a\\r\\nb"), graphemes("a\\n")
        (['a', '\\r\\n', 'b'], ['a', '\\n', ''])
    """
    found: list[str] = []
    start = 0
    while start < len(text) and (end := grapheme_end(text, start)) > 0:
        found.append(text[start:end])
        start = end
    found.append(text[start:])
    return found


def is_unfinished(cluster: str) -> bool:
    """Whether a cluster is incomplete without the following text: half a flag or pair, a joiner at the end.

    Example:
        >>> is_unfinished("\\U0001f468\\u200d"), is_unfinished("\\U0001f468")
        (True, False)
    """
    last = _kind(cluster[-1])
    return last in (_JOINER, _PREPEND, _CR, _HIGH) or (
        last == _FLAG and sum(_kind(character) == _FLAG for character in cluster) % 2 == 1
    )


@lru_cache(4096)
def _kind(character: str) -> int:
    if character in "\r\n":
        return _CR if character == "\r" else _LF
    if character in _EXTENDING:
        return _EXTEND
    if character in _PREPENDED:
        return _PREPEND
    code = ord(character)
    if 0xAC00 <= code <= 0xD7A3:
        return _LVT if (code - 0xAC00) % 28 else _LV
    for first, last, kind in _HANGUL:
        if first <= code <= last:
            return kind
    if 0xD800 <= code <= 0xDFFF:
        return _HIGH if code < 0xDC00 else _LOW
    if code == 0x200D:
        return _JOINER
    if 0x1F1E6 <= code <= 0x1F1FF:
        return _FLAG
    return _kind_by_category(character)


def _kind_by_category(character: str) -> int:
    what = category(character)
    if what in ("Mn", "Me", "Mc"):
        return _LINKER if combining(character) == 9 else _EXTEND
    if what in ("Cc", "Cf", "Zl", "Zp"):
        return _CONTROL
    return _LETTER if what == "Lo" else _OTHER
