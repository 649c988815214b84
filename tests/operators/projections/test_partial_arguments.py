"""`partial_arguments`: values so far, which of them are final, and how they end.

What holds for each projection: `test_projection`; for building classes: `test_into`.
"""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise
from typing import Any

import attrs
import pytest
import reactivex as rx
from hypothesis import HealthCheck, given, settings, strategies as st
from pydantic import BaseModel, Field
from reactivex import operators as ops
from support.bounded import bounded

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.core import FrozenDict

FINISH, END = ev.BlockFinish(0), ev.MessageFinish("tool_use")


def start(
    index: int | str = 0, call_id: str | None = "c1", name: str | None = "f", **more: Any
) -> ev.BlockStart:
    return ev.BlockStart(index, {"type": "tool_call_chunk", "id": call_id, "name": name, **more})


def args(text: str, index: int | str = 0) -> ev.ToolCallDelta:
    return ev.ToolCallDelta(index, text)


def so_far(text: Any) -> ev.BlockDelta:
    return ev.BlockDelta(0, {"args": text})


def content(**fields: Any) -> ev.BlockFinish:
    return ev.BlockFinish(0, {"type": "tool_call", **fields})


def partials(*events: Any, **options: Any) -> list[Any]:
    got: list[Any] = (
        rx.from_iterable(events).pipe(bounded(rd.partial_arguments, **options), ops.to_list()).run()
    )
    return got


def short(partial: Any) -> Any:
    """Its value, with what else there is to be said: whether it is complete, and the beginning of the error."""
    said = (["complete"] if partial.complete else []) + ([partial.error] if partial.error else [])
    return (partial.value, *said) if said else partial.value


DONE = ({"a": 1}, "complete")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([start(), args('{"a": 1}'), FINISH, FINISH, END], [{"a": 1}, DONE], id="complete once"),
        pytest.param(
            [start(), args('{"a": 1'), args("}"), FINISH], [{}, {"a": 1}, DONE], id="a number waits"
        ),
        pytest.param([start(), args('{"a": 1,'), args(" }")], [{"a": 1}, ({"a": 1}, "...")], id="an error"),
        pytest.param([start(), args('{"a": 1 '), args("}")], [{"a": 1}, {"a": 1}], id="closing is a change"),
        pytest.param([start(), args('{"a": 1} '), args("\n"), args(" ")], [{"a": 1}], id="blanks are none"),
        pytest.param([start(args='{"a": 1}'), FINISH], [{"a": 1}, DONE], id="a start with the text"),
        pytest.param(
            [start(args='{"a": "x'), args('y"}')], [{"a": "x"}, {"a": "xy"}], id="or with some of it"
        ),
        pytest.param([start(args={"a": 1}), FINISH], [{"a": 1}, DONE], id="22: with a whole object"),
        pytest.param([start(args={"a": 1}), args("x"), FINISH], [{"a": 1}, DONE], id="which takes no text"),
        pytest.param([start(args={}), args('{"a": 1}')], [{"a": 1}], id="an empty one does"),
        pytest.param([start(), FINISH], [({}, "complete")], id="22: no arguments"),
        pytest.param([start(args={}), FINISH], [({}, "complete")], id="22: empty arguments"),
        pytest.param([start(), so_far('{"a"'), so_far('{"a": 1}')], [{}, {"a": 1}], id="the text so far"),
        pytest.param([start(), args('{"a'), so_far('{"a": 1}')], [{}, {"a": 1}], id="extending deltas"),
        pytest.param([start(), so_far('{"a'), args('": 1}')], [{}, {"a": 1}], id="extended by deltas"),
        pytest.param([start(), args('{"b": 2'), so_far('{"a": 1}')], [{}, {"a": 1}], id="replaced"),
        pytest.param([start(), args('{"b": 2}'), so_far("")], [{"b": 2}, None], id="blanked"),
        pytest.param(
            [start(), args('{"b": 2}'), so_far('{"a": 1}'), args(" ")],
            [{"b": 2}, {"a": 1}],
            id="and is told once",
        ),
        pytest.param(
            [start(), args("x"), so_far('{"a": 1}'), FINISH], [(None, "..."), {"a": 1}, DONE], id="mended"
        ),
        pytest.param([start(), so_far({"a": 1}), FINISH], [{"a": 1}, DONE], id="an object so far"),
        pytest.param(
            [start(), so_far({"a": 1}), so_far({"a": True})], [{"a": 1}, {"a": True}], id="another type"
        ),
        pytest.param([start(), ev.BlockDelta(0, {"x": 1}), args("{}")], [{}], id="other fields"),
        pytest.param([start(), args('{"b": 2'), content(args={"a": 1})], [{}, DONE], id="a finish overrules"),
        pytest.param([start(), args('{"b"'), content(args='{"a": 1}')], [{}, DONE], id="by text too"),
        pytest.param([content(id="c", name="f", args={"a": 1})], [DONE], id="a finish is enough"),
        pytest.param([start(), args('{"a": 1}'), END], [{"a": 1}, DONE], id="the message's finish"),
        pytest.param([start(), args('{"a": 1}'), FINISH, args("x")], [{"a": 1}, DONE], id="8: after the end"),
        pytest.param([args("x"), start(), args("{}")], [{}], id="7: before the start"),
        pytest.param(
            [start(), args('{"b": 2}'), start(), args("{")], [{"b": 2}, None, {}], id="9: begun again"
        ),
        pytest.param(
            [start(), args("{}"), ev.BlockStart(0, {"type": "text"}), args("x")], [{}], id="as text"
        ),
        pytest.param(
            [ev.BlockStart(0, {"type": "server_tool_call_chunk"}), args("{}"), FINISH], [], id="not ours"
        ),
        pytest.param([start(), args("{}"), ev.BlockFinish(0, {"type": "text"})], [{}], id="text at the end"),
        pytest.param([start(), args("{"), FINISH], [{}, ({}, "...")], id="not closed"),
        pytest.param(
            [start(), args("{}"), ev.MessageFinish("length")], [{}, ({}, "...")], id="cut by the limit"
        ),
        pytest.param([start(), args("{}"), ev.MessageInterrupted()], [{}, ({}, "...")], id="interrupted"),
        pytest.param([start(name=None), args("{}"), FINISH], [{}, ({}, "...")], id="no name"),
        pytest.param(
            [start(), args("[1, "), args("2]"), FINISH], [[1], [1, 2], ([1, 2], "...")], id="no object"
        ),
        pytest.param(
            [start(), args("nul"), args("l "), FINISH], [({}, "complete")], id="null is no arguments"
        ),
        pytest.param([start(), content(args="oops")], [(None, "...")], id="text that is no JSON at all"),
        pytest.param(
            [start(), args('{"a":1}x'), FINISH], [({"a": 1}, "...")], id="21: the same error is told once"
        ),
    ],
)
def test_the_values_of(events: list[Any], expected: list[Any]) -> None:
    got = [short(partial) for partial in partials(*events)]
    blurred = [(one[0], "...") if isinstance(one, tuple) and one[1] != "complete" else one for one in got]
    assert blurred == expected
    assert json.dumps(blurred) == json.dumps(expected)  # tells 1 from true


def test_27_absurd_nesting_is_an_error_of_the_text() -> None:
    got = partials(start(), args('{"a": ' + "[" * 100_000), FINISH)
    assert "nested deeper than 200" in got[-1].error
    assert not got[-1].complete
    assert not got[-1].is_final("a")
    assert (
        "nested deeper than 3" in partials(start(), args("[[[[["), limits=rd.Limits(json_depth=3))[-1].error
    )
    assert repr(got[-1])


def test_30_long_arguments_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    feed = rd.core.PartialJsonParser.feed

    def counted(self: rd.core.PartialJsonParser, fragment: str) -> None:
        nonlocal read
        read += len(fragment)
        feed(self, fragment)

    monkeypatch.setattr(rd.core.PartialJsonParser, "feed", counted)
    text = json.dumps({"text": "x" * 50_000, "list": [*range(1000)]})
    assert partials(start(), *(so_far(text[: at * 5000]) for at in range(1, 20)), FINISH)[-1].complete
    assert read == len(text)


def test_fields_of_a_call_do_not_join_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = [start()]
    for n in range(300):
        events += [args("[" if n == 0 else "1,"), ev.BlockDelta(0, {"note": n})]
    joined = 0
    arguments = rd.ToolCall.arguments.fget  # type: ignore[attr-defined]

    def counted(self: rd.ToolCall) -> Any:
        nonlocal joined
        value = arguments(self)
        joined += len(value or "")
        return value

    monkeypatch.setattr(rd.ToolCall, "arguments", property(counted))
    partials(*events)
    assert joined < 1000


def test_parallel_calls_are_told_apart() -> None:
    events = [
        start(0, "c1", "one"),
        start(1, "c2", "two"),
        args('{"a"', 0),
        args('{"b": "x', 1),
        args(": 1}", 0),
        args('y"}', 1),
        ev.BlockFinish(1),
        FINISH,
    ]
    got = [(one.call_id, one.name, short(one)) for one in partials(*events)]
    assert got == [
        ("c1", "one", {}),
        ("c2", "two", {"b": "x"}),
        ("c1", "one", {"a": 1}),
        ("c2", "two", {"b": "xy"}),
        ("c2", "two", ({"b": "xy"}, "complete")),
        ("c1", "one", ({"a": 1}, "complete")),
    ]
    assert [short(one) for one in partials(*events, call_id="c2")] == [
        short(one) for one in partials(*events) if one.call_id == "c2"
    ]
    assert partials(*events, call_id="c3") == []


def test_a_call_that_begins_again_after_its_end_is_shown_but_has_no_second_last_value() -> None:
    again = [start(), args('{"a": 1}'), FINISH, start(), args('{"a": 2'), args("}")]
    got = [short(one) for one in partials(*again, FINISH, END)]
    assert got == [{"a": 1}, DONE, {}, {"a": 2}]
    assert [short(one) for one in partials(*again, ev.BlockDelta(0, {"id": "c2"}), FINISH)][-1] == (
        {"a": 2},
        "complete",
    )


def test_one_call_is_wanted_whose_id_comes_late_or_goes() -> None:
    late = ev.BlockDelta(0, {"id": "c9"})
    events = [start(call_id=None), args('{"a": [1, 2'), late, args("]}"), FINISH]
    assert [short(one) for one in partials(*events, call_id="c9")] == [
        {"a": [1]},
        {"a": [1, 2]},
        ({"a": [1, 2]}, "complete"),
    ]
    assert {one.call_id for one in partials(*events)} == {None, "c9"}
    renamed = [start(), args('{"a": '), late, args("1"), ev.BlockDelta(0, {"id": "c1"}), args("}"), FINISH]
    assert [short(one) for one in partials(*renamed, call_id="c1")] == [{}, {}, {"a": 1}, DONE]


# Which paths are final.


def final_paths(partial: Any, *paths: tuple[Any, ...]) -> list[bool]:
    return [partial.is_final(*path) for path in paths]


def test_what_is_closed_is_final_and_what_is_open_or_absent_is_not() -> None:
    (one,) = partials(start(), args('{"a": [1, {"b": "x"}], "c": {"d": [true], "e": ["y", "z'))
    closed = [("a",), ("a", 0), ("a", 1), ("a", 1, "b"), ("c", "d"), ("c", "d", 0), ("c", "e", 0)]
    not_yet = [(), ("c",), ("c", "e"), ("c", "e", 1)]
    nowhere = [
        ("x",),
        (0,),
        ("a", 2),
        ("a", -1),
        ("a", True),
        ("a", "0"),
        ("c", "e", 2),
        ("a", 0, 0),
        ("c", "e", 1, 0),
    ]
    assert all(final_paths(one, *closed))
    assert not any(final_paths(one, *not_yet, *nowhere))


def test_a_repeated_key_is_open_until_its_new_value_is_closed_and_the_same_value_is_no_change() -> None:
    got = partials(
        start(), args('{"at": "sea", "n": 1'), args(', "at": "sea", "n": '), args("1, "), args('"at": "s')
    )
    assert [(one.value, one.is_final("at")) for one in got] == [
        ({"at": "sea"}, True),
        ({"at": "sea", "n": 1}, True),
        ({"at": "s", "n": 1}, False),
    ]
    doubled = partials(
        start(), args('{"at": "sea'), args('ing", "at": "sea'), args('", "at": {'), args("}, ")
    )
    assert [one.value for one in doubled] == [{"at": "sea"}, {"at": {}}]


def test_what_closes_is_final_before_the_provider_says_so() -> None:
    *_, closed, last = partials(start(), args('{"a": 1}'), FINISH)
    assert (closed.is_final(), closed.complete) == (True, False)
    assert (last.is_final(), last.complete) == (True, True)
    assert [one.is_final("a") for one in partials(start(), args("x"))] == [False]


def test_values_are_read_only_and_a_partial_is_a_value() -> None:
    (one,) = partials(start(), args('{"a": [1, {}'))
    with pytest.raises(TypeError, match="read-only"):
        one.value["a"].append(2)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        one.value = 3
    assert one == partials(start(), args('{"a": [1, {}'))[0]
    assert one != partials(start(), args('{"a": [1, {'))[0]
    assert hash(one) == hash(partials(start(), args('{"a": [1, {}'))[0])
    assert repr(one) == "<PartialValue c1 f {'a': [1, {}]} …>"
    assert repr(partials(start(), args("{]"))[0]).startswith("<PartialValue c1 f {} …; not valid JSON")
    assert repr(rd.types.PartialValue("x" * 100, complete=True)).endswith("xx…>")
    assert rd.types.PartialValue({"a": 1}, complete=True).is_final("a")
    assert not rd.types.PartialValue({"a": 1}).is_final()


# Into classes.


@attrs.frozen
class Leg:
    to: str
    km: float = 0.0


@dataclasses.dataclass
class Trip:
    title: str
    legs: list[Leg] = dataclasses.field(default_factory=list)


class Plan(BaseModel):
    title: str = Field(min_length=3)
    legs: list[Leg2] = []
    note: str | None = None


class Leg2(BaseModel):
    to: str
    km: float = 0.0


Plan.model_rebuild()
TRIP = ['{"title": "No', 'rth", "legs": [{"to": "Os', 'lo"}, {"to"', ': "Bodø", "km": 1', '2}], "more": 1}']


@pytest.mark.parametrize(("cls", "leg"), [(Trip, Leg), (Plan, Leg2)])
def test_what_has_come_is_seen_until_the_class_has_made_the_whole(cls: Any, leg: Any) -> None:
    got = partials(start(), *map(args, TRIP), FINISH, into=cls)
    assert [one.so_far.get("title") for one in got] == ["No", *["North"] * 5]
    assert [[each.get("to", "?") for each in one.so_far.get("legs", ())] for one in got] == [
        [],
        ["Os"],
        ["Oslo", "?"],
        ["Oslo", "Bodø"],
        ["Oslo", "Bodø"],
        ["Oslo", "Bodø"],
    ]
    assert [one.value for one in got] == [None] * 5 + [
        cls(title="North", legs=[leg(to="Oslo"), leg(to="Bodø", km=12)])
    ]
    assert [one.complete for one in got] == [False] * 5 + [True]
    assert all(one.error is None for one in got)
    assert got[1].is_final("legs", 0, "to") is False
    assert got[2].is_final("legs", 0) is True
    assert "Os" in repr(got[1])


@pytest.mark.parametrize(
    ("cls", "text", "why"),
    [
        (Plan, '{"title": "ab"}', "at least 3"),
        (Plan, "{}", "title"),
        (Trip, "{}", "title"),
        (Trip, '{"title": "x", "legs": [{}]}', "to"),
    ],
)
def test_what_the_class_refuses_is_never_complete_and_has_no_value(cls: Any, text: str, why: str) -> None:
    last = partials(start(), args(text), FINISH, into=cls)[-1]
    assert (last.complete, last.value) == (False, None)
    assert last.error.startswith(f"not a {cls.__name__}: ")
    assert why in last.error
    assert last.so_far == json.loads(text)
    assert last.is_final()
    assert repr(last)
    assert last == last
    assert hash(last) == hash(last)


def test_annotations_that_the_class_does_not_check_are_not_checked() -> None:
    last = partials(start(), args('{"to": 3}'), FINISH, into=Leg)[-1]
    assert (last.complete, last.value, last.error) == (True, Leg(3), None)  # type: ignore[arg-type]


@pytest.mark.parametrize("cls", [Trip, Plan, Leg])
@pytest.mark.parametrize(
    "text", ["x", "[1", '"a"', "nul", '{"title": ["a", 3', '{"legs": {"to": 1', '{"legs": [7']
)
def test_what_has_come_is_a_mapping_whatever_comes(cls: Any, text: str) -> None:
    for events in ([start(), args(text)], [start(), args(text), FINISH], [start(), *map(args, text), FINISH]):
        for one in partials(*events, into=cls):
            assert (one.complete, one.value) == (False, None)
            assert one.so_far.get("km") is None
            assert repr(one)


def test_without_a_class_the_value_is_what_has_come() -> None:
    for one in partials(start(), *map(args, TRIP), FINISH):
        assert one.value is one.so_far
    (array,) = partials(start(), args("[1, 2]"))
    assert (array.value, array.so_far) == ([1, 2], {})


def test_512_parallel_calls_read_no_character_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    read = 0
    feed = rd.core.PartialJsonParser.feed

    def counted(self: rd.core.PartialJsonParser, fragment: str) -> None:
        nonlocal read
        read += len(fragment)
        feed(self, fragment)

    monkeypatch.setattr(rd.core.PartialJsonParser, "feed", counted)
    indexes, text = range(512), '{"a": [1, 2], "b": "xyz"}'
    events: list[Any] = [start(index, f"c{index}") for index in indexes]
    events += [args(character, index) for character in text for index in indexes]
    events += [ev.BlockFinish(index) for index in indexes]
    got = partials(*events)
    assert read == 512 * len(text)
    assert [one.call_id for one in got if one.complete] == [f"c{index}" for index in indexes]


# Properties.

characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/\n\x00é😀')
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
objects = st.dictionaries(st.text(characters, max_size=3), values, max_size=4)
steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def cut_objects(draw: st.DrawFn) -> tuple[dict[str, Any], list[str]]:
    value = draw(objects)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=12)))
    return value, [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)])]


def every_path(value: Any, so_far: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [so_far]
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, item in members:
        found += every_path(item, (*so_far, key))
    return found


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def grows(before: Any, after: Any) -> bool:
    """Whether `after` is `before` or more of it."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            key in after and grows(one, after[key]) for key, one in before.items()
        )
    if isinstance(before, list):
        return isinstance(after, list) and len(before) <= len(after) and all(map(grows, before, after))
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    return json.dumps(before) == json.dumps(after)


@pytest.mark.slow
@steady
@given(calls=st.lists(cut_objects(), min_size=1, max_size=3), data=st.data())
def test_any_objects_cut_anywhere_in_any_interleaving(
    calls: list[tuple[dict[str, Any], list[str]]], data: st.DataObject
) -> None:
    order = data.draw(
        st.permutations([index for index, (_, pieces) in enumerate(calls) for _ in range(len(pieces) + 1)])
    )
    left = [
        [*(args(piece, index) for piece in pieces), ev.BlockFinish(index)]
        for index, (_, pieces) in enumerate(calls)
    ]
    events: list[Any] = [start(index, f"c{index}") for index in range(len(calls))]
    events += [left[index].pop(0) for index in order]
    got = partials(*events)
    for index, (value, pieces) in enumerate(calls):
        mine = [one for one in got if one.call_id == f"c{index}"]
        alone = partials(
            start(index, f"c{index}"), *(args(piece, index) for piece in pieces), ev.BlockFinish(index)
        )
        assert mine == alone
        last = mine[-1]
        assert json.dumps(last.value) == json.dumps(value)
        assert [one.complete for one in mine] == [False] * (len(mine) - 1) + [True]
        assert all(last.is_final(*path) for path in every_path(value))
        for before, after in pairwise(mine):
            assert grows(before.value, after.value)
            assert (before.value, before.is_final(), before.complete) != (
                after.value,
                after.is_final(),
                after.complete,
            )
            for path in every_path(before.value):
                if before.is_final(*path):
                    assert after.is_final(*path)
                    assert json.dumps(at(before.value, path)) == json.dumps(at(value, path))
        for one in mine:
            assert isinstance(one.value, FrozenDict)
            assert not one.is_final() or json.dumps(one.value) == json.dumps(value)


@steady
@given(call=cut_objects())
def test_what_is_final_is_what_the_reader_says(call: tuple[dict[str, Any], list[str]]) -> None:
    reader = rd.core.PartialJsonParser()
    source = rx.subject.Subject[Any]()
    got: list[Any] = []
    source.pipe(rd.partial_arguments()).subscribe(got.append)
    source.on_next(start())
    for piece in call[1]:
        reader.feed(piece)
        source.on_next(args(piece))
        for one in got:
            for path in every_path(one.value):
                assert one.is_final(*path) == reader.is_final(path)
        got.clear()


soup = st.lists(
    st.sampled_from([*'{}[]",:\\u018aeE+-. \n\x01é', "\ud83d", "\ude00", "tru", "null", '"a":'])
).map("".join)


@pytest.mark.slow
@steady
@given(pieces=st.lists(soup, max_size=6), whole=soup | st.none())
def test_whatever_comes_is_values_and_never_an_exception(pieces: list[str], whole: str | None) -> None:
    finish = FINISH if whole is None else content(args=whole)
    for into in (None, Trip, Plan):
        got = partials(start(), *map(args, pieces), finish, into=into)
        (call,) = (
            rx.of(start(), *map(args, pieces), finish).pipe(rd.completed_tool_calls(), ops.to_list()).run()
        )
        accepted = into is None or "not a" not in (got[-1].error or "")
        assert got[-1].complete == (call.type == "tool_call" and accepted)
        if got[-1].complete:
            assert got[-1].so_far == call.arguments
            assert into is None or isinstance(got[-1].value, into)
        else:
            assert got[-1].error
        for one in got:
            repr(one)
