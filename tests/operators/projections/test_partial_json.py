"""`partial_json`: a reply that is one JSON document. What a partial value is: `test_partial_arguments`."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import attrs
import pytest
import reactivex as rx
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reactivex import operators as ops
from support.marbles import marbles, run

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


def test_a_value_whenever_what_can_be_seen_changed() -> None:
    marks: dict[str, Any] = {"S": start(), "F": FINISH, "E": END}
    marks |= dict(zip("abcde", map(says, ['{"q', '": "', "ti", 'des"', " }"])))
    messages, _ = run(marbles("Sabc-de-F-E|", marks, start=0), rd.partial_json())
    seen = [(m.time - 200, short(m.value.value)) for m in messages if m.value.kind == "N"]
    tides = {"q": "tides"}
    assert seen == [
        (1, {}),
        (2, {"q": ""}),
        (3, {"q": "ti"}),
        (5, tides),
        (6, tides),
        (10, (tides, "complete")),
    ]
    assert all(m.value.value.call_id is m.value.value.name is None for m in messages[:-1])


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
    assert [short(partial) for partial in partials(*events)] == expected


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
    feed = rd.PartialJsonParser.feed

    def counted(self: rd.PartialJsonParser, fragment: str) -> None:
        nonlocal read
        read += len(fragment)
        feed(self, fragment)

    monkeypatch.setattr(rd.PartialJsonParser, "feed", counted)
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
