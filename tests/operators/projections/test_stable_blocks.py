"""`stable_blocks` in virtual time, and the splitter under it."""

from __future__ import annotations

import gc
import pickle
import re
import sys
from itertools import pairwise
from typing import Any

import pytest
import reactivex as rx
from hypothesis import HealthCheck, example, given, settings, strategies as st
from reactivex import operators as ops
from support.bounded import bounded
from support.lines import through, whole

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.operators.projections import markdown as _markdown
from rxdelta.testing import marbles

# Where markdown is cut.


def cut(text: str, size: int | None = None) -> tuple[str, ...]:
    """The blocks of a text that came in pieces of this size."""
    splitter = rd.building.MarkdownSplitter()
    size = size or len(text) or 1
    for at in range(0, len(text), size):
        value = splitter.feed(text[at : at + size])
        assert value.text == text[: at + size]
    value = splitter.finish()
    assert value.tail == ""
    return value.sealed


CUTS = {
    "paragraphs": "a\nb\n\n¦c\n",
    "blank lines belong to the block before, or else to the next": "a\n\n¦\n\nb\n \t\n¦\nc",
    "blank lines at the beginning": "\n\na\n\n¦b",
    "nothing but blank lines": "\n \n\t\n",
    "headings": "# a\n¦## b\n¦c\n\n¦#d\n¦###### e",
    "a heading ends a paragraph": "a\n¦# b\n¦c",
    "headings under a line": "a\nb\n===\n¦c\n-\n¦d",
    "rules": "---\n¦a\n¦***\n¦- - -\n¦b",
    "a line under a paragraph is no rule": "a\n---\n¦b\n\n¦---\n",
    "lists": "- a\n- b\n\n- c\n\n  d\n  - e\n\n\n¦f\n",
    "another marker is another list": "- a\n¦* b\n¦1. c\n2. d\n¦2) e",
    "a list goes on lazily": "- a\nb\n\n¦c",
    "but not over a heading": "- a\n¦# b\n¦- c",
    "nor when its text has ended": "- # a\n¦b",
    "a paragraph is ended by an item": "a\n¦- b",
    "but not by an empty one, nor by another number than 1": "a\n2. b\n*\nc\n¦1. d",
    "an item that begins with two blank lines is empty": "-\n\n¦  a\n",
    "and one column is too little": "-\n¦ a",
    "with one blank line it isn't": "-\n  a\n\n  b\n",
    "and the list goes on": "-\n\n- a\n",
    "numbers of ten digits are text": "1234567890. a\n¦- b",
    "text after an item must be indented far enough": "1. a\n\n   b\n\n¦  c",
    "also where it stands further right": "-   a\n\n    b\n\n¦  c",
    "code in an item": "-     a\n\n      b\n¦d",
    "tabs": "-\ta\n\n\tb\n\n¦>\t\tc\n¦d\n\n¦\te\n",
    "quotes": "> a\n> b\n\n¦> c\n",
    "a quote goes on lazily": "> a\nb\n¦# c",
    "but has no line under it": "> a\n¦---\n¦b",
    "and not when its text has ended": "> # a\n¦b",
    "one blank belongs to the mark": ">    a\nb\n\n¦c",
    "the others to what follows": ">     a\n¦b",
    "a mark behind four blanks is none": "> # a\n¦    > b\n",
    "a list in a quote": "> - a\nb\n> c\n\n¦  d",
    "a quote in a list": "- > a\nb\n\n  > c\n\n¦d",
    "fences": "```py\na\n\n# b\n```\n¦c\n",
    "a fence ends a paragraph": "a\n¦```\n\n```\n¦b",
    "waves": "~~~ a ```\n```\n\n~~~\n¦b",
    "a longer fence": "````\n```\n\n````  \n¦a",
    "a fence is closed by one at least as long": "```\n``\n\n`````\n¦a",
    "and by nothing beside it": "```\n\n``` a\n\n```\n¦b",
    "an indented fence": "   ```\n\n    ```\n\n   ```\n¦a",
    "an open fence": "a\n\n¦```\nb\n\nc\n",
    "ticks in a line are code": "``` a ```\nb\n\n¦c",
    "a fence in a list": "- ```\n  a\n\n  b\n\n  ```\n- c\n",
    "ends with the list": "- ```\n  a\n\n¦b\n",
    "a fence in a quote": "> ```\n> a\n>\n> b\n\n¦c\n",
    "ends with the quote": "> ```\n¦a\n\n¦b",
    "indented code": "    a\n\n    b\n\n\n¦c\n",
    "is text under a paragraph": "a\n    b\n\n¦    c\n¦d",
    "tables": "| a | b |\n|---|---|\n| c | d |\ne\n\n¦f\n",
    "a table is ended by a block": "a|b\n-|-\nc|d\n¦# e",
    "by any item": "a|b\n-|-\n¦2. c",
    "by what is indented": "a|b\n-|-\n¦    c\n",
    "a line under its rows is a row": "a|b\n-|-\nc\n===\nd\n",
    "a lone tag, too": "a|b\n-|-\n<b>\n# c\n".replace("# c", "¦# c"),
    "a row of delimiters needs as many columns": "a\\|b\n-|-\n---\n¦c",
    "and a head that isn't indented": "a\n    b|c\n-|-\n===\n¦d",
    "nor goes on lazily": "> a\nb|c\n> -|-\nd\n\n¦e",
    "a table in a quote doesn't go on lazily": "> a|b\n> -|-\n¦c",
    "html": "<div>\na\n\n¦b\n\n¦</div>\n\n¦c",
    "html ends a paragraph": "a\n¦<DIV\n\n¦b",
    "a lone tag doesn't": "a\n<b>\n\n¦<b c='d'>\n# e\n\n¦f",
    "nor in a paragraph that goes on lazily": "> a\n<b>\n\n¦b",
    "a tag in a line is text": "<b> a\n¦# c",
    "comments": "<!-- a\n\nb --> c\n¦d\n",
    "a comment in a line": "<!-- a -->\n¦b",
    "scripts": "<script>\na\n\n</SCRIPT>\n¦b",
    "what else is html": "<?a\n\n?>\n¦<!A\n\n>\n¦<![CDATA[\n\n]]>\n¦b",
    "html in a list ends with it": "- <!--\n\n  a\n¦b",
    "line ends of all kinds": "a\r\n\r\n¦b\r\r¦```\rc\r\n\r\n```\r¦d\n\r\n¦\re",
    "an escape has no part in it": "\\# a\n\\- b\n¦- c",
    "the last line needn't end": "- a\n\n¦b",
    "nothing": "",
}


@pytest.mark.parametrize("size", [None, 1, 2, 3])
@pytest.mark.parametrize("marked", CUTS.values(), ids=CUTS.keys())
def test_markdown_is_cut_where_a_block_ends(marked: str, size: int | None) -> None:
    assert cut(marked.replace("¦", ""), size) == tuple(marked.split("¦") if marked else ())


@pytest.mark.parametrize(
    ("text", "sealed", "tail"),
    [
        ("a\n", [], "a\n"),
        ("a\n\n", ["a\n\n"], ""),
        ("a\n \t\n", ["a\n \t\n"], ""),
        ("a\n# b", [], "a\n# b"),
        ("a\n# b\n", ["a\n", "# b\n"], ""),
        ("# a", [], "# a"),
        ("```\n\n```", [], "```\n\n```"),
        ("```\n\n```\n", ["```\n\n```\n"], ""),
        ("- a\n\nb", [], "- a\n\nb"),
        ("- a\n\nb\n", ["- a\n\n"], "b\n"),
        ("- a\n\n- b\n", [], "- a\n\n- b\n"),
        ("> a\n\n", ["> a\n\n"], ""),
        ("    a\n\n", [], "    a\n\n"),
        ("a|b\n-|-\n", [], "a|b\n-|-\n"),
        ("a|b\n-|-\n\n", ["a|b\n-|-\n\n"], ""),
        ("<div>\n\n", ["<div>\n\n"], ""),
        ("<!--\n\n", [], "<!--\n\n"),
        ("# a\r", [], "# a\r"),  # half a line end, perhaps
    ],
)
def test_a_block_is_sealed_as_soon_as_nothing_to_come_can_change_it(
    text: str, sealed: list[str], tail: str
) -> None:
    assert rd.building.MarkdownSplitter().feed(text) == rd.types.StableMarkdown(tuple(sealed), tail)


def test_what_is_fed_after_the_finish_is_a_text_of_its_own() -> None:
    splitter = rd.building.MarkdownSplitter()
    splitter.feed("```\na")
    assert splitter.finish().sealed == ("```\na",)
    splitter.feed("b\n\nc")
    assert splitter.finish() == rd.types.StableMarkdown(("```\na", "b\n\n", "c"))
    assert splitter.finish() is splitter.value


def test_values_do_not_change_and_behave_like_values() -> None:
    splitter = rd.building.MarkdownSplitter()
    values = [splitter.feed(piece) for piece in ("a", "\n", "\nb", "c")]
    assert [(value.sealed, value.tail) for value in values] == [
        ((), "a"),
        ((), "a\n"),
        (("a\n\n",), "b"),
        (("a\n\n",), "bc"),
    ]
    assert values[3] == rd.types.StableMarkdown(("a\n\n",), "bc") != values[2]
    assert hash(values[3]) == hash(rd.types.StableMarkdown(("a\n\n",), "bc"))
    assert pickle.loads(pickle.dumps(values[3])) == values[3]
    assert repr(values[3]) == "StableMarkdown(sealed=('a\\n\\n',), tail='bc')"
    assert values[3].text == "a\n\nbc"
    assert splitter.feed("") is values[3]


def test_half_a_surrogate_pair_can_be_encoded() -> None:
    sealed = rd.building.MarkdownSplitter().feed("\ud83d\ude00 \ud83d\n\n# a\n").sealed
    assert sealed == ("😀 \ufffd\n\n", "# a\n")


# What it costs: counted, not timed.

SHAPES = {
    "paragraphs": "some words\n\n",
    "one line": "word ",
    "one list": "- item\n",
    "one fence": "x = 1\n\n",
    "deep quotes": "> " * 40 + "\n",
    "deep lists": "- " * 40 + "\n",
    "bars": "|",
    "stars": "* ",
    "ticks": "`",
    "a tag": "<b c='d' ",
    "a comment": "x -- > <!--\n",
    "carriage returns": "\r",
}


class Scanned:
    """Notes the characters that are looked at line by line."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.characters = 0
        take = _markdown._Structure.take

        def note(structure: Any, line: str) -> tuple[bool, bool]:
            self.characters += len(line) + 1
            return take(structure, line)

        monkeypatch.setattr(_markdown._Structure, "take", note)


def steps(text: str, size: int) -> int:
    """Lines of our code that run while the text is cut."""
    count = 0
    file = _markdown.__file__

    def trace(frame: Any, event: str, _: object) -> Any:
        nonlocal count
        if frame.f_code.co_filename != file:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        cut(text, size)
    finally:
        sys.settrace(before)
        gc.enable()
    return count


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("opening", ["", "```\n", "<!--\n", "> - "], ids=["", "fenced", "html", "nested"])
def test_each_character_is_looked_at_once(shape: str, opening: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def text(size: int) -> str:
        return opening + (shape * size)[:size]

    assert steps(text(6000), 7) <= 2.1 * steps(text(3000), 7)
    scanned = Scanned(monkeypatch)
    cut(text(3000), 7)
    assert scanned.characters <= len(text(3000)) + 1


@pytest.mark.slow
def test_blank_lines_after_deep_nesting_cost_no_more_than_others() -> None:
    deep, flat = "- " * 2000 + "a\n", "- a" + " " * 3998 + "\n"
    assert steps(deep + "\n" * 2000, 50) <= 40 * steps(flat + "\n" * 2000, 50)
    assert steps(deep + "\n" * 4000, 50) <= 2.1 * steps(deep + "\n" * 2000, 50)


def test_a_tail_is_joined_only_when_it_is_read() -> None:
    splitter = rd.building.MarkdownSplitter()
    values = [splitter.feed(piece) for piece in ["```\n", *["x" * 1000] * 100]]
    held = rd.types.StableMarkdown.__dict__["tail"].fset.__self__  # the slot under the attribute
    assert all(isinstance(held.__get__(value), tuple) for value in values)
    assert values[1].tail == "```\n" + "x" * 1000


# For any text and any cutting.

steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])

INDENTS = ["", " ", "  ", "   ", "    ", "     ", "\t", " \t", "      "]
MARKERS = ["> ", ">", "- ", "* ", "+   ", "1. ", "2) ", "10. ", "-", ">> ", "- - ", "> - "]
CONTENTS = [
    *(
        "",
        "",
        "a",
        "b c",
        "# h",
        "##",
        "#x",
        "```",
        "````",
        "``` py",
        "~~~",
        "`x`",
        "``` `",
        "---",
        "- - -",
        "***",
    ),
    *(
        "===",
        "-",
        "1.",
        "\\",
        "<div>",
        "</div>",
        "<!-- x",
        "y -->",
        "<pre>",
        "</pre>",
        "<b>",
        "<b c='d'> e",
        "<?p",
    ),
    *("?>", "<![CDATA[", "]]>", "</b>"),
]
BARS = ["|", "a | b", "|-|", "---|---", "a |", "| :-: |", "a\\|b", "|---|---|"]
TABLE = "| a | b |\n|---|:-:|\n| c | d |\n"


def lines(indents: list[str], markers: list[str], contents: list[str]) -> st.SearchStrategy[str]:
    marked = st.lists(st.sampled_from(["", *markers, *indents]), max_size=3).map("".join)
    return st.builds("{}{}\n".format, marked, st.sampled_from(contents))


def documents(line: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda text, whole: text if whole else text[:-1],
        st.lists(line, max_size=12).map("".join),
        st.booleans(),
    )


ANY = documents(lines(INDENTS, MARKERS, CONTENTS + BARS)) | st.text("ab \t\n\r>-*#`~=|:<!1.)\\é", max_size=80)


@steady
@given(text=ANY, data=st.data())
def test_where_the_text_is_cut_into_deltas_makes_no_difference(text: str, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(text)), max_size=12).map(sorted))
    splitter = rd.building.MarkdownSplitter()
    known: tuple[str, ...] = ()
    for start, end in zip([0, *places], [*places, len(text)]):
        value = splitter.feed(text[start:end])
        assert value.text == text[:end]
        assert value.sealed[: len(known)] == known
        known = value.sealed
    assert splitter.finish().sealed[: len(known)] == known
    assert splitter.value.sealed == cut(text) == cut(text, 1)


@steady
@given(text=ANY, more=ANY)
def test_what_is_sealed_stays_whatever_comes(text: str, more: str) -> None:
    splitter = rd.building.MarkdownSplitter()
    sealed = splitter.feed(text).sealed
    splitter.feed(more)
    assert splitter.finish().sealed[: len(sealed)] == sealed


# Rendered block by block the text is what it is as a whole. The judge is markdown-it, with tables as in GFM. What it
# reads otherwise than the specifications is left out: a table's head behind a marker or an indentation (so bars stand
# only in whole tables), `>` behind four blanks (no quote begins there), tabs behind `>`. Definitions of links are left
# out too, as they reach over blocks.

ORDINARY = lines(INDENTS[:4], MARKERS, CONTENTS)
TABLES = st.sampled_from(
    [TABLE, TABLE + "e\n", TABLE + "\n", *(mark + TABLE.replace("\n", "\n> ", 2) for mark in ["> "])]
)
DEEPER = lines(INDENTS, MARKERS[2:8], CONTENTS)
JUDGED = documents(ORDINARY | ORDINARY | DEEPER | TABLES).filter(
    lambda text: not re.search(r"(?:^|[^ ]) *(?:\t| {4}).*>|>.*\t", text, re.MULTILINE)
)


@steady
@given(text=JUDGED)
@example("- a\n\n- b\n\n\nc\n")
@example("> - ```\n>   a\n>\n> - b\nc\n\n---\n")
def test_rendering_the_blocks_is_rendering_the_whole(text: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    judge = markdown_it.MarkdownIt("commonmark", {"maxNesting": 200}).enable("table")
    assert "".join(judge.render(block) for block in cut(text)) == judge.render(text)


@steady
@given(text=JUDGED.filter(lambda text: ">" not in text or "    " not in text.expandtabs(4)))
def test_no_block_could_have_been_cut_further(text: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    judge = markdown_it.MarkdownIt("commonmark", {"maxNesting": 200}).enable("table")
    for block in cut(text):
        outermost = [token for token in judge.parse(block) if token.level == 0 and token.nesting >= 0]
        kinds = [token.type for token in outermost]
        assert len(kinds) <= 1 or kinds[:2] == [
            "paragraph_open",
            "table_open",
        ]  # its last line was the table's head


# The operator.

START = ev.BlockStart(0, {"type": "text"})
MARKS: dict[str, Any] = {
    "M": ev.MessageStart(id="m1"),
    "N": ev.MessageStart(id="m2"),
    "S": START,
    "a": ev.TextDelta(0, "a"),
    "n": ev.TextDelta(0, "\n\n"),
    "b": ev.TextDelta(0, "b"),
    "0": ev.TextDelta(0, ""),
    "F": ev.BlockFinish(0),
    "T": ev.BlockStart(1, {"type": "tool_call", "id": "c1", "name": "look", "args": "{}"}),
    "G": ev.BlockFinish(1),
    "U": ev.BlockStart(2, {"type": "text", "text": "u"}),
    "c": ev.TextDelta(2, "c"),
    "E": ev.MessageFinish("stop"),
    "I": ev.MessageInterrupted("enough"),
    "p": ev.ProviderEvent("anthropic", "ping", {}),
    "R": ev.AttemptReset(1),
    "!": ev.StreamError("overloaded", type="overloaded_error"),
    "?": {"choices": []},
    "x": ev.TextDelta(0, "x", choice=1),
    "Y": ev.BlockStart(0, {"type": "text", "text": "y"}, choice=1),
    "Z": ev.MessageFinish("stop", choice=1),
}


def md(*blocks: str) -> rd.types.StableMarkdown:
    """The last is the tail."""
    return rd.types.StableMarkdown(tuple(blocks[:-1]), blocks[-1])


VALUES = {
    "1": md("a"),
    "2": md("a\n\n", ""),
    "3": md("a\n\n", "b"),
    "4": md("a\n\n", "b", ""),
    "5": md("a", ""),
    "6": md("a", "u"),
    "7": md("a", "uc"),
    "8": md("a", "uc", ""),
    "9": md(""),
    "b": md("b"),
    "B": md("b", ""),
    "u": md("u"),
    "y": md("y"),
    "x": md("yx"),
    "X": md("yx", ""),
    "v": md("u", ""),
    "A": md("u", "a"),
    "D": md("u", "a", "c"),
    "C": md("u", "a", "c", ""),
}


def check(source: str, operator: Any = None, *, values: Any = VALUES, **more: Any) -> None:
    events = marbles.parse(source, values=MARKS, frame=1)
    marbles.check(events, operator or rd.stable_blocks(), values=values, frame=1, **more)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("MSa-n-b-F-E-|", "--1-2-3-4---|", id="a text"),
        pytest.param("MSa-n-b-E---|", "--1-2-3-4---|", id="sealed at the message's end"),
        pytest.param("MSa-n-b-I---|", "--1-2-3-4---|", id="when it is interrupted"),
        pytest.param("MSa-n-b-----|", "--1-2-3-----[4|]", id="when the source completes"),
        pytest.param("MSa-n-b-----#", "--1-2-3-----[4#]", id="before an error"),
        pytest.param("MSa-n------#", "--1-2------#", id="nothing left to seal"),
        pytest.param("MSa-F-E-----#", "--1-5-------#", id="an error after the end"),
        pytest.param("MSaFTGUcE---|", "--15--678---|", id="another part of the text"),
        pytest.param("MSa-T-UcGFE-|", "--1---67--8-|", id="which seals the one before it"),
        pytest.param("MSaFp0TG----|", "--15--------|", id="what changes nothing"),
        pytest.param("-S0-p-E-----|", "------------|", id="no text"),
        pytest.param("a-ESa-U-----|", "------------|", id="what is out of order is ignored, as in a fold"),
        pytest.param("MSYxaxZ-----|", "----1-------[5|]", id="only its choice"),
        pytest.param("MSa-RSb-F---|", "--1-9-b-B---|", id="another attempt"),
        pytest.param("R-MSR-a-----|", "------------|", id="or when nothing has come"),
        pytest.param("MSa-ENSb-E--|", "--1-5--b-B--|", id="another message"),
        pytest.param("U-S-a-c-----|", "u-v-A-D-----[C|]", id="a part that goes on though another has begun"),
        pytest.param("MSa-EMSb-E--|", "--1-5--b-B--|", id="another message, also of the same id"),
        pytest.param("MS----------|", "------------|", id="an empty part"),
        pytest.param("|", "|", id="empty"),
        pytest.param("#", "#", id="only an error"),
        pytest.param("MSa----------", "--1----------", id="never"),
    ],
)
def test_blocks_and_tail_on_each_change_of_the_text(source: str, expected: str) -> None:
    check(source, gives=expected, reads=whole(source))


def test_another_choice() -> None:
    values = VALUES | {"1": md("yxx"), "2": md("yxx", "")}
    check("MSYxaxZ--|", bounded(rd.stable_blocks, choice=1), gives="--yx-12--|", values=values)


@pytest.mark.parametrize(
    ("mark", "kind"), [("!", rd.ProviderError), ("?", rd.InvalidValueError)], ids=["StreamError", "no event"]
)
def test_an_error_comes_after_the_sealed_tail(mark: str, kind: type) -> None:
    records, reads = through(f"MSa-{mark}-b|", rd.stable_blocks(), values=MARKS)
    *values, (time, _, error) = records
    assert marbles.draw(values, values=VALUES, frame=1) == "--1-5"
    assert (time, type(error), reads) == (4, kind, [(0, 4)])


@pytest.mark.parametrize(
    ("limits", "limit"), [(rd.Limits(block_chars=2), "block_chars"), (rd.Limits(blocks=1), "blocks")]
)
def test_untrusted_input_is_bounded(limits: rd.Limits, limit: str) -> None:
    line = "MSaFSaUcb-|" if limit == "blocks" else "MSaabb-|"
    records, _ = through(line, bounded(rd.stable_blocks, limits=limits), values=MARKS)
    (*_, (_, _, before), (_, _, error)) = records
    assert error.limit == limit
    assert before.tail == ""


def told(*events: Any) -> list[rd.types.StableMarkdown]:
    return rx.from_iterable(events).pipe(rd.stable_blocks(), ops.to_list()).run()


def test_a_finish_that_carries_the_text_again_changes_nothing() -> None:
    content = {"type": "text", "text": "a"}
    assert told(START, MARKS["a"], ev.BlockFinish(0, content)) == [md("a"), md("a", "")]


def test_a_finish_that_continues_the_text_is_more_of_it() -> None:
    content = {"type": "text", "text": "a\n\nb"}
    assert told(START, MARKS["a"], ev.BlockFinish(0, content)) == [md("a"), md("a\n\n", "b", "")]


def test_a_text_that_is_replaced_is_cut_anew() -> None:
    content = {"type": "text", "text": "b\n\nc"}
    got = told(MARKS["U"], START, MARKS["a"], MARKS["n"], MARKS["b"], ev.BlockFinish(0, content))
    assert got[-2:] == [md("u", "a\n\n", "b"), md("u", "b\n\n", "c", "")]


def test_a_text_that_is_replaced_after_its_end_is_cut_anew() -> None:
    content = {"type": "text", "text": "b\n\nc"}
    got = told(START, MARKS["a"], MARKS["F"], MARKS["U"], ev.BlockFinish(0, content))
    assert got[-2:] == [md("b\n\n", "c", "u"), md("b\n\n", "c", "u", "")]


def test_a_text_that_is_replaced_stays_open() -> None:
    got = told(START, MARKS["a"], MARKS["n"], ev.BlockDelta(0, {"text": "b"}), ev.TextDelta(0, "c"))
    assert got[-3:] == [md("b"), md("bc"), md("bc", "")]


def test_a_second_start_begins_the_part_anew() -> None:
    assert told(START, MARKS["a"], START, MARKS["b"])[-3:] == [md(""), md("b"), md("b", "")]
    assert told(START, START, MARKS["b"]) == [md("b"), md("b", "")]


def test_a_part_that_turns_out_to_be_something_else_is_no_text() -> None:
    got = told(START, MARKS["a"], ev.BlockFinish(0, {"type": "image", "url": "x"}))
    assert got == [md("a"), md("")]


def test_a_part_that_comes_with_its_finish() -> None:
    assert told(ev.BlockFinish(0, {"type": "text", "text": "a"})) == [md("a", "")]


@pytest.mark.parametrize("kind", ["refusal", "reasoning"])
def test_only_text_counts(kind: str) -> None:
    assert told(ev.BlockStart(0, {"type": kind}), MARKS["a"], ev.ReasoningDelta(0, "b")) == []


def test_a_surrogate_pair_in_two_pieces_is_one_character() -> None:
    got = told(
        START, ev.TextDelta(0, "a\ud83d"), ev.TextDelta(0, "\ude00"), ev.TextDelta(0, "\ud83d"), MARKS["F"]
    )
    assert got == [md("a"), md("a😀"), md("a😀\ufffd", "")]


@steady
@given(texts=st.lists(ANY, max_size=3), data=st.data())
def test_the_text_is_that_of_the_snapshot_and_its_parts_are_cut_one_by_one(
    texts: list[str], data: st.DataObject
) -> None:
    stream: list[Any] = [ev.MessageStart()]
    for index, text in enumerate(texts):
        size = data.draw(st.integers(1, 9))
        stream.append(ev.BlockStart(2 * index, {"type": "text"}))
        stream += [ev.TextDelta(2 * index, text[at : at + size]) for at in range(0, len(text), size)]
        stream.append(ev.BlockStart(2 * index + 1, {"type": "tool_call", "id": f"c{index}", "name": "look"}))
    got: list[Any] = []
    rx.from_iterable(stream).pipe(rd.stable_blocks()).subscribe(got.append)
    assert (got[-1] if got else md("")) == md(*(block for text in texts for block in cut(text)), "")
    fold, told = rd.Fold(), ""
    snapshots = [fold.step(event).text for event in stream]
    for value in got[:-1]:
        told = value.text
        assert told in snapshots
    assert all(len(one.text) <= len(other.text) for one, other in pairwise(got))
