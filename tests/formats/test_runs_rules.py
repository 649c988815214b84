"""What several runs are to each front end: rule by rule, and to the front ends' own clients."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from formats.test_runs_to_front_ends import decoded, streams, to_langchain
from hypothesis import HealthCheck, Phase, given, settings
from support import ag_ui, ai_sdk
from support.clients import ask
from support.runs import Events, answer, call, messages, said, text, turn, within, woven

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]

MAIN = within(
    "main", [*turn(text(0, "abc"), call(1, "c1", "sea"), reason="tool_use", used=1), answer("c1", "blue")]
)
OTHER = within(
    "other", [*turn(text(0, "xyz"), call(1, "c1", "sky"), reason="tool_use", used=10), answer("c1", "red")]
)
SUB = within("sub", turn(text(0, "deep"), used=100), "main")


def test_a_run_that_begins_after_a_stop_is_not_stopped() -> None:
    late = within("late", turn(text(0, "late"), used=1))[1:]  # its start was lost
    events = [*MAIN[:3], ev.MessageInterrupted("enough"), *late]
    read = decoded("langchain", to_langchain(events))
    assert (
        "".join(event.text for event in read if isinstance(event, ev.TextDelta) and event.run_id == "late")
        == "late"
    )
    assert "late" in [part.get("text") for part in ai_sdk.read(ai_sdk.frames_of(events)).parts]


# The AI SDK.


def run_of(part: Json) -> str | None:
    found = part.get("ours") or part.get("providerMetadata", {}).get("rxdelta") or part.get("data") or {}
    return found.get("runId")


def test_runs_that_overlap_share_a_step_and_their_parts_say_whose_they_are() -> None:
    client = ai_sdk.read(ai_sdk.frames_of(woven(MAIN, OTHER)))
    texts = {part["text"]: run_of(part) for part in client.parts if part["type"] == "text"}
    assert texts == {"abc": None, "xyz": "other"}
    calls = {
        part["toolCallId"]: (part["output"], run_of(part)) for part in client.parts if "toolCallId" in part
    }
    assert [*calls.values()] == [("blue", None), ("red", "other")]
    assert [part["type"] for part in client.parts].count("step-start") == 1
    assert client.metadata["usage"] == {"inputTokens": 11, "outputTokens": 11, "totalTokens": 22}


def test_runs_that_follow_one_another_are_steps() -> None:
    client = ai_sdk.read(ai_sdk.frames_of([*MAIN, *OTHER]))
    kinds = [part["type"] for part in client.parts]
    assert kinds == [
        "step-start", "text", "tool-output-available", "data-run", "data-run", "step-start", "text", "tool-output-available",
    ]  # fmt: skip
    (first, second) = [part["data"] for part in client.parts if part["type"] == "data-run"]
    assert (first["runId"], first["first"], first["status"]) == ("main", True, "complete")
    assert (second["runId"], second["messageId"], second["usage"]["inputTokens"]) == ("other", "m1", 10)


def test_a_step_ends_with_the_last_message_in_it() -> None:
    first, second, third = (
        within("a", turn(text(0, "1"))),
        within("b", turn(text(0, "2"))),
        within("a", turn(text(0, "3"))),
    )
    frames = ai_sdk.frames_of([*second[:2], *first, *third, *second[2:]])
    kinds = ai_sdk.types(frames)
    assert (kinds.count("start-step"), kinds.count("finish-step")) == (1, 1)
    assert kinds.index("finish-step") > max(n for n, kind in enumerate(kinds) if kind == "text-end")


def test_a_sub_agent_decides_neither_how_the_reply_ended_nor_what_it_said() -> None:
    frames = ai_sdk.frames_of([*MAIN[:-2], *SUB, *MAIN[-2:]])
    (finish,) = ai_sdk.of_type("finish", frames)
    assert finish["finishReason"] == "tool-calls"
    assert finish["messageMetadata"]["usage"]["inputTokens"] == 101
    (start,) = [frame for frame in ai_sdk.of_type("text-start", frames) if "providerMetadata" in frame]
    assert start["providerMetadata"]["rxdelta"] == {"runId": "sub", "subagent": True}
    late = ai_sdk.frames_of([*MAIN, *SUB])
    assert ai_sdk.of_type("finish", late)[0]["finishReason"] == "tool-calls"


def test_runs_with_the_same_parent_are_not_each_others_sub_agents() -> None:
    graph = [within("a", turn(text(0, "1")), "graph"), within("b", turn(text(0, "2")), "graph")]
    assert "subagent" not in json.dumps(
        [frame for frame in ai_sdk.frames_of(woven(*graph)) if frame is not ai_sdk.DONE]
    )
    assert all("subagentRunId" not in frame for frame in ag_ui.told(*woven(*graph)))


def test_a_run_that_begins_again_alone_in_its_step_resets_it() -> None:
    failed = within("other", [*turn(text(0, "no"))[:-1], ev.AttemptReset(1)])
    client = ai_sdk.read(ai_sdk.frames_of([*MAIN, *failed, *OTHER]))
    assert [part["text"] for part in client.parts if part["type"] == "text"] == ["abc", "xyz"]


def test_a_run_that_begins_again_in_a_shared_step_leaves_the_other_runs_alone() -> None:
    failed = within("other", [*turn(text(0, "no"))[:-1], ev.AttemptReset(3)])
    client = ai_sdk.read(ai_sdk.frames_of([*MAIN[:2], *failed, *MAIN[2:], *OTHER]))
    (reset,) = [part["data"] for part in client.parts if part["type"] == "data-attempt-reset"]
    assert reset == {"attempt": 3, "runId": "other"}
    back = decoded("ai-sdk", ai_sdk.frames_of([*MAIN[:2], *failed, *MAIN[2:], *OTHER])[:-1])
    assert said(messages(back, None))[0] == ("text", "abc")
    assert said(messages(back, "other"))[0] == ("text", "xyz")


def test_an_interruption_is_of_one_run_or_of_all() -> None:
    stop_one, stop_all = ev.MessageInterrupted("enough", run_id="other"), ev.MessageInterrupted("user")
    one = ai_sdk.frames_of([*MAIN[:3], *OTHER[:3], stop_one, *MAIN[3:]])
    assert ai_sdk.of_type("finish", one)
    (note,) = [f["data"] for f in ai_sdk.of_type("data-run", one) if f["data"].get("status") == "interrupted"]
    assert (note["runId"], note["reason"]) == ("other", "enough")
    all_ = ai_sdk.frames_of([*MAIN[:3], *OTHER[:3], stop_all])
    assert ai_sdk.of_type("abort", all_) == [{"type": "abort", "reason": "user"}]
    (late,) = [*messages(decoded("ai-sdk", one[:-1]), "other")]
    assert late.status == "interrupted"


def test_a_run_that_breaks_off_is_an_error_of_the_stream() -> None:
    frames = ai_sdk.frames_of([*MAIN[:3], *OTHER])
    assert ai_sdk.of_type("error", frames)
    assert ai_sdk.read(frames).metadata["status"] == "incomplete"
    assert ag_ui.read(ag_ui.told(*MAIN[:3], *OTHER)).state == "failed"
    assert [
        one["params"]["namespace"]
        for one in to_langchain([*MAIN[:3], *OTHER])
        if one["params"]["data"].get("event") == "error"
    ] == [["main"]]


def test_an_update_without_a_run_is_news_of_every_call_with_its_id() -> None:
    events = [event for event in woven(MAIN, OTHER) if not isinstance(event, ev.ToolUpdate)] + [
        answer("c1", "both")
    ]
    outputs = [frame["output"] for frame in ai_sdk.of_type("tool-output-available", ai_sdk.frames_of(events))]
    assert outputs == ["both", "both"]
    results = [frame for frame in ag_ui.told(*events) if frame["type"] == "TOOL_CALL_RESULT"]
    assert [frame["content"] for frame in results] == ["both", "both"]
    ended = [
        one["params"] for one in to_langchain(events) if one["params"]["data"].get("event") == "tool-finished"
    ]
    assert [one["namespace"] for one in ended] == [["main"], ["other"]]


def test_an_sdk_that_cannot_mark_the_start_of_a_call_gets_calls_of_other_runs_whole() -> None:
    frames = ai_sdk.frames_of(woven(MAIN, OTHER), sdk_version=5)
    assert [frame["toolCallId"] for frame in ai_sdk.of_type("tool-input-start", frames)] == ["c1"]
    assert [run_of(frame) for frame in ai_sdk.of_type("tool-input-available", frames)] == [None, "other"]


def test_a_run_without_a_name_that_is_not_the_first_gets_one() -> None:
    frames = ai_sdk.frames_of([*MAIN, *turn(text(0, "nameless"))])
    (start,) = [frame for frame in ai_sdk.of_type("text-start", frames) if "providerMetadata" in frame]
    assert run_of(start) == "run"
    back = decoded("ag-ui", ag_ui.told(*MAIN, *turn(text(0, "nameless"))))
    assert said(messages(back, None))[0] == ("text", "abc")
    assert said(messages(back, "r1"))[0] == ("text", "nameless")


@pytest.mark.parametrize("make", [
    lambda limits: rd.wire.AiSdkEncoder(limits=limits),
    lambda limits: ag_ui.encoder(limits=limits),
    lambda limits: rd.wire.LangChainEncoder(now=lambda: 1.0, new_id=lambda: "m", limits=limits),
    lambda limits: rd.wire.OpenAiChatEncoder(now=lambda: 1.0, new_id=lambda: "m", limits=limits),
    lambda limits: rd.wire.OpenAiResponsesEncoder(now=lambda: 1.0, new_id=lambda: "m", limits=limits),
    lambda limits: rd.wire.AnthropicMessagesEncoder(now=lambda: 1.0, new_id=lambda: "m", limits=limits),
    lambda limits: rd.wire.OllamaEncoder(now=lambda: 1.0, limits=limits),
])  # fmt: skip
def test_the_number_of_runs_is_limited(make: Any) -> None:
    encoder = make(rd.Limits(runs=2))
    for name in "ab":
        encoder.encode(ev.MessageStart(run_id=name))
    with pytest.raises(rd.errors.LimitExceededError, match="runs"):
        encoder.encode(ev.MessageStart(run_id="c"))


# The next request.


def ui_message(events: Events, sdk_version: int = 7) -> Json:
    client = ai_sdk.read(ai_sdk.frames_of(events, sdk_version=sdk_version), sdk_version)
    found: list[Json] = []
    for part in client.parts:
        ours = {"rxdelta": part["ours"]} if "ours" in part else None
        if "toolCallId" in part and part["type"] != "data-tool-update":
            about = {"toolCallId": part["toolCallId"], "state": part["state"], "input": part["input"]}
            found.append(
                {
                    "type": "tool-look",
                    **about,
                    "output": part.get("output"),
                    "callProviderMetadata": part.get("providerMetadata"),
                }
            )
        else:
            found.append({**part, **({"providerMetadata": ours} if ours else {})})
    return {"id": "u", "role": "assistant", "parts": found, "metadata": client.metadata}


def test_the_browser_sends_each_run_back_as_messages_of_its_own() -> None:
    read = rd.from_ai_sdk([ui_message(woven(MAIN, OTHER))])
    assert [message.text for message in read] == ["abc", "xyz"]
    assert [message.tool_calls[0].result.content for message in read] == ["blue", "red"]
    (only,) = rd.from_ai_sdk([ui_message([*MAIN[:-2], *SUB, *MAIN[-2:]])])
    assert only.text == "abc"
    failed = within("other", [*turn(text(0, "no"))[:-1], ev.AttemptReset(1)])
    again = rd.from_ai_sdk([ui_message([*MAIN[:2], *failed, *MAIN[2:], *OTHER])])
    assert [message.text for message in again] == ["abc", "xyz"]


def test_an_ag_ui_client_sends_each_run_back_as_messages_of_its_own() -> None:
    thinking = within(
        "other", [ev.BlockStart(5, {"type": "reasoning"}), ev.ReasoningDelta(5, "hm"), ev.BlockFinish(5)]
    )
    client = ag_ui.read(ag_ui.told(*woven(MAIN, [OTHER[0], *thinking, *OTHER[1:]])))
    read = rd.from_ag_ui(client.messages)
    assert [(message.text, message.reasoning) for message in read] == [("abc", ""), ("xyz", "hm")]
    (only,) = rd.from_ag_ui(ag_ui.read(ag_ui.told(*MAIN[:-2], *SUB, *MAIN[-2:])).messages)
    assert only.text == "abc"


def test_a_message_that_a_call_begins_is_of_the_calls_run() -> None:
    thinking = [ev.BlockStart(0, {"type": "reasoning"}), ev.ReasoningDelta(0, "hm"), ev.BlockFinish(0)]
    found = [within(name, turn(thinking, call(1, "c1", name), reason="tool_use")) for name in ("a", "b")]
    client = ag_ui.read(ag_ui.told(*woven(*found)))
    read = rd.from_ag_ui(client.messages)
    assert [[block.type for block in message.blocks] for message in read] == [["reasoning", "tool_call"]] * 2


def come_back(events: Iterable[rd.Event]) -> dict[str, list[Any]]:
    """What the next request has of each message, by the front end."""
    sdk = rd.from_ai_sdk([ui_message([*events])])
    agent = rd.from_ag_ui(ag_ui.read(ag_ui.told(*events)).messages)
    return {
        name: sorted(repr(said([message])) for message in found)
        for name, found in (("ai-sdk", sdk), ("ag-ui", agent))
    }


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(streams(resets=False))
def test_the_next_request_has_the_messages_of_each_run_and_none_of_a_sub_agent(
    drawn: tuple[dict[str, Events], Events],
) -> None:
    alone, events = drawn
    parents = {one.run_id: one.parent_run_id for one in events if isinstance(one, ev.MessageStart)}
    own = [come_back(one) for name, one in alone.items() if parents[name] is None]
    for front_end, found in come_back(events).items():
        assert found == sorted(message for one in own for message in one[front_end])


def test_a_sub_agent_whose_first_attempt_fails_before_it_begins_is_one_nevertheless() -> None:
    sub = within("sub", [ev.AttemptReset(1), *turn(text(0, "deep"))], "main")
    events = [*MAIN[:2], *sub, *MAIN[2:]]
    for found in (
        rd.from_ai_sdk([ui_message(events)]),
        rd.from_ag_ui(ag_ui.read(ag_ui.told(*events)).messages),
    ):
        assert [message.text for message in found] == ["abc"]
    started = [frame for frame in ag_ui.told(*events) if frame["type"] == "SUBAGENT_STARTED"]
    assert [frame["subagentRunId"] for frame in started] == ["sub"]
    for back in (decoded("ai-sdk", ai_sdk.frames_of(events)[:-1]), decoded("ag-ui", ag_ui.told(*events))):
        starts = [event for event in back if isinstance(event, ev.MessageStart)]
        assert [start.parent_run_id for start in starts if start.run_id == "sub"] == ["main"]


# AG-UI.


def test_a_sub_agent_is_ag_uis_own_and_another_run_is_the_agents() -> None:
    frames = ag_ui.told(*woven(MAIN, OTHER, SUB))
    ag_ui.read(frames)
    started = [frame for frame in frames if frame["type"] == "SUBAGENT_STARTED"]
    assert started == [{"type": "SUBAGENT_STARTED", "subagentRunId": "sub", "name": "sub"}]
    assert ag_ui.types(frames).count("SUBAGENT_FINISHED") == 1
    client = ag_ui.read(frames)
    owners = {message.get("content"): message.get("subagentRunId") for message in client.messages}
    assert owners == {"abc": None, "xyz": None, "deep": "sub", "blue": None, "red": None}
    assert frames[-1]["usage"] == [
        {"model": "small", "inputTokens": 111, "outputTokens": 111, "totalTokens": 222}
    ]


def test_nested_sub_agents_name_their_parent() -> None:
    inner = within("inner", turn(text(0, "in")), "sub")
    frames = ag_ui.told(*MAIN[:-1], *SUB[:2], *inner, *SUB[2:], MAIN[-1])
    ag_ui.read(frames)
    parents = [frame.get("parentSubagentRunId") for frame in frames if frame["type"] == "SUBAGENT_STARTED"]
    assert parents == [None, "sub"]
    starts = [event for event in decoded("ag-ui", frames) if isinstance(event, ev.MessageStart)]
    assert {start.run_id: start.parent_run_id for start in starts} == {
        None: None,
        "sub": "main",
        "inner": "sub",
    }


def test_an_older_client_gets_the_attribution_alone() -> None:
    frames = ag_ui.told(*woven(MAIN, SUB), version=None)
    assert not any(kind.startswith("SUBAGENT") for kind in ag_ui.types(frames))
    assert [
        frame["subagentRunId"]
        for frame in frames
        if frame["type"] == "TEXT_MESSAGE_START" and "subagentRunId" in frame
    ] == ["sub"]


def test_a_sub_agent_that_is_cut_off_with_the_stream_has_failed() -> None:
    frames = ag_ui.told(*MAIN[:2], *SUB[:3], error=ValueError("secret"))
    assert ag_ui.types(frames)[-2:] == ["SUBAGENT_ERROR", "RUN_ERROR"]
    assert "secret" not in json.dumps(frames)


def test_a_sub_agent_that_calls_tools_goes_on() -> None:
    two = within(
        "sub", [*turn(call(0, "k", "x"), reason="tool_use"), answer("k", "y"), *turn(text(0, "done"))], "main"
    )
    frames = ag_ui.told(*MAIN, *two)
    kinds = ag_ui.types(frames)
    assert kinds.index("SUBAGENT_FINISHED") > kinds.index("TOOL_CALL_RESULT", kinds.index("SUBAGENT_STARTED"))
    assert kinds.count("SUBAGENT_STARTED") == kinds.count("SUBAGENT_FINISHED") == 1


@pytest.mark.parametrize("history", [ag_ui.ASKED, None], ids=["history", "no history"])
def test_a_retry_of_one_run_takes_back_its_own_messages_only(history: list[Json] | None) -> None:
    failed = within("sub", [*turn(text(0, "no"), call(1, "c9", "x"))[:-1], ev.AttemptReset(1)], "main")
    frames = ag_ui.told(*MAIN[:2], *failed, *MAIN[2:], *SUB, messages=history)
    client = ag_ui.read(frames, history or ())
    assert ag_ui.shown(client.messages)["text"] == "abcdeep"
    assert ag_ui.shown(client.messages)["calls"] == [("look", {"at": "sea"})]
    back = decoded("ag-ui", frames)
    assert said(messages(back, "sub")) == [("text", "deep")]
    assert said([[*messages(back, None)][-1]])[0] == ("text", "abc")


def test_the_reasoning_of_a_sub_agent_that_is_taken_back_stays_the_sub_agents() -> None:
    thought = [ev.BlockStart(0, {"type": "reasoning"}), ev.ReasoningDelta(0, "hm")]
    failed = within("sub", [ev.MessageStart("s"), *thought, ev.AttemptReset(1)], "main")
    frames = ag_ui.told(*MAIN, *failed, *SUB, messages=ag_ui.ASKED)
    (snapshot,) = [frame for frame in frames if frame["type"] == "MESSAGES_SNAPSHOT"]
    assert snapshot["messages"][-1] == {
        "id": "s~1",
        "role": "reasoning",
        "content": "",
        "subagentRunId": "sub",
    }


def test_an_id_that_one_run_gave_back_is_not_taken_by_another() -> None:
    failed = within("main", [ev.MessageStart("same"), *text(0, "no"), ev.AttemptReset(1)])
    frames = ag_ui.told(
        *failed,
        *MAIN[:2],
        *within("sub", turn(text(0, "deep"), id="same"), "x"),
        *MAIN[2:],
        messages=ag_ui.ASKED,
    )
    ids = [frame["messageId"] for frame in frames if frame["type"] == "TEXT_MESSAGE_START"]
    assert ids == ["same", "m1", "same-2"] or ids == ["same", "same-2", "m1"]


def test_the_calls_of_a_run_that_was_stopped_are_answered_and_those_of_another_wait_for_the_client() -> None:
    stopped = [*OTHER[:-2], ev.MessageInterrupted("user", run_id="other")]
    frames = ag_ui.told(*stopped, *MAIN[:-1])
    assert frames[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c1-2"]}
    assert [f["toolCallId"] for f in frames if f["type"] == "TOOL_CALL_RESULT"] == ["c1"]


def test_the_sub_agents_of_any_ag_ui_server_are_runs() -> None:
    sub = {"subagentRunId": "s1"}
    frames = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
        {"type": "SUBAGENT_STARTED", **sub, "name": "searcher"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m2", "role": "assistant", **sub},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m2", "delta": "found"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hi"},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "m2"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c", "content": "1"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m2", **sub},
        {"type": "SUBAGENT_FINISHED", **sub},
        {"type": "TEXT_MESSAGE_END", "messageId": "m1"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]
    back = decoded("ag-ui", frames)
    (main,), (found,) = [*messages(back, None)], [*messages(back, "s1")]
    assert (main.text, main.status, main.tool_calls) == ("Hi", "complete", ())
    assert (found.text, found.status, found.parent_run_id) == ("found", "complete", "r")
    assert found.tool_calls[0].result.content == "1"
    again = [{"type": "TEXT_MESSAGE_START", "messageId": "m3", "role": "assistant", **sub}]
    again += [{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m3", "delta": "more"}]
    more = decoded("ag-ui", [*frames[:-2], *again, *frames[-2:]])
    assert [message.text for message in messages(more, "s1")] == ["found", "more"]


# LangChain's agent protocol.


def test_a_run_is_a_namespace_within_the_given_one() -> None:
    encoder = rd.wire.LangChainEncoder(now=lambda: 1.0, new_id=lambda: "m", namespace=["graph"], first_seq=5)
    events = [*turn(text(0, "a")), *within("node:1|model", turn(text(0, "b")))]
    frames = [frame for event in events for frame in encoder.encode(event)]
    assert [frame["seq"] for frame in frames] == [*range(5, 5 + len(frames))]
    assert {tuple(frame["params"]["namespace"]) for frame in frames} == {
        ("graph",),
        ("graph", "node:1", "model"),
    }
    back = decoded("langchain", frames)
    assert said(messages(back, "graph|node:1|model")) == [("text", "b")]


# The front ends' own clients.


CLIENTS = {"1.0.0": "1.0", "0.0.59": None}
"""By the version of AG-UI's client, the one that its requests declare."""


def body(frames: Iterable[Any]) -> str:
    return "".join(rd.wire.sse_frame(frame).decode() for frame in frames)


def test_the_ai_sdks_client_reads_several_runs() -> None:
    cases = [woven(MAIN, OTHER), [*MAIN, *OTHER], [*MAIN[:-2], *SUB, *MAIN[-2:]]]
    asked = [{"body": body(ai_sdk.frames_of(events, sdk_version=v))} for events in cases for v in (7, 5)]
    answers = ask("ai_sdk.mjs", asked)
    for seen in answers:
        assert (seen["error"], seen["invalid"], seen["status"]) == (None, None, "ready")
    wanted = [["abc", "xyz"], ["abc", "xyz"], ["abc"]]
    for seen, texts in zip(answers, [one for one in wanted for _ in range(2)], strict=True):
        assert [message.text for message in rd.from_ai_sdk(seen["messages"])[1:]] == texts


def test_the_ag_ui_clients_read_several_runs() -> None:
    failed = within("other", [*turn(text(0, "no"))[:-1], ev.AttemptReset(1)])
    cases = [woven(MAIN, OTHER, SUB), [*MAIN[:2], *failed, *MAIN[2:], *SUB, *OTHER]]
    asked = [(events, *client) for events in cases for client in CLIENTS.items()]
    runs = [ag_ui.told(*events, messages=ag_ui.ASKED, version=version) for events, _, version in asked]
    lines = [
        {"body": body(run), "messages": ag_ui.ASKED, "client": one} for run, (_, one, _) in zip(runs, asked)
    ]
    for frames, seen in zip(runs, ask("ag_ui.mjs", lines), strict=True):
        assert (seen["error"], seen["warnings"]) == (None, [])
        assert seen["messages"] == ag_ui.read(frames, ag_ui.ASKED).messages
        read = rd.from_ag_ui(seen["messages"])[1:]
        assert sorted(message.text for message in read) == ["abc", "xyz"]


@pytest.mark.slow
def test_the_clients_read_runs_in_any_order() -> None:
    drawn: list[Events] = []

    @settings(
        max_examples=100,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
        deadline=None,
    )
    @given(streams())
    def draw(found: tuple[dict[str, Events], Events]) -> None:
        drawn.append(found[1])

    draw()
    for seen in ask("ai_sdk.mjs", [{"body": body(ai_sdk.frames_of(events))} for events in drawn]):
        assert (seen["error"], seen["invalid"]) == (None, None)
    for client, version in CLIENTS.items():
        for history in (ag_ui.ASKED, None):
            runs = [ag_ui.told(*events, messages=history, version=version) for events in drawn]
            lines = [{"body": body(run), "messages": ag_ui.ASKED, "client": client} for run in runs]
            for frames, seen in zip(runs, ask("ag_ui.mjs", lines), strict=True):
                assert (seen["error"], seen["warnings"]) == (None, [])
                assert seen["messages"] == ag_ui.read(frames, ag_ui.ASKED).messages
