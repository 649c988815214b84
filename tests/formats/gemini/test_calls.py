"""Calls, whole or with arguments that are streamed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.gemini import STOP, Chunk, blocks, call, decoded, message, piece, said, text

import rxdelta as rd
from rxdelta.core import Fold
from rxdelta.core.events import BlockDelta, BlockFinish, ToolCallDelta
from rxdelta.formats.gemini.decoder import GeminiDecoder


@pytest.mark.parametrize("absent", ["", "null", "None"])
def test_the_spellings_of_no_id(absent: str) -> None:
    (found,) = message(said(call("f", id=absent)), STOP).tool_calls
    assert found.call_id == "call-0-0"


# Streamed arguments


def test_streamed_arguments_are_told_as_the_text_that_they_are_of() -> None:
    found = decoded(
        said(call("f", willContinue=True)),
        said(piece("$.city", stringValue="San ", goes_on=True)),
        said(piece("$.city", stringValue='"Francisco"')),
        said(piece("$.days[0].n", numberValue=3)),
        said(piece("$.days[0].wet", boolValue=False)),
        said(piece("$.days[1].n", numberValue=0.5)),
        said(piece("$.note", nullValue="NULL_VALUE")),
        said(call(), reason="STOP"),
    )
    assert "".join(event.args for event in found if isinstance(event, ToolCallDelta)) == (
        '{"city":"San \\"Francisco\\"","days":[{"n":3,"wet":false},{"n":0.5}],"note":null}'
    )
    assert not any(isinstance(event, BlockDelta) for event in found)
    assert isinstance(found[-2], BlockFinish)


def test_the_picture_of_streamed_arguments_grows() -> None:
    decoder, fold, seen = GeminiDecoder(), Fold(), []
    for chunk in [
        said(call("f", willContinue=True)),
        said(piece("$.a", stringValue="x", goes_on=True)),
        said(piece("$.a", stringValue="y", goes_on=True)),
        said(piece("$.b[0]", stringValue="z")),
    ]:
        for event in decoder.decode(chunk):
            fold.step(event)
        seen.append(rd.core.thaw(fold.snapshot.blocks[0].arguments_so_far))  # type: ignore[union-attr]
    assert seen[1:] == [{"a": "x"}, {"a": "xy"}, {"a": "xy", "b": ["z"]}]


@pytest.mark.parametrize(
    "chunks",
    [
        [said(call())],
        [said(call("g", args={}))],
        [said(text(""), reason="STOP")],
        [said(reason="STOP")],
    ],
)
def test_a_streamed_call_ends_with_its_terminator_another_call_or_the_finish(chunks: list[Chunk]) -> None:
    start = [said(call("f", willContinue=True)), said(piece("$.a", stringValue="x", goes_on=True))]
    decoder = GeminiDecoder()
    found = [event for chunk in [*start, *chunks] for event in decoder.decode(chunk)]
    assert BlockFinish(0) in found
    assert message(*start, *chunks, STOP).tool_calls[0].arguments == {"a": "x"}


def test_a_fragment_may_repeat_its_calls_id_and_name() -> None:
    found = message(
        said(call("f", id="c1", willContinue=True)),
        said(call("f", id="c1", partialArgs=[{"jsonPath": "$.a", "stringValue": "x"}], willContinue=True)),
        said(call(id="c1")),
        STOP,
    )
    assert [(each.call_id, each.arguments) for each in found.tool_calls] == [("c1", {"a": "x"})]


def test_an_id_that_comes_late() -> None:
    found = message(said(call("f", willContinue=True)), said(call(id="c1")), STOP)
    assert [(each.call_id, each.metadata["synthetic_id"]) for each in found.tool_calls] == [("c1", False)]


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        # back to an object that the text has gone on from
        ([("$.a.x", 1), ("$.b", 2), ("$.a.y", 3)], {"a": {"x": 1, "y": 3}, "b": 2}),
        # back to a string
        ([("$.a", "x"), ("$.b", "y"), ("$.a", "z")], {"a": "xz", "b": "y"}),
        ([("$.a", "x"), ("$.a", "z")], {"a": "xz"}),
        # another value in place of one
        ([("$.a", 1), ("$.a", 2)], {"a": 2}),
        ([("$.a", 1), ("$.a.b", 2)], {"a": {"b": 2}}),
        ([("$.a.b", 1), ("$.a", 2)], {"a": 2}),
        ([("$.a.b", 1), ("$.a[0]", 2)], {"a": [2]}),
        # items out of order, and with a gap
        ([("$.a[1]", "y"), ("$.a[0]", "x")], {"a": ["x", "y"]}),
        ([("$.a[0]", "x"), ("$.a[2000000000]", "y")], {"a": ["x", "y"]}),
    ],
)
def test_what_breaks_the_order_is_told_whole(pieces: list[tuple[str, Any]], arguments: Chunk) -> None:
    fragments = [
        said(piece(path, **({"stringValue": value} if isinstance(value, str) else {"numberValue": value})))
        for path, value in pieces
    ]
    (found,) = message(said(call("f", willContinue=True)), *fragments, said(call()), STOP).tool_calls
    assert found.arguments == arguments


def test_arguments_before_those_that_are_streamed() -> None:
    start = said(call("f", args={"a": {"b": ["x"]}}, willContinue=True))
    (found,) = message(start, said(piece("$.a.b[1]", stringValue="y")), said(call()), STOP).tool_calls
    assert found.arguments == {"a": {"b": ["x", "y"]}}


@pytest.mark.parametrize("path", ["", "a", "$", "$[0]", "$.", "$..a", "$.a[", "$.a[-1]", "$.a[*]", "$x"])
def test_what_is_no_path_is_malformed(path: str) -> None:
    decoder = GeminiDecoder()
    with pytest.raises(rd.errors.MalformedChunkError, match=r"partialArgs\[0\].jsonPath"):
        decoder.decode(said(call("f", partialArgs=[{"jsonPath": path, "numberValue": 1}])))


def test_a_null_is_said_by_its_name() -> None:
    start = said(call("f", willContinue=True))
    for value in ({"nullValue": "NULL_VALUE"}, {"nullValue": None}, {"nullValue": 0}):
        (found,) = message(start, said(piece("$.a", **value)), STOP).tool_calls
        assert found.arguments == {"a": None}
    (found,) = message(start, said(piece("$.a")), STOP).tool_calls
    assert found.arguments == {}


@pytest.mark.parametrize("path", ["$.a" * 1, "$" + ".a" * 201, "$" + ".a" * 100_000])
def test_a_path_too_deep_is_refused(path: str) -> None:
    chunk = said(call("f", partialArgs=[{"jsonPath": path, "numberValue": 1}]))
    if len(path) < 10:
        message(chunk, STOP)
        return
    with pytest.raises(rd.errors.LimitExceededError):
        GeminiDecoder().decode(chunk)


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "SAFETY", "CONTINUATION"])
def test_a_streamed_call_that_was_cut_off_is_never_one_to_run(reason: str) -> None:
    start = [said(call("f", willContinue=True)), said(piece("$.a", stringValue="x"))]
    found = message(*start, said(reason=reason))
    assert found.tool_calls == ()
    assert found.invalid_tool_calls[0].arguments == '{"a":"x"'


def test_a_terminator_too_many_is_nothing() -> None:
    assert blocks(said(call("f")), said(call()), STOP) == [("tool_call", {})]


JSON_VALUES = st.recursive(
    st.text(max_size=5)
    | st.integers(-999, 999)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text("ab.'\"]\\ü", min_size=1, max_size=3), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def as_fragments(value: Any, path: str = "$") -> list[Chunk]:
    """The value as the API would stream it."""
    if isinstance(value, dict):
        names = [(json.dumps(name, ensure_ascii=False), item) for name, item in value.items()]
        return [fragment for name, item in names for fragment in as_fragments(item, f"{path}[{name}]")]
    if isinstance(value, list):
        return [
            fragment
            for place, item in enumerate(value)
            for fragment in as_fragments(item, f"{path}[{place}]")
        ]
    if isinstance(value, str):
        pieces = [piece(path, stringValue=character, goes_on=True) for character in value]
        return [*pieces, piece(path, stringValue="")]
    if isinstance(value, bool):
        return [piece(path, boolValue=value)]
    return [piece(path, nullValue="NULL_VALUE") if value is None else piece(path, numberValue=value)]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    arguments=st.dictionaries(st.text("ab.'\"]\\ü", min_size=1, max_size=3), JSON_VALUES, max_size=3),
    data=st.data(),
)
def test_arguments_in_pieces_are_the_arguments(arguments: Chunk, data: st.DataObject) -> None:
    fragments = [said(each) for each in as_fragments(arguments)]
    found = decoded(said(call("f", willContinue=True)), *fragments, said(call()), STOP)
    assert not any(isinstance(event, BlockDelta) for event in found)
    (told,) = message(said(call("f", willContinue=True)), *fragments, said(call()), STOP).tool_calls
    assert told.arguments == arguments
    shuffled = data.draw(st.permutations(fragments))
    message(said(call("f", willContinue=True)), *shuffled, said(call()), STOP)
