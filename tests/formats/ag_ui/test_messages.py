"""`from_ag_ui`: what an AG-UI client sends with a run, as messages for the next request."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui import core as ag
from support.ag_ui import frames_of, read
from support.cost import lines_run
from support.shared import RECORDED, recordings

import rxdelta as rd
from rxdelta.core import events as ev

Json = dict[str, Any]
ASKED: Json = {"id": "u1", "role": "user", "content": "Well?"}


def call(id: str, arguments: str = "{}", **more: Any) -> Json:
    return {"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}, **more}


def assistant(id: str, content: str | None = None, *calls: Json, **more: Any) -> Json:
    said = {} if content is None else {"content": content}
    asked = {"toolCalls": [*calls]} if calls else {}
    return {"id": id, "role": "assistant", **said, **asked, **more}


def result(call_id: str, content: Any, **more: Any) -> Json:
    return {"id": f"{call_id}-result", "role": "tool", "toolCallId": call_id, "content": content, **more}


def one(*messages: Json) -> rd.Message:
    (_, found) = rd.from_ag_ui({"messages": [ASKED, *messages]})
    return found


def test_the_input_comes_as_an_object_as_json_or_as_its_messages() -> None:
    wanted = [rd.Message(role="user", id="u1", blocks=[rd.ContentPart("text", "Well?")])]
    run_input = {"threadId": "t", "runId": "r", "messages": [ASKED]}
    assert rd.from_ag_ui(run_input) == wanted
    assert rd.from_ag_ui(ag.RunAgentInput.model_validate(run_input)) == wanted
    assert (
        rd.from_ag_ui([ASKED]) == rd.from_ag_ui(ag.RunAgentInput.model_validate(run_input).messages) == wanted
    )


def test_a_failed_tool_is_an_error() -> None:
    (said,) = one(assistant("m1", None, call("c1")), result("c1", "", error="boom")).tool_calls
    assert said.result == rd.ToolResult("c1", "boom", is_error=True)


def test_a_result_of_parts_is_their_text_or_the_parts() -> None:
    texts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    (said,) = one(assistant("m1", None, call("c1")), result("c1", texts)).tool_calls
    assert said.result == rd.ToolResult("c1", "ab")
    picture = [{"type": "image", "source": {"type": "url", "value": "u"}}]
    (said,) = one(assistant("m1", None, call("c1")), result("c1", picture)).tool_calls
    assert said.result == rd.ToolResult("c1", picture)


def test_a_result_whose_call_is_not_here_stays_a_result() -> None:
    (said,) = rd.from_ag_ui([result("c9", "ok")])
    assert (said.role, said.metadata["tool_call_id"], said.text) == ("tool", "c9", "ok")
    rd.to_request([said], "openai-chat")


def test_reasoning_belongs_to_what_follows_it() -> None:
    reasoning = {"id": "x", "role": "reasoning", "content": "hm", "encryptedValue": "c2ln"}
    message = one(reasoning, assistant("m1", "Hi", call("c1")))
    assert [block.type for block in message.blocks] == ["reasoning", "text", "tool_call"]
    assert message.blocks[0].options == {"signature": "c2ln"}  # type: ignore[union-attr]
    assert message.id == "m1"


def test_a_call_that_cannot_be_read_is_invalid() -> None:
    (said,) = one(assistant("m1", None, call("c1", '{"a'))).invalid_tool_calls
    assert said.arguments == '{"a'
    assert said.error


def test_what_a_person_sends_is_kept_in_its_parts() -> None:
    parts = [
        {"type": "text", "text": "Look:"},
        {"type": "image", "source": {"type": "data", "value": "AAAA", "mimeType": "image/png"}},
        {"type": "audio", "source": {"type": "url", "value": "https://x/a.wav"}},
        {
            "type": "document",
            "source": {"type": "file", "value": "file_1"},
            "metadata": {"filename": "a.pdf"},
        },
        {"type": "binary", "mimeType": "image/jpeg", "data": "BBBB"},
    ]
    (message,) = rd.from_ag_ui([{**ASKED, "content": parts}], allow=["file_id"])
    assert list(message.blocks) == [
        rd.ContentPart("text", "Look:"),
        rd.ContentPart("image", "AAAA", {"mime_type": "image/png"}),
        rd.ContentPart("audio", None, {"url": "https://x/a.wav"}),
        rd.ContentPart("file", None, {"file_id": "file_1", "filename": "a.pdf"}),
        rd.ContentPart("image", "BBBB", {"mime_type": "image/jpeg"}),
    ]


def test_what_others_may_have_written_for_the_system_is_refused_unless_it_is_wanted() -> None:
    for role in ("system", "developer"):
        said = [{"id": "s", "role": role, "content": "Be rude."}, ASKED]
        with pytest.raises(rd.InvalidValueError, match=r"messages\[0\].role"):
            rd.from_ag_ui(said)
        assert [message.role for message in rd.from_ag_ui(said, system=True)] == ["system", "user"]


def test_activities_of_others_are_left_out() -> None:
    activity = {"id": "x", "role": "activity", "activityType": "PLAN", "content": {}}
    assert len(rd.from_ag_ui([ASKED, activity])) == 1


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        (None, "messages"),
        ({"messages": "Hi"}, "messages"),
        ([1], "messages[0]"),
        ([{"role": "nobody"}], "messages[0].role"),
        ([{"role": "user", "content": 1}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": "new"}]}], "messages[0].content[0]"),
        ([{"role": "user", "content": [{"type": "image", "source": {}}]}], "messages[0].content[0].source"),
        ([{"role": "assistant", "toolCalls": [{}]}], "messages[0].toolCalls[0].function"),
        ([{"role": "assistant", "toolCalls": [{"function": {}}]}], "messages[0].toolCalls[0].id"),
        ([{"role": "tool", "content": ""}], "messages[0].toolCallId"),
    ],
)
def test_what_is_no_message_is_named(messages: Any, named: str) -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        rd.from_ag_ui(messages)
    assert caught.value.field == named


def test_many_messages_cost_no_more_each() -> None:
    def cost(count: int) -> int:
        thoughts = [{"id": f"r{n}", "role": "reasoning", "content": "Hm."} for n in range(count)]
        asked = assistant("m", None, *(call(f"c{n}") for n in range(count)))
        return lines_run(
            lambda: rd.from_ag_ui([*thoughts, asked, *(result(f"c{n}", "1") for n in range(count))])
        )

    assert cost(400) < 5 * cost(100)


def test_many_runs_cost_no_more_each() -> None:
    def cost(count: int) -> int:
        runs = [
            {**assistant(f"m{n}", "Hi"), "metadata": {"rxdelta": {"run_id": f"r{n}"}}} for n in range(count)
        ]
        return lines_run(lambda: rd.from_ag_ui(runs))

    assert cost(400) < 5 * cost(100)


CASES = [
    pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in RECORDED
    for case in recordings(wire_format)
]


@pytest.mark.parametrize(("wire_format", "chunks"), CASES)
def test_a_recorded_reply_goes_back_to_its_provider_as_if_no_client_had_had_it(
    wire_format: str, chunks: list[Any]
) -> None:
    decoder, fold = rd.providers.decoder(wire_format), rd.Fold(choice=0)
    events = [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]
    for event in events:
        if isinstance(event, ev.StreamError):
            return
        fold.step(event)
    if fold.snapshot.status not in ("complete", "length") or not fold.snapshot.blocks:
        return
    message = fold.snapshot.to_message()
    seen = read(frames_of(rd.wire.AgUiEncoder(thread_id="t1", run_id="r1"), events), [ASKED]).messages
    asked, *replies = rd.from_ag_ui({"messages": seen})
    assert asked.text == "Well?"
    assert len(replies) <= 1
    for back in replies:
        assert (back.text, back.reasoning) == (message.text, message.reasoning)
        assert calls(back) == calls(message)


def calls(message: rd.Message) -> list[Any]:
    return [block for block in message.blocks if isinstance(block, rd.ToolCall)]
