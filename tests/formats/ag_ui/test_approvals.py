"""Calls that wait for a person, in AG-UI: what a run asks, what the next one answers, and what is made of it."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
import reactivex as rx
from ag_ui.core import ResumeEntry, RunAgentInput
from reactivex import operators as ops
from support.ag_ui import ASKED, CLIENTS, body, call, encoder, frames_of, message, read, text, told
from support.clients import ask

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]
WAITS = ev.ToolUpdate("c1", "awaiting_approval")
TURN = [*message(text(0, "Shall I?"), call(1, "c1", '{"to": "Ann"}'), reason="tool_use")]
ALLOWED = {"status": "resolved", "payload": {"approved": True}}
REFUSED = {"status": "resolved", "payload": {"approved": False, "reason": "Too late."}}
DENIED = "The call was not allowed. Too late."
INTERRUPT = {
    "id": "c1",
    "reason": "tool_call",
    "message": 'Allow f({"to": "Ann"})?',
    "toolCallId": "c1",
    "responseSchema": {
        "type": "object",
        "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
        "required": ["approved"],
    },
}


def outcome(frames: list[Json]) -> Json:
    found: Json = frames[-1]["outcome"]
    return found


def answered(answer: Json, *, id: str = "c1", **more: Any) -> Json:
    """The request that answers the interrupt of `TURN`."""
    return {
        "threadId": "t1",
        "runId": "r2",
        "messages": read(told(*TURN, WAITS, messages=ASKED), ASKED).messages,
        "resume": [{"interruptId": id, **answer}],
        **more,
    }


def the_call(request: Any) -> rd.ToolCall:
    (found,) = [
        block for said in rd.from_ag_ui(request) for block in said.blocks if isinstance(block, rd.ToolCall)
    ]
    return found


# What a run asks.


@pytest.mark.parametrize("version", CLIENTS.values())
def test_a_run_whose_calls_wait_ends_with_an_interrupt_for_each(version: str | None) -> None:
    frames = told(*TURN, WAITS, version=version)
    client = read(frames)
    assert client.interrupts == [INTERRUPT]
    assert not client.answered
    two = [*message(call(0, "c1"), call(1, "c2"), call(2, "c3"), reason="tool_use"), WAITS]
    two += [ev.ToolUpdate("c3", "awaiting_approval")]
    asked = read(told(*two, version=version)).interrupts
    assert [one["id"] for one in asked] == ["c1", "c3"]


def test_a_decision_within_the_run_leaves_nothing_to_ask() -> None:
    ran = [
        ev.ToolUpdate("c1", "executing"),
        ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok")),
    ]
    frames = told(*TURN, WAITS, *ran, *message(text(0, "Done."), id="m2"))
    assert "outcome" not in frames[-1]
    assert read(frames).answered == {"c1"}


def test_a_call_of_the_provider_that_waits_is_not_answered() -> None:
    own = [*message(call(0, "c1", '{"a": 1}', kind="server_tool_call_chunk")), WAITS]
    assert read(told(*own)).interrupts[0]["toolCallId"] == "c1"
    assert not read(told(*own)).answered
    allowed = ev.ToolUpdate("c1", "completed", result=rd.core.approved_result("c1"))
    (_, answer) = read(told(*own, allowed)).messages
    assert (answer["role"], answer["content"]) == ("tool", "")


@pytest.mark.parametrize("version", CLIENTS.values())
def test_a_run_that_is_stopped_asks_nothing(version: str | None) -> None:
    frames = told(*TURN, WAITS, ev.MessageInterrupted(), version=version)
    client = read(frames)
    if version is None:
        assert client.answered == {"c1"}
        assert "outcome" not in frames[-1]
    else:
        assert outcome(frames) == {"type": "cancelled"}


def test_a_run_that_fails_asks_nothing() -> None:
    frames = told(*TURN, WAITS, error=ValueError("no"))
    assert frames[-1]["type"] == "RUN_ERROR"


def test_an_interrupt_of_a_sub_agent_says_so_and_the_sub_agent_is_suspended() -> None:
    def of(run: str, events: list[rd.Event]) -> list[rd.Event]:

        return [attrs.evolve(event, run_id=run) for event in events]

    main = of("main", message(text(0, "One.")))
    begun, *sub = of("sub", [*message(call(0, "c1"), id="m2", reason="tool_use"), WAITS])
    assert isinstance(begun, ev.MessageStart)
    frames = told(*main, ev.MessageStart("m2", run_id="sub", parent_run_id="main"), *sub)
    assert outcome(frames)["interrupts"][0]["subagentRunId"] == "sub"
    (ended,) = [frame for frame in frames if frame["type"] == "SUBAGENT_FINISHED"]
    assert ended["outcome"] == {"type": "suspended", "interruptIds": ["c1"]}
    read(frames)


# What the next request answers.


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        (ALLOWED, rd.Approval(True)),
        (REFUSED, rd.Approval(False, "Too late.")),
        ({"status": "resolved", "payload": {"approved": False, "reason": ""}}, rd.Approval(False)),
        ({"status": "resolved", "payload": {"approved": True, "editedArgs": None}}, rd.Approval(True)),
        ({"status": "resolved", "payload": {"accepted": True, "steps": [1]}}, rd.Approval(True)),
        ({"status": "resolved", "payload": {"confirmed": False}}, rd.Approval(False)),
        ({"status": "resolved", "payload": True}, rd.Approval(True)),
        ({"status": "resolved", "payload": False}, rd.Approval(False)),
        ({"status": "cancelled"}, rd.Approval(False)),
        ({"status": "cancelled", "payload": {"approved": True}}, rd.Approval(False)),
    ],
)
def test_the_answers_of_a_request_are_decisions(answer: Json, decision: rd.Approval) -> None:
    request = answered(answer)
    assert rd.requests.approvals_from_ag_ui(request) == {"c1": decision}
    as_object = RunAgentInput.model_validate(request)
    assert rd.requests.approvals_from_ag_ui(as_object) == {"c1": decision}
    assert (the_call(request).result is None) is decision.approved


@pytest.mark.parametrize("given", [{}, {"resume": None}, {"resume": []}, {"messages": []}])
def test_a_request_without_answers_decides_nothing(given: Json) -> None:
    assert rd.requests.approvals_from_ag_ui(given) == {}
    assert rd.requests.approvals_from_ag_ui(RunAgentInput(thread_id="t", run_id="r", messages=[])) == {}


@pytest.mark.parametrize(
    ("resume", "field"),
    [
        ({}, "resume"),
        ("c1", "resume"),
        ([1], "resume[0]"),
        ([ResumeEntry], "resume[0]"),
        ([{"status": "cancelled"}], "resume[0].interruptId"),
        ([{"interruptId": "", "status": "cancelled"}], "resume[0].interruptId"),
        ([{"interruptId": "c1", "status": "denied"}], "resume[0].status"),
        ([{"interruptId": "c1"}], "resume[0].status"),
        *(
            ([{"interruptId": "c1", "status": "resolved", "payload": payload}], "resume[0].payload")
            for payload in (
                None,
                "yes",
                1,
                [],
                {},
                {"approved": 1},
                {"approved": "true"},
                {"approved": None},
                {"approved": True, "accepted": False},
                {"approved": False, "reason": 1},
                {"approved": True, "editedArgs": {"to": "Bob"}},
            )
        ),
    ],
)
def test_no_decision_is_guessed(resume: Any, field: str) -> None:
    for reader in (rd.requests.approvals_from_ag_ui, rd.from_ag_ui):
        with pytest.raises(rd.InvalidValueError) as caught:
            reader({"messages": [], "resume": resume})
        assert caught.value.field == field


def test_an_allowed_call_still_waits_and_a_refused_one_has_failed() -> None:
    allowed, refused = the_call(answered(ALLOWED)), the_call(answered(REFUSED))
    assert rd.core.is_waiting(allowed)
    assert refused.execution_status() == "failed"
    assert refused.result == rd.core.denied_result("c1", "Too late.")
    assert rd.core.decision_of(refused.result) == rd.Approval(False, "Too late.")
    assert the_call(answered(ALLOWED, id="c9")).execution_status() == "identified"


def test_a_call_that_has_run_keeps_its_result() -> None:
    messages = read(told(*TURN, ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok")))).messages
    for answer in (ALLOWED, REFUSED):
        found = the_call(answered(answer, messages=messages))
        assert (found.execution_status(), found.result) == ("completed", rd.ToolResult("c1", "ok"))


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (ALLOWED, {"approved": True}),
        (REFUSED, {"approved": False, "reason": "Too late."}),
        ({"status": "cancelled"}, {"status": "cancelled"}),
    ],
)
def test_the_answer_that_copilotkit_keeps_as_a_result_is_none(answer: Json, note: Json) -> None:
    request = answered(answer)
    tool = {"id": "x", "role": "tool", "toolCallId": "c1", "content": json.dumps(note)}
    noted = {**request, "messages": [*request["messages"], tool]}
    assert the_call(noted) == the_call(request)
    # The result of the tool follows it, and is the one that counts.
    result = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "Sent."))
    client = read(frames_of(rd.wire.AgUiEncoder(noted), [result]), noted["messages"])
    assert the_call({"messages": client.messages}).result == rd.ToolResult("c1", "Sent.")


def test_a_decision_about_a_call_of_the_provider_comes_back() -> None:
    own = message(call(0, "c1", '{"a": 1}', kind="server_tool_call_chunk"))
    for result in (rd.core.approved_result("c1"), rd.core.denied_result("c1", "No.")):
        status = "failed" if result.is_error else "completed"
        client = read(told(*own, WAITS, ev.ToolUpdate("c1", status, result=result)))
        found = the_call({"messages": client.messages})
        assert found.type == "server_tool_call"
        if result.is_error:
            assert rd.core.decision_of(found.result) == rd.core.decision_of(result)
        else:  # what the browser says is allowed
            assert (found.execution_status(), found.result) == ("awaiting_approval", None)


# The run that goes on.

RAN = [
    ev.ToolUpdate("c1", "executing", "Sending"),
    ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", {"sent": 1})),
]
NEXT = message(text(0, "Done."), id="m2")


def test_the_results_of_earlier_calls_are_sent_without_the_calls() -> None:
    request = answered(ALLOWED)
    frames = frames_of(rd.wire.AgUiEncoder(request), [WAITS, *RAN, *NEXT])
    client = read(frames, request["messages"])
    assert "TOOL_CALL_START" not in [frame["type"] for frame in frames]
    assert [said["role"] for said in client.messages] == ["user", "assistant", "tool", "assistant"]
    assert json.loads(client.messages[2]["content"]) == {"sent": 1}
    assert "outcome" not in frames[-1]
    assert the_call({"messages": client.messages}).result == rd.ToolResult("c1", {"sent": 1})


def test_nothing_is_sent_of_a_call_that_has_its_result() -> None:
    done = ev.ToolUpdate("c0", "completed", result=rd.ToolResult("c0", "ok"))
    events = [*message(call(0, "c0"), call(1, "c1"), reason="tool_use"), done, WAITS]
    request = answered(ALLOWED, messages=read(told(*events)).messages)
    stored = rd.Fold()
    for event in events:
        stored.step(event)
    ran: list[str] = []
    answers = rd.requests.approvals_from_ag_ui(request)
    updates: list[rd.Event] = []
    rx.from_iterable(rd.to_events(stored.snapshot)).pipe(
        rd.run_tools(
            {"f": lambda: ran.append("f") or "Sent."}, approve=lambda one: answers.get(one.call_id or "")
        ),
        ops.filter(lambda event: isinstance(event, ev.ToolUpdate)),
    ).subscribe(updates.append)
    frames = frames_of(rd.wire.AgUiEncoder(request), [*updates, *NEXT])
    results = [frame for frame in frames if frame["type"] == "TOOL_CALL_RESULT"]
    assert ([frame["toolCallId"] for frame in results], results[0]["content"]) == (["c1"], "Sent.")
    assert ran == ["f"]
    assert frames_of(rd.wire.AgUiEncoder(request), [done, *NEXT]) == frames_of(
        rd.wire.AgUiEncoder(request), NEXT
    )


def test_a_refusal_is_the_result_of_the_call() -> None:
    request = answered(REFUSED)
    refusal = ev.ToolUpdate("c1", "failed", result=rd.core.denied_result("c1", "Too late."))
    client = read(frames_of(rd.wire.AgUiEncoder(request), [refusal, *NEXT]), request["messages"])
    assert client.messages[2]["content"] == DENIED
    assert client.messages[2]["metadata"]["rxdelta"] == {
        "is_error": True,
        "metadata": {"denied": True, "reason": "Too late."},
    }
    found = the_call({"messages": client.messages})
    assert rd.core.decision_of(found.result) == rd.Approval(False, "Too late.")


def test_a_call_that_waits_again_is_asked_about_again() -> None:
    request = answered(ALLOWED, messages=answered(ALLOWED)["messages"])
    frames = frames_of(rd.wire.AgUiEncoder(request), [WAITS])
    assert outcome(frames)["interrupts"] == [{**INTERRUPT, "message": INTERRUPT["message"]}]
    assert len(frames_of(rd.wire.AgUiEncoder(request), [WAITS, WAITS])) == len(frames)
    assert frames_of(rd.wire.AgUiEncoder(request), [])[-1]["type"] == "RUN_ERROR"
    assert frames_of(rd.wire.AgUiEncoder(request), RAN)[-1]["type"] == "RUN_FINISHED"
    cut = frames_of(rd.wire.AgUiEncoder(request), [*RAN, ev.MessageStart("m2")])
    assert cut[-1]["type"] == "RUN_ERROR"


def test_a_call_of_the_stream_has_its_own_updates() -> None:
    """A provider that numbers the calls of each message anew."""
    request = answered(ALLOWED)
    again = message(call(0, "c1", "{}"), id="m2", reason="tool_use")
    client = read(frames_of(rd.wire.AgUiEncoder(request), [*again, RAN[1]]), request["messages"])
    assert client.answered == {"c1-2"}


def test_news_of_an_earlier_call_wait_for_an_open_call_where_calls_are_serialized() -> None:
    request = answered(ALLOWED)
    begun = [ev.MessageStart("m2"), *text(0, "Hm")[:-1], *call(1, "c2", "{}")]
    for rest in ([begun[-1], ev.MessageFinish("tool_use")], []):
        events = [*begun[:-1], *RAN, *rest]
        frames = frames_of(rd.wire.AgUiEncoder(request, serialize_tool_calls=True), events)
        kinds = [frame["type"] for frame in frames]
        assert kinds.index("TOOL_CALL_END") < kinds.index("TOOL_CALL_RESULT")
        read(frames, request["messages"])
    kinds = [frame["type"] for frame in frames_of(rd.wire.AgUiEncoder(request), [*begun[:-1], *RAN])]
    assert kinds.index("TOOL_CALL_END") > kinds.index("TOOL_CALL_RESULT")


def test_news_of_a_call_that_nobody_knows_is_told_to_nobody() -> None:
    request = answered(ALLOWED)
    frames = frames_of(rd.wire.AgUiEncoder(request), [ev.ToolUpdate("c9", "completed"), *NEXT])
    assert frames == frames_of(rd.wire.AgUiEncoder(request), NEXT)


def test_a_retry_keeps_the_results_of_earlier_calls() -> None:
    request = answered(ALLOWED)
    failed = [ev.MessageStart("m2"), *text(0, "Oo")[:-1], ev.AttemptReset(1)]
    frames = frames_of(rd.wire.AgUiEncoder(request), [*RAN, *failed, *NEXT])
    client = read(frames, request["messages"])
    assert [said["role"] for said in client.messages] == ["user", "assistant", "tool", "assistant"]
    assert client.messages[-1]["content"] == "Done."


@pytest.mark.parametrize(
    "broken",
    [
        {"id": "c1"},
        {"id": "c1", "function": 1},
        {"id": "c1", "function": {"name": 1, "arguments": []}},
        {"id": 1, "function": {}},
        "c1",
    ],
)
def test_broken_calls_of_a_request_break_nothing(broken: Any) -> None:
    request = answered(ALLOWED, messages=[{"id": "a", "role": "assistant", "toolCalls": [broken]}])
    frames = frames_of(rd.wire.AgUiEncoder(request), [*RAN, *NEXT])
    assert frames[-1]["type"] == "RUN_FINISHED"


# What is read of it.


def events_of(frames: list[Json]) -> list[rd.Event]:
    decoder = rd.providers.decoder("ag-ui")
    return [*(event for frame in frames for event in decoder.decode(frame)), *decoder.close()]


def test_a_call_that_waits_is_read_as_one_that_waits() -> None:
    for frames in (told(*TURN, WAITS), [frame for frame in told(*TURN, WAITS) if frame["type"] != "CUSTOM"]):
        fold = rd.Fold()
        for event in events_of(frames):
            fold.step(event)
        snapshot = fold.snapshot
        assert [one.call_id for one in snapshot.waiting_calls] == ["c1"]
        assert not snapshot.all_tools_terminal()
        assert snapshot.finish_reason == "tool_use"
    assert [event for event in events_of(told(*TURN, WAITS)) if isinstance(event, ev.ToolUpdate)] == [WAITS]


def test_an_interrupt_without_a_call_is_kept_for_the_reader() -> None:
    asked = {"type": "interrupt", "interrupts": [{"id": "i", "reason": "confirmation"}]}
    frames = [*told(*message(text(0, "Hi")))[:-1]]
    frames += [{"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "outcome": asked}]
    finish = events_of(frames)[-1]
    assert isinstance(finish, ev.MessageFinish)
    assert (finish.provider_reason, rd.core.thaw(finish.metadata)["interrupts"]) == (
        "interrupt",
        asked["interrupts"],
    )


def test_the_run_that_goes_on_is_read_as_updates_and_the_next_message() -> None:
    frames = frames_of(rd.wire.AgUiEncoder(answered(ALLOWED)), [WAITS, *RAN, *NEXT])
    found = events_of(frames)
    assert [event for event in found if isinstance(event, ev.ToolUpdate)] == [WAITS, *RAN]
    assert [event.id for event in found if isinstance(event, ev.MessageStart)] == ["m2"]
    alone = events_of(frames_of(rd.wire.AgUiEncoder(answered(ALLOWED)), [WAITS]))
    assert alone == [WAITS]


# The real clients.


def test_the_real_clients_ask_answer_and_go_on() -> None:
    two = [*message(call(0, "c1"), call(1, "c2"), reason="tool_use"), WAITS]
    two += [ev.ToolUpdate("c2", "awaiting_approval")]
    refusal = ev.ToolUpdate("c2", "failed", result=rd.core.denied_result("c2", "Too late."))
    runs: list[tuple[Json, list[Json], bool]] = []
    for client, version in CLIENTS.items():
        first = told(*two, messages=ASKED, version=version)
        request = {"threadId": "t1", "runId": "r1-2", "messages": read(first, ASKED).messages}
        line = {"body": body(first), "messages": ASKED, "client": client}
        for goes_on in ([*RAN, refusal, *NEXT], [WAITS, refusal]):
            second = frames_of(rd.wire.AgUiEncoder({**request, "protocolVersion": version}), goes_on)
            then = {"body": body(second), "responses": {"c1": ALLOWED, "c2": REFUSED}}
            after = read(second, request["messages"])
            runs.append(({**line, "then": then}, after.messages, after.interrupts != []))
    for (_, messages, asks_again), seen in zip(runs, ask("ag_ui.mjs", [run[0] for run in runs]), strict=True):
        assert seen["error"] is None
        assert [one["id"] for one in seen["interrupts"]] == ["c1", "c2"]
        assert seen["pending"] is None
        second = seen["second"]
        assert (second["error"], second["warnings"]) == (None, [])
        decided = {"c1": rd.Approval(True), "c2": rd.Approval(False, "Too late.")}
        assert rd.requests.approvals_from_ag_ui(second["request"]) == decided
        assert second["messages"] == messages
        blocks = [block for said in rd.from_ag_ui(second["request"]) for block in said.blocks]
        statuses = [block.execution_status() for block in blocks if isinstance(block, rd.ToolCall)]
        assert statuses == ["awaiting_approval", "failed"]
        assert [one["id"] for one in second["interrupts"] or ()] == (["c1"] if asks_again else [])


def test_without_a_request_updates_of_unknown_calls_are_no_run() -> None:
    assert frames_of(encoder(), [WAITS])[-1]["type"] == "RUN_ERROR"
