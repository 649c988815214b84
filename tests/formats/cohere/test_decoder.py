"""Cohere's chat API: what each event of the API becomes."""

from __future__ import annotations

from typing import Any

import pytest
from support.cohere import (
    CITED,
    RICH,
    USAGE,
    Chunk,
    call_start,
    calls,
    content,
    content_end,
    content_start,
    decode,
    end,
    fold,
    in_message,
    plan,
    reply,
    start,
    violations,
)

import rxdelta as rd
from rxdelta.core import LimitExceededError, MalformedChunkError, thaw
from rxdelta.core.events import BlockFinish, MessageStart, ProviderEvent, StreamError, TextDelta

# The whole.


def test_a_rich_stream_becomes_the_message_and_breaks_no_rule() -> None:
    decoded = decode(*RICH)
    assert violations(decoded) == []
    raw = CITED
    call = {"type": "tool_call", "name": "roll", "status": "complete"}
    cited = {
        "cited_text": "Twice",
        "title": "Tides",
        "url": "https://a.example",
        "start_index": 0,
        "end_index": 5,
    }
    assert fold(decoded).to_message().to_dict() == {
        "role": "assistant",
        "status": "complete",
        "choice": 0,
        "id": "m1",
        "blocks": [
            {"type": "reasoning", "text": "I will roll.", "options": {"provider_type": "tool_plan"}},
            {**call, "call_id": "roll_1", "arguments": {}},
            {**call, "call_id": "roll_2", "arguments": {"sides": 20}},
            {"type": "reasoning", "text": "Let me see."},
            {"type": "text", "text": "Twice a day", "citations": [{**cited, "raw": raw}]},
        ],
        "finish_reason": "tool_use",
        "provider_finish_reason": "TOOL_CALL",
        "usage": {
            "input_tokens": 1394,
            "output_tokens": 33,
            "cache_read_tokens": 1376,
            "billed": {"input_tokens": 8, "output_tokens": 2},
            "raw": USAGE,
        },
    }


BODY: Chunk = {
    "id": "m1",
    "finish_reason": "TOOL_CALL",
    "message": {
        "role": "assistant",
        "tool_plan": "I will roll.",
        "tool_calls": [
            {"id": "roll_1", "type": "function", "function": {"name": "roll", "arguments": ""}},
            {"id": "roll_2", "type": "function", "function": {"name": "roll", "arguments": '{"sides": 20}'}},
        ],
        "content": [{"type": "thinking", "thinking": "Let me see."}, {"type": "text", "text": "Twice a day"}],
        "citations": [CITED],
    },
    "usage": USAGE,
}


def test_a_body_that_was_not_streamed_is_the_same_message() -> None:
    streamed = [*RICH[:3], *RICH[9:19], *RICH[3:9], RICH[-1]]  # in a body nothing says what came first
    assert rd.providers.detect(BODY) == "cohere"
    assert violations(decode(BODY)) == []
    assert reply(BODY).to_message() == reply(*streamed).to_message()


def test_the_logprobs_of_a_body_and_of_its_stream_are_the_same() -> None:
    item = {"text": "Hi", "token_ids": [1], "logprobs": [-0.5]}
    streamed = [start(), content_start(0), {**content(0, text="Hi"), "logprobs": item}, content_end(0), end()]
    body = {"id": "m1", "finish_reason": "COMPLETE", "logprobs": [item], "usage": USAGE}
    message = {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}
    assert thaw(reply(*streamed).to_message().metadata) == {"logprobs": [item]}
    assert reply({**body, "message": message}).to_message() == reply(*streamed).to_message()


def test_a_body_cut_off_at_a_call_without_arguments_has_no_call_to_run() -> None:
    found = calls(reply({**BODY, "finish_reason": "MAX_TOKENS"}))
    assert [kind for kind, _, _ in found] == ["tool_call", "tool_call"]
    message = {**BODY["message"], "tool_calls": BODY["message"]["tool_calls"][:1]}
    found = calls(reply({**BODY, "finish_reason": "MAX_TOKENS", "message": message}))
    assert [kind for kind, _, _ in found] == ["invalid_tool_call"]


# The end.


def test_what_comes_after_the_end_is_passed_on_or_begins_another_message() -> None:
    whole = [start(), content(0, text="Hi"), end()]
    assert decode(*whole, end())[-1] == ProviderEvent("cohere", "message-end", end())
    assert decode(*whole, start()) == decode(*whole)
    assert [event for event in decode(*whole, start("m2")) if isinstance(event, MessageStart)] == [
        MessageStart("m1"),
        MessageStart("m2"),
    ]


# Errors.


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"finish_reason": "ERROR", "error": "Oops"}, ("Oops", "ERROR")),
        ({"finish_reason": "ERROR"}, ("the generation failed", "ERROR")),
        ({"finish_reason": "TIMEOUT"}, ("the generation timed out", "TIMEOUT")),
        ({"finish_reason": "COMPLETE", "error": "Oops"}, ("Oops", "COMPLETE")),
    ],
)
def test_an_end_that_is_an_error_breaks_off(fields: Chunk, error: tuple[str, str]) -> None:
    ended = {"type": "message-end", "delta": fields}
    decoded = decode(start(), content_start(0), content(0, text="Hi"), ended, content(0, text="x"), end())
    message, code = error
    assert decoded[2:] == [
        TextDelta(0, "Hi"),
        BlockFinish(0),
        StreamError(message, None, code, transient=True),
    ]


def test_the_body_of_an_answer_that_was_refused_is_an_error() -> None:
    assert decode({"id": "x", "message": "invalid api token"}) == [StreamError("invalid api token")]
    assert decode({"type": "error", "message": "overloaded"}) == [StreamError("overloaded", "error")]


def test_an_error_without_words_is_kept() -> None:
    chunk = {"type": "error", "code": 3}
    assert decode(chunk) == [ProviderEvent("cohere", "error", chunk), StreamError("unknown error", "error")]


# What isn't known.


def test_debug_and_events_of_another_make_are_passed_on() -> None:
    assert in_message({"type": "debug", "prompt": "<BOS>"}) == [
        ProviderEvent("cohere", "debug", {"type": "debug", "prompt": "<BOS>"})
    ]
    assert in_message({"type": "new", "a": 1}) == [ProviderEvent("cohere", "new", {"type": "new", "a": 1})]
    assert in_message(content(0, text="x", new=1))[-1] == ProviderEvent(
        "cohere", "content-delta", content(0, text="x", new=1)
    )


def test_another_start_amid_a_message_is_passed_on() -> None:
    assert in_message(start("m2")) == [ProviderEvent("cohere", "message-start", start("m2"))]


@pytest.mark.parametrize(
    ("chunk", "path"),
    [
        ({}, "type"),
        ({"type": 5}, "type"),
        ({"type": "message-start", "delta": []}, "delta"),
        ({"type": "message-start", "delta": {"message": []}}, "delta.message"),
        (plan(5), "delta.message.tool_plan"),
        (content_start(None), "index"),
        (content_start(-1), "index"),
        (content("0", text="x"), "index"),
        (content(0, text=5), "delta.message.content.text"),
        (content_start(0, text=5), "delta.message.content.text"),
        (call_start(True), "index"),
        (call_start(0, 5), "delta.message.tool_calls.id"),
        (call_start(0, arguments=5), "delta.message.tool_calls.function.arguments"),
        (end(5), "delta.finish_reason"),
        (end(usage=[]), "delta.usage"),
        ({"message": {"content": 5}, "finish_reason": "COMPLETE"}, "message.content"),
        ({"message": {"content": [5]}, "finish_reason": "COMPLETE"}, "message.content[0]"),
        ({"message": {"tool_calls": [{"function": 5}]}}, "message.tool_calls[0].function"),
        ("text", ""),
    ],
)
def test_a_malformed_chunk_is_named_by_the_path_to_its_fault(chunk: Any, path: str) -> None:
    with pytest.raises(MalformedChunkError) as caught:
        decode(chunk)
    assert caught.value.path == path


def test_an_absurd_index_is_refused() -> None:
    with pytest.raises(LimitExceededError):
        decode(content(2**31, text="x"))


# The SDK's objects.


def sdk(*chunks: Chunk) -> list[Any]:
    types = pytest.importorskip("cohere.v2.types.v2chat_stream_response")
    from cohere.core.unchecked_base_model import construct_type

    return [construct_type(type_=types.V2ChatStreamResponse, object_=chunk) for chunk in chunks]


def test_the_sdk_s_objects_give_the_same_events_as_dicts() -> None:
    objects = sdk(*RICH)
    assert not any(isinstance(event, dict) for event in objects)
    assert decode(*objects) == decode(*RICH)


def test_an_object_of_the_sdk_that_was_made_by_hand_has_its_type_too() -> None:
    types = pytest.importorskip("cohere.v2.types.v2chat_stream_response")
    made = types.ContentEndV2ChatStreamResponse(index=0)
    assert [*in_message(content_start(0)), BlockFinish(0)] == decode(
        start(), content_start(0), made, close=False
    )[1:]


def test_the_sdk_s_response_gives_the_same_events_as_the_body() -> None:
    types = pytest.importorskip("cohere.v2.types.v2chat_response")
    from cohere.core.unchecked_base_model import construct_type

    assert decode(construct_type(type_=types.V2ChatResponse, object_=BODY)) == decode(BODY)
