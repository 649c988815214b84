"""Text of a model that a terminal draws: nothing in it controls the terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given, strategies as st

from rxdelta.core import visible

CONTROL = st.characters(categories=["Cc", "Cf"]) | st.sampled_from("ab\n\t\r\u2028")
TURNING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")  # Unicode's bidirectional classes


@example("\x00\x1f\x7f\x80\x9f\u061c\u200e\u200f\u202a\u202e\u2066\u2069", False)
@given(st.text(CONTROL), st.booleans())
def test_nothing_that_controls_a_terminal_is_left(text: str, lines: bool) -> None:
    shown = visible(text, lines=lines)
    assert {one for one in shown if unicodedata.category(one) == "Cc"} <= set("\n\t" if lines else "")
    assert not [one for one in shown if unicodedata.bidirectional(one) in TURNING]
    assert not {*shown} & set("\u061c\u200e\u200f")  # marks of a direction


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs"])))
def test_all_other_text_stays(text: str) -> None:
    assert visible(text) == visible(text, lines=False) == text


@pytest.mark.parametrize(
    ("text", "shown", "on_one_line"),
    [
        ("a\r\nb", "a\nb", "a\u240ab"),
        ("a\n\tb", "a\n\tb", "a\u240a\u2409b"),
        ("a\rb", "a\u240db", "a\u240db"),
        ("\x1b\x7f\x9b", "\u241b\u2421\\u009b", "\u241b\u2421\\u009b"),
    ],
)
def test_a_symbol_stands_for_each(text: str, shown: str, on_one_line: str) -> None:
    assert visible(text) == shown
    assert visible(text, lines=False) == on_one_line
