"""A person's approval of a call in the AI SDK's terms: asked, answered, and told with the next request."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.ai_sdk import CALL, SERVER, START, STOP, TEXT, frames_of, of_type, read, types, whole
from support.clients import ask

import rxdelta as rd
from rxdelta.core import approved_result, denied_result

ev = rd.events

WAITS = ev.ToolUpdate("c1", "awaiting_approval")
RUNS = ev.ToolUpdate("c1", "executing")
DONE = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "sea"))
DENIED = ev.ToolUpdate("c1", "failed", result=denied_result("c1", "Too deep."))
ASKED = {"type": "tool-approval-request", "approvalId": "c1", "toolCallId": "c1"}
ALLOWED = {"type": "tool-approval-response", "approvalId": "c1", "approved": True}
REFUSED = {"type": "tool-approval-response", "approvalId": "c1", "approved": False, "reason": "Too deep."}
ANSWER = [START, *TEXT, STOP]


def body(frames: list[Any]) -> str:
    return b"".join(map(rd.wire.sse_frame, frames)).decode()


def news(*updates: Any, **options: Any) -> list[Any]:
    """What follows the complete input of a call, up to the end of its step."""
    frames = frames_of([START, *CALL, *updates, STOP], **options)
    read(frames, options.get("sdk_version", 7))
    return frames[types(frames).index("tool-input-available") + 1 : types(frames).index("finish-step")]


def part(state: str, **fields: Any) -> dict[str, Any]:
    return {"type": "tool-look", "toolCallId": "c1", "state": state, "input": {"at": "sea"}, **fields}


def said(*parts: Any, **fields: Any) -> list[Any]:
    """The messages of a request whose last one is the assistant's."""
    asked = {"id": "u", "role": "user", "parts": [{"type": "text", "text": "Well?"}]}
    return [asked, {"id": "a1", "role": "assistant", "parts": [{"type": "step-start"}, *parts], **fields}]


def go_on(messages: list[Any], *events: Any, **options: Any) -> list[Any]:
    """The frames of a reply that goes on with the last of these messages."""
    return frames_of(events, messages=messages, **options)


# Asking, in one stream.


def test_a_call_that_waits_is_asked_for_once_it_is_whole() -> None:
    assert news(WAITS, WAITS) == [ASKED]
    early = frames_of([START, *CALL[:3], WAITS, CALL[3], STOP])
    assert types(early)[-5:] == [
        "tool-input-available",
        "tool-approval-request",
        "finish-step",
        "finish",
        "DONE",
    ]


def test_a_decision_in_the_stream_is_told_in_front_of_what_follows_from_it() -> None:
    output = {"type": "tool-output-available", "toolCallId": "c1", "output": "sea"}
    assert news(WAITS, RUNS, DONE) == [ASKED, ALLOWED, output]
    assert news(WAITS, DONE) == [ASKED, ALLOWED, output]
    assert news(RUNS, DONE) == [output]
    failed = ev.ToolUpdate("c1", "failed", result=rd.ToolResult("c1", "no", is_error=True))
    assert types(news(WAITS, failed)) == [
        "tool-approval-request",
        "tool-approval-response",
        "tool-output-error",
    ]


def test_a_refusal_has_its_reason() -> None:
    denied = {"type": "tool-output-denied", "toolCallId": "c1"}
    assert news(WAITS, DENIED, DONE) == [ASKED, REFUSED, denied]
    assert news(DENIED) == [ASKED, REFUSED, denied]  # the client refuses an answer that nobody has asked for


def test_older_clients_get_what_they_know() -> None:
    assert types(news(WAITS, RUNS, DONE, sdk_version=6)) == ["tool-approval-request", "tool-output-available"]
    assert types(news(WAITS, DENIED, sdk_version=6)) == ["tool-approval-request", "tool-output-denied"]
    (error,) = news(WAITS, DENIED, sdk_version=5)
    assert (error["type"], error["errorText"]) == (
        "tool-output-error",
        "The call was not allowed. Too deep.",
    )
    assert news(WAITS, sdk_version=5) == []


@pytest.mark.parametrize("approved", [True, False])
def test_the_providers_own_call_is_decided_and_not_run(approved: bool) -> None:
    result = approved_result("s1", "Go on.") if approved else denied_result("s1", "Go on.")
    decided = ev.ToolUpdate("s1", "completed" if approved else "failed", result=result)
    frames = frames_of([START, *whole(SERVER), ev.ToolUpdate("s1", "awaiting_approval"), decided, STOP])
    read(frames)
    (answer,) = of_type("tool-approval-response", frames)
    assert (answer["approved"], answer["reason"], answer["providerExecuted"]) == (approved, "Go on.", True)
    assert not of_type("tool-output-available", frames)
    assert len(of_type("tool-output-denied", frames)) == (not approved)


# Going on with a message that the client has.


def test_the_reply_to_an_answer_goes_on_with_the_clients_message() -> None:
    asked = said(part("approval-responded", approval={"id": "c1", "approved": True}))
    frames = go_on(asked, WAITS, RUNS, DONE, *ANSWER)
    assert frames[:2] == [
        {"type": "start", "messageId": "a1"},
        {"type": "tool-output-available", "toolCallId": "c1", "output": "sea"},
    ]
    assert types(frames)[2:4] == ["message-metadata", "start-step"]


def test_what_the_client_knows_is_not_told_again() -> None:
    refused = said(part("approval-responded", approval={"id": "c1", "approved": False}))
    assert types(go_on(refused, WAITS, DENIED)) == ["start", "tool-output-denied", "finish", "DONE"]
    allowed = said(part("approval-responded", approval={"id": "c1", "approved": True}))
    assert types(go_on(allowed, DENIED))[1:3] == ["tool-approval-response", "tool-output-denied"]
    has_it = said(part("output-available", output=1))
    assert types(go_on(has_it, WAITS, RUNS, DONE, *ANSWER))[:2] == ["start", "start-step"]
    waiting = said(part("input-available"))
    assert go_on(waiting, WAITS, WAITS)[1:-2] == [ASKED]
    still = said(part("output-available", output=0, preliminary=True))
    assert types(go_on(still, DONE))[1] == "tool-output-available"


def test_a_reply_of_nothing_but_decisions_is_whole() -> None:
    asked = said(part("approval-responded", approval={"id": "c1", "approved": True}))
    assert go_on(asked, WAITS)[-2:] == [
        {"type": "finish", "finishReason": "tool-calls", "messageMetadata": {}},
        rd.wire.DONE,
    ]
    assert types(go_on(asked, RUNS, START))[-2:] == ["error", "DONE"]
    other = ev.ToolUpdate("c9", "completed", result=rd.ToolResult("c9", 1))
    assert types(go_on(asked, other)) == ["start", "error", "DONE"]


def test_a_call_of_this_stream_has_an_id_of_its_own() -> None:
    asked = said(part("output-available", output=1))
    frames = go_on(asked, START, *CALL, DONE, STOP)
    named = {frame["toolCallId"] for frame in frames[:-1] if "toolCallId" in frame}
    assert len(named) == 1
    assert named != {"c1"}


def test_the_id_and_usage_of_the_message_are_the_defaults() -> None:
    usage = {
        "inputTokens": 3,
        "outputTokens": 4,
        "totalTokens": 7,
        "outputTokenDetails": {"reasoningTokens": 1},
    }
    has_some = said(part("output-available", output=1), metadata={"usage": usage})
    told = ev.UsageUpdate(rd.TokenUsage(5, 6, cache_read_tokens=2))
    frames = go_on(has_some, START, told, *TEXT, STOP)
    assert frames[0]["messageId"] == "a1"
    known = frames[-2]["messageMetadata"]["usage"]
    assert (known["inputTokens"], known["outputTokens"], known["totalTokens"]) == (8, 10, 18)
    assert known["outputTokenDetails"] == {"reasoningTokens": 1}
    assert known["inputTokenDetails"] == {"cacheReadTokens": 2}
    assert go_on(has_some, *ANSWER, message_id="mine")[0]["messageId"] == "mine"
    new = [*has_some, {"id": "u2", "role": "user", "parts": []}]
    assert "messageId" not in go_on(new, *ANSWER)[0]
    assert types(go_on(new, DONE, *ANSWER))[:2] == ["start", "start-step"]


@pytest.mark.parametrize("wrong", [3, "x", {"id": "a"}, [3]])
def test_messages_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="messages"):
        rd.to_ai_sdk(messages=wrong)
    with pytest.raises(rd.InvalidValueError, match="messages"):
        rd.requests.approvals_from_ai_sdk(wrong)


@pytest.mark.parametrize("version", [6, 7])
def test_what_the_message_has_keeps_its_place(version: int) -> None:
    """A client puts data with an id that it has, or a source, in the place of the earlier one."""
    failed = [START, *TEXT, ev.AttemptReset(1)] if version < 7 else []
    cited = {"type": "text", "text": "Hi", "citations": [{"url": "https://sea.example"}]}
    two = [ev.MessageStart("r1", run_id="one"), ev.MessageStart("r2", run_id="two")]
    ends = [ev.MessageFinish("stop", run_id="one"), ev.MessageFinish("stop", run_id="two")]
    events = [*failed, START, *TEXT, ev.BlockStart(8, cited), ev.BlockFinish(8), STOP, *two, *ends]

    def ids(frames: list[Any]) -> set[str]:
        kept = (one for one in frames if one is not rd.wire.DONE)
        return {
            one["type"].split("-")[0] + (one.get("sourceId") or one["id"])
            for one in kept
            if one["type"].startswith(("data-", "source-"))
        }

    first = frames_of(events, sdk_version=version)
    known = [one for one in first if one is not rd.wire.DONE and one["type"].startswith(("data-", "source-"))]
    second = go_on(said(*known), *events, sdk_version=version)
    assert len(ids(first)) == len(ids(second)) > 1
    assert ids(first).isdisjoint(ids(second))


@pytest.mark.parametrize("strange", [[], {}])
def test_strange_words_of_a_browser_say_nothing(strange: Any) -> None:
    messages = said(part("input-available") | {"state": strange}, metadata={"finishReason": strange})
    assert go_on(messages, DONE)[-2]["finishReason"] == "tool-calls"
    with pytest.raises(rd.InvalidValueError, match="type"):
        rd.from_ai_sdk(said({"type": "data-run", "data": {}}, {"type": strange, "data": {}}))


# Reading.


def decoded(*chunks: Any) -> list[Any]:
    decoder = rd.providers.decoder("ai-sdk")
    return [event for chunk in chunks for event in decoder.decode(chunk)]


def test_the_decoder_reads_what_the_encoder_writes() -> None:
    for updates in ([WAITS], [WAITS, RUNS, DONE], [WAITS, DENIED], [WAITS, RUNS]):
        frames = frames_of([START, *CALL, *updates, STOP])
        found = [event for event in decoded(*frames) if isinstance(event, ev.ToolUpdate)]
        assert found[: len(updates)] == updates
    assert decoded({"type": "start"}, ALLOWED)[-1].event == "provider"


def test_an_allowed_call_of_the_provider_is_read_as_decided() -> None:
    decided = ev.ToolUpdate("s1", "completed", result=approved_result("s1"))
    waits = ev.ToolUpdate("s1", "awaiting_approval")
    frames = frames_of([START, *whole(SERVER), waits, decided, STOP])
    assert [one for one in decoded(*frames) if isinstance(one, ev.ToolUpdate)] == [waits, decided]


@pytest.mark.parametrize("approval", [{"id": "c1"}, {"id": "c1", "approved": True}])
@pytest.mark.parametrize("at_provider", [False, True])
def test_a_call_that_was_asked_for_waits_whatever_the_browser_says(approval: Any, at_provider: bool) -> None:
    state = "approval-responded" if "approved" in approval else "approval-requested"
    (message,) = rd.from_ai_sdk(said(part(state, approval=approval, providerExecuted=at_provider))[1:])
    (call,) = message.waiting_calls
    assert (call.call_id, call.result) == ("c1", None)


@pytest.mark.parametrize("state", ["approval-responded", "output-denied"])
def test_a_refused_call_has_failed(state: str) -> None:
    refused = part(state, approval={"id": "c1", "approved": False, "reason": "Too deep."})
    (message,) = rd.from_ai_sdk(said(refused)[1:])
    (call,) = message.tool_calls
    assert call.result == denied_result("c1", "Too deep.")
    assert call.execution_status() == "failed"


def test_the_answers_are_those_of_the_last_message() -> None:
    yes = part("approval-responded", approval={"id": "c1", "approved": True})
    no = {
        **part("approval-responded", approval={"id": "x", "approved": False, "reason": "No."}),
        "toolCallId": "c2",
    }
    answers = rd.requests.approvals_from_ai_sdk(said(yes, no))
    assert answers == {"c1": rd.Approval(True), "c2": rd.Approval(False, "No.")}
    assert rd.requests.approvals_from_ai_sdk([*said(yes), {"role": "user", "parts": []}]) == {}
    assert rd.requests.approvals_from_ai_sdk([]) == {}


@pytest.mark.parametrize(
    "strange",
    [
        part("approval-requested", approval={"id": "c1", "approved": True}),
        part("output-available", approval={"id": "c1", "approved": True}, output=1),
        part("approval-responded", approval={"id": "c1", "approved": "yes"}),
        part("approval-responded", approval=True),
        {**part("approval-responded", approval={"approved": True}), "toolCallId": None},
        {"type": "text", "state": "approval-responded", "approval": {"approved": True}, "toolCallId": "c1"},
        "text",
    ],
)  # fmt: skip
def test_what_is_no_answer_allows_nothing(strange: Any) -> None:
    assert rd.requests.approvals_from_ai_sdk(said(strange)) == {}


def test_an_answer_counts_for_the_newest_call_with_its_id() -> None:
    yes = part("approval-responded", approval={"id": "c1", "approved": True})
    assert (
        rd.requests.approvals_from_ai_sdk(said(yes, {"type": "step-start"}, part("approval-requested"))) == {}
    )


# The client itself.


def test_the_client_asks_answers_and_goes_on() -> None:
    first = body(frames_of([START, *CALL, STOP, WAITS]))
    answers = [
        [{"id": "c1", "approved": True}],
        [{"id": "c1", "approved": False, "reason": "Too deep."}],
    ]
    asked, allowed, refused = ask(
        "ai_sdk.mjs", [{"body": first}, *({"body": first, "answers": one} for one in answers)]
    )
    (waiting,) = rd.from_ai_sdk(asked["messages"])[1].waiting_calls
    assert waiting.call_id == "c1"
    assert asked["message"]["parts"][1]["approval"] == {"id": "c1"}
    assert rd.requests.approvals_from_ai_sdk(asked["messages"]) == {}
    assert rd.requests.approvals_from_ai_sdk(allowed["messages"]) == {"c1": rd.Approval(True)}
    assert rd.requests.approvals_from_ai_sdk(refused["messages"]) == {"c1": rd.Approval(False, "Too deep.")}
    continued = [
        {"messages": one["messages"], "body": body(go_on(one["messages"], *updates, *ANSWER))}
        for one, updates in ((allowed, [RUNS, DONE]), (refused, [DENIED]))
    ]
    for answer, state, before in zip(
        ask("ai_sdk.mjs", continued), ("output-available", "output-denied"), (allowed, refused)
    ):
        assert (answer["error"], answer["invalid"]) == (None, None)
        assert [one["type"] for one in answer["message"]["parts"]] == [
            "step-start",
            "tool-look",
            "step-start",
            "text",
        ]
        assert answer["message"]["id"] == before["message"]["id"]
        assert answer["message"]["parts"][1]["state"] == state
        assert len(answer["messages"]) == 2


def test_the_client_takes_decisions_that_others_make() -> None:
    server = [START, *whole(SERVER), ev.ToolUpdate("s1", "awaiting_approval")]
    decided = ev.ToolUpdate("s1", "completed", result=approved_result("s1"))
    streams = [
        [START, *CALL, WAITS, RUNS, DONE, STOP],
        [START, *CALL, WAITS, DENIED, STOP],
        [*server, STOP],
        [*server, decided, STOP],
        [START, *CALL, DENIED, STOP],
    ]
    states = [
        "output-available",
        "output-denied",
        "approval-requested",
        "approval-responded",
        "output-denied",
    ]
    for answer, state in zip(ask("ai_sdk.mjs", [{"body": body(frames_of(one))} for one in streams]), states):
        assert (answer["error"], answer["invalid"]) == (None, None)
        assert answer["message"]["parts"][1]["state"] == state


def test_a_stored_reply_is_decided_by_the_clients_answer_and_goes_on() -> None:
    """Two requests of one conversation, as an application answers them: the calls are those that it has stored."""
    ran: list[str] = []

    def look(at: str) -> str:
        ran.append(at)
        return f"at the {at}"

    def first(model: list[Any]) -> tuple[list[Any], rd.Message]:
        events = rx.from_iterable(model).pipe(rd.run_tools({"look": look}, approve=lambda call: None))
        told: list[Any] = []
        events.subscribe(told.append)
        return frames_of(told), rd.Message.from_dict(
            rx.from_iterable(told).pipe(rd.scan_deltas(), rd.to_message()).run().to_dict()
        )

    def second(stored: rd.Message, messages: list[Any]) -> list[Any]:
        answers = rd.requests.approvals_from_ai_sdk(messages)
        tools = rd.run_tools({"look": look}, approve=lambda call: answers.get(call.call_id))
        decided = rx.from_iterable(rd.to_events(stored)).pipe(tools)
        news = decided.pipe(ops.filter(lambda event: isinstance(event, ev.ToolUpdate)))
        reply = rx.concat(news, rx.from_iterable(ANSWER))
        return reply.pipe(rd.to_ai_sdk(messages=messages), ops.to_list()).run()

    frames, stored = first([START, *CALL, STOP])
    assert [call.call_id for call in stored.waiting_calls] == ["c1"]
    answer = [{"id": "c1", "approved": True}], [{"id": "c1", "approved": False, "reason": "No."}]
    asked = ask("ai_sdk.mjs", [{"body": body(frames), "answers": one} for one in answer])
    assert ran == []
    bodies = [{"messages": one["messages"], "body": body(second(stored, one["messages"]))} for one in asked]
    allowed, refused = ask("ai_sdk.mjs", bodies)
    assert ran == ["sea"]
    assert (allowed["error"], allowed["invalid"], refused["error"], refused["invalid"]) == (None,) * 4
    assert allowed["message"]["parts"][1]["output"] == "at the sea"
    assert refused["message"]["parts"][1]["state"] == "output-denied"
    (_, call, _), (_, denied, _) = (rd.from_ai_sdk(one["messages"]) for one in (allowed, refused))
    assert [one.tool_calls[0].execution_status() for one in (call, denied)] == ["completed", "failed"]
    assert denied.tool_calls[0].result == denied_result("c1", "No.")
