"""Where text is cut: by the text alone, never within a grapheme, in bounded work for each character."""

from __future__ import annotations

import re
from typing import Any

import pytest
import regex
from hypothesis import given, strategies as st

import rxdelta as rd
from rxdelta.cutting import Cutter, cutter as _cutter, rule_of

SENTENCE = re.compile(r"[.!?]+\s+")


def cutter(chunking: Any) -> Cutter:
    make, longest = rule_of(chunking)
    return Cutter(make(), longest)


def drain(text: Cutter, *, final: bool) -> list[str]:
    text.join()
    pieces: list[str] = []
    while text.has_some and (piece := text.piece(final=final)):
        pieces.append(piece)
    return pieces


def cut(chunking: Any, *fragments: str) -> list[str]:
    """The pieces of the fragments, each of which is cut as far as can be before the next one comes."""
    text = cutter(chunking)
    pieces: list[str] = []
    for fragment in fragments:
        text.feed(fragment)
        pieces += drain(text, final=False)
    return pieces + drain(text, final=True)


def test_what_was_fed_in_several_pieces_is_joined_at_once() -> None:
    text = cutter("word")
    for fragment in ("Let m", "", "e lo", "ok."):
        text.feed(fragment)
    assert drain(text, final=True) == ["Let ", "me ", "look."]


@pytest.mark.parametrize(
    ("chunking", "text", "pieces"),
    [
        ("word", "Let me look.", ["Let ", "me ", "look."]),
        ("word", "  two  spaces\n\n  and lines\n", ["  two  ", "spaces\n\n  ", "and ", "lines\n"]),
        ("word", "我们走。Go on 走", ["我", "们", "走。", "Go ", "on ", "走"]),
        ("word", "カタカナ한국어 말", ["カ", "タ", "カ", "ナ", "한국어 ", "말"]),
        ("word", "สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("word", "   ", ["   "]),
        ("line", "a\n\nb\r\nc", ["a\n", "\n", "b\r\n", "c"]),
        ("char", "ae\u0301\r\n👨\u200d👩🇩🇪", ["a", "e\u0301", "\r\n", "👨\u200d👩", "🇩🇪"]),
        (SENTENCE, "One. Two?! Three", ["One. ", "Two?! ", "Three"]),
        (re.compile(r"\S+\s+"), "a  b", ["a  ", "b"]),
        (lambda text: text[:3] if len(text) >= 3 else None, "abcdefgh", ["abc", "def", "gh"]),
        (lambda text: text if text.endswith(",") else None, "a,,b", ["a,", ",", "b"]),
        (lambda text: "\U0001f468" if len(text) > 1 else None, "👨\u200d👩", ["👨\u200d👩"]),
    ],
)
def test_pieces(chunking: Any, text: str, pieces: list[str]) -> None:
    assert cut(chunking, text) == pieces
    assert cut(chunking, *text) == pieces


def test_a_piece_is_certain_only_when_what_follows_cannot_change_it() -> None:
    text = cutter("word")
    text.feed("Hello ")
    assert drain(text, final=False) == []
    text.feed(" w")
    assert drain(text, final=False) == ["Hello  "]


def test_48_all_there_is_but_what_makes_no_sense_alone() -> None:
    text = cutter("word")
    for fragment, out in [
        ("Hel", "Hel"),
        ("lo \U0001f468\u200d", "lo "),
        ("\U0001f469", "\U0001f468\u200d\U0001f469"),
    ]:
        text.feed(fragment)
        text.join()
        assert text.rest() == out
    text.feed("\u200d")
    text.join()
    assert (text.rest(), text.all()) == ("", "\u200d")


@pytest.mark.parametrize(("chunking", "longest"), [("word", 256), ("line", 4096), (SENTENCE, 256)])
def test_49_what_has_no_end_is_cut_at_a_length(chunking: Any, longest: int) -> None:
    text = "x" * 10_000
    assert cut(chunking, text) == [text[at : at + longest] for at in range(0, len(text), longest)]
    assert {len(piece) for piece in cut(chunking, "e\u0301" * 10_000)[:-1]} == {longest}
    assert {len(piece) for piece in cut(chunking, "e\u0301\u0302" * 10_000)[:-1]} == {-(longest // -3) * 3}


@pytest.mark.parametrize("chunking", ["word", "line", "char", SENTENCE, lambda text: None])
def test_49_the_work_for_a_character_is_bounded(chunking: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the rule is given, in all, grows as the text does."""

    def work(size: int) -> int:
        make, longest = rule_of(chunking)
        rule, seen = make(), 0

        def counted(window: str, known: int) -> int:
            nonlocal seen
            seen += len(window)
            return rule(window, known)

        text = Cutter(counted, longest)
        for _ in range(size // 2):
            text.feed("xy")
            drain(text, final=False)
        return seen

    assert work(32_768) <= 2.1 * work(16_384)


@pytest.mark.parametrize("pattern", ["", "x*", "x?", "^", "$", r"\b", "(?=a)", r"\s*", "(?:)|a", r"(?<=\s)"])
def test_50_a_pattern_that_matches_nothing_is_refused(pattern: str) -> None:
    with pytest.raises(rd.InvalidValueError, match="chunking: must not match the empty text"):
        rule_of(re.compile(pattern))


EVIL = [
    r"(a+)+$",
    r"(a+)+b",
    r"(?:a*)*b",
    r"([a-z]+)*\d",
    r"(a|aa)+$",
    r"(a|a?)+b",
    r"(.*a){20}",
    r"(?:(?:a+)b?)+c",
]


@pytest.mark.parametrize("pattern", EVIL)
def test_50_a_catastrophic_pattern_sees_little(pattern: str) -> None:
    text = "a" * 500 + "!"
    pieces = cut(re.compile(pattern), text)
    assert "".join(pieces) == text
    assert max(map(len, pieces)) <= 20


@pytest.mark.parametrize(
    "pattern", [r"[.!?]+\s+", r"(?:\S+\s+){3}", r"\n+|。", r"[(+*|]+\)", r"\(a+\)+", r"[^]a+]+b"]
)
def test_50_a_harmless_pattern_sees_much(pattern: str) -> None:
    assert rule_of(re.compile(pattern))[1] == 256


def test_50_a_pattern_that_takes_too_long_all_the_same_is_given_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]

    def thread_time() -> float:
        now[0] += 1
        return now[0]

    monkeypatch.setattr(_cutter, "thread_time", thread_time)
    assert cut(SENTENCE, "One two. Three") == ["O", "n", "e", " two. ", "Three"]
    assert "takes too long" in caplog.text


@pytest.mark.parametrize("answer", ["", "x", 3, b"a"])
def test_a_function_must_give_a_beginning(answer: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="chunking: must return a beginning of the text"):
        cut(lambda text: answer, "abc")


@pytest.mark.parametrize("chunking", ["words", "", None, 3, re.compile(b"a")])
def test_what_is_no_chunking_is_refused(chunking: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="chunking: must be"):
        rule_of(chunking)


TEXT = st.lists(
    st.sampled_from(
        [*"ab .\n\r漢。", "\u0301", "\u200d", "👨", "👩", "🇩", "🇪", "\u1100", "\u1161", "x" * 100]
    ),
    max_size=60,
)


@given(
    text=TEXT,
    chunking=st.sampled_from(["word", "line", "char", SENTENCE, re.compile(r"a.*b")]),
    data=st.data(),
)
def test_48_the_cuts_depend_on_the_text_alone_and_cut_no_grapheme(
    text: list[str], chunking: Any, data: st.DataObject
) -> None:
    whole = "".join(text)
    pieces = cut(chunking, whole)
    assert "".join(pieces) == whole
    at = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    assert cut(chunking, *(whole[start:end] for start, end in zip([0, *at], [*at, len(whole)]))) == pieces
    borders = {0}
    for cluster in regex.findall(r"\X", whole):
        borders.add(max(borders) + len(cluster))
    end = 0
    for piece in pieces:
        end += len(piece)
        assert end in borders
