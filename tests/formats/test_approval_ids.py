"""A call can be approved whose provider has used its id before, as those do that number anew with each message."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support import ag_ui, ai_sdk
from support.clients import ask

import rxdelta as rd
from rxdelta.formats.front_ends import approval_id, by_call, ids_in

ev = rd.events


def asks(number: int) -> list[Any]:
    call = {"type": "tool_call", "id": "call-0", "name": "f", "args": {"n": number}}
    return [
        ev.MessageStart(f"m{number}"),
        ev.BlockStart(0, call),
        ev.BlockFinish(0),
        ev.MessageFinish("tool_use"),
    ]


def with_tools(events: list[Any], **options: Any) -> list[Any]:
    return (
        rx.from_iterable(events).pipe(rd.run_tools({"f": lambda n: n * 10}, **options), ops.to_list()).run()
    )


def turns() -> tuple[list[Any], rd.Message]:
    """The events of two turns, whose second call waits, and the second message as it is stored."""
    second = with_tools(asks(2), approve={})
    stored = rx.from_iterable(second).pipe(rd.scan_deltas(), rd.to_message()).run()
    return [*with_tools(asks(1)), *second], stored


def decided(stored: rd.Message, answers: dict[str, rd.Approval]) -> list[Any]:
    events = with_tools(rd.to_events(stored), approve=answers)
    return [event for event in events if isinstance(event, ev.ToolUpdate)]


@pytest.mark.parametrize("version", [6, 7])
def test_the_ai_sdk_answers_for_the_second_call_with_one_id(version: int) -> None:
    events, stored = turns()
    body = b"".join(map(rd.wire.sse_frame, ai_sdk.frames_of(events, sdk_version=version))).decode()
    request = {"sdk": version, "body": body, "answers": [{"id": "call-0-1~for~call-0", "approved": True}]}
    (asked,) = ask("ai_sdk.mjs", [request])
    messages = asked["messages"]
    answers = rd.requests.approvals_from_ai_sdk(messages)
    assert answers == {"call-0-1": rd.Approval(True), "call-0": rd.Approval(True)}
    frames = ai_sdk.frames_of(decided(stored, answers), messages=messages, sdk_version=version)
    outputs = [(one["toolCallId"], one["output"]) for one in ai_sdk.of_type("tool-output-available", frames)]
    assert outputs == [("call-0-1", 20)]
    body = b"".join(map(rd.wire.sse_frame, frames)).decode()
    (shown,) = ask("ai_sdk.mjs", [{"sdk": version, "messages": messages, "body": body}])
    parts = [part for part in shown["message"]["parts"] if part["type"].startswith("tool-")]
    assert (shown["error"], [part["output"] for part in parts]) == (None, [10, 20])


def test_ag_ui_answers_for_the_second_call_with_one_id() -> None:
    events, stored = turns()
    request: dict[str, Any] = {"threadId": "t", "runId": "r1", "messages": []}
    frames = ag_ui.frames_of(rd.wire.AgUiEncoder(request), events)
    (interrupt,) = frames[-1]["outcome"]["interrupts"]
    answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": True}
    request = {**request, "runId": "r2", "messages": ag_ui.read(frames).messages, "resume": [answer]}
    answers = rd.requests.approvals_from_ag_ui(request)
    assert answers == {interrupt["toolCallId"]: rd.Approval(True), "call-0": rd.Approval(True)}
    frames = ag_ui.frames_of(rd.wire.AgUiEncoder(request), decided(stored, answers))
    results = [(one["toolCallId"], one["content"]) for one in frames if one["type"] == "TOOL_CALL_RESULT"]
    assert results == [(interrupt["toolCallId"], "20")]
    waits = ag_ui.frames_of(rd.wire.AgUiEncoder(request), decided(stored, {}))
    assert waits[-1]["outcome"]["interrupts"][0]["id"] == interrupt["id"]


def test_both_ids_are_in_the_id_of_the_approval() -> None:
    assert ids_in(approval_id("a", "b")) == ("a", "b")
    assert ids_in(approval_id("a", "a")) == ids_in(approval_id("a", None)) == ids_in("a") == ("a", "a")
    for odd in ("~for~", "~for~a", "a~for~"):
        assert ids_in(odd) == (odd, odd)


YES, NO = rd.Approval(True), rd.Approval(False, "No.")


def test_an_answer_for_the_clients_id_wins() -> None:
    assert by_call([("a-1", "a", NO), ("a", "a", YES)]) == {"a-1": NO, "a": YES}


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("answers", "meant"),
    [
        ([("a", "a", YES), ("a", "a", NO)], {"a": NO}),
        ([("a", "a", YES), ("a", "a", YES)], {"a": YES}),
        ([("a", "x", YES), ("b", "x", NO)], {"a": YES, "b": NO, "x": NO}),
        ([("a", "x", YES), ("a", "y", NO)], {"a": NO, "x": NO, "y": NO}),
    ],
)
def test_a_refusal_stands(
    answers: list[tuple[str, str, rd.Approval]], meant: dict[str, rd.Approval], order: int
) -> None:
    assert by_call(answers[::order]) == meant


def ai_sdk_request(*answers: Any) -> Any:
    parts = [
        {"type": "tool-f", "toolCallId": "c1", "state": "approval-responded", "input": {"n": 1}, "approval": answer}
        for answer in answers
    ]  # fmt: skip
    return [{"id": "m", "role": "assistant", "parts": parts}]


def ai_sdk_answers(*approved: Any) -> dict[str, rd.Approval]:
    return rd.requests.approvals_from_ai_sdk(
        ai_sdk_request(*({"id": "c1", "approved": one} for one in approved))
    )


def ag_ui_answers(*approved: Any) -> dict[str, rd.Approval]:
    resume = [{"interruptId": "c1", "status": "resolved", "payload": one} for one in approved]
    return rd.requests.approvals_from_ag_ui({"messages": [], "resume": resume})


@pytest.mark.parametrize("read", [ai_sdk_answers, ag_ui_answers])
@pytest.mark.parametrize(
    ("said", "allowed"),
    [
        ([True], True),
        ([False], False),
        ([True, True], True),
        ([False, False], False),
        ([True, False], False),
        ([False, True], False),
        ([True, False, True], False),
    ],
)
def test_a_call_with_several_answers_runs_if_all_allow_it(read: Any, said: list[bool], allowed: bool) -> None:
    answers = read(*said)
    assert {name: answer.approved for name, answer in answers.items()} == {"c1": allowed}
    call = {"type": "tool_call", "id": "c1", "name": "f", "args": {"n": 1}}
    events = [ev.MessageStart("m"), ev.BlockStart(0, call), ev.BlockFinish(0), ev.MessageFinish("tool_use")]
    waiting = with_tools(events, approve={})
    stored = rx.from_iterable(waiting).pipe(rd.scan_deltas(), rd.to_message()).run()
    assert decided(stored, answers)[-1].execution_status == ("completed" if allowed else "failed")


@pytest.mark.parametrize("said", [[True, "true"], ["true", True], [None, True], [True, None]])
def test_an_answer_that_cannot_be_read_allows_nothing_beside_one_that_can(said: list[Any]) -> None:
    assert ai_sdk_answers(*said) == {}
    assert ai_sdk_answers(*said, False) == ai_sdk_answers(False, *said) == {"c1": rd.Approval(False)}


@pytest.mark.parametrize("order", [1, -1])
def test_the_reason_of_the_refusal_is_kept(order: int) -> None:
    no = {"id": "c1", "approved": False, "reason": "No."}
    said = [{"id": "c1", "approved": True, "reason": "Yes."}, no][::order]
    assert rd.requests.approvals_from_ai_sdk(ai_sdk_request(*said)) == {"c1": NO}
    cancelled = [
        {"interruptId": "c1", "status": "cancelled"},
        {"interruptId": "c1", "status": "resolved", "payload": True},
    ]
    request = {"messages": [], "resume": cancelled[::order]}
    assert rd.requests.approvals_from_ag_ui(request) == {"c1": rd.Approval(False)}
