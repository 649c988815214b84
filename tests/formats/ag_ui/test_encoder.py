"""AG-UI's rules one by one, for any events at all; and its own client on every recorded stream."""

from __future__ import annotations

import builtins
import json
from collections import Counter
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from core.strategies import every_event
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.ag_ui import frames_of, read, shown, wanted
from support.clients import ask
from support.shared import recordings

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]
ASKED: list[Json] = [{"id": "u1", "role": "user", "content": "Well?"}]
UNRECORDED = ("ag-ui", "ai-sdk", "langchain")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


def encoder(
    *, messages: list[Json] | None = None, version: str | None = "1.0", **options: Any
) -> rd.wire.AgUiEncoder:
    request = {"threadId": "t1", "runId": "r1", "messages": messages, "protocolVersion": version}
    return rd.wire.AgUiEncoder(
        {name: value for name, value in request.items() if value is not None}, **options
    )


def told(*events: rd.Event, error: Any = None, **options: Any) -> list[Json]:
    return frames_of(encoder(**options), events, error=error)


def types(frames: list[Json]) -> list[str]:
    return [frame["type"] for frame in frames]


def text(index: int | str, *pieces: str, kind: str = "text") -> list[rd.Event]:
    return [
        ev.BlockStart(index, {"type": kind}),
        *(ev.TextDelta(index, piece) for piece in pieces),
        ev.BlockFinish(index),
    ]


def thought(index: int, *pieces: str, **options: Any) -> list[rd.Event]:
    return [
        ev.BlockStart(index, {"type": "reasoning"}),
        *(ev.ReasoningDelta(index, piece) for piece in pieces),
        ev.BlockDelta(index, options),
        ev.BlockFinish(index),
    ]


def call(index: int, call_id: str | None, *pieces: str, kind: str = "tool_call_chunk") -> list[rd.Event]:
    return [
        ev.BlockStart(index, {"type": kind, "id": call_id, "name": "f", "args": ""}),
        *(ev.ToolCallDelta(index, piece) for piece in pieces),
        ev.BlockFinish(index),
    ]


def message(*blocks: list[rd.Event], id: str | None = "m1", reason: str = "stop") -> list[rd.Event]:
    return [ev.MessageStart(id), *(event for block in blocks for event in block), ev.MessageFinish(reason)]


# The rules.


def test_g1_and_g2_frames_end_with_lf_and_there_is_no_done() -> None:
    made = [rd.wire.sse_frame(frame) for frame in encoder().encode(ev.MessageStart())]
    assert all(frame.startswith(b"data: {") and frame.endswith(b"}\n\n") for frame in made)
    assert not any(b"\r" in frame for frame in made)
    assert told(*message(text(0, "Hi")))[-1]["type"] == "RUN_FINISHED"


def test_g3_a_run_starts_first_with_the_requests_ids() -> None:
    (first,) = encoder().encode(ev.ProviderEvent("p", "ping"))
    assert (first.type.value, first.thread_id, first.run_id) == ("RUN_STARTED", "t1", "r1")  # type: ignore[attr-defined]


def test_g3_nothing_follows_the_end() -> None:
    for end in ("close", "fail"):
        one = encoder()
        one.encode(ev.MessageStart())
        assert one.fail(ValueError()) if end == "fail" else one.close()
        assert not one.encode(ev.MessageStart())
        assert not one.close()
        assert not one.fail(ValueError())


def test_g4_what_is_open_is_closed_before_the_end() -> None:
    opened = [
        *text(0, "Hi")[:-1],
        *thought(1, "hm")[:-1],
        *call(2, "c1", '{"a')[:-1],
    ]
    for frames in (told(*opened), told(*opened, error=ValueError()), told(*opened, ev.StreamError("x"))):
        read(frames)
        assert frames[-1] == {"type": "RUN_ERROR", "message": rd.wire.MASKED}


def test_g5_text_goes_on_in_one_message_until_something_else_comes() -> None:
    frames = told(*message(text(0, "a"), text(1, "b"), call(2, "c1"), text(3, "c")))
    assert [(f["type"], f["messageId"]) for f in frames if f["type"].startswith("TEXT")] == [
        ("TEXT_MESSAGE_START", "m1"),
        ("TEXT_MESSAGE_CONTENT", "m1"),
        ("TEXT_MESSAGE_CONTENT", "m1"),
        ("TEXT_MESSAGE_END", "m1"),
        ("TEXT_MESSAGE_START", "m1~1"),
        ("TEXT_MESSAGE_CONTENT", "m1~1"),
        ("TEXT_MESSAGE_END", "m1~1"),
    ]


def test_g5_texts_that_grow_at_once_are_messages_of_their_own() -> None:
    starts = [ev.BlockStart(0, {"type": "text"}), ev.BlockStart(1, {"type": "text"})]
    pieces = [ev.TextDelta(0, "a"), ev.TextDelta(1, "x"), ev.TextDelta(0, "b"), ev.TextDelta(1, "y")]
    client = read(told(ev.MessageStart("m1"), *starts, *pieces, ev.MessageFinish()))
    assert [one["content"] for one in client.messages] == ["ab", "xy"]


def test_g6_parallel_calls_interleave_and_belong_to_the_message_before_them() -> None:
    starts = [call(1, "c1")[0], call(2, "c2")[0]]
    pieces = [
        ev.ToolCallDelta(1, '{"a"'),
        ev.ToolCallDelta(2, "{}"),
        ev.ToolCallDelta(1, ": 1}"),
    ]
    frames = told(*message(text(0, "Hi"), [*starts, *pieces, ev.BlockFinish(2), ev.BlockFinish(1)]))
    assert {f["parentMessageId"] for f in frames if f["type"] == "TOOL_CALL_START"} == {"m1"}
    assert not any("CHUNK" in kind for kind in types(frames))
    (said,) = read(frames).messages
    assert [one["function"]["arguments"] for one in said["toolCalls"]] == ['{"a": 1}', "{}"]


def test_g6_for_old_clients_nothing_comes_while_a_call_is_open() -> None:
    starts = [ev.BlockStart(0, {"type": "text"}), call(1, "c1")[0], call(2, "c2")[0]]
    pieces = [
        ev.TextDelta(0, "a"),
        ev.ToolCallDelta(1, "{"),
        ev.ToolCallDelta(2, "{}"),
        ev.TextDelta(0, "b"),
        ev.ToolUpdate("c2", "executing"),
        ev.BlockFinish(2),
        ev.ToolCallDelta(1, "}"),
        ev.BlockFinish(1),
        ev.BlockFinish(0),
        ev.ToolUpdate("c2", "completed", result=rd.ToolResult("c2", "ok")),
    ]
    frames = told(*message([*starts, *pieces]), serialize_tool_calls=True)
    opened = None
    for frame in frames:
        if opened is not None:
            assert frame["type"] in ("TOOL_CALL_ARGS", "TOOL_CALL_END")
            assert frame["toolCallId"] == opened
        if frame["type"] == "TOOL_CALL_START":
            opened = frame["toolCallId"]
        elif frame["type"] == "TOOL_CALL_END":
            opened = None
    client = read(frames)
    assert shown(client.messages)["text"] == "ab"
    assert [f["toolCallId"] for f in frames if f["type"] == "TOOL_CALL_START"] == ["c1", "c2"]
    assert client.pending == ["c1"]


def test_g6_a_call_whose_id_has_been_is_given_another_and_still_gets_its_result() -> None:
    turn = message(call(0, "c1", "{}"), id="m1")
    done = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok"))
    history = [*ASKED, {"id": "a", "role": "assistant", "toolCalls": [_call("c1")]}]
    client = read(told(*turn, done, messages=history), history)
    assert client.messages[-2]["toolCalls"][0]["id"] == "c1-2"
    assert client.messages[-1]["toolCallId"] == "c1-2"


def _call(call_id: str) -> Json:
    return {"id": call_id, "type": "function", "function": {"name": "f", "arguments": "{}"}}


def test_g6_arguments_that_never_came_are_an_empty_object() -> None:
    (said,) = read(told(*message(call(0, "c1")))).messages
    assert said["toolCalls"][0]["function"]["arguments"] == "{}"


def test_g6_a_call_is_told_when_it_has_an_id_and_a_name() -> None:
    events = [
        ev.BlockStart(0, {"type": "tool_call_chunk"}),
        ev.ToolCallDelta(0, '{"a": '),
        ev.BlockDelta(0, {"id": "c1"}),
        ev.BlockDelta(0, {"name": "f"}),
        ev.ToolCallDelta(0, "1}"),
        ev.BlockFinish(0),
    ]
    frames = told(*message(events))
    start, *pieces = [f for f in frames if f["type"] in ("TOOL_CALL_START", "TOOL_CALL_ARGS")]
    assert (start["toolCallId"], start["toolCallName"]) == ("c1", "f")
    assert [piece["delta"] for piece in pieces] == ['{"a": ', "1}"]


def test_g7_a_result_comes_behind_its_calls_end_under_an_id_of_its_own() -> None:
    done = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", {"t": 21}))
    again = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "twice"))
    events = call(0, "c1", "{}")
    frames = told(*message([*events[:-1], done, events[-1], again]))
    results = [f for f in frames if f["type"] == "TOOL_CALL_RESULT"]
    assert [(f["messageId"], f["content"]) for f in results] == [("c1-result", '{"t": 21}')]
    assert read(frames).pending == []


def test_g7_a_failed_tool_says_so() -> None:
    failed = ev.ToolUpdate("c1", "failed", result=rd.ToolResult("c1", "boom", is_error=True))
    said = read(told(*message(call(0, "c1")), failed)).messages[-1]
    assert (said["content"], said["metadata"]) == ("boom", {"rxdelta": {"is_error": True}})


def test_g7_progress_of_a_tool_is_custom() -> None:
    news = [
        ev.ToolUpdate("c1", "identified"),
        ev.ToolUpdate("c1", "executing", "Reading"),
        ev.ToolUpdate("nobody", "executing"),
    ]
    frames = told(*message(call(0, "c1")), *news)
    assert [(f["name"], f["value"]) for f in frames if f["type"] == "CUSTOM"] == [
        (
            "rxdelta.tool-update",
            {"call_id": "c1", "execution_status": "executing", "display_text": "Reading"},
        )
    ]


def test_g8_reasoning_is_a_message_in_a_span_with_what_only_its_provider_can_read() -> None:
    frames = told(*message(thought(0, "hm", signature="c2ln", item_id="rs_1")))
    assert types(frames)[1:-1] == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_ENCRYPTED_VALUE",
        "REASONING_END",
    ]
    (said,) = read(frames).messages
    assert said["encryptedValue"] == "c2ln"
    assert said["metadata"] == {"rxdelta": {"options": {"item_id": "rs_1"}}}


def test_g8_reasoning_without_words_is_a_span_and_a_message_only_if_it_holds_something() -> None:
    assert types(told(*message(thought(0))))[1:-1] == ["REASONING_START", "REASONING_END"]
    (said,) = read(told(*message(thought(0, data="x", redacted=True)))).messages
    assert said["encryptedValue"] == "x"
    assert said["metadata"]["rxdelta"] == {"encrypted": "data", "options": {"redacted": True}}


def test_g8_reasoning_can_be_kept_back_with_its_signatures() -> None:
    signed = [*call(1, "c1", "{}")[:-1], ev.BlockDelta(1, {"signature": "s", "a": 1}), ev.BlockFinish(1)]
    frames = told(*message(thought(0, "hm", signature="s"), signed, text(2, "Hi")), reasoning=False)
    assert not any("REASONING" in kind for kind in types(frames))
    assert '"s"' not in json.dumps(frames)
    assert read(frames).messages[0]["toolCalls"][0]["metadata"]["rxdelta"] == {"metadata": {"a": 1}}


def test_g9_nothing_is_null() -> None:
    read(told(*message(text(0, "Hi"), thought(1, "hm"), call(2, "c1", "{}"))))  # the client asserts it


def test_g11_a_stopped_message_is_a_cancelled_run() -> None:
    frames = told(
        ev.MessageStart("m1"), *text(0, "Hi")[:-1], *call(1, "c1", "{}")[:-1], ev.MessageInterrupted("user")
    )
    assert frames[-1]["outcome"] == {"type": "cancelled"}
    assert read(frames).messages[0]["content"] == "Hi"


def test_g11_a_run_that_is_stopped_while_its_tools_run_is_cancelled_too() -> None:
    frames = told(*message(call(0, "c1"), reason="tool_use"), ev.MessageInterrupted())
    assert frames[-1]["outcome"] == {"type": "cancelled"}


def test_g11_calls_for_the_client_are_named_and_others_are_not_left_to_it() -> None:
    blocks = [call(0, "c1"), call(1, "c2", "{"), call(2, "c3", "{}", kind="server_tool_call_chunk")]
    client = read(told(*message(*blocks)))
    assert client.pending == ["c1"]
    assert client.messages[1]["content"].startswith("This call could not be read: ")
    assert client.messages[2]["content"] == ""


def test_g11_usage_is_that_of_all_messages_and_attempts_by_model() -> None:
    def turn(model: str, usage: rd.TokenUsage) -> list[rd.Event]:
        return [ev.MessageStart(None, model), ev.UsageUpdate(usage), ev.MessageFinish("stop")]

    frames = told(
        ev.MessageStart(None, "a"),
        ev.UsageUpdate(rd.TokenUsage(1, 1)),
        ev.AttemptReset(1),
        *turn("a", rd.TokenUsage(2, 3)),
        *turn("b", rd.TokenUsage(4, None)),
    )
    assert frames[-1]["usage"] == [
        {"model": "a", "inputTokens": 3, "outputTokens": 4, "totalTokens": 7},
        {"model": "b", "inputTokens": 4},
    ]


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        (
            rd.TokenUsage(10, 5, {"input_tokens": 10, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}),
            {"inputTokens": 16, "outputTokens": 5, "totalTokens": 21, "cachedInputTokens": 4, "cacheWriteInputTokens": 2},
        ),
        (
            rd.TokenUsage(10, 5, {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 4}, "cache_read_input_tokens": 4}),
            {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cachedInputTokens": 4},
        ),
        (
            rd.TokenUsage(10, 5, {"promptTokenCount": 10, "thoughtsTokenCount": 7, "cachedContentTokenCount": 3}),
            {"inputTokens": 10, "outputTokens": 12, "totalTokens": 22, "cachedInputTokens": 3, "reasoningTokens": 7},
        ),
        (rd.TokenUsage(2**53, 5), {"outputTokens": 5}),
    ],
)  # fmt: skip
def test_g11_usage_counts_as_the_protocol_does(usage: rd.TokenUsage, counts: Json) -> None:
    frames = told(ev.MessageStart(), ev.MessageFinish("stop", usage=usage))
    assert frames[-1]["usage"] == [counts]


def test_g12_a_failed_attempt_is_taken_back() -> None:
    failed = [ev.MessageStart("m1"), *thought(0, "hm"), *text(1, "Hel")[:-1], *call(2, "c1", "{")[:-1]]
    events = [*failed, ev.AttemptReset(1, "overloaded"), *message(text(0, "Hello"), id="m2")]
    client = read(told(*events, messages=ASKED), ASKED)
    assert client.messages[0] == ASKED[0]
    assert shown(client.messages) == {"text": "Hello", "reasoning": [], "calls": [], "rest": []}
    assert client.pending == []


def test_g12_an_attempt_that_had_said_nothing_needs_no_snapshot() -> None:
    events = [ev.MessageStart("m1"), ev.AttemptReset(1), *message(text(0, "Hello"))]
    assert "MESSAGES_SNAPSHOT" not in types(told(*events))


def test_g12_a_snapshot_keeps_the_runs_earlier_messages_and_their_results() -> None:
    first = message(
        thought(0, "hm", signature="s"), text(1, "Let me see."), call(2, "c1", "{}"), reason="tool_use"
    )
    done = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok"))
    before = read(told(*first, done, messages=ASKED), ASKED).messages
    failed = [ev.MessageStart("m2"), *text(0, "Oo")[:-1], ev.AttemptReset(1)]
    after = read(
        told(*first, done, *failed, *message(text(0, "Done."), id="m3"), messages=ASKED), ASKED
    ).messages
    assert after[: len(before)] == before
    assert after[len(before) :] == [{"id": "m3", "role": "assistant", "content": "Done."}]


def test_g12_a_reset_after_a_message_is_the_next_ones(caplog: pytest.LogCaptureFixture) -> None:
    frames = told(*message(text(0, "One.")), ev.AttemptReset(1), *message(text(0, "Two."), id="m2"))
    assert "MESSAGES_SNAPSHOT" not in types(frames)
    assert shown(read(frames).messages)["text"] == "One.Two."


def test_g12_without_the_requests_messages_nothing_else_of_the_conversation_is_lost() -> None:
    failed = [ev.MessageStart("m1"), *thought(0, "hm"), *text(1, "Hel")[:-1], *call(2, "c1", "{")[:-1]]
    frames = told(*failed, ev.AttemptReset(1, "overloaded"), *message(text(0, "Hello"), id="m1"))
    assert "MESSAGES_SNAPSHOT" not in types(frames)
    client = read(frames, ASKED)
    assert client.messages[0] == ASKED[0]
    assert shown(client.messages) == {"text": "Hello", "reasoning": [], "calls": [], "rest": []}
    assert client.pending == []


def test_g12_without_the_requests_messages_what_still_holds_of_the_reply_is_told_again_in_its_order() -> None:
    done = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok"))
    wrong = [*text(3, "Hexe")[:-1], ev.BlockFinish(3, {"type": "text", "text": "Hello"})]
    first = message(text(0, "Before."), call(1, "c0", "{}"), id="m0", reason="tool_use")
    first.append(ev.ToolUpdate("c0", "completed", result=rd.ToolResult("c0", "0")))
    picture = [ev.BlockStart(2, {"type": "image", "url": "https://x/y.png"}), ev.BlockFinish(2)]
    blocks = [
        thought(0, "hm", signature="s"),
        call(1, "c1", "{}"),
        [done],
        picture,
        wrong,
        call(4, "c2", "{}"),
    ]
    frames = told(*first, *message(*blocks))
    assert "MESSAGES_SNAPSHOT" not in types(frames)
    said = [one for one in read(frames, ASKED).messages if one.get("activityType") != "rxdelta.discarded"]
    assert [one.get("content") for one in said] == ["Well?", "Before.", "0", "hm", None, "ok", {"type": "image", "url": "https://x/y.png"}, "Hello"]  # fmt: skip
    assert [one.get("encryptedValue") for one in said if one["role"] == "reasoning"] == ["s"]
    assert [one["id"] for each in said for one in each.get("toolCalls", ())] == ["c0", "c1", "c2"]
    assert [one.id for one in rd.from_ag_ui(said)] == [*(one["id"] for one in ASKED), "m0", "m1"]


def test_g12_without_the_requests_messages_what_is_open_goes_on_behind_a_correction() -> None:
    begun = [ev.BlockStart(1, {"type": "text"}), ev.TextDelta(1, "Hel"), *call(2, "c1", '{"a"')[:-1]]
    thinks = [ev.BlockStart(3, {"type": "reasoning"}), ev.ReasoningDelta(3, "h")]
    wrong = [*text(0, "Hexe")[:-1], ev.BlockFinish(0, {"type": "text", "text": "Oh. "})]
    rest = [ev.TextDelta(1, "lo"), ev.ToolCallDelta(2, ": 1}"), ev.ReasoningDelta(3, "m")]
    client = read(told(*message(begun, thinks, wrong, rest)))
    assert shown(client.messages) == {
        "text": "HelloOh. ",
        "reasoning": ["hm"],
        "calls": [("f", {"a": 1})],
        "rest": [],
    }
    assert client.pending == ["c1"]


@pytest.mark.parametrize("messages", [None, 3, [1], [{"role": "nobody"}]])
def test_g12_messages_that_nobody_could_tell_again_are_not_told_again(messages: Any) -> None:
    request = {"threadId": "t1", "runId": "r1", "messages": messages, "protocolVersion": "1.0"}
    events = [ev.MessageStart(), *text(0, "Hi"), ev.AttemptReset(1), *message(text(0, "Hello"))]
    frames = frames_of(rd.wire.AgUiEncoder(request), events)
    assert "MESSAGES_SNAPSHOT" not in types(frames)
    assert shown(read(frames).messages)["text"] == "Hello"


def test_g12_a_snapshot_can_be_written_whatever_the_request_said() -> None:
    asked: list[Json] = [
        {"id": "u1\ud83d", "role": "user", "content": "\ud83d", "metadata": {"a": ["\ude00"]}}
    ]
    events = [ev.MessageStart(), *text(0, "Hi"), ev.AttemptReset(1), *message(text(0, "Hello"))]
    assert "MESSAGES_SNAPSHOT" in types(told(*events, messages=asked))


def test_g12_a_finish_that_says_something_else_is_believed() -> None:
    wrong = [*text(0, "Hexe")[:-1], ev.BlockFinish(0, {"type": "text", "text": "Hello"})]
    assert read(told(*message(wrong), messages=ASKED), ASKED).messages[-1]["content"] == "Hello"
    wrong = [*call(0, "c1", '{"a": 1}')[:-1], ev.BlockFinish(0, {"type": "tool_call", "args": {"a": 2}})]
    (said,) = shown(read(told(*message(wrong), messages=ASKED), ASKED).messages)["calls"]
    assert said == ("f", {"a": 2})


def test_g12_a_finish_that_says_the_same_or_more_needs_no_snapshot() -> None:
    more = [*text(0, "Hel")[:-1], ev.BlockFinish(0, {"type": "text", "text": "Hello"})]
    same = [*call(1, "c1", '{"a":1}')[:-1], ev.BlockFinish(1, {"type": "tool_call", "args": {"a": 1}})]
    frames = told(*message(more, same))
    assert "MESSAGES_SNAPSHOT" not in types(frames)
    assert shown(read(frames).messages)["text"] == "Hello"


def test_g12_a_block_that_begins_again_loses_what_it_said() -> None:
    client = read(told(*message(text(0, "Hexe"), text(0, "Hello")), messages=ASKED), ASKED)
    assert [one["content"] for one in client.messages] == ["Well?", "Hello"]


# The request.


@pytest.mark.parametrize("kind", [dict, RunAgentInput])
def test_the_request_says_which_run_it_is_as_object_or_as_json(kind: Any) -> None:
    said = {
        "threadId": "t9",
        "runId": "r9",
        "messages": ASKED,
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    request = said if kind is dict else RunAgentInput.model_validate(said)
    frames = frames_of(rd.wire.AgUiEncoder(request), message(text(0, "Hi")))
    assert (frames[0]["threadId"], frames[0]["runId"]) == ("t9", "r9")
    frames = frames_of(rd.wire.AgUiEncoder(request, thread_id="t1", run_id="r1"), message(text(0, "Hi")))
    assert (frames[0]["threadId"], frames[-1]["runId"]) == ("t1", "r1")


def test_an_id_that_the_conversation_has_already_is_not_used_again() -> None:
    history = [*ASKED, {"id": "stub", "role": "assistant", "content": "Before."}]
    client = read(told(*message(text(0, "Now."), id="stub"), messages=history), history)
    assert [one["content"] for one in client.messages] == ["Well?", "Before.", "Now."]


@pytest.mark.parametrize("version", [None, "0.0.59", "0.9", "1", "one", "1.0-beta", "01.0", 1.0])
def test_nothing_of_1_0_goes_to_a_client_that_does_not_say_that_it_speaks_it(version: Any) -> None:
    for end in ([], [ev.MessageInterrupted()]):
        frames = told(*message(call(0, "c1", "{}"), reason="tool_use"), *end, version=version)
        assert "protocolVersion" not in frames[0]
        assert "outcome" not in frames[-1]


@pytest.mark.parametrize("version", ["1.0", "1.7", "2.0", "12.0"])
def test_a_client_that_speaks_1_0_or_later_gets_all_of_it(version: str) -> None:
    frames = told(*message(call(0, "c1", "{}"), reason="tool_use"), version=version)
    assert frames[0]["protocolVersion"] == "1.0"
    assert frames[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}


def test_to_an_older_client_a_stopped_run_leaves_no_call_to_run() -> None:
    frames = told(*message(call(0, "c1", "{}"), reason="tool_use"), ev.MessageInterrupted(), version=None)
    client = read(frames)
    assert client.pending == []
    assert client.messages[1]["metadata"] == {"rxdelta": {"unrun": True}}
    assert frames[-1]["metadata"] == {"rxdelta": {"interrupted": True}}


def test_an_older_client_keeps_its_own_activities_through_a_snapshot() -> None:
    picture = [ev.BlockStart(0, {"type": "image", "url": "https://x/y.png"}), ev.BlockFinish(0)]
    wrong = [*text(1, "Hexe")[:-1], ev.BlockFinish(1, {"type": "text", "text": "Hello"})]
    frames = told(*message(picture, wrong), messages=ASKED, version=None)
    (snapshot,) = [frame for frame in frames if frame["type"] == "MESSAGES_SNAPSHOT"]
    assert [one["role"] for one in snapshot["messages"]] == ["user", "assistant"]
    assert shown(read(frames, ASKED).messages) == {
        "text": "Hello",
        "reasoning": [],
        "calls": [],
        "rest": ["rxdelta.image"],
    }


def test_reasoning_of_an_earlier_reply_is_shown_once_however_often_a_later_reply_is_corrected() -> None:
    wrong = [
        *text(0, "Hexe")[:-1],
        ev.BlockFinish(0, {"type": "text", "text": "Hello"}),
        *text(1, " Wolrd")[:-1],
        ev.BlockFinish(1, {"type": "text", "text": " World"}),
    ]
    client = read(told(*message(thought(0, "hm")), *message(wrong, id="m2")))
    assert shown(client.messages) == {"text": "Hello World", "reasoning": ["hm"], "calls": [], "rest": []}


# What becomes of what.


def test_a_conversation_is_one_run() -> None:
    first = message(call(0, "c1", "{}"), reason="tool_use")
    done = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok"))
    frames = told(*first, done, *message(text(0, "Done."), id="m2"))
    assert types(frames).count("RUN_STARTED") == types(frames).count("RUN_FINISHED") == 1
    assert [one["role"] for one in read(frames).messages] == ["assistant", "tool", "assistant"]


def test_a_refusal_is_text_that_is_known_as_one() -> None:
    refusal = [ev.BlockStart(1, {"type": "refusal"}), ev.TextDelta(1, "No."), ev.BlockFinish(1)]
    client = read(told(*message(text(0, "Hm."), refusal)))
    assert [one["content"] for one in client.messages] == ["Hm.", "No."]
    assert client.messages[1]["metadata"]["rxdelta"]["parts"] == [{"length": 3, "type": "refusal"}]


def test_citations_stand_at_the_end_of_their_text() -> None:
    cited = [*text(0, "Hi")[:-1], ev.BlockDelta(0, {"citations": [{"url": "u"}]}), ev.BlockFinish(0)]
    (said,) = read(told(*message(cited, text(1, " there")))).messages
    assert said["metadata"]["rxdelta"]["parts"] == [{"length": 2, "citations": [{"url": "u"}]}, {"length": 6}]


def test_what_the_providers_own_tool_gave_is_its_calls_result() -> None:
    output = {"type": "server_tool_result", "tool_call_id": "s1", "output": [1], "provider_type": "x"}
    own = [ev.BlockStart(1, output), ev.BlockFinish(1)]
    client = read(told(*message(call(0, "s1", "{}", kind="server_tool_call_chunk"), own)))
    assert client.messages[1]["content"] == "[1]"
    assert client.pending == []


def test_a_picture_is_an_activity() -> None:
    picture = [
        ev.BlockStart(0, {"type": "image", "mime_type": "image/png"}),
        ev.DataDelta(0, "AAAA"),
        ev.BlockFinish(0),
    ]
    (said,) = read(told(*message(picture))).messages
    assert (said["activityType"], said["content"]["data"]) == ("rxdelta.image", "AAAA")


def test_the_providers_own_events_pass_only_if_they_shall() -> None:
    native = ev.ProviderEvent("p", "ping", {"a": 1})
    assert "RAW" not in types(told(*message(), native))
    (raw,) = [f for f in told(*message(), native, provider_events=True) if f["type"] == "RAW"]
    assert (raw["source"], raw["event"]) == ("p", {"name": "ping", "payload": {"a": 1}})


def test_only_one_choice_is_told() -> None:
    other = [
        ev.MessageStart(choice=1),
        ev.BlockStart(0, {"type": "text"}, choice=1),
        ev.TextDelta(0, "no", choice=1),
    ]
    frames = told(*other, *message(text(0, "Hi")), ev.MessageFinish("stop", choice=1))
    assert shown(read(frames).messages)["text"] == "Hi"
    assert shown(read(told(*other, ev.MessageFinish("stop", choice=1), choice=1)).messages)["text"] == "no"
    assert told(*other)[-1]["type"] == "RUN_ERROR"


def test_a_character_that_comes_in_halves_is_told_whole() -> None:
    frames = told(*message(text(0, "a\ud83d", "\ude00b", "\ud83d")))
    assert shown(read(frames).messages)["text"] == "a😀b\ufffd"


def test_ids_of_others_cannot_break_a_frame() -> None:
    nasty = 'a"\n\n\ud83d\r\u2028'
    frames = told(*message(text(0, "Hi"), call(1, nasty, "{}"), id=nasty))
    assert read(frames).messages[0]["id"] == 'a"\n\n\ufffd\r\u2028'


def test_an_error_is_masked_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR", "rxdelta.wire")
    assert told(error=ValueError("the key is hunter2"))[-1]["message"] == "An error occurred."
    assert "hunter2" in caplog.text
    assert told(error=ValueError("x"), on_error=lambda error: f"so: {error}")[-1]["message"] == "so: x"


def test_an_on_error_that_fails_tells_nothing() -> None:
    assert told(error=ValueError("x"), on_error=lambda error: 1 // 0)[-1]["message"] == "An error occurred."  # type: ignore[arg-type,return-value]


def test_a_stream_that_completes_too_early_was_cut_off() -> None:
    seen: list[Exception] = []
    assert (
        told(ev.MessageStart(), on_error=lambda error: seen.append(error) or "x")[-1]["type"] == "RUN_ERROR"
    )
    assert types(told()) == ["RUN_STARTED", "RUN_ERROR"]
    assert [type(error) for error in seen] == [rd.StreamInterrupted]


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("ag_ui"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"pip install 'rxdelta\[ag-ui\]'"):
        rd.to_ag_ui()


@pytest.mark.parametrize(
    "wrong",
    [{"thread_id": 1}, {"run_id": None}, {"choice": -1}, {"choice": True}, {"run_input": "t1"}, {"run_input": []}],
)  # fmt: skip
def test_an_argument_that_makes_no_sense_is_refused(wrong: Json) -> None:
    with pytest.raises(rd.InvalidValueError, match=next(iter(wrong))):
        rd.wire.AgUiEncoder(**{"thread_id": "t1", "run_id": "r1", **wrong})


@pytest.mark.parametrize(
    "wrong", [{}, {"threadId": "t1"}, {"threadId": 1, "runId": "r1"}, {"thread_id": "t1", "run_id": "r1"}]
)
def test_a_request_without_its_ids_is_refused(wrong: Json) -> None:
    with pytest.raises(rd.InvalidValueError, match="_id: must be a string"):
        rd.wire.AgUiEncoder(wrong, new_id=lambda: "made up")


def test_what_is_no_event_is_refused() -> None:
    with pytest.raises(rd.InvalidValueError, match="chunks go through decode"):
        encoder().encode({"type": "RUN_STARTED"})  # type: ignore[arg-type]


# Any events at all.


def conversation(events: list[rd.Event]) -> list[rd.Snapshot]:
    """What the messages fold to; those that were taken back are gone."""
    folds = [rd.Fold(choice=0)]
    for event in events:
        now = folds[-1].snapshot
        over = now.status != "incomplete"
        if isinstance(event, ev.StreamError):
            break
        if isinstance(event, ev.ToolUpdate):
            continue
        if over and isinstance(event, ev.AttemptReset):
            folds.append(rd.Fold(choice=0))
        try:
            folds[-1].step(event)
        except rd.ProtocolError:  # another message begins
            folds.append(rd.Fold(choice=0))
            folds[-1].step(event)
    return [one.snapshot for one in folds]


def counted(told: list[Json]) -> Json:
    """What was said, whatever its order."""
    kinds = {"text": str, "reasoning": str, "calls": repr, "rest": str}
    return {name: Counter(how(one) for each in told for one in each[name]) for name, how in kinds.items()}


lists_of_events = st.lists(every_event, max_size=25)


@example(
    [
        ev.BlockFinish("b", {"type": "tool_call_chunk", "id": "", "name": "f", "args": None}),
        ev.BlockFinish("b", {"type": "tool_call_chunk", "id": "c1", "name": "g", "args": None}),
    ],
    False,
)
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(lists_of_events, st.booleans())
@pytest.mark.parametrize("version", ["1.0", None])
@pytest.mark.parametrize("history", [ASKED, None], ids=["history", "no history"])
def test_any_events_at_all_give_a_legal_run_that_says_what_they_fold_to(
    history: list[Json] | None, version: str | None, events: list[rd.Event], serialize: bool
) -> None:
    frames = told(*events, serialize_tool_calls=serialize, messages=history, version=version)
    client = read(frames, ASKED)
    assert client.messages[0] == ASKED[0]
    assert counted([shown(client.messages)]) == counted([wanted(one) for one in conversation(events)])
    assert history is not None or "MESSAGES_SNAPSHOT" not in types(frames)


CLIENTS = {"1.0.0": "1.0", "0.0.59": None}
"""The real clients, and the version of the protocol that each declares."""
each_client = pytest.mark.parametrize("client", CLIENTS)


@pytest.mark.slow
@each_client
@pytest.mark.parametrize("history", [ASKED, None], ids=["history", "no history"])
def test_the_real_clients_take_any_events_at_all_and_see_what_we_think_they_see(
    client: str, history: list[Json] | None
) -> None:
    drawn: list[list[Json]] = []

    @settings(
        deadline=None,
        max_examples=150,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(lists_of_events)
    def draw(events: list[rd.Event]) -> None:
        drawn.append(told(*events, messages=history, version=CLIENTS[client]))

    draw()
    agree(drawn, client)


def in_javascript(value: Any) -> Any:
    """JavaScript has one kind of number, and writes a large one that is whole without a point."""
    return json.loads(json.dumps(value), parse_int=float)


def body(frames: list[Json]) -> str:
    return "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames)


def agree(runs: list[list[Json]], client: str, split: int | None = None) -> None:
    lines = [{"body": body(run), "messages": ASKED, "split": split, "client": client} for run in runs]
    for frames, seen in zip(runs, ask("ag_ui.mjs", lines), strict=True):
        known = read(frames, ASKED)
        assert seen["error"] is None
        assert seen["warnings"] == []
        assert in_javascript(seen["messages"]) == in_javascript(known.messages)
        if known.state == "finished" and seen["pending"] is not None:
            assert seen["pending"] == known.pending


@each_client
def test_the_real_clients_say_in_their_request_what_they_can_read(client: str) -> None:
    """A call for the client, a stop, and a retry, each encoded for the request that the client has sent."""
    asked = {"body": body(told(*message(text(0, "Hi")), version=None)), "messages": ASKED, "client": client}
    (first,) = ask("ag_ui.mjs", [asked])
    request = first["request"]
    assert request.get("protocolVersion") == CLIENTS[client]
    failed = [ev.MessageStart("m1"), *thought(0, "hm"), *text(1, "Hel")[:-1], *call(2, "c1", "{")[:-1]]
    runs: dict[str, list[rd.Event]] = {
        "call": message(text(0, "Hi"), call(1, "c1", "{}"), reason="tool_use"),
        "stop": [ev.MessageStart("m1"), *text(0, "Hi"), *call(1, "c1", "{}"), ev.MessageInterrupted("user")],
        "retry": [*failed, ev.AttemptReset(1), *message(text(0, "Hello"))],
    }
    inputs = [request, {**request, "messages": None}]
    told_ = [frames_of(rd.wire.AgUiEncoder(given), events) for given in inputs for events in runs.values()]
    lines = [{**asked, "body": body(frames)} for frames in told_]
    for which, frames, seen in zip([*runs, *runs], told_, ask("ag_ui.mjs", lines), strict=True):
        assert (seen["error"], seen["warnings"]) == (None, [])
        assert seen["messages"][0] == ASKED[0]
        assert seen["messages"] == read(frames, ASKED).messages
        said = shown(seen["messages"])
        assert said["text"] == {"call": "Hi", "stop": "Hi", "retry": "Hello"}[which]
        assert said["calls"] == ([] if which == "retry" else [("f", {})])


# Every recorded stream.

CASES = [
    pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in rd.providers.FORMATS
    if wire_format not in UNRECORDED
    for case in recordings(wire_format)
]


def decoded(wire_format: str, chunks: list[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


@pytest.mark.parametrize("serialize", [False, True], ids=["interleaved", "serialized"])
@pytest.mark.parametrize(("wire_format", "chunks"), CASES)
def test_a_recorded_stream_is_a_legal_run_that_says_its_message(
    wire_format: str, chunks: list[Any], serialize: bool
) -> None:
    events = decoded(wire_format, chunks)
    client = read(told(*events, serialize_tool_calls=serialize))
    (message,) = conversation(events)
    assert shown(client.messages) == wanted(message)
    complete = message.status in ("complete", "length") and not any(
        isinstance(event, ev.StreamError) for event in events
    )
    assert client.state == ("finished" if complete else "failed")


@pytest.mark.slow
@each_client
@pytest.mark.parametrize("split", [None, 3], ids=["whole", "in three bytes"])
def test_the_real_clients_read_every_recorded_stream(split: int | None, client: str) -> None:
    streams = [decoded(*case.values) for case in CASES if case.values[1] is not None]
    runs = [told(*events, version=CLIENTS[client]) for events in streams]
    if split is not None:
        runs = [run for run in runs if len(json.dumps(run)) < 20_000][::4]
    if not runs:
        pytest.skip("no streams here")
    agree(runs, client, split)
