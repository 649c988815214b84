"""No grapheme is cut, by the judgement of another implementation of the standard."""

from __future__ import annotations

import sys
import unicodedata
from typing import Any

import pytest
import regex
from hypothesis import given, strategies as st

from rxdelta.cutting.graphemes import (
    LONGEST_GRAPHEME,
    _kind,  # pyright: ignore[reportPrivateUsage]
    grapheme_end,
    graphemes,
    has_joining,
    is_border,
    is_unfinished,
)

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
WHOLE = {
    "a letter": "a",
    "combining marks": "e\u0301\u0323",
    "a family": FAMILY,
    "a skin": "\U0001f44b\U0001f3fd",
    "a heart on fire": "\u2764\ufe0f\u200d\U0001f525",
    "a keycap": "1\ufe0f\u20e3",
    "a flag": "\U0001f1e9\U0001f1ea",
    "the first and the last letter of flags": "\U0001f1e6\U0001f1ff",
    "a flag of tags": "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "Hangul in pieces": "\u1112\u1161\u11ab",
    "Hangul with another vowel": "\uac00\u1161",
    "Hangul half in pieces": "\ud558\u11ab",
    "a line end": "\r\n",
    "Devanagari": "\u0915\u094d\u0937\u093f",
    "Thai": "\u0e01\u0e33",
    "a number sign": "\u06001",
    "a pair of surrogates": "\ud83d\ude00",
}


def clusters(text: str) -> list[str]:
    found: list[str] = []
    start = 0
    while start < len(text):
        end = grapheme_end(text, start)
        end = len(text) if end < 0 else end
        found.append(text[start:end])
        start = end
    return found


def borders(parts: list[str]) -> set[int]:
    return {sum(map(len, parts[:count])) for count in range(len(parts) + 1)}


@pytest.mark.parametrize("cluster", WHOLE.values(), ids=WHOLE)
def test_a_grapheme_stays_whole(cluster: str) -> None:
    assert clusters(f"a{cluster}b{cluster}") == ["a", cluster, "b", cluster]
    if cluster != "a":
        for count in range(1, len(cluster)):
            assert grapheme_end(cluster[:count], 0) == -1  # more of it may come


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7", ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7"]),
        ("\n\r\n\r", ["\n", "\r\n", "\r"]),
        ("\n\u0301", ["\n", "\u0301"]),
        ("\uac00\uac00", ["\uac00", "\uac00"]),
        ("\uac01\u1161", ["\uac01", "\u1161"]),
        ("漢字", ["漢", "字"]),
        (FAMILY * 2, [FAMILY, FAMILY]),
    ],
)
def test_neighbours_are_parted(text: str, expected: list[str]) -> None:
    assert clusters(text) == expected


def test_a_line_feed_needs_nothing_behind_it() -> None:
    assert (grapheme_end("\n", 0), grapheme_end("\r\n", 0), grapheme_end("\r", 0)) == (1, 2, -1)


@pytest.mark.parametrize("text", ["\u200d", "\U0001f468\u200d", "\U0001f1e9", "\r", "\u0600", "\ud83d"])
def test_what_makes_no_sense_alone(text: str) -> None:
    assert is_unfinished(text)


@pytest.mark.parametrize("text", ["a", "e\u0301", "\U0001f1e9\U0001f1ea", "\r\n", "\u0915\u094d"])
def test_what_makes_sense_alone(text: str) -> None:
    assert not is_unfinished(text)


def test_a_grapheme_without_end_is_cut() -> None:
    zalgo = "a" + "\u0301" * 1000
    assert grapheme_end(zalgo, 0) == LONGEST_GRAPHEME
    assert grapheme_end(zalgo[:LONGEST_GRAPHEME], 0) == LONGEST_GRAPHEME
    assert grapheme_end(zalgo[: LONGEST_GRAPHEME - 1], 0) == -1


KNOWN = [
    chr(code)
    for code in range(sys.maxunicode + 1)
    if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")
]
TRICKY = [*"".join(WHOLE.values()).replace("\ud83d\ude00", ""), *"\n\t \xad\u200b\u200c\u0bcd\u0b95\ufeff。"]


@pytest.mark.parametrize("cluster", WHOLE.values(), ids=WHOLE)
def test_what_may_join_is_known(cluster: str) -> None:
    assert has_joining(f"a{cluster}") is (cluster != "a")
    assert not any(is_border(cluster, cut) for cut in range(1, len(cluster)))


@given(st.lists(st.one_of(st.sampled_from(TRICKY), st.sampled_from(KNOWN)), max_size=20))
def test_a_border_that_two_neighbours_tell_is_one(characters: list[str]) -> None:
    text = "".join(characters)
    parts = graphemes(text)
    assert "".join(parts) == text
    told = {cut for cut in range(1, len(text)) if is_border(text, cut)}
    assert told <= borders(parts) <= borders(regex.findall(r"\X", text)) | {len(text)}
    assert has_joining(text) or parts == list(text) or parts == [*text, ""]


@given(st.lists(st.one_of(st.sampled_from(TRICKY), st.sampled_from(KNOWN)), max_size=20))
def test_every_border_is_one_of_the_standards(characters: list[str]) -> None:
    text = "".join(characters)
    assert borders(clusters(text)) <= borders(regex.findall(r"\X", text))


def test_no_plain_character_is_of_a_kind_that_joins() -> None:
    """Two by two they can't all be tried, but the kinds of those that two plain neighbours may have never join."""
    plain = [chr(code) for code in range(sys.maxunicode + 1) if not has_joining(chr(code)) and code > 0x7F]
    assert len(plain) > 50_000
    kinds: dict[Any, str] = {_kind(character): character for character in plain}
    for first in kinds.values():
        for second in kinds.values():
            assert grapheme_end(f"{first}{second}", 0) == 1


def test_no_character_is_parted_from_the_letters_beside_it() -> None:
    cluster = regex.compile(r"\X")
    for character in KNOWN:
        text = f"a{character}b"
        for start in (0, 1):
            end = grapheme_end(text, start)
            assert end == -1 or end >= cluster.match(text, start).end(), ascii(text)  # type: ignore[union-attr]


@pytest.mark.slow
def test_each_character_joins_its_neighbours_where_the_standard_says_so() -> None:
    for character in [*KNOWN[:20_000], *KNOWN[20_000::4]]:
        for text in (f"a{character}", f"{character}a", f"\u1100{character}", f"\u0915\u094d{character}"):
            assert borders(clusters(text)) <= borders(regex.findall(r"\X", text)), ascii(text)
