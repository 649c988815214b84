"""`json_items`: each item of an array as soon as it is closed. What holds for each projection: `test_projection`."""

from __future__ import annotations

import json
from typing import Any

import pytest
import reactivex as rx
from hypothesis import HealthCheck, given, settings, strategies as st
from reactivex import operators as ops
from support.bounded import bounded

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.core import InvalidJson, freeze, parse_json

FINISH, END = ev.BlockFinish(0), ev.MessageFinish("stop")
START = ev.BlockStart(0, {"type": "text"})
CALL = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "f"})


def says(text: str, index: int = 0) -> ev.TextDelta:
    return ev.TextDelta(index, text)


def args(text: str, index: int = 0) -> ev.ToolCallDelta:
    return ev.ToolCallDelta(index, text)


def items(*events: Any, path: Any = (), **options: Any) -> list[Any]:
    got: list[Any] = (
        rx.from_iterable(events).pipe(bounded(rd.json_items, path, **options), ops.to_list()).run()
    )
    return got


def until_error(*events: Any, path: Any = (), **options: Any) -> tuple[list[Any], list[Any]]:
    got: list[Any] = []
    errors: list[Any] = []
    rx.from_iterable(events).pipe(bounded(rd.json_items, path, **options)).subscribe(
        got.append, errors.append
    )
    return got, errors


def of(text: str, path: Any = (), size: int = 1000) -> list[Any]:
    return items(START, *(says(text[at : at + size]) for at in range(0, len(text), size)), END, path=path)


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        pytest.param('{"items": [1, 2]}', "items", [1, 2], id="a key"),
        pytest.param('{"x": {"items": [0]}, "items": [1]}', "items", [1], id="at its own depth"),
        pytest.param('{"a": {"b": [[1], []]}}', ("a", "b"), [[1], []], id="keys"),
        pytest.param('{"a": [[7], [8, 9], [6]]}', ["a", 1], [8, 9], id="an index"),
        pytest.param(
            '[{"a": [1]}, {"b": 3, "a": ["x,]}\\"", null]}]', (1, "a"), ['x,]}"', None], id="and a key"
        ),
        pytest.param("[[1], [2]]", 0, [1], id="an index alone"),
        pytest.param("[1, [2], {}, [], {}]", (), [1, [2], {}, [], {}], id="the document itself"),
        pytest.param('{"": [1]}', "", [1], id="an empty key"),
        pytest.param('{"a\\"b": [1, 2, 3]}', 'a"b', [1, 2, 3], id="a key with a quote"),
        pytest.param('{"0": [1]}', 0, [], id="an index is no key"),
        pytest.param("[[1]]", "0", [], id="a key is no index"),
        pytest.param('{"items": []}', "items", [], id="an empty array"),
        pytest.param('{"items": {"a": 1}}', "items", [], id="no array"),
        pytest.param('{"items": "a,b]"}', "items", [], id="a string"),
        pytest.param('{"other": [1]}', "items", [], id="nothing there"),
        pytest.param('{"items": [1], "more": [2], "x": "]"}', "items", [1], id="and nothing behind it"),
        pytest.param("[1 , 2\n,3 ]", (), [1, 2, 3], id="blanks"),
        pytest.param("[-1.5e3,0,0.5]", (), [-1500.0, 0, 0.5], id="numbers"),
        pytest.param('["a\\u00e9\\ud83d\\ude00", "\ud83d"]', (), ["aé😀", "\ufffd"], id="24: characters"),
        pytest.param('```json\n["`", "```"]\n```\nDone. [', (), ["`", "```"], id="a fence"),
        pytest.param("[1, 2, 3", (), [1, 2], id="33: not closed"),
        pytest.param('["a", "b', (), ["a"], id="cut in a string"),
        pytest.param("", (), [], id="no text"),
        pytest.param('[{"a": [1, 2]}, {"a": [3]}]', (), [{"a": [1, 2]}, {"a": [3]}], id="items with arrays"),
    ],
)
def test_the_items_of(text: str, path: Any, expected: list[Any], size: int) -> None:
    got = of(text, path, size)
    assert json.dumps(got) == json.dumps(expected)


@pytest.mark.parametrize(
    ("text", "expected", "where"),
    [
        pytest.param("[1, 2, x]", [1, 2], 7, id="a letter"),
        pytest.param('["a", "b" "c"]', ["a", "b"], 10, id="no comma"),
        pytest.param("[1, 2 3]", [1, 2], 6, id="no comma behind a number"),
        pytest.param("[1, 2}", [1, 2], 5, id="another bracket"),
        pytest.param("[{}, []}", [{}, []], 7, id="another bracket behind an array"),
        pytest.param("[1,, 2]", [1], 3, id="two commas"),
        pytest.param("[1, 2,]", [1, 2], 6, id="a comma too many"),
        pytest.param("[1] 2", [1], 4, id="21: behind the end"),
        pytest.param('[1, "\n"]', [1], 5, id="29: a control character"),
        pytest.param("[1, NaN]", [1], 4, id="25: no number"),
        pytest.param("[null5]", [None], 5, id="a digit behind a word"),
        pytest.param('["a"e5]', ["a"], 4, id="a letter behind a string"),
        pytest.param("[[1], [2, x]]", [[1]], 10, id="within an item"),
        pytest.param("oops", [], 0, id="no JSON"),
        pytest.param('```\n["a", x', ["a"], 10, id="in a fence"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 1000])
def test_after_the_items_before_it_malformed_text_is_an_error_that_names_the_character(
    text: str, expected: list[Any], where: int, size: int
) -> None:
    pieces = [says(text[at : at + size]) for at in range(0, len(text), size)]
    got, errors = until_error(START, *pieces, says("more"), END)
    assert got == expected
    assert [type(error) for error in errors] == [rd.errors.MalformedChunkError]
    assert str(errors[0]).endswith(f"at character {where}")


def test_27_absurd_nesting_is_an_error() -> None:
    got, errors = until_error(START, says("[1, " + "[" * 100_000))
    assert got == [1]
    assert "nested deeper than 200 at character 203" in str(errors[0])
    _, errors = until_error(START, says("[[[[1]]]]"), limits=rd.Limits(json_depth=3))
    assert "nested deeper than 3" in str(errors[0])


def test_items_are_read_only() -> None:
    (item,) = of('[{"a": [1]}')
    with pytest.raises(TypeError, match="read-only"):
        item["a"].append(2)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([CALL, args('{"a": [1, '), args("2, 3")], [1, 2], id="as they come"),
        pytest.param([CALL, args('{"a": [1, 2]}'), FINISH, END], [1, 2], id="whole"),
        pytest.param([CALL, FINISH, END], [], id="no arguments"),
        pytest.param([CALL, args("null"), FINISH, END], [], id="null"),
        pytest.param([CALL, args('{"a": ["b\n", "'), args('\t"]}')], ["b\n", "\t"], id="29: raw line ends"),
        pytest.param(
            [ev.BlockStart(0, CALL.content | {"args": {"a": [1, {"b": 2}]}})], [1, {"b": 2}], id="at once"
        ),
        pytest.param(
            [CALL, args('{"a": [1, 2'), ev.BlockFinish(0, {"type": "tool_call", "args": {"a": [5, 6, 7]}})],
            [1, 6, 7],
            id="overruled",
        ),
        pytest.param(
            [CALL, args('{"a": [1, 2'), ev.BlockDelta(0, {"args": '{"a": [1, 2, 3]'})], [1, 2, 3], id="so far"
        ),
        pytest.param([CALL, args('{"a": [1, 2'), CALL, args('{"a": [5, 6, ')], [1, 6], id="9: begun again"),
        pytest.param([args("x"), CALL, args('{"a": [1,')], [1], id="7: before the start"),
        pytest.param(
            [CALL, args('{"a": [1]}'), ev.BlockStart(1, CALL.content), args('{"a": [2]}', 1)], [1], id="17"
        ),
        pytest.param(
            [
                ev.BlockStart(0, {"type": "tool_call_chunk", "name": "f"}),
                args('{"a": [1, 2'),
                ev.BlockDelta(0, {"id": "c1"}),
                args(", 3]"),
            ],
            [1, 2, 3],
            id="an id that comes late",
        ),
        pytest.param(
            [CALL, args('{"a": [1,'), ev.BlockDelta(0, {"id": "c2"}), args("2]}")], [1], id="another's id"
        ),
        pytest.param([START, says('{"a": [1]}')], [], id="a text is no call"),
    ],
)
def test_the_items_of_a_call(events: list[Any], expected: list[Any]) -> None:
    other = [ev.BlockStart(9, {"type": "tool_call_chunk", "id": "c9", "name": "g"}), args('{"a": [4]}', 9)]
    assert items(*other, *events, path="a", call_id="c1") == expected
    assert items(*other, *events, path="a", call_id="c9") == [4]


def test_the_errors_of_one_call_are_not_anothers() -> None:
    other = [ev.BlockStart(9, {"type": "tool_call_chunk", "id": "c9", "name": "g"}), args("oops", 9)]
    assert items(*other, CALL, args("[1]"), call_id="c1") == [1]
    got, errors = until_error(*other, CALL, args("[1]"), call_id="c9")
    assert got == []
    assert str(errors[0]).endswith("at character 0")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param(
            [START, says("[1, 2, "), ev.BlockDelta(0, {"text": "[7, 8, 9, "})], [1, 2, 9], id="replaced"
        ),
        pytest.param(
            [START, says("[1, 2, "), ev.BlockDelta(0, {"text": "[7, "}), says("8, 9,")], [1, 2, 9], id="less"
        ),
        pytest.param(
            [START, says("[1, "), FINISH, ev.BlockStart(1, {"type": "text"}), says("2]", 1)], [1, 2], id="two"
        ),
        pytest.param(
            [START, says("[1, "), ev.AttemptReset(1), START, says("[5, 6]")], [1, 5, 6], id="another attempt"
        ),
    ],
)
def test_what_was_given_is_not_given_again(events: list[Any], expected: list[Any]) -> None:
    assert items(*events) == expected


def test_an_item_costs_the_same_however_long_the_array_is(monkeypatch: pytest.MonkeyPatch) -> None:
    read = longest = 0
    feed = rd.core.PartialJsonParser.feed
    value = rd.core.PartialJsonParser.value.fget  # type: ignore[attr-defined]

    def counted(self: rd.core.PartialJsonParser, fragment: str) -> None:
        nonlocal read
        read += len(fragment)
        feed(self, fragment)

    def measured(self: rd.core.PartialJsonParser) -> Any:
        nonlocal longest
        shown = value(self)
        longest = max(longest, len(shown["list"]))
        return shown

    monkeypatch.setattr(rd.core.PartialJsonParser, "feed", counted)
    monkeypatch.setattr(rd.core.PartialJsonParser, "value", property(measured))
    text = json.dumps({"list": [{"n": n} for n in range(3000)]})
    assert len(of(text, "list", size=7)) == 3000
    assert longest == 2
    assert read <= len(text) + 3000 * len('{"list":["",')


characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/`,]}\n\x00é😀')
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
steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@steady
@given(
    array=st.lists(values, max_size=6),
    around=st.sampled_from(["{}", '{{"x": [[], "]"], "a": {}, "z": [1]}}', '[[0], "a", {{"b": {}}}, [5]]']),
    indent=st.sampled_from([None, 1]),
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
def test_any_array_anywhere_cut_anywhere(
    array: list[Any], around: str, indent: int | None, sizes: list[int]
) -> None:
    path: Any = {"{}": (), "{": "a", "[": (2, "b")}[around if around == "{}" else around[0]]
    text = around.format(json.dumps(array, indent=indent))
    source = rx.subject.Subject[Any]()
    got: list[Any] = []
    source.pipe(rd.json_items(path)).subscribe(got.append)
    source.on_next(START)
    reader, at, turn = rd.core.PartialJsonParser(), 0, 0
    steps = (path,) if isinstance(path, str) else path
    while at < len(text):
        piece = text[at : at + sizes[turn % len(sizes)]]
        source.on_next(says(piece))
        reader.feed(piece)
        at, turn = at + len(piece), turn + 1
        assert len(got) == sum(reader.is_final((*steps, n)) for n in range(len(array)))
    assert json.dumps(got) == json.dumps(array)


soup = st.lists(
    st.sampled_from(
        [*'{}[]",:\\u018aeE+-. \n\x01é', "\ud83d", "\ude00", "tru", "null", '"a":', "[1,", "true,", '"x"']
    )
).map("".join)


@steady
@given(text=soup.map(lambda rest: f"[{rest}"), sizes=st.integers(1, 4))
def test_whatever_comes_is_items_and_then_perhaps_an_error(text: str, sizes: int) -> None:
    pieces = [says(text[at : at + sizes]) for at in range(0, len(text), sizes)]
    got, errors = until_error(START, *pieces, END)
    whole = rd.core.PartialJsonParser()
    whole.feed(freeze(text))  # the end of the message makes half a character one of its own
    assert len(errors) == (whole.error is not None)
    if errors:
        assert str(errors[0]) == f"the items end here: {whole.error}"
    try:
        value: Any = parse_json(text)
    except InvalidJson:
        value = whole.value
    assert json.dumps(got) == json.dumps([item for n, item in enumerate(value) if whole.is_final((n,))])
