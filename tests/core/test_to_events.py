"""The way back: a snapshot as the shortest legal list of events that folds to it."""

from __future__ import annotations

import json

import pytest
from core.strategies import events, fold, fold_leniently
from hypothesis import given, strategies as st

import rxdelta as rd

ev = rd.events
TEXT = {"type": "text"}
CHUNK = {"type": "tool_call_chunk", "id": "c", "name": "f"}


@given(st.lists(events(), max_size=25))
def test_the_events_fold_back_to_the_snapshot_and_are_legal(events: list[rd.Event]) -> None:
    for snapshot in fold_leniently(events)[-2:]:
        back = rd.to_events(snapshot)
        assert fold(*back) == snapshot
        assert fold(*[ev.from_dict(json.loads(json.dumps(event.to_dict()))) for event in back]) == snapshot
        lifecycle = rd.core.ProtocolChecker()
        assert [lifecycle.check(event) for event in back] == [None] * len(back)
        assert (lifecycle.close() is None) == (snapshot.status != "incomplete")


def names(*given: rd.Event) -> list[str]:
    return [type(event).__name__ for event in rd.to_events(fold(*given))]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ["MessageStart"]),
        ([ev.BlockStart(0, TEXT), *[ev.TextDelta(0, "a")] * 9], ["MessageStart", "BlockStart"]),
        ([ev.BlockStart(0, TEXT), ev.TextDelta(0, "a"), ev.BlockFinish(0)], ["MessageStart", "BlockStart", "BlockFinish"]),
        ([ev.BlockStart(0, CHUNK), ev.ToolCallDelta(0, "{")], ["MessageStart", "BlockStart"]),
        ([ev.BlockStart(0, CHUNK), ev.ToolCallDelta(0, "{}"), ev.BlockDelta(0, {"args": ""})], ["MessageStart", "BlockStart"]),
        ([ev.BlockStart(0, CHUNK), ev.ToolUpdate("c", "executing")], ["MessageStart", "BlockStart", "ToolUpdate"]),
        ([ev.BlockStart(0, CHUNK), ev.MessageFinish("stop")], ["MessageStart", "BlockStart", "BlockFinish", "MessageFinish"]),
        ([ev.BlockStart(0, CHUNK), ev.ToolUpdate("c", "failed"), ev.ToolCallDelta(0, "x"), ev.BlockFinish(0)],
         ["MessageStart", "BlockStart", "ToolUpdate", "BlockFinish"]),
        ([ev.BlockStart(0, TEXT), ev.MessageInterrupted("user")], ["MessageStart", "BlockStart", "BlockFinish", "MessageInterrupted"]),
        ([ev.AttemptReset(1)], ["AttemptReset", "MessageStart"]),
        ([ev.AttemptReset(0, usage=rd.TokenUsage(1))], ["AttemptReset", "MessageStart"]),
        ([ev.BlockStart(0, {"type": "new"}), ev.DataDelta(0, "A"), ev.DataDelta(0, "B")], ["MessageStart", "BlockStart", "DataDelta"]),
        ([ev.BlockStart(0, {"type": "text", "text": []}), ev.TextDelta(0, "A")], ["MessageStart", "BlockStart", "TextDelta"]),
    ],
)  # fmt: skip
def test_the_list_is_the_shortest(given: list[rd.Event], expected: list[str]) -> None:
    assert names(*given) == expected
    assert fold(*rd.to_events(fold(*given))) == fold(*given)


def test_blocks_merged_from_small_deltas_are_numbered() -> None:
    snapshot = rd.merge_deltas(
        [
            rd.MessageDelta("a", index=3, id="m", metadata={"x": 1}, usage=rd.TokenUsage(1)),
            rd.MessageDelta(tool_calls=[rd.ToolCall(call_id="c", name="f", arguments='{"a":', index=0)]),
        ]
    )
    again = fold(*rd.to_events(snapshot))
    assert [(block.key, block.open) for block in again.blocks] == [(0, False), (1, True)]
    assert again.blocks == (
        rd.ContentPart("text", "a"),
        rd.ToolCall(call_id="c", name="f", arguments='{"a":'),
    )
    assert (again.id, again.metadata, again.usage) == ("m", {"x": 1}, rd.TokenUsage(1))
    assert again.blocks[1].arguments_so_far == {}


def test_content_not_yet_merged_is_told_too() -> None:
    assert fold(*rd.to_events(rd.MessageDelta("a", role="assistant"))).text == "a"


@given(st.lists(events(), max_size=25))
def test_the_events_of_a_message_fold_back_to_it(events: list[rd.Event]) -> None:
    ended = fold(*rd.to_events(fold_leniently([*events, ev.MessageFinish("stop")])[-1]))
    try:
        message = ended.to_message()
    except (rd.errors.InvalidToolCallError, rd.IncompleteMessageError):
        return
    assert fold(*rd.to_events(message)).to_message() == message


def test_only_an_assistants_message_has_events() -> None:
    with pytest.raises(rd.InvalidValueError, match="role"):
        rd.to_events(rd.Message(role="user"))
