"""`partial_json`: a reply that is one JSON document. What a partial value is: `test_partial_arguments`."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

import attrs
import pytest
import reactivex as rx
from hypothesis import HealthCheck, given, settings, strategies as st
from reactivex import operators as ops
from support.cost import lines_run

import rxdelta as rd
from rxdelta import events as ev

FINISH, END = ev.BlockFinish(0), ev.MessageFinish("stop")


def start(index: int | str = 0, text: str = "", type: str = "text") -> ev.BlockStart:
    return ev.BlockStart(index, {"type": type, type: text})


def says(text: str, index: int | str = 0) -> ev.TextDelta:
    return ev.TextDelta(index, text)


def ends(text: str, index: int = 0) -> ev.BlockFinish:
    return ev.BlockFinish(index, {"type": "text", "text": text})


def partials(*events: Any, **options: Any) -> list[Any]:
    got: list[Any] = rx.from_iterable(events).pipe(rd.partial_json(**options), ops.to_list()).run()
    return got


def short(partial: Any) -> Any:
    if partial.complete:
        return partial.value, "complete"
    return (partial.value, "...") if partial.error else partial.value


DONE = ({"a": 1}, "complete")
WHOLE = '{"a": 1}'


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([start(), says(WHOLE), FINISH], [{"a": 1}], id="complete only with the message"),
        pytest.param([start(), says(WHOLE), END, END], [{"a": 1}, DONE], id="and once"),
        pytest.param([start(text=WHOLE), END], [{"a": 1}, DONE], id="a start with the text"),
        pytest.param([ends(WHOLE), END], [{"a": 1}, DONE], id="a finish with the text"),
        pytest.param(
            [start(), says(' \n {"a": 1'), says("}\n"), END], [{}, {"a": 1}, DONE], id="blanks around it"
        ),
        pytest.param([start(), says("4"), says("2"), END], [(42, "complete")], id="a number"),
        pytest.param([start(), says("null "), END], [None, (None, "complete")], id="null"),
        pytest.param([start(), says('"a'), says('b"'), END], ["a", "ab", ("ab", "complete")], id="a string"),
        pytest.param([start(), FINISH, END], [], id="no text"),
        pytest.param([start(), says(" "), END], [(None, "...")], id="blank text"),
        pytest.param([END], [], id="nothing"),
        pytest.param([start(), says("Sure: {"), END], [(None, "...")], id="a preface"),
        pytest.param(
            [start(), says(WHOLE), says(" ok"), END], [{"a": 1}, ({"a": 1}, "...")], id="an afterword"
        ),
        pytest.param([start(), says('{"a": 1'), END], [{}, ({}, "...")], id="not closed"),
        pytest.param([start(), says('{"a": 1')], [{}], id="33: cut off"),
        pytest.param(
            [start(), says("4"), ev.MessageFinish("length")], [(None, "...")], id="cut by the limit"
        ),
        pytest.param(
            [start(), says(WHOLE), ev.MessageFinish("length")], [{"a": 1}, DONE], id="cut behind it"
        ),
        pytest.param([start(), says("[4"), ev.MessageInterrupted()], [[], ([], "...")], id="interrupted"),
        pytest.param(
            [start(), says(WHOLE), ev.MessageInterrupted()], [{"a": 1}, DONE], id="interrupted behind it"
        ),
        pytest.param(
            [start(), says('{"a": '), ends(WHOLE), END], [{}, {"a": 1}, DONE], id="a finish extends"
        ),
        pytest.param(
            [start(), says('{"b": '), ends(WHOLE), END], [{}, {"a": 1}, DONE], id="a finish replaces"
        ),
        pytest.param(
            [start(), says("[1]"), FINISH, ends("[2]"), END],
            [[1], [2], ([2], "complete")],
            id="10: a second finish replaces",
        ),
        pytest.param([start(), says("[1]"), FINISH, ends("[1]")], [[1]], id="10: or repeats"),
        pytest.param([start(), says("[1]"), ev.BlockDelta(0, {"text": ""})], [[1], None], id="blanked"),
        pytest.param([start(), says("[1]"), start(), says("[2]")], [[1], None, [2]], id="9: begun again"),
        pytest.param(
            [start(), says("[1]"), start(type="reasoning")], [[1], None], id="begun again as reasoning"
        ),
        pytest.param(
            [start(), says("[1]"), FINISH, start(type="reasoning")], [[1], None], id="after its end too"
        ),
        pytest.param([start(type="reasoning"), says("[1]"), ev.ReasoningDelta(0, "[1]")], [], id="reasoning"),
    ],
)
def test_the_values_of(events: list[Any], expected: list[Any]) -> None:
    got = partials(*events)
    assert [short(partial) for partial in got] == expected
    assert all(partial.call_id is partial.name is None for partial in got)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [start(), says("[1"), FINISH, start(1), says(", 2", 1), says("]", 1)],
            [[], [1], [1, 2]],
            id="in turn",
        ),
        pytest.param(
            [start(), says("[1"), start(1), says("2]", 1), says(", "), FINISH],
            [[], [1], [1, 2]],
            id="at once",
        ),
        pytest.param(
            [start(1), says("2]", 1), start(0), says("[1, ")], [(2, "..."), None, [1]], id="5: out of order"
        ),
        pytest.param(
            [start("b"), says("[1,", "b"), ev.BlockFinish("b"), start("a", "2]")],
            [[1], [1, 2]],
            id="by words",
        ),
        pytest.param(
            [start(), says("[1,"), FINISH, start(1), ev.BlockFinish(1), start(2, "2]")],
            [[1], [1, 2]],
            id="empty ones",
        ),
        pytest.param(
            [
                start(),
                says("[1,"),
                FINISH,
                start(1, " 2]"),
                ev.BlockDelta(0, {"text": "[3,"}),
                start(0, "[4,"),
            ],
            [[1], [1, 2], [4]],
            id="an earlier one begun again",
        ),
        pytest.param(
            [start(), says("[1,"), start(1, "2]"), END], [[1], ([1, 2], "complete")], id="closed at last"
        ),
        pytest.param(
            [start(7, "7,"), start("a", "8]"), start(2, "[2,"), END],
            [(7, "..."), [2], ([2, 7, 8], "complete")],
            id="a number before the next higher one",
        ),
        pytest.param(
            [start(), says('["'), start(1, '"]'), says("\ud83d"), END],
            [[""], (["\ufffd"], "complete")],
            id="closed at last, with half a character",
        ),
        pytest.param(
            [start(), says('["'), start(1), says("\ud83d", 1), END],
            [[""], (["\ufffd"], "...")],
            id="in the last of them",
        ),
        pytest.param(
            [start(), says("[1,"), start(1, "x]"), END], [[1], ([1], "...")], id="closed at last, and wrong"
        ),
    ],
)
def test_several_texts_are_one_document_in_the_order_of_their_blocks(
    events: list[Any], expected: list[Any]
) -> None:
    assert [short(partial) for partial in partials(*events)] == expected


FENCED = [
    pytest.param('```json\n{"a": "`x```"}\n```', {"a": "`x```"}, id="a fence"),
    pytest.param("```\n[1]\n```\n", [1], id="without a word"),
    pytest.param("\n \n```JSON5 x\r\n[1]\n```", [1], id="blanks and words"),
    pytest.param("````json\n[1]\n````", [1], id="a longer fence"),
    pytest.param("```json\n[1]```", [1], id="closed on the same line"),
    pytest.param("```json\n[1]\n```\nHope this helps! ``` {", [1], id="an afterword"),
    pytest.param("```json\n[1]\n", [1], id="not closed"),
    pytest.param("```json\n[1]\n`", [1], id="half closed"),
    pytest.param('"`"', "`", id="a backtick in a string"),
    pytest.param('```json\n"a```b"\n```', "a```b", id="a fence in a string"),
    pytest.param("```json\n42\n```", 42, id="a number"),
    pytest.param("``[1]", None, id="no fence"),
    pytest.param("`", None, id="one backtick"),
    pytest.param("``", None, id="two backticks"),
    pytest.param("```", None, id="nothing but a fence"),
    pytest.param("``` [1]", None, id="on the fence's own line"),
    pytest.param("```json\n`[1]", None, id="a fence in a fence"),
    pytest.param("[1]\n```", None, id="closed but not opened"),
    pytest.param("x```json\n[1]\n```", None, id="behind something"),
]


@pytest.mark.parametrize(("text", "value"), FENCED)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_a_markdown_fence_around_it_is_overlooked(text: str, value: Any, size: int) -> None:
    pieces = [says(text[at : at + size]) for at in range(0, len(text), size)]
    last = partials(start(), *pieces, END)[-1]
    if value is None:
        assert last.error is not None
        assert not last.complete
    else:
        assert (last.value, last.complete, last.error) == (value, True, None)


def test_characters_are_counted_from_the_beginning_of_the_text() -> None:
    text = ' \n```json\n{"a": x}\n```'
    (*_, last) = partials(start(), *map(says, text))
    assert last.error.endswith(f"at character {text.index('x')}")


@attrs.frozen
class Plan:
    title: str
    days: int = 1


def test_into_a_class() -> None:
    events = [start(), says('{"title": "T'), says('ides"'), says(', "days": 3}'), END]
    got = partials(*events, into=Plan)
    assert [(one.so_far["title"], one.so_far.get("days")) for one in got] == [
        ("T", None),
        ("Tides", None),
        ("Tides", 3),
        ("Tides", 3),
    ]
    assert [(one.value, one.complete) for one in got] == [(None, False)] * 3 + [(Plan("Tides", 3), True)]
    assert [one.is_final("title") for one in got] == [False, True, True, True]


@pytest.mark.parametrize(("text", "shown"), [('{"days": 3}', {"days": 3}), ("[1]", {}), ("null", {})])
def test_what_the_class_refuses_is_never_complete_and_has_no_value(text: str, shown: object) -> None:
    *_, last = partials(start(), says(text), END, into=Plan)
    assert (last.complete, last.value, last.so_far) == (False, None, shown)
    assert last.error.startswith("not a Plan: ")


def test_a_long_document_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    feed = rd.core.PartialJsonParser.feed

    def counted(self: rd.core.PartialJsonParser, fragment: str) -> None:
        nonlocal read
        read += len(fragment)
        feed(self, fragment)

    monkeypatch.setattr(rd.core.PartialJsonParser, "feed", counted)
    text = json.dumps({"text": "x`" * 5000, "list": [*range(1000)]})
    for around in ("", "```json\n"):
        read = 0
        assert partials(start(), *map(says, around + text), END)[-1].complete
        assert read == len(around + text)


characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/`\n\x00é😀')
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(characters, max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(characters, max_size=3), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    value=values,
    fence=st.sampled_from(["", "```json\n", "\n```\n"]),
    blocks=st.integers(1, 3),
    data=st.data(),
)
def test_any_document_cut_anywhere_ends_as_if_read_at_once(
    value: Any, fence: str, blocks: int, data: st.DataObject
) -> None:
    text = fence + json.dumps(value, ensure_ascii=data.draw(st.booleans())) + ("\n```" if fence else "")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)])]
    events: list[Any] = [start(index) for index in range(blocks)]
    homes = sorted(data.draw(st.lists(st.integers(0, blocks - 1), min_size=len(parts), max_size=len(parts))))
    told = [says(part, home) for part, home in zip(parts, homes)]
    order = data.draw(st.permutations(range(blocks)))  # which block's pieces come first
    for index in order:
        events += [event for event in told if event.index == index]
        events += [ev.BlockFinish(index)] if data.draw(st.booleans()) else []
    got = partials(*events, END)
    assert json.dumps(got[-1].value) == json.dumps(value)
    assert [one.complete for one in got] == [False] * (len(got) - 1) + [True]
    assert all(one.error is None for one in got)
    for before, after in pairwise(got):
        assert (before.value, before.is_final(), before.complete) != (
            after.value,
            after.is_final(),
            after.complete,
        ) or json.dumps(before.value) == "null"
        if before.is_final():
            assert json.dumps(before.value) == json.dumps(value)


# The search for the document.

A = {"a": 1}
FOUND = [
    # what models write
    pytest.param('Sure! Here it is:\n```json\n{"a": 1}\n```', A, id="a sentence and a fence"),
    pytest.param('<think>x</think>{"a":1}', A, id="reasoning"),
    pytest.param(
        '<think>{"b": 2}? No: [2]. </thin></think>\n```json\n{"a":1}```', A, id="reasoning with JSON"
    ),
    pytest.param('\n<thinking>a < b</thinking> So: {"a":1}', A, id="reasoning and a sentence"),
    pytest.param('{"a": 1}\nHope this helps!', A, id="words behind"),
    pytest.param('Here: [{"a": 1}] and [{"b": 2}]', [A], id="the first of two"),
    pytest.param('I called it: {"a": 1} {"b": 2}', A, id="objects in a row"),
    pytest.param('```\n{"a": 1}\n```\n```json\n{"b": 2}\n```', A, id="the first of two fences"),
    pytest.param('```json {"a": 1} ```', A, id="a fence in one line"),
    pytest.param('Numbers: [1, 2]. {"b": 2}', [1, 2], id="a list of numbers"),
    pytest.param('Here is {"a": 1', None, id="cut"),
    # what is none
    pytest.param('Use {name} here: {"a": 1}', A, id="a placeholder"),
    pytest.param('See [the docs](http://x.y/{id}) {"a": 1}', A, id="a link"),
    pytest.param('{{"a": 1}}', A, id="doubled braces"),
    pytest.param('[see {"a": 1}]', A, id="in brackets"),
    pytest.param('(it is [{"a": 1} or so])', A, id="a value in what is none"),
    pytest.param('[[{"a": 1}, [], {"b": 2}] [[ x', [A, [], {"b": 2}], id="the outermost that is closed"),
    pytest.param('- [ ] buy\n- [x] sell\n{"a": 1}', A, id="boxes"),
    pytest.param('strip [" ] and get {"a": 1}', A, id="a quotation mark in brackets"),
    pytest.param('"Sure", she said: {"a": 1}', A, id="a quotation"),
    pytest.param('"It is {"a": 1}"', A, id="a quoted value"),
    pytest.param('5 things: {"a": 1}', A, id="a number"),
    pytest.param('true: {"a": 1}', A, id="a word"),
    pytest.param('not so: {"a": 1}', A, id="half a word"),
    pytest.param('{"x": y} is wrong, {"a": 1} is right', A, id="broken"),
    pytest.param('{"x": "\n"} is wrong, {"a": 1} is right', A, id="a line end in a string"),
    pytest.param('{"x": "\\q{"} is wrong, {"a": 1} is right', A, id="a wrong escape"),
    # marks
    pytest.param('As [1] says: {"a": 1}', A, id="a mark"),
    pytest.param('[1] see note: {"a": 1}', A, id="a mark first"),
    pytest.param('f({}) and [] give {"a": 1}', A, id="empty ones"),
    pytest.param('[[1] x {"a": 1}', A, id="a mark in what is none"),
    pytest.param("Sure: []", [], id="nothing but an empty list"),
    pytest.param("Sure: [7]. Or [8], [9", [7], id="nothing but marks"),
    pytest.param("Sure: [[2] [ ", [2], id="nothing but a mark in what is none"),
    # what is JSON as a whole
    pytest.param(' "a [b] {c}" ', "a [b] {c}", id="a string"),
    pytest.param("```\n42\n```\nor 43", 42, id="a number in a fence"),
    pytest.param('```\n"a```b"\n``` or', "a```b", id="a string in a fence"),
    pytest.param("-1.5", -1.5, id="a number alone"),
    pytest.param("null", None, id="null"),
    # nothing
    pytest.param("Sure: 5", ..., id="no object"),
    pytest.param("Use {name}.", ..., id="only a placeholder"),
    pytest.param("<think>{}", ..., id="only reasoning"),
    pytest.param("``", ..., id="half a fence"),
    pytest.param("<thin", ..., id="half a tag"),
]


@pytest.mark.parametrize(("text", "value"), FOUND)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_the_document_is_found(text: str, value: Any, size: int) -> None:
    pieces = [says(text[at : at + size]) for at in range(0, len(text), size)]
    last = partials(start(), *pieces, END, find=True)[-1]
    if value is ... or text.endswith('{"a": 1'):
        assert (last.complete, last.value if value is ... else None) == (False, None)
        assert last.error is not None
    else:
        assert (last.value, last.complete, last.error) == (value, True, None)


def test_nothing_is_shown_before_it_is_known_to_be_json() -> None:
    text = 'Use {name}, see [1], [the docs] or [ ]: {"a": [1, 2]} [3, 4]'
    got = partials(start(), *map(says, text), END, find=True)
    assert [short(one) for one in got] == [
        {},
        {"a": []},
        {"a": [1]},
        {"a": [1, 2]},
        {"a": [1, 2]},
        ({"a": [1, 2]}, "complete"),
    ]


@pytest.mark.parametrize(
    ("text", "says_so"),
    [
        ("Sorry, no.", "no JSON object or list in the text"),
        ("Use {name}.", "no JSON object or list in the text"),
        ('Sure: {"a": x}', "expected a value but found 'x' at character 12"),
        ('{"a": x} {"b": y}', "expected a value but found 'x' at character 6"),
        ('Sure: {"a": 1', "it ends where ',' or '}' should follow"),
        ("Sure: " + "[" * 201, "nested deeper than 200"),
        ("5 apples", "expected nothing more but found 'a' at character 2"),
        (" ", "no text"),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_an_error_says_why_nothing_was_found(text: str, says_so: str, size: int) -> None:
    pieces = [says(text[at : at + size]) for at in range(0, len(text), size)]
    last = partials(start(), *pieces, END, find=True)[-1]
    assert not last.complete
    assert says_so in last.error


def test_what_is_cut_behind_the_value_is_complete_and_what_is_cut_in_it_is_not() -> None:
    cut = ev.MessageFinish("length")
    assert short(partials(start(), says('So: {"a": 1} and'), cut, find=True)[-1]) == DONE
    assert short(partials(start(), says('So: {"a": 1}'), cut, find=True)[-1]) == DONE
    for text in ('So: {"a": 1', "So: [1] and", "So"):
        *_, last = partials(start(), says(text), cut, find=True)
        assert "token limit" in last.error


def test_another_text_is_searched_anew() -> None:
    got = partials(start(), says('So: {"a": 1}'), ends('No: {"b": 2}'), END, find=True)
    assert [short(one) for one in got] == [{"a": 1}, {"b": 2}, ({"b": 2}, "complete")]


def test_the_found_document_into_a_class() -> None:
    *_, last = partials(start(), says('Sure [1]: {"title": "T"} ok?'), END, find=True, into=Plan)
    assert last.value == Plan("T")


sentences = st.lists(
    st.sampled_from(["Sure", "so ", "\n", "é", "`", "<b", ":", "x=1;", "[1]", "{x}", "[]"])
).map("".join)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=st.lists(st.text(characters), min_size=1, max_size=3) | st.dictionaries(st.text(characters), values, min_size=1), before=sentences, behind=st.text('a{}[]",:1 \n`'), data=st.data())  # fmt: skip
def test_a_document_is_found_between_any_sentences(
    value: Any, before: str, behind: str, data: st.DataObject
) -> None:
    text = "So " + before + json.dumps(value, ensure_ascii=data.draw(st.booleans())) + "\n" + behind
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)])]
    *_, last = partials(start(), *map(says, parts), END, find=True)
    assert (json.dumps(last.value), last.complete) == (json.dumps(value), True)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=values, fence=st.sampled_from(["", "```json\n"]), data=st.data())
def test_what_is_read_without_the_search_is_read_the_same_with_it(
    value: Any, fence: str, data: st.DataObject
) -> None:
    text = (
        fence
        + json.dumps(value, indent=data.draw(st.sampled_from([None, 1])))
        + ("\n```\nok" if fence else "")
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    events = [start(), *(says(text[a:b]) for a, b in zip([0, *cuts], [*cuts, len(text)])), END]
    assert [*map(short, partials(*events, find=True))] == [*map(short, partials(*events))]


hostile = st.lists(st.sampled_from([*'[[{{"]}\\,:1 a\n', '"a":', "[1]", "{}", "null", '"[', "<think>", "```"]), max_size=40).map("".join)  # fmt: skip


@settings(deadline=None)
@given(text=hostile, data=st.data())
def test_what_is_found_depends_on_the_text_alone_and_is_in_it(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    ways = [[text], [*text], [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)])]]
    ends = []
    for parts in ways:
        got = partials(start(), *map(says, parts), END, find=True)
        ends.append(
            [
                (repr(got[-1].value) if got[-1].complete else None, got[-1].complete, got[-1].error)
                for _ in got[-1:]
            ]
        )
    assert ends[0] == ends[1] == ends[2]
    if ends[0] and ends[0][0][1]:
        decode = json.JSONDecoder().raw_decode
        found = []
        for at in range(len(text)):
            with suppress(ValueError):
                found.append(repr(decode(text, at)[0]))
        assert ends[0][0][0] in found


@pytest.mark.parametrize(
    "text",
    ["[x", "{", "[ ", '["', '["a" ', "[1,", '{"a":[', "[[1],", '["[x', '"[', "[1]", '[é"', '["\\"', "<think", "[" * 150 + "1]x", '[["a",'],
)  # fmt: skip
@pytest.mark.parametrize("whole", [True, False])
def test_the_search_takes_time_in_proportion_to_the_text(text: str, whole: bool) -> None:
    def cost(count: int) -> int:
        said = "So: " + (text * count)[:count]
        events = [start(), *([says(said)] if whole else map(says, said)), END]
        return lines_run(lambda: partials(*events, find=True))

    assert cost(4000) < 5 * cost(1000) + 3000


@pytest.mark.parametrize("text", ["[x", '["[x" x', "é[x", '[é"x'])
def test_what_is_copied_for_a_false_start_is_short(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fed = 0
    feed = rd.core.PartialJsonParser.feed

    def counted(self: rd.core.PartialJsonParser, fragment: str) -> None:
        nonlocal fed
        fed += len(fragment)
        feed(self, fragment)

    monkeypatch.setattr(rd.core.PartialJsonParser, "feed", counted)
    partials(start(), says(text * 5000), END, find=True)
    assert fed < 5000 * 1024
