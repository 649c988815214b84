"""Bedrock's ConverseStream: what each event of the API becomes."""

from __future__ import annotations

from typing import Any

import pytest
from support.bedrock_converse import (
    PAGE,
    RICH,
    START,
    USAGE,
    WEB,
    Chunk,
    block_start,
    blocks,
    calls,
    decode,
    delta,
    fold,
    in_message,
    message_stop,
    metadata,
    reply,
    stop,
    tool_use,
    violations,
)

import rxdelta as rd
from rxdelta.core import LimitExceededError, MalformedChunkError, thaw
from rxdelta.core.events import (
    MessageFinish,
    ProviderEvent,
    StreamError,
    TextDelta,
    UsageUpdate,
)

# The whole.


def test_a_rich_stream_becomes_the_message_and_breaks_no_rule() -> None:
    decoded = decode(*RICH)
    assert violations(decoded) == []
    assert fold(decoded).to_message().to_dict() == {
        "role": "assistant",
        "status": "complete",
        "choice": 0,
        "blocks": [
            {
                "type": "reasoning",
                "text": "Let me see.",
                "options": {"signature": "c2ln", "signed_by": "anthropic"},
            },
            {
                "type": "server_tool_call",
                "call_id": "srv_1",
                "name": "nova_grounding",
                "arguments": {"query": "tides"},
                "status": "complete",
                "metadata": {"provider_type": "server_tool_use"},
            },
            {
                "type": "server_tool_result",
                "options": {
                    "tool_call_id": "srv_1",
                    "status": "success",
                    "provider_type": "nova_grounding_result",
                    "output": [{"text": "twice a day"}, {"json": {"hits": 2}}],
                },
            },
            {"type": "text", "text": "Twice a day"},
            {
                "type": "text",
                "text": "",
                "citations": [
                    {"url": "https://a.example/x", "raw": WEB},
                    {"cited_text": "twice a day", "title": "Tides", "raw": PAGE},
                ],
            },
            {
                "type": "tool_call",
                "call_id": "tooluse_1",
                "name": "roll",
                "arguments": {},
                "status": "complete",
            },
            {
                "type": "tool_call",
                "call_id": "tooluse_2",
                "name": "roll",
                "arguments": {"sides": 20},
                "status": "complete",
            },
        ],
        "finish_reason": "tool_use",
        "provider_finish_reason": "tool_use",
        "usage": {"input_tokens": 7, "output_tokens": 3, "raw": USAGE},
        "metadata": {"metrics": {"latencyMs": 12}},
    }


def test_after_every_chunk_the_snapshot_is_incomplete_and_no_call_is_called_whole_that_isn_t() -> None:
    for end in range(len(RICH)):
        snapshot = reply(*RICH[:end])
        assert snapshot.status == ("complete" if end == len(RICH) - 1 else "incomplete")
        whole = [call.call_id for call in snapshot.tool_calls if call.status == "complete"]
        assert whole == ["tooluse_1"] * (end > 21) + ["tooluse_2"] * (end > 24)


def test_a_body_that_was_not_streamed_is_the_same_message() -> None:
    content = [
        {"reasoningContent": {"reasoningText": {"text": "Let me see.", "signature": "c2ln"}}},
        {
            "toolUse": {
                "toolUseId": "srv_1",
                "name": "nova_grounding",
                "type": "server_tool_use",
                "input": {"query": "tides"},
            }
        },
        {
            "toolResult": {
                "toolUseId": "srv_1",
                "type": "nova_grounding_result",
                "status": "success",
                "content": [{"text": "twice a day"}, {"json": {"hits": 2}}],
            }
        },
        {"text": "Twice a day"},
        {"citationsContent": {"content": [{"text": ""}], "citations": [WEB, PAGE]}},
        {"toolUse": {"toolUseId": "tooluse_1", "name": "roll", "input": {}}},
        {"toolUse": {"toolUseId": "tooluse_2", "name": "roll", "input": {"sides": 20}}},
    ]
    body = {
        "ResponseMetadata": {"RequestId": "r1"},
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use",
        "usage": USAGE,
        "metrics": {"latencyMs": 12},
    }
    assert rd.providers.detect(body) == "bedrock-converse"
    assert violations(decode(body)) == []
    assert reply(body).to_message() == reply(*RICH).to_message()


def test_a_body_cut_off_at_a_call_without_arguments_has_no_call_to_run() -> None:
    def body(*names: str) -> Chunk:
        content = [{"toolUse": {"toolUseId": name, "name": "roll", "input": {}}} for name in names]
        return {"output": {"message": {"content": content}}, "stopReason": "max_tokens"}

    assert [kind for kind, _, _ in calls(reply(body("t1")))] == ["invalid_tool_call"]
    assert [kind for kind, _, _ in calls(reply(body("t1", "t2")))] == ["tool_call", "invalid_tool_call"]


# The end.


def test_metadata_before_the_stop_is_told_at_once_and_the_stop_is_the_end() -> None:
    decoded = decode(START, metadata(), message_stop(), close=False)
    assert isinstance(decoded[1], UsageUpdate)
    assert isinstance(decoded[-1], MessageFinish)


def test_invoke_model_s_own_keys_stand_beside_the_event_s_name() -> None:
    numbers = {"inputTokenCount": 5, "outputTokenCount": 1}
    guard = {"amazon-bedrock-guardrailAction": "NONE"}
    usage = {"inputTokens": 5, "outputTokens": 1, "cacheReadInputTokenCount": 0}
    chunks: list[Chunk] = [
        {**guard, **START},
        {**delta(0, text="a"), **guard},
        {**delta(0, text="b"), **guard},
        {"amazon-bedrock-trace": {"guardrail": {"input": {}}}},
        message_stop(),
        {
            "amazon-bedrock-invocationMetrics": numbers,
            "metadata": {"usage": usage, "metrics": {}, "trace": {}},
        },
    ]
    decoded = decode(*chunks)
    assert not any(isinstance(event, ProviderEvent) for event in decoded)
    message = fold(decoded).to_message()
    assert message.text == "ab"
    assert message.usage is not None
    assert (message.usage.input_tokens, message.usage.raw) == (5, usage)
    assert thaw(message.metadata) == {
        **guard,
        "amazon-bedrock-trace": {"guardrail": {"input": {}}},
        "amazon-bedrock-invocationMetrics": numbers,
    }


def test_what_comes_after_the_end_is_passed_on_or_begins_another_message() -> None:
    whole = [START, delta(0, text="Hi"), message_stop(), metadata()]
    assert decode(*whole, metadata())[-1] == ProviderEvent("bedrock", "metadata", metadata())
    assert decode(*whole, *whole) == decode(*whole) * 2


# Errors.


@pytest.mark.parametrize(
    "name",
    [
        "internalServerException",
        "modelStreamErrorException",
        "modelTimeoutException",
        "serviceUnavailableException",
        "throttlingException",
        "validationException",
    ],
)
def test_an_exception_in_the_stream_is_its_end(name: str) -> None:
    decoded = decode(
        START, delta(0, text="Hi"), {name: {"message": "No more"}}, delta(0, text="x"), message_stop()
    )
    assert decoded[2:] == [TextDelta(0, "Hi"), StreamError("No more", name)]
    assert rd.providers.detect({name: {"message": "No more"}}) == "bedrock-converse"


def test_of_a_model_s_error_nothing_is_lost() -> None:
    error = {"message": "Failed", "originalStatusCode": 424, "originalMessage": "out of memory"}
    assert decode({"modelStreamErrorException": error}) == [
        ProviderEvent("bedrock", "error", error),
        StreamError("Failed", "modelStreamErrorException", "424"),
    ]


def test_the_body_of_an_answer_that_was_refused_is_an_error() -> None:
    assert decode({"message": "Denied"}) == [StreamError("Denied")]
    refused = {"__type": "ThrottlingException", "message": "Slow down"}
    assert decode(refused) == [StreamError("Slow down", "ThrottlingException")]


def test_an_error_without_words_says_that_it_is_one() -> None:
    assert decode({"throttlingException": {}}) == [StreamError("unknown error", "throttlingException")]


# What isn't known.


def test_an_event_a_delta_or_a_start_of_another_make_is_kept() -> None:
    for chunk in ({"somethingNew": {"a": 1}}, delta(0, somethingNew={"a": 1})):
        (event,) = in_message(chunk)
        assert isinstance(event, ProviderEvent)
        assert thaw(event.payload) == chunk
    (block,) = blocks(block_start(0, somethingNew={"a": b"b"}), stop(0))
    assert block == {"type": "unsupported", "options": {"somethingNew": {"a": "Yg=="}}}


@pytest.mark.parametrize(
    ("chunk", "path"),
    [
        ({"messageStart": 1}, "messageStart"),
        (delta(None, text="x"), "contentBlockDelta.contentBlockIndex"),
        (delta(True, text="x"), "contentBlockDelta.contentBlockIndex"),
        (delta(-1, text="x"), "contentBlockDelta.contentBlockIndex"),
        (delta(0, text=5), "contentBlockDelta.delta.text"),
        (delta(0, reasoningContent={"text": 5}), "contentBlockDelta.delta.reasoningContent.text"),
        (delta(0, reasoningContent="x"), "contentBlockDelta.delta.reasoningContent"),
        (delta(0, toolUse=[]), "contentBlockDelta.delta.toolUse"),
        (delta(0, citation="x"), "contentBlockDelta.delta.citation"),
        (delta(0, image={"source": {"bytes": 5}}), "contentBlockDelta.delta.image.source.bytes"),
        (tool_use(0, 5), "contentBlockStart.start.toolUse.toolUseId"),  # type: ignore[arg-type]
        (stop("0"), "contentBlockStop.contentBlockIndex"),
        (message_stop(5), "messageStop.stopReason"),  # type: ignore[arg-type]
        ({"metadata": {"usage": []}}, "metadata.usage"),
        ({"output": {"message": {"content": {}}}}, "output.message.content"),
        ({"output": {"message": {"content": [{"text": 1}]}}}, "output.message.content[0].text"),
        ("text", ""),
        ({3: {"message": "x"}}, ""),  # a name that is no string can't come from JSON, but from a program
        ({"messageStart": {"role": "assistant"}, None: 1}, ""),
        ({b"messageStart": {}}, ""),
    ],
)
def test_a_malformed_chunk_is_named_by_the_path_to_its_fault(chunk: Any, path: str) -> None:
    with pytest.raises(MalformedChunkError) as caught:
        decode(chunk)
    assert caught.value.path == path


def test_an_absurd_index_is_refused() -> None:
    with pytest.raises(LimitExceededError):
        decode(delta(2**31, text="x"))
