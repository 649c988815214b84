"""Anthropic Messages: what each event of the API becomes."""

from __future__ import annotations

from typing import Any

import pytest
from support.anthropic_messages import (
    CALLER,
    PAGE,
    PING,
    RICH,
    STOP,
    WEB,
    Chunk,
    block_start,
    block_stop,
    calls,
    decode,
    delta,
    fold,
    in_message,
    message_delta,
    message_start,
    reply,
    text,
    tool_use,
    violations,
)

from rxdelta.core import LimitExceededError, MalformedChunkError
from rxdelta.core.events import (
    BlockStart,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    StreamError,
    TextDelta,
    UsageUpdate,
)
from rxdelta.formats.anthropic_messages.decoder import AnthropicMessagesDecoder

# -- the whole


def test_a_rich_stream_becomes_the_message_and_breaks_no_rule() -> None:
    decoded = decode(*RICH)
    assert violations(decoded) == []
    snapshot = fold(decoded)
    assert snapshot.to_message().to_dict() == {
        "role": "assistant",
        "status": "complete",
        "choice": 0,
        "id": "msg_1",
        "model": "claude-x",
        "blocks": [
            {
                "type": "reasoning",
                "text": "Let me see.",
                "options": {"signature": "c2ln", "signed_by": "anthropic"},
            },
            {
                "type": "reasoning",
                "text": "",
                "options": {"redacted": True, "data": "b3BhcXVl", "signed_by": "anthropic-messages"},
            },
            {
                "type": "server_tool_call",
                "call_id": "srvtoolu_1",
                "name": "web_search",
                "arguments": {"query": "dice"},
                "status": "complete",
                "metadata": {"provider_type": "server_tool_use"},
            },
            {
                "type": "server_tool_result",
                "options": {
                    "tool_call_id": "srvtoolu_1",
                    "output": [],
                    "provider_type": "web_search_tool_result",
                    "status": "success",
                },
            },
            {
                "type": "text",
                "text": "I roll two.",
                "citations": [
                    {"cited_text": "said A", "title": "A", "url": "https://a.example", "raw": WEB},
                    {"cited_text": "said B", "title": "Doc", "raw": PAGE},
                ],
            },
            {
                "type": "tool_call",
                "call_id": "toolu_1",
                "name": "roll",
                "arguments": {},
                "status": "complete",
            },
            {
                "type": "tool_call",
                "call_id": "toolu_2",
                "name": "roll",
                "arguments": {"sides": 20},
                "status": "complete",
            },
            {
                "type": "tool_call",
                "call_id": "toolu_3",
                "name": "roll",
                "arguments": {"sides": 6},
                "status": "complete",
                "metadata": {"caller": CALLER},
            },
        ],
        "finish_reason": "tool_use",
        "provider_finish_reason": "tool_use",
        "usage": {
            "input_tokens": 12,
            "output_tokens": 30,
            "cache_read_tokens": 7,
            "billed": {"input_tokens": 19, "output_tokens": 30, "cache_read_tokens": 7},
            "raw": {"input_tokens": 12, "output_tokens": 30, "cache_read_input_tokens": 7},
        },
    }


@pytest.mark.parametrize("length", range(len(RICH) + 1))
def test_a_stream_cut_after_any_chunk_is_incomplete_and_no_call_in_it_looks_whole_that_is_not(
    length: int,
) -> None:
    decoded = decode(*RICH[:length])
    allowed = (
        {"missing_message_finish", "missing_message_start"} if length == 0 else {"missing_message_finish"}
    )
    assert set(violations(decoded)) <= allowed
    snapshot = fold(decoded)
    done = any(chunk["type"] == "message_delta" for chunk in RICH[:length])
    assert snapshot.status == ("complete" if done else "incomplete")
    whole = {"toolu_1": ({}, 28), "toolu_2": ({"sides": 20}, 31), "toolu_3": ({"sides": 6}, 34)}
    for call in snapshot.tool_calls:
        arguments, after = whole[str(call.call_id)]
        assert (call.status == "complete") == (length >= after)
        if call.status == "complete":
            assert call.arguments == arguments


# -- message_start


def test_an_exact_second_message_start_is_ignored() -> None:
    assert decode(message_start(), message_start(), close=False) == [MessageStart("msg_1", "claude-x")]
    assert decode(
        message_start(), block_start(0, "text", text=""), message_start(), text(0, "a"), close=False
    )[1:] == [
        BlockStart(0, {"type": "text", "text": ""}),
        TextDelta(0, "a"),
    ]


def test_a_spliced_message_comes_behind_what_there_is() -> None:
    chunks = [
        block_start(2, "text", text="a"),
        message_start(id="msg_2"),
        block_start(0, "text", text="b"),
        text(0, "c"),
    ]
    assert in_message(*chunks)[1:] == [BlockStart(3, {"type": "text", "text": "b"}), TextDelta(3, "c")]


def test_a_call_without_arguments_before_a_splice_is_not_whole() -> None:
    chunks = [
        message_start(),
        tool_use(0),
        block_stop(0),
        message_start(id="msg_2"),
        message_delta("tool_use"),
        STOP,
    ]
    assert [call[0] for call in calls(reply(*chunks))] == ["invalid_tool_call"]


def test_a_message_start_after_the_end_begins_another_message_with_nothing_of_the_first() -> None:
    first = [
        message_start(usage={"input_tokens": 5, "cache_read_input_tokens": 4}),
        block_start(0, "text", text="a"),
        message_delta("max_tokens", stop_sequence="x"),
        STOP,
    ]
    second = [message_start(id="msg_2", usage={"input_tokens": 9}), block_start(0, "text", text="b"), STOP]
    decoded = decode(*first, *second)
    assert violations(decoded) == []
    snapshot = fold(decoded[4:])
    assert (snapshot.id, snapshot.text, snapshot.status) == ("msg_2", "b", "complete")
    assert snapshot.usage is not None
    assert snapshot.usage.raw == {"input_tokens": 9}
    assert snapshot.metadata == {}


def test_after_the_end_another_message_may_begin_and_the_rest_is_passed_on() -> None:
    late = [block_start(0, "text", text=""), text(0, "b"), {"type": "new"}]
    whole = decode(message_start(), STOP)
    passed_on = [ProviderEvent("anthropic", str(chunk["type"]), chunk) for chunk in late]
    assert decode(message_start(), STOP, message_start(), *late, PING, STOP) == [*whole, *passed_on]


def test_a_message_start_that_comes_late_is_told_by_what_may_still_be_told() -> None:
    usage = {"input_tokens": 3, "output_tokens": 1}
    late = decode(
        block_start(0, "text", text="a"),
        message_start(usage=usage),
        block_start(0, "text", text="b"),
        message_delta("end_turn"),
        STOP,
    )
    assert violations(late) == []
    snapshot = fold(late)
    assert (snapshot.text, snapshot.model, snapshot.id) == ("ab", "claude-x", "msg_1")
    assert snapshot.usage is not None
    assert snapshot.usage.input_tokens == 3


def test_a_body_cut_off_by_the_token_limit_has_no_call_without_arguments() -> None:
    content = [{"type": "tool_use", "id": "toolu_1", "name": "roll", "input": {}}]
    body = message_start(content=content, stop_reason="max_tokens", stop_sequence="x")["message"]
    snapshot = fold(decode(body))
    assert [call[0] for call in calls(snapshot)] == ["invalid_tool_call"]
    assert (snapshot.status, snapshot.metadata) == ("length", {"stop_sequence": "x"})


def test_a_body_amid_a_stream_is_no_event_of_it() -> None:
    body = message_start()["message"]
    assert in_message(body) == [ProviderEvent("anthropic", "message", body)]


# -- usage


def test_usage_is_overwritten_key_by_key_never_added_and_a_null_says_nothing() -> None:
    start = message_start(
        usage={"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 4, "geo": None}
    )
    new = {"output_tokens": 20, "cache_read_input_tokens": None, "server_tool_use": {"n": 1}, "geo": None}
    (update,) = decode(start, message_delta(None, new), close=False)[1:]
    assert isinstance(update, UsageUpdate)
    assert (update.usage.input_tokens, update.usage.output_tokens) == (10, 20)
    assert update.usage.raw == {
        "input_tokens": 10,
        "output_tokens": 20,
        "cache_read_input_tokens": 4,
        "geo": None,
        "server_tool_use": {"n": 1},
    }


# -- the message's end


def test_the_model_that_took_over_is_told_beside_the_one_that_began() -> None:
    block = block_start(0, "fallback", **{"from": {"model": "claude-x"}, "to": {"model": "claude-y"}})
    snapshot = reply(message_start(), block, block_stop(0), message_delta("end_turn"), STOP)
    assert (snapshot.model, snapshot.metadata) == ("claude-x", {"model_fallback": "claude-y"})
    assert snapshot.blocks[0].options == block["content_block"]
    assert reply(message_start(), block_start(0, "fallback", to="else"), STOP).metadata == {}


def test_close_finishes_a_message_only_if_its_stop_reason_has_come() -> None:
    chunks = [message_start(), block_start(0, "text", text=""), text(0, "a")]
    assert decode(*chunks) == decode(*chunks, close=False)
    assert decode(*chunks, message_delta("end_turn")) == decode(*chunks, message_delta("end_turn"), STOP)
    decoder = AnthropicMessagesDecoder()
    decoder.decode(message_delta("end_turn"))
    assert len(decoder.close()) == 1
    assert not decoder.close()
    assert list(decoder.decode(STOP)) == []


# -- all else


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (
            {"error": {"type": "overloaded_error", "message": "Overloaded"}},
            StreamError("Overloaded", "overloaded_error"),
        ),
        ({"error": {}}, StreamError("unknown error")),
        ({"error": "upstream is away"}, StreamError("upstream is away")),
    ],
)
def test_an_error_ends_the_stream(error: Chunk, event: StreamError) -> None:
    chunk = {"type": "error", **error}
    assert decode(chunk) == [event]
    assert decode(message_start(), message_delta("end_turn"), chunk, STOP)[1:] == [event]


def test_what_the_sdk_adds_to_the_stream_is_nothing() -> None:
    added = [
        {"type": "text", "text": "a", "snapshot": "a"},
        {"type": "input_json", "partial_json": "{", "snapshot": {}},
        {"type": "signature", "signature": "s"},
    ]
    assert in_message(*added) == []
    assert decode(message_start(), STOP | {"message": {"id": "msg_1"}})[-1] == MessageFinish("stop")
    assert in_message({"type": "text", "text": "a"}) != []


# -- what is malformed


@pytest.mark.parametrize("chunk", [None, 1, "data: {}", b"{}", [], [{}], dict])
def test_a_chunk_that_is_no_object_is_malformed(chunk: Any) -> None:
    with pytest.raises(MalformedChunkError) as caught:
        decode(chunk)
    assert (caught.value.wire_format, caught.value.path) == ("anthropic-messages", "")


@pytest.mark.parametrize(
    ("chunk", "path"),
    [
        ({}, "type"),
        ({"type": None}, "type"),
        ({"type": ["ping"]}, "type"),
        ({"type": "message_start"}, "message"),
        ({"type": "message_start", "message": []}, "message"),
        (message_start(id=1), "message.id"),
        (message_start(model=[]), "message.model"),
        (message_start(usage=[]), "message.usage"),
        (message_start(content="Hi"), "message.content"),
        (message_start(content=[1]), "message.content[0]"),
        (message_start(content=[{"type": "text", "text": 1}]), "message.content[0].text"),
        ({"type": "message", "stop_reason": 1}, "stop_reason"),
        ({"type": "content_block_start", "index": 0, "content_block": []}, "content_block"),
        ({"type": "content_block_start", "index": 0}, "content_block"),
        ({"type": "content_block_start", "index": 0, "content_block": {}}, "content_block.type"),
        (block_start(0, "text", citations={}), "content_block.citations"),
        (block_start(0, "text", citations=["a"]), "content_block.citations[0]"),
        (block_start(0, "thinking", signature=1), "content_block.signature"),
        (block_start(0, "redacted_thinking", data=1), "content_block.data"),
        (tool_use(0, input=[]), "content_block.input"),
        (tool_use(0, name=1), "content_block.name"),  # type: ignore[arg-type]
        (block_start(0, "x_tool_result", tool_use_id=1), "content_block.tool_use_id"),
        (block_start(True, "text"), "index"),
        (block_start(0.0, "text"), "index"),
        (block_start("0", "text"), "index"),
        (block_start(-1, "text"), "index"),
        (block_start(None, "text"), "index"),
        (delta(True, "text_delta", text="a"), "index"),
        (delta(False, "text_delta", text="a"), "index"),
        (delta(0.0, "text_delta", text="a"), "index"),
        (delta([0], "text_delta", text="a"), "index"),
        (block_stop(1.0), "index"),
        (block_stop([]), "index"),
        ({"type": "content_block_delta", "index": 0, "delta": None}, "delta"),
        ({"type": "content_block_delta", "index": 0, "delta": "a"}, "delta"),
        ({"type": "content_block_delta", "index": 0, "delta": {"text": "a"}}, "delta.type"),
        ({"type": "content_block_delta", "index": 0, "delta": {"type": "", "text": "a"}}, "delta.type"),
        (delta(0, "text_delta", text=1), "delta.text"),
        (delta(0, "thinking_delta", thinking={}), "delta.thinking"),
        (delta(0, "input_json_delta", partial_json={}), "delta.partial_json"),
        (delta(0, "signature_delta", signature=1), "delta.signature"),
        (delta(0, "citations_delta", citation=None), "delta.citation"),
        ({"type": "message_delta", "delta": None}, "delta"),
        (message_delta(1), "delta.stop_reason"),  # type: ignore[arg-type]
        (message_delta("end_turn") | {"usage": 1}, "usage"),
        ({"type": "error"}, "error"),
        ({"type": "error", "error": []}, "error"),
        ({"type": "error", "error": {"message": 1}}, "error.message"),
    ],
)
def test_a_field_of_the_wrong_type_is_named_by_its_path(chunk: Chunk, path: str) -> None:
    chunks = [chunk]
    if chunk.get("type") == "content_block_delta":
        chunks = [message_start(), block_start(0, "text", text=""), chunk]
    with pytest.raises(MalformedChunkError) as caught:
        decode(*chunks)
    assert (caught.value.wire_format, caught.value.path) == ("anthropic-messages", path)


def test_an_absurd_index_is_beyond_the_limit() -> None:
    for chunk in (block_start(2**31, "text"), text(2**40, "a"), block_stop(2**31)):
        with pytest.raises(LimitExceededError):
            in_message(chunk)
    assert in_message(block_start(2**31 - 1, "text", text=""))


@pytest.mark.slow
def test_absurd_nesting_is_left_out_and_costs_nothing_else() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = {"a": deep}
    for chunk in (tool_use(0, input=deep), {"type": "new", "a": deep}, message_delta(None, deep)):
        for event in in_message(chunk):
            assert len(str(event.to_dict())) < 5_000
    while isinstance(deep, dict):  # taken apart here, because freeing it at once would recurse
        deep = deep.pop("a")
