"""A reply that was paused and a call that waits for approval, to a front end and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from formats.test_runs_to_front_ends import decoded, to_ag_ui, to_ai_sdk, to_langchain
from support import ai_sdk
from support.runs import call, text, turn, within, woven

import rxdelta as rd

ev = rd.events
PAUSED = turn(text(0, "Let me see."), reason="pause")
CHUNK = {"type": "tool_call_chunk", "id": "c1", "name": "f", "args": "{}", "index": 0}
CALLED = [
    {"type": "start"},
    {"type": "start-step"},
    {"type": "tool-input-available", "toolCallId": "c1", "toolName": "f", "input": {}},
]
ANSWERED = [
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
    {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "f"},
    {"type": "TOOL_CALL_END", "toolCallId": "c1"},
    {"type": "TOOL_CALL_RESULT", "messageId": "m2", "toolCallId": "c1", "content": "1"},
]
each_front_end = pytest.mark.parametrize(
    ("name", "encoded"), [("ai-sdk", to_ai_sdk), ("ag-ui", to_ag_ui), ("langchain", to_langchain)]
)


def folded(events: list[Any]) -> rd.Snapshot:
    fold = rd.Fold()
    for event in events:
        fold.step(event)
    return fold.snapshot


@each_front_end
def test_a_reply_that_was_paused_is_not_said_to_have_stopped(
    name: str, encoded: Callable[..., list[Any]]
) -> None:
    back = folded(decoded(name, encoded(PAUSED)))
    assert (back.text, back.status, back.finish_reason) == ("Let me see.", "complete", "pause")


@pytest.mark.parametrize(("name", "encoded"), [("ag-ui", to_ag_ui), ("langchain", to_langchain)])
@pytest.mark.parametrize("calls", [[], [call(1, "c1", "sea")]])
def test_a_word_that_the_calls_overrule_is_kept(
    name: str, encoded: Callable[..., list[Any]], calls: list[Any]
) -> None:
    ours, theirs = ("tool_use", "stop") if calls else ("stop", "tool_use")
    back = folded(decoded(name, encoded(turn(text(0, "Well."), *calls, reason=theirs))))
    assert (back.finish_reason, back.provider_finish_reason) == (ours, theirs)


@pytest.mark.parametrize(
    ("name", "chunks"),
    [
        ("ai-sdk", [*CALLED, {"type": "finish-step"}, {"type": "finish"}]),
        ("ai-sdk", [*CALLED, {"type": "finish-step"}, {"type": "start-step"}]),
        ("ag-ui", [*ANSWERED, {"type": "RUN_FINISHED"}]),
        ("langchain", [{"type": "AIMessageChunk", "tool_call_chunks": [CHUNK], "chunk_position": "last"}]),
    ],
)
def test_a_word_that_nobody_said_is_not_invented(name: str, chunks: list[Any]) -> None:
    events = decoded(name, chunks)
    end = next(n for n, event in enumerate(events) if isinstance(event, ev.MessageFinish))
    back = folded(events[: end + 1])
    assert (back.finish_reason, back.provider_finish_reason) == ("tool_use", None)


@each_front_end
def test_a_paused_reply_of_one_of_several_runs(name: str, encoded: Callable[..., list[Any]]) -> None:
    head, *rest = within("a", turn(text(0, "Done.")))
    back = decoded(name, encoded([head, *woven(rest, within("b", PAUSED), seed=3)]))
    finishes = {event.run_id: event.reason for event in back if isinstance(event, ev.MessageFinish)}
    assert (len(finishes), finishes.pop("b"), *finishes.values()) == (2, "pause", "stop")


def test_a_sub_agent_whose_reply_was_paused_goes_on_in_ag_ui() -> None:
    head, *rest = within("a", turn(text(0, "Done.")))
    agent = within("b", [*PAUSED, *turn(text(0, "So."), id="m2")], "a")
    frames = [frame for frame in to_ag_ui([head, *agent, *rest]) if frame.get("subagentRunId") == "b"]
    assert [n for n, frame in enumerate(frames) if frame["type"] == "SUBAGENT_FINISHED"] == [len(frames) - 1]


@pytest.mark.parametrize("version", [5, 6, 7])
def test_the_ai_sdk_gets_a_word_that_it_knows_and_the_browser_sends_ours_back(version: int) -> None:
    frames = ai_sdk.frames_of(PAUSED, sdk_version=version)
    client = ai_sdk.read(frames, version)
    assert (frames[-2]["finishReason"], client.metadata["finishReason"]) == ("other", "pause")
    (message,) = rd.from_ai_sdk([{"role": "assistant", "parts": client.parts, "metadata": client.metadata}])
    assert message.finish_reason == "pause"


def test_any_other_reason_of_another_server_is_no_pause() -> None:
    finish = {"type": "finish", "finishReason": "other", "messageMetadata": {"finishReason": "other"}}
    back = folded(
        decoded("ai-sdk", [{"type": "start"}, {"type": "start-step"}, {"type": "finish-step"}, finish])
    )
    assert (back.finish_reason, back.provider_finish_reason) == ("stop", "other")


@each_front_end
def test_a_call_that_waits_for_approval_is_neither_run_nor_answered(
    name: str, encoded: Callable[..., list[Any]]
) -> None:
    asked = turn(text(0, "Let me see."), call(1, "c1", "sea"), reason="tool_use")
    waits = ev.ToolUpdate("c1", "awaiting_approval", "May I?")
    (shown,) = folded(decoded(name, encoded([*asked, waits]))).tool_calls
    assert (shown.display_text, shown.result) == ("May I?", None)
    if name != "ai-sdk":  # which has no place for a status
        assert shown.execution_status() == "awaiting_approval"
    done = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "calm"))
    (shown,) = folded(decoded(name, encoded([*asked, waits, done]))).tool_calls
    assert (shown.execution_status(), shown.result and shown.result.content) == ("completed", "calm")
