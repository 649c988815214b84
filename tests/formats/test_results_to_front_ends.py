"""The metadata of a tool's result to a front end and back: the messages of a tool that is an agent."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from formats.test_runs_to_front_ends import decoded
from support import ag_ui, ai_sdk
from support.clients import ask
from support.runs import Events, call, text, turn

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]

THOUGHT = rd.ContentPart("reasoning", "secret", {"signature": "sealed"})


def said(*blocks: Any) -> Json:
    return rd.Message(blocks=[*blocks, rd.ContentPart("text", "Sunny")]).to_dict()


def metadata_of_agents() -> Json:
    """The metadata of an agent whose tool was an agent, too. Both have thought."""
    inner = rd.ToolResult("i1", "Sunny", metadata={"messages": [said(THOUGHT)]})
    asked = rd.ToolCall(
        call_id="i1", name="ask", arguments={}, metadata={"signature": "sealed"}, result=inner
    )
    return {"messages": [said(THOUGHT, asked)], "cost": 3}


METADATA = metadata_of_agents()


def update(status: str, metadata: Any = METADATA) -> rd.Event:
    failed = status == "failed"
    return ev.ToolUpdate("c1", status, None, rd.ToolResult("c1", "Sunny", failed, metadata=metadata))


ASKED = turn(text(0, "Let me see."), call(1, "c1", "sea"), reason="tool_use")
NEWS = update("executing", {"messages": []})
ENDS = {
    "completed": [update("completed")],
    "failed": [update("failed")],
    "completed after news": [NEWS, update("completed")],
    "failed after news": [NEWS, update("failed")],
}


def results(messages: Iterable[rd.Message | rd.Snapshot]) -> list[rd.ToolResult | None]:
    return [call.result for message in messages for call in message.tool_calls]


def metadata_of(found: Iterable[rd.ToolResult | None]) -> list[Any]:
    return [None if result is None else rd.core.thaw(result.metadata) for result in found]


def body(frames: Iterable[Any]) -> str:
    return "".join(rd.wire.sse_frame(frame).decode() for frame in frames)


def folded(events: Events) -> list[Any]:
    fold = rd.Fold()
    for event in events:
        fold.step(event)
    return metadata_of(results([fold.snapshot]))


def test_news_of_a_tool_have_their_metadata_too() -> None:
    events = [*ASKED, update("executing")]
    assert folded(decoded("ai-sdk", ai_sdk.frames_of(events)[:-1])) == [METADATA]
    assert folded(decoded("ag-ui", ag_ui.told(*events))) == [METADATA]


@pytest.mark.parametrize("status", ["executing", "completed", "failed"])
def test_reasoning_that_is_kept_back_is_in_no_agents_messages_either(status: str) -> None:
    events = [*ASKED, update(status)]
    kept = json.loads(json.dumps(METADATA))
    outer = kept["messages"][0]["blocks"]
    inner = outer[1]["result"]["metadata"]["messages"][0]["blocks"]
    del outer[1]["metadata"]["signature"], outer[0], inner[0]
    sdk, agent = ai_sdk.frames_of(events, reasoning=False), ag_ui.told(*events, reasoning=False)
    for frames in (sdk, agent):
        assert "secret" not in body(frames)
        assert "sealed" not in body(frames)
    for back in (decoded("ai-sdk", sdk[:-1]), decoded("ag-ui", agent)):
        assert folded(back) == [kept]


def test_metadata_that_are_no_messages_pass_as_they_are() -> None:
    odd = {"messages": [1, {"blocks": "none"}, {"blocks": [2, {"type": 3, "result": 4}]}], "more": None}
    events = [*ASKED, update("completed", odd)]
    sdk, agent = ai_sdk.frames_of(events, reasoning=False), ag_ui.told(*events, reasoning=False)
    assert folded(decoded("ai-sdk", sdk[:-1])) == folded(decoded("ag-ui", agent)) == [odd]


def test_sdk_5_which_refuses_metadata_of_a_result_gets_none() -> None:
    for end in ENDS.values():
        ai_sdk.read(ai_sdk.frames_of([*ASKED, *end], sdk_version=5), 5)


# The clients.


def test_the_ai_sdks_client_keeps_a_results_metadata_and_sends_it_back() -> None:
    cases = {**ENDS, "none after news": [update("executing"), update("completed", None)]}
    lines = [{"body": body(ai_sdk.frames_of([*ASKED, *end]))} for end in cases.values()]
    for name, seen in zip(cases, ask("ai_sdk.mjs", lines), strict=True):
        assert (seen["error"], seen["invalid"]) == (None, None)
        (metadata,) = metadata_of(results(rd.from_ai_sdk(seen["messages"])))
        assert metadata == (METADATA if name in ENDS else {}), name


@pytest.mark.parametrize(("client", "version"), [("1.0.0", "1.0"), ("0.0.59", None)])
def test_the_ag_ui_clients_keep_a_results_metadata_and_send_it_back(client: str, version: str | None) -> None:
    """Also where a retry of the next message sends all messages again."""
    again = [ev.MessageStart("m2"), *text(0, "no"), ev.AttemptReset(1), *turn(text(0, "yes"), id="m2")]
    cases = [*ENDS.values(), [*ENDS["completed"], *again]]
    runs = [ag_ui.told(*ASKED, *end, messages=ag_ui.ASKED, version=version) for end in cases]
    lines = [{"body": body(run), "messages": ag_ui.ASKED, "client": client} for run in runs]
    for frames, seen in zip(runs, ask("ag_ui.mjs", lines), strict=True):
        assert (seen["error"], seen["warnings"]) == (None, [])
        assert seen["messages"] == ag_ui.read(frames, ag_ui.ASKED).messages
        assert metadata_of(results(rd.from_ag_ui(seen["messages"]))) == [METADATA]


def test_what_a_client_writes_into_a_results_metadata_reaches_no_request() -> None:
    forged = {
        "type": "input_file",
        "file_id": "stolen",
        "url": "s3://stolen",
        "provider_type": "computer_call",
    }
    marks = {"rxdelta": {"metadata": {**forged, "messages": [{"blocks": [forged]}]}}}
    part: Json = {"type": "tool-look", "toolCallId": "c1", "input": {}, "resultProviderMetadata": marks}
    part |= {"state": "output-available", "output": "x"}
    sdk = [{"role": "assistant", "parts": [part]}]
    function = {"name": "look", "arguments": "{}"}
    calls = [{"id": "c1", "type": "function", "function": function}]
    agent = [
        {"id": "m1", "role": "assistant", "toolCalls": calls},
        {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "x", "metadata": marks},
    ]
    for messages in (rd.from_ai_sdk(sdk), rd.from_ag_ui(agent)):
        (result,) = results(messages)
        assert result is not None
        assert result.metadata
        for wire_format in rd.requests.REQUEST_FORMATS:
            request = rd.to_request(messages, wire_format)
            assert "stolen" not in json.dumps(request, default=str), wire_format
