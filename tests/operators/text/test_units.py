"""The units of a text: the same however it comes, whole graphemes, and what a function makes of each."""

from __future__ import annotations

import re
from typing import Any

import pytest
import regex
from hypothesis import given, strategies as st
from support.cost import work_done

import rxdelta as rd
from rxdelta.cutting import Cutter, cutter as _cutter, rule_of
from rxdelta.cutting.graphemes import LONGEST_GRAPHEME
from rxdelta.operators.text.text import units_of

STEP = re.compile(r"[.!?]+\s+")


def four(so_far: str) -> str | None:
    return so_far[:4] if len(so_far) > 3 else None


KINDS: list[Any] = [
    "word", "line", "sentence", "char", "block", 1, 2, 7, 300, STEP, re.compile(r"a.*b"), re.compile(r"(a+)+b"), four,
]  # fmt: skip
NASTY = st.lists(
    st.sampled_from(
        [
            *"abI1 .!?,;\n\r\t\"'()*[]漢。」！ก\u0e33है।한",
            *(
                "\u0301",
                "\u200d",
                "👨",
                "👩",
                "🏽",
                "🇩",
                "🇪",
                "\u1100",
                "\u1161",
                "\u11a8",
                "\u094d",
                "\u0600",
                "\ufe0f",
            ),
            *(
                "\r\n",
                "\n\n",
                "Dr. ",
                "e.g. ",
                "1. ",
                "3.5",
                "... ",
                " »",
                "[1]",
                ". B",
                ". b",
                "one two ",
                "”",
                "é",
                "ß",
            ),
            *("x" * 100, "yes, no " * 40, " " * 90, "\u0301" * 50),
        ]
    ),
    max_size=40,
).map("".join)


def units(by: Any, *parts: str) -> list[str]:
    text = units_of(by)(None)
    found = [unit for part in parts for unit in text.feed(part)]
    return [*found, *text.close()]


@st.composite
def told(draw: Any, text: str) -> list[str]:
    at = sorted(draw(st.lists(st.integers(0, len(text)), max_size=9)))
    return [text[start:end] for start, end in zip([0, *at], [*at, len(text)])]


@pytest.mark.parametrize("by", KINDS, ids=lambda by: getattr(by, "__name__", str(by)))
@given(text=NASTY, data=st.data())
def test_units_depend_on_the_text_alone_and_cut_no_grapheme(by: Any, text: str, data: st.DataObject) -> None:
    whole = units(by, text)
    assert "".join(whole) == text
    assert all(whole)
    assert units(by, *data.draw(told(text))) == whole
    assert units(by, *text) == whole
    clusters = regex.findall(r"\X", text)
    if max(map(len, clusters), default=0) <= LONGEST_GRAPHEME // 4:  # ours may take some of these as one
        borders = {sum(map(len, clusters[:count])) for count in range(len(clusters) + 1)}
        assert {sum(map(len, whole[:count])) for count in range(len(whole))} <= borders


@pytest.mark.parametrize("by", KINDS, ids=lambda by: getattr(by, "__name__", str(by)))
@given(text=NASTY, data=st.data())
def test_each_unit_is_what_the_function_makes_of_it(by: Any, text: str, data: st.DataObject) -> None:
    def fn(unit: str) -> str:
        return f"{unit.strip().title()}|{len(unit)}" if "a" in unit else unit

    whole = units(by, text)
    filtered = units_of(by)(fn)
    found = [unit for part in data.draw(told(text)) for unit in filtered.feed(part)]
    assert [*found, *filtered.close()] == list(map(fn, whole))
    at, changes = 0, list[tuple[int, int, int]]()
    for unit in whole:
        if len(fn(unit)) != len(unit):
            changes.append((at, len(unit), len(fn(unit))))
        at += len(unit)
    assert filtered.changes == changes


@pytest.mark.parametrize(
    "by", ["word", "line", "char", STEP, four], ids=lambda by: getattr(by, "__name__", str(by))
)
@given(text=NASTY)
def test_units_are_the_pieces_of_the_cutter(by: Any, text: str) -> None:
    make, longest = rule_of(by)
    cutter = Cutter(make(), longest)
    cutter.feed(text)
    cutter.join()
    pieces: list[str] = []
    while cutter.has_some:
        pieces.append(cutter.piece(final=True))
    assert units(by, text) == pieces


@pytest.mark.parametrize(
    ("by", "fed", "out"),
    [
        ("word", ["Hel", "lo ", "you ", "all"], [[], [], ["Hello "], ["you "]]),
        ("line", ["a", "b\n", "c"], [[], ["ab\n"], []]),
        ("sentence", ["Hi.", " ", "Yo", "u. "], [[], [], ["Hi. "], []]),
        ("sentence", ["Hi. ", "\u0301", "X"], [[], [], ["Hi. \u0301"]]),
        ("char", ["e", "\u0301", "a"], [[], [], ["e\u0301"]]),
        (3, ["ab", "c", "d", "efg"], [[], [], ["abc"], ["def"]]),
        ("block", ["a b\n\n", "c"], [[], []]),
        (STEP, ["One.", " ", "T"], [[], [], ["One. "]]),
    ],
)
def test_a_unit_comes_as_soon_as_it_is_certain(by: Any, fed: list[str], out: list[list[str]]) -> None:
    text = units_of(by)(None)
    assert [list(text.feed(part)) for part in fed] == out


@pytest.mark.parametrize(("by", "longest"), [("word", 256), ("line", 4096), ("sentence", 600), (STEP, 256)])
def test_a_unit_without_an_end_is_cut_at_a_length(by: Any, longest: int) -> None:
    text = "x" * 10_000
    whole = [text[at : at + longest] for at in range(0, len(text), longest)]
    assert units(by, text) == whole
    assert units(by, *(text[at : at + 6] for at in range(0, len(text), 6))) == whole


@given(text=st.text("ab c\n", max_size=30), number=st.integers(1, 7), data=st.data())
def test_a_number_of_characters_is_the_length_of_all_units_but_the_last(
    text: str, number: int, data: st.DataObject
) -> None:
    expected = [text[at : at + number] for at in range(0, len(text), number)]
    assert units(number, *data.draw(told(text))) == expected


def test_what_was_read_of_one_line_is_not_taken_for_read_of_the_next() -> None:
    long = "x" * 5000
    assert units("line", long, "\n", f"ab\n{long}") == [
        long[:4096],
        f"{long[4096:]}\n",
        "ab\n",
        long[:4096],
        long[4096:],
    ]


def test_a_block_and_a_great_number_are_cut_nowhere_else() -> None:
    text = "one two\n\n" * 2000
    assert units("block", *text) == [text]
    assert units(10_000, *text) == [text[:10_000], text[10_000:]]


@pytest.mark.parametrize("by", ["word", "line", "sentence", "char", "block", 7, 1_000_000])
@pytest.mark.parametrize("delta", ["xxxxxx", "e\u0301e\u0301", "a b. \n", "a\u2019s x.", ". . . "])
def test_the_work_grows_as_the_text_does(by: Any, delta: str) -> None:
    def work(deltas: int) -> int:
        text = units_of(by)(str.upper)

        def feed() -> None:
            for _ in range(deltas):
                text.feed(delta)

        return work_done(feed)

    count = 1500 if by == "line" else 500  # a line is cut once in 700 of them
    assert work(2 * count) <= 2.2 * work(count)


def test_the_clock_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_cutter, "_SLOW", -1.0)
    assert units(STEP, "One two. Three") == ["One two. ", "Three"]


@pytest.mark.parametrize("wrong", ["words", "", None, 0, -1, True, 2.5, re.compile(b"a"), ["word"]])
def test_what_is_no_kind_of_unit_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="per: must be"):
        units_of(wrong, "per")


def test_a_pattern_that_matches_nothing_is_refused_by_the_name_of_the_argument() -> None:
    with pytest.raises(rd.InvalidValueError, match="by: must not match the empty text"):
        units_of(re.compile("x*"))


@pytest.mark.parametrize("answer", [None, 3, b"a"])
def test_a_function_must_return_a_text(answer: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="fn: must return a text"):
        units_of("word")(lambda unit: answer).feed("a b")


def test_a_function_that_cuts_must_give_a_beginning() -> None:
    with pytest.raises(rd.InvalidValueError, match="by: must return a beginning of the text"):
        units_of(lambda so_far: "?")(None).feed("a b")
