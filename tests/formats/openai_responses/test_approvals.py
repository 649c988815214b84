"""Calls of an MCP server that the provider makes only if a person allows them, both ways."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx

import rxdelta as rd

ev = rd.events
ASKED = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "dice",
    "name": "roll",
    "arguments": '{"dice": "2d4"}',
}
LISTED: dict[str, Any] = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "dice", "tools": []}


def chunks(*output: dict[str, Any]) -> list[dict[str, Any]]:
    response = {"id": "resp_1", "model": "m"}
    items = [
        {"type": f"response.output_item.{what}", "output_index": place, "item": item}
        for place, item in enumerate(output)
        for what in ("added", "done")
    ]
    done = {**response, "status": "completed", "output": [*output]}
    return [
        {"type": "response.created", "response": response},
        *items,
        {"type": "response.completed", "response": done},
    ]


def events(source: list[Any], **options: Any) -> list[rd.Event]:
    found: list[rd.Event] = []
    decoded = rx.from_iterable(source).pipe(rd.decode("openai-responses"))
    (decoded.pipe(rd.run_tools({}, **options)) if options else decoded).subscribe(found.append)
    return found


def folded(found: list[rd.Event]) -> rd.Snapshot:
    fold = rd.Fold()
    for event in found:
        fold.step(event)
    return fold.snapshot


def decided(answer: Any) -> rd.Message:
    return folded(events(chunks(LISTED, ASKED), approve=lambda _: answer)).to_message()


def written(*messages: Any) -> list[Any]:
    request: Any = rd.to_request([*messages], "openai-responses")
    return list(request["input"])


@pytest.mark.parametrize("whole", [False, True], ids=["streamed", "whole"])
def test_a_request_for_approval_waits(whole: bool) -> None:
    body = {"object": "response", "id": "resp_1", "status": "completed", "output": [ASKED]}
    found = events([body] if whole else chunks(ASKED))
    snapshot = folded(found)
    (call,) = snapshot.waiting_calls
    assert (call.type, call.call_id, call.name, call.arguments) == (
        "server_tool_call",
        "mcpr_1",
        "roll",
        {"dice": "2d4"},
    )
    assert not snapshot.all_tools_terminal()
    kinds = [type(event) for event in found]
    assert kinds.index(ev.ToolUpdate) < kinds.index(ev.BlockFinish)
    assert kinds.count(ev.ToolUpdate) == 1


def test_a_request_that_broke_off_does_not_wait() -> None:
    assert not folded(events(chunks(ASKED)[:2])).waiting_calls


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        (True, {"approve": True}),
        (rd.Approval(True, "Once."), {"approve": True, "reason": "Once."}),
        (False, {"approve": False}),
        (rd.Approval(False, "Too loud."), {"approve": False, "reason": "Too loud."}),
    ],
    ids=str,
)
def test_the_decision_follows_the_reply_that_asked(answer: Any, response: dict[str, Any]) -> None:
    answered = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", **response}
    message = decided(answer)
    assert message.all_tools_terminal()
    assert written(message) == [LISTED, ASKED, answered]
    assert written(message, "And now?") == [LISTED, ASKED, answered, {"role": "user", "content": "And now?"}]


def test_a_request_that_nobody_decided_is_refused_if_the_conversation_goes_on() -> None:
    message = decided(None)
    assert written(message) == [LISTED, ASKED]
    said = written(message, "Never mind.")
    assert [item["type"] for item in said[2:-1]] == ["mcp_approval_response"]
    assert said[2]["approve"] is False
    own = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    assert written(message, own) == [LISTED, ASKED, own]


def test_a_request_whose_call_was_made_has_been_allowed() -> None:
    made = {
        "type": "mcp_call",
        "id": "mcp_1",
        "name": "roll",
        "arguments": "{}",
        "server_label": "s",
        "output": "7",
    }
    made = {**made, "approval_request_id": "mcpr_1", "status": "completed"}
    later = folded(events(chunks(made))).to_message()
    request: Any = rd.to_request([decided(None), later, "And now?"], "openai-responses")
    assert [item["approve"] for item in request["input"] if "approve" in item] == [True]


def test_an_interrupted_request_is_refused() -> None:
    found = events(chunks(ASKED)[:-1], approve=lambda _: rx.never())
    stopped = folded([*found, ev.MessageInterrupted()])
    again = rx.from_iterable(rd.to_events(stopped)).pipe(
        rd.run_tools({}, approve=lambda _: rx.never()), rd.scan_deltas()
    )
    message = again.run().to_message()
    assert [item["approve"] for item in written(message) if item["type"] == "mcp_approval_response"] == [
        False
    ]


def test_what_is_decided_goes_to_no_other_provider() -> None:
    for wire_format in ("openai-chat", "anthropic-messages", "gemini"):
        request = rd.to_request([decided(True), "And now?"], wire_format)
        assert "roll" not in str(request)
        assert "approv" not in str(request)


def test_a_reply_without_its_reasoning_goes_without_the_request_and_the_decision() -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}
    found = events(chunks(thought, ASKED), approve=lambda _: True)
    request: Any = rd.to_request([folded(found).to_message()], "openai-responses", reasoning=False)
    assert request["input"] == []


def test_an_agent_sees_in_the_calls_whether_the_model_is_to_be_asked_again() -> None:
    ends = [(reply.finish_reason, reply.all_tools_terminal()) for reply in map(decided, (True, False, None))]
    assert ends == [("stop", True), ("stop", True), ("stop", False)]
