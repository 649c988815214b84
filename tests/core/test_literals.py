"""The words that a field may have: the types have the same as the constructors, and none is lost on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_args

import pytest

import rxdelta as rd

ev = rd.events
core = rd.core
FIELDS: list[tuple[str, object, Callable[[Any], Any]]] = [
    ("role", core.MessageRole, lambda word: rd.Message(role=word)),
    ("status", core.MessageStatus, lambda word: rd.Message(status=word)),
    ("finish_reason", core.FinishReason, lambda word: rd.Message(finish_reason=word)),
    ("role", core.SnapshotRole, lambda word: rd.MessageDelta(role=word)),
    ("status", core.SnapshotStatus, lambda word: rd.MessageDelta(status=word)),
    ("finish_reason", core.FinishReason, lambda word: rd.MessageDelta(finish_reason=word)),
    ("type", core.CallType, lambda word: rd.ToolCall(type=word)),
    ("status", core.CallStatus, lambda word: rd.ToolCall(call_id="c", name="f", status=word)),
]


@pytest.mark.parametrize(("field", "literal", "make"), FIELDS)
def test_a_field_takes_the_words_of_its_type_and_no_other(
    field: str, literal: object, make: Callable[[Any], Any]
) -> None:
    for word in get_args(literal):
        made = make(word)
        assert getattr(made, field) == word
        assert getattr(type(made).from_dict(json.loads(json.dumps(made.to_dict()))), field) == word
    for wrong in ("", "new", 3, "\ud83d"):
        with pytest.raises(rd.InvalidValueError, match=field):
            make(wrong)


def test_a_snapshot_ends_with_the_statuses_of_a_message() -> None:
    assert get_args(core.SnapshotStatus) == ("incomplete", *get_args(core.MessageStatus))


def test_the_last_execution_statuses_are_terminal() -> None:
    assert set(get_args(core.ExecutionStatus)[-2:]) == core.TERMINAL


def test_a_paused_reply_is_complete_and_goes_back_to_each_provider() -> None:
    start = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": "Let me"}), ev.BlockFinish(0)]
    fold = rd.Fold()
    for event in [*start, ev.MessageFinish("pause", "pause_turn")]:
        fold.step(event)
    paused = fold.snapshot
    again = rd.Fold()
    for event in rd.to_events(paused):
        again.step(event)
    assert again.snapshot == paused == rd.Snapshot.from_dict(json.loads(json.dumps(paused.to_dict())))
    message = paused.to_message()
    assert (message.status, message.finish_reason) == ("complete", "pause")
    for name in rd.requests.REQUEST_FORMATS:
        stopped = {**message.to_dict(), "finish_reason": "stop", "provider_finish_reason": "end_turn"}
        assert rd.to_request(message, name) == rd.to_request(rd.Message.from_dict(stopped), name)


def test_the_calls_of_a_message_have_mappings_as_arguments() -> None:
    blocks = [
        rd.ToolCall(call_id="c1", name="f", arguments='{"a": 1}'),
        rd.ToolCall(call_id="c2", name="f"),
        rd.ToolCall(call_id="c3", name="f", arguments='{"a"', type="invalid_tool_call"),
        rd.ToolCall(arguments="{", type="server_tool_call"),
    ]
    message = rd.Message(blocks=blocks)
    assert [dict(call.arguments) for call in message.tool_calls] == [{"a": 1}, {}]
    assert [block.arguments for block in message.blocks[2:]] == ['{"a"', "{"]  # type: ignore[union-attr]
    assert rd.Message.from_dict(json.loads(json.dumps(message.to_dict()))) == message
    for wrong in ("", "{", "[1]", "3"):
        with pytest.raises(rd.errors.InvalidToolCallError, match="arguments: invalid json"):
            rd.Message(blocks=[rd.ToolCall(call_id="c", name="f", arguments=wrong)])


def test_a_call_that_was_stored_without_arguments_has_none() -> None:
    stored = {"call_id": "c", "name": "f", "status": "complete"}
    assert rd.ToolCall.from_dict(stored).arguments is None
    assert (
        rd.MessageDelta(tool_calls=[rd.ToolCall.from_dict(stored)], role="assistant", status="complete")
        .to_message()
        .tool_calls[0]
        .arguments
        == {}
    )
