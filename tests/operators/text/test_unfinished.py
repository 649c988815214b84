"""`redact` replaces what `re.sub` replaces, for patterns of all kinds, however the text is cut."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from random import Random

import pytest
from hypothesis import assume, given, strategies as st

import rxdelta as rd
from rxdelta.operators.text.matches import Matches, Redaction

LETTERS = "ab\n "


def told(redaction: Redaction, pieces: list[str]) -> str:
    """What one block's text becomes, if it comes in these pieces."""
    one = Matches(redaction)
    return "".join([*(part for piece in pieces for part in one.feed(piece)), *one.close()])


def cut(text: str, places: tuple[int, ...]) -> list[str]:
    return [text[start:end] for start, end in pairwise((0, *places, len(text)))]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"sk-\w{3,}", "a sk-abc sk-ab sk-abcd"),
        (r"a(?:b|bc)d?", "abcd abd"),
        (r"(?>(?=ab\n)a|ab)b?", "aba"),  # what is let pass for the look ahead isn't taken for good
        (r"(?:(?!ab)a|ab)++ ", "aab aa b"),
        (r"(a|b)(?>\1b|b|a)a", "aabbaa"),
        (r"(?=(a))a(?<=\1)b", "ab aab"),
        (r"(?:a)(?:){2}b", "ab"),
        (r"a{0}b(?:){2}?", "bab"),
        (r"$\n", "a\n"),
        (r"$\n", "a\nb"),
        (r"a$", "a\na\n"),
        (r"(?m:^a$)", "a\nba\na"),
        (r"b\B\w", "bb b ba"),
        (r"[^a](?<!b\b)", "bbab b"),
        (r"(?<=ab(?= a))\s", "ab b ab a"),
        (r"(?<!a\b)\s", "ab a b"),
        (r"(a)?(?(1)b|a)b", "abb bab"),
        (r"a(?!b)", "aba"),
        (r"(?i)\bstrasse\b", "STRASSE ſtraſſe strasses"),
        (r"(?i)k", "kK\u212a"),
        (r"(?x: a \s b )", "a b"),
        (r"(?s)a.*?b", "a\n\nb ab"),
        (r"(?:ab){2,}+a?", "ababa abab ab"),
    ],
)
def test_each_cut_gives_what_sub_gives(pattern: str, text: str) -> None:
    redaction = Redaction(pattern, "#", None)
    wanted = re.sub(pattern, "#", text)
    for places in combinations(range(1, len(text)), 2):
        assert told(redaction, cut(text, places)) == wanted
    assert told(redaction, [*text]) == wanted


def pattern_of(draw: Random, depth: int = 2) -> str:
    """A pattern, at random."""

    def letters(most: int) -> str:
        return "".join(re.escape(draw.choice(LETTERS)) for _ in range(draw.randint(1, most)))

    def atom() -> str:
        if not depth or draw.random() < 0.4:
            return draw.choice([letters(1), letters(1), r"\w", r"\s", ".", "[^a]", "[ab]"])
        inner = pattern_of(draw, depth - 1)
        groups = ["(", "(?:", "(?>", "(?=", "(?!", "(?i:", "(?s:", "(?m:"]
        return draw.choice(
            [
                *(f"{group}{inner})" for group in groups),
                draw.choice([r"\b", r"\B", "^", "$", r"\A", r"\Z"]),
                f"(?<={letters(2)})",
                f"(?<!{letters(2)}{draw.choice(['', '$', '(?!a)'])})",
                f"({letters(1)}|b){atom()}" + r"(?:\1|)",
            ]
        )

    def one() -> str:
        found = atom()
        if found.startswith(("(?=", "(?!", "(?<", "\\b", "\\B", "^", "$", "\\A", "\\Z")):
            return found
        often = draw.choice(["", "", "", "*", "+", "?", "{0}", "{0,2}", "{2}", "{2,}"])
        return found + often + (draw.choice(["", "?", "+"]) if often else "")

    choices = ["".join(one() for _ in range(draw.randint(0, 2))) for _ in range(draw.choice([1, 1, 2]))]
    return "|".join(choices)


@given(st.integers(0, 1 << 32), st.text(LETTERS, min_size=1, max_size=8), st.data())
def test_any_pattern_gives_what_sub_gives(seed: int, text: str, data: st.DataObject) -> None:
    draw = Random(seed)
    pattern = re.sub(r"\\1", "(?:a|b)", pattern_of(draw)) if seed % 2 else pattern_of(draw)
    try:
        compiled = re.compile(
            pattern + draw.choice(["", "a", "\\n"]), draw.choice([0, re.IGNORECASE, re.MULTILINE, re.DOTALL])
        )
        redaction = Redaction(compiled, "#", None)
    except (re.error, rd.InvalidValueError):
        assume(False)
        return
    places = tuple(sorted(data.draw(st.sets(st.integers(1, len(text))))))
    assert told(redaction, cut(text, places)) == compiled.sub("#", text)
    bounded = Redaction(compiled, "#", data.draw(st.integers(1, 5)))
    assert told(bounded, cut(text, places)) == told(bounded, [text])


@pytest.mark.parametrize(
    ("pattern", "holdback", "pieces", "shown"),
    [
        (r"sk-\w+", None, ["The desk is ", "s", "o"], ["The desk is ", "", "so"]),
        (r"\bSECRET\b", None, ["no SECRETS", " SE"], ["no SECRETS", " "]),
        (r"[\w.]+@[\w.]+", None, ["a b", " c"], ["a ", "b "]),
        (r"a(?!b)", None, ["xa", "c"], ["x", "#c"]),
        (r"<[^>]*>", None, ["a <b", " c", "> d"], ["a ", "", "# d"]),
        (r"<[^>]*>", 4, ["a <b", " c", "> d"], ["a ", "<b c", "> d"]),  # it doesn't show in 4 characters
        (r"<[^>]*>", 4, ["a <b", "> d"], ["a ", "# d"]),
    ],
)
def test_text_is_held_only_while_a_match_may_begin_in_it(
    pattern: str, holdback: int | None, pieces: list[str], shown: list[str]
) -> None:
    one = Matches(Redaction(pattern, "#", holdback))
    assert ["".join(one.feed(piece)) for piece in pieces] == shown
