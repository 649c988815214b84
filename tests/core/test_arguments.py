"""The text of a call's arguments as a value: null is none, and a string may have raw line ends."""

from __future__ import annotations

import json
from typing import Any

import pytest
from core.strategies import fold
from hypothesis import given, strategies as st

import rxdelta as rd

ev = rd.events
NULLS = ["null", " null ", "\r\n\tnull\n"]
START = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "f"})
CODE = '{"code": "a\n\tb\x00\x1f"}'
READ = {"code": "a\n\tb\x00\x1f"}


def called(*pieces: str) -> rd.ToolCall:
    deltas = [ev.ToolCallDelta(0, piece) for piece in pieces]
    (block,) = fold(START, *deltas, ev.BlockFinish(0)).blocks
    assert isinstance(block, rd.ToolCall)
    return block


@pytest.mark.parametrize(("text", "value"), [*((text, {}) for text in NULLS), (CODE, READ)])
def test_both_folds_and_every_reader_give_the_same_arguments(text: str, value: Any) -> None:
    call = rd.ToolCall(call_id="c", name="f", arguments=text)
    assert (called(text).type, called(text).status, called(text).arguments) == (
        "tool_call",
        "complete",
        value,
    )
    assert called(*text).arguments == value
    assert call.complete().arguments == call.arguments_as_map() == value
    merged = rd.merge_deltas([rd.MessageDelta(tool_calls=[call]), rd.MessageDelta(status="complete")])
    assert merged is not None
    assert merged.to_message().tool_calls[0].arguments == value
    assert rd.Message(blocks=[call]).tool_calls[0].arguments == value
    stored = {"type": "tool_call", "call_id": "c", "name": "f", "arguments": text, "status": "complete"}
    assert rd.ToolCall.from_dict(stored).arguments == value
    overruled = fold(START, ev.BlockFinish(0, {"type": "tool_call", "args": text}))
    assert overruled.tool_calls[0].arguments == value


@pytest.mark.parametrize("text", NULLS)
def test_null_shows_no_arguments_before_the_end(text: str) -> None:
    snapshot = fold(START)
    for character in text:
        snapshot = rd.apply_event(snapshot, ev.ToolCallDelta(0, character))
        assert snapshot.tool_calls[0].arguments_so_far is None
    stored = rd.Snapshot.from_dict(json.loads(json.dumps(snapshot.to_dict())))
    for one in (snapshot, stored, fold(*rd.to_events(snapshot))):
        assert one.tool_calls[0].arguments == text
        ended = rd.apply_event(rd.apply_event(one, ev.BlockFinish(0)), ev.MessageFinish("tool_use"))
        assert ended.tool_calls[0].arguments == {}
        assert fold(*rd.to_events(ended)) == ended


@pytest.mark.parametrize("text", ["nul", "nulls", "null null", "null{}", '"null"', "NULL", "None", "[null]"])
def test_nothing_else_is_taken_for_null(text: str) -> None:
    assert called(text).type == "invalid_tool_call"
    assert called(text).arguments == text
    with pytest.raises(rd.errors.InvalidToolCallError):
        rd.ToolCall(call_id="c", name="f", arguments=text).complete()


def test_null_that_was_cut_off_must_not_run() -> None:
    cut = fold(START, ev.ToolCallDelta(0, "null"), ev.MessageFinish("length"))
    assert [call.arguments for call in cut.invalid_tool_calls] == ["null"]


characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\\n\t\x00')


@given(value=st.dictionaries(st.text(characters, max_size=4), st.text(characters, max_size=6), max_size=4))
def test_a_raw_control_character_means_what_its_escape_means(value: dict[str, str]) -> None:
    escaped = json.dumps(value, ensure_ascii=False)
    raw = escaped
    for code in range(0x20):
        short = json.dumps(chr(code))[1:-1]
        raw = "\\\\".join(part.replace(short, chr(code)) for part in raw.split("\\\\"))
    for text in (escaped, raw):
        assert called(text).arguments == value
        assert rd.ToolCall(arguments=text).arguments_so_far == value
