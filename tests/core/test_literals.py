"""The words that a field may have: the types have the same as the constructors, and none is lost on the way."""

from __future__ import annotations

import json
from typing import get_args

import rxdelta as rd

ev = rd.events
core = rd.core


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
