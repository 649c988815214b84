"""Bedrock's ConverseStream: what each event of the API becomes, and that nothing else ever comes out."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rxdelta as rd
from rxdelta.core import (
    Fold,
    LimitExceededError,
    MalformedChunkError,
    ProtocolChecker,
    Snapshot,
    ToolCall,
    thaw,
)
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    Event,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)
from rxdelta.formats.bedrock_converse.decoder import BedrockConverseDecoder, recognises

if TYPE_CHECKING:
    from collections.abc import Iterable

Chunk = dict[str, Any]

START: Chunk = {"messageStart": {"role": "assistant", "p": "abc"}}
USAGE: Chunk = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}


def block_start(index: Any, **start: Any) -> Chunk:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": start, "p": "ab"}}


def delta(index: Any, **fields: Any) -> Chunk:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": fields, "p": "abcd"}}


def stop(index: Any) -> Chunk:
    return {"contentBlockStop": {"contentBlockIndex": index, "p": "a"}}


def tool_use(index: int, id: str | None = "tooluse_1", name: str = "roll", **fields: Any) -> Chunk:
    return block_start(index, toolUse={"toolUseId": id, "name": name, **fields})


def args(index: int, piece: Any) -> Chunk:
    return delta(index, toolUse={"input": piece})


def message_stop(reason: str | None = "end_turn", **fields: Any) -> Chunk:
    return {"messageStop": {"stopReason": reason, "p": "abc", **fields}}


def metadata(**fields: Any) -> Chunk:
    return {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 12}, "p": "abcdef", **fields}}


def decode(*chunks: Any, close: bool = True) -> list[Event]:
    decoder = BedrockConverseDecoder()
    decoded = [event for chunk in chunks for event in decoder.decode(chunk)]
    return decoded + list(decoder.close()) if close else decoded


def in_message(*chunks: Chunk) -> list[Event]:
    """The events of chunks in the middle of a message."""
    return decode(START, *chunks, close=False)[1:]


def fold(decoded: Iterable[Event]) -> Snapshot:
    folding = Fold()
    for event in decoded:
        folding.step(event)
    return folding.snapshot


def reply(*chunks: Chunk) -> Snapshot:
    return fold(decode(*chunks))


def blocks(*chunks: Chunk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        reply(START, *chunks, message_stop(), metadata()).to_message().to_dict()["blocks"]
    )
    return found


def only_part(decoded: Iterable[Event]) -> rd.ContentPart:
    (part,) = fold(decoded).blocks
    assert isinstance(part, rd.ContentPart)
    return part


def calls(snapshot: Snapshot) -> list[tuple[str, Any, Any]]:
    return [
        (call.type, call.call_id, thaw(call.arguments))
        for call in snapshot.blocks
        if isinstance(call, ToolCall)
    ]


def violations(decoded: Iterable[Event]) -> list[str]:
    lifecycle = ProtocolChecker()
    found = [lifecycle.check(event) for event in decoded]
    return [violation for violation in [*found, lifecycle.close()] if violation]


WEB = {"location": {"web": {"domain": "a.example", "url": "https://a.example/x"}}}
PAGE = {
    "title": "Tides",
    "source": "tides.pdf",
    "sourceContent": [{"text": "twice "}, {"text": "a day"}],
    "location": {"documentPage": {"documentIndex": 0, "start": 2, "end": 3}},
}

RICH: list[Chunk] = [
    START,
    delta(0, reasoningContent={"text": "Let me "}),
    delta(0, reasoningContent={"text": "see."}),
    delta(0, reasoningContent={"signature": "c2ln"}),
    stop(0),
    tool_use(1, "srv_1", "nova_grounding", type="server_tool_use"),
    args(1, '{"query": "tides"}'),
    stop(1),
    block_start(2, toolResult={"toolUseId": "srv_1", "type": "nova_grounding_result", "status": "success"}),
    delta(2, toolResult=[{"text": "twice a day"}]),
    delta(2, toolResult=[{"json": {"hits": 2}}]),
    stop(2),
    delta(3, text="Twice "),
    delta(3, text="a day"),
    stop(3),
    delta(4, citation=WEB),
    delta(4, citation=PAGE),
    stop(4),
    tool_use(5),
    args(5, ""),
    stop(5),
    tool_use(7, "tooluse_2"),
    args(7, '{"sides"'),
    args(7, ": 20}"),
    stop(7),
    message_stop("tool_use"),
    metadata(),
]


# The whole.


def test_a_rich_stream_becomes_the_message_and_breaks_no_rule() -> None:
    decoded = decode(*RICH)
    assert violations(decoded) == []
    assert fold(decoded).to_message().to_dict() == {
        "role": "assistant",
        "status": "complete",
        "choice": 0,
        "blocks": [
            {"type": "reasoning", "text": "Let me see.", "options": {"signature": "c2ln"}},
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


# Blocks and their starts.


def test_a_text_has_no_start_its_first_delta_is_it() -> None:
    assert in_message(delta(0, text="Hi"), delta(0, text="!"), stop(0)) == [
        BlockStart(0, {"type": "text", "text": ""}),
        TextDelta(0, "Hi"),
        TextDelta(0, "!"),
        BlockFinish(0),
    ]


def test_nor_has_a_reasoning_nor_a_block_of_citations() -> None:
    decoded = in_message(delta(0, reasoningContent={"text": "Hm"}), stop(0), delta(1, citation=WEB), stop(1))
    starts = [event.content["type"] for event in decoded if isinstance(event, BlockStart)]
    assert starts == ["reasoning", "text"]
    assert ReasoningDelta(0, "Hm") in decoded


@pytest.mark.parametrize("padding", [{"p": "abcdefgh"}, {}], ids=["on the wire", "in boto3"])
def test_padding_is_nothing(padding: Chunk) -> None:
    chunks: list[Chunk] = [
        {"messageStart": {"role": "assistant", **padding}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "a"}, **padding}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "b"}, **padding}},
        {"contentBlockStop": {"contentBlockIndex": 0, **padding}},
        {"messageStop": {"stopReason": "end_turn", **padding}},
        {"metadata": {"usage": USAGE, **padding}},
    ]
    message = reply(*chunks).to_message()
    assert (message.text, message.metadata) == ("ab", {})
    assert message.usage is not None
    assert message.usage.raw == USAGE


def test_a_text_with_an_empty_start_and_an_empty_first_delta_is_one_text() -> None:
    assert blocks(block_start(0), delta(0, text=""), delta(0, text="Hi"), stop(0)) == [
        {"type": "text", "text": "Hi"}
    ]


def test_an_empty_text_opens_nothing_so_that_a_reasoning_may_follow_in_its_place() -> None:
    found = blocks(delta(0, text=""), delta(0, reasoningContent={"text": "Hm"}), stop(0))
    assert found == [{"type": "reasoning", "text": "Hm"}]


def test_another_kind_at_the_same_index_is_another_block() -> None:
    decoded = in_message(
        delta(0, reasoningContent={"text": "Hm"}), delta(0, text="Hi"), stop(0), delta(1, text="x")
    )
    assert [(event.index, event.content["type"]) for event in decoded if isinstance(event, BlockStart)] == [
        (0, "reasoning"),
        (1, "text"),
        (2, "text"),
    ]
    assert BlockFinish(0) in decoded


def test_nova_numbers_every_piece_of_its_text_so_there_are_many_blocks_and_one_text() -> None:
    chunks = [
        chunk for n, piece in enumerate(["It", " sounds", "."]) for chunk in (delta(n, text=piece), stop(n))
    ]
    snapshot = reply(START, *chunks, tool_use(6), args(6, "{}"), stop(6), message_stop("tool_use"))
    assert snapshot.text == "It sounds."
    assert [block.key for block in snapshot.blocks] == [0, 1, 2, 6]


def test_thinking_tags_in_a_text_are_text() -> None:
    assert blocks(delta(0, text="<thinking>Hm</thinking>Hi"))[0]["text"] == "<thinking>Hm</thinking>Hi"


def test_a_block_that_is_never_stopped_is_finished_with_the_message() -> None:
    decoded = decode(
        START, delta(0, text="Hi"), tool_use(1), args(1, '{"a": 1}'), stop(1), message_stop("tool_use")
    )
    assert violations(decoded) == []
    assert decoded.index(BlockFinish(1)) < decoded.index(BlockFinish(0))
    assert calls(fold(decoded)) == [("tool_call", "tooluse_1", {"a": 1})]


def test_without_a_message_start_there_is_one_all_the_same() -> None:
    assert decode(tool_use(0), close=False)[0] == MessageStart()
    assert decode(message_stop())[0] == MessageStart()
    assert decode(metadata())[0] == MessageStart()


def test_a_start_or_stop_sent_twice_is_one() -> None:
    once = [START, tool_use(0), args(0, "{}"), stop(0), message_stop("tool_use"), metadata()]
    twice = [START, START, tool_use(0), tool_use(0), args(0, "{}"), stop(0), stop(0), *once[4:]]
    assert decode(*twice) == decode(*once)


# Calls.


def test_a_call_without_arguments_is_finished_when_it_is_known_that_the_message_went_on() -> None:
    for behind in (delta(1, text="x"), tool_use(1, "t2"), delta(1, reasoningContent={"text": "x"})):
        assert BlockFinish(0) not in in_message(tool_use(0), stop(0))
        assert in_message(tool_use(0), stop(0), behind)[1] == BlockFinish(0)
    assert calls(reply(START, tool_use(0), stop(0), message_stop("tool_use"))) == [
        ("tool_call", "tooluse_1", {})
    ]


def test_text_that_goes_on_in_an_older_block_releases_it_too() -> None:
    decoded = in_message(delta(0, text="a"), tool_use(1), stop(1), delta(0, text="b"))
    assert decoded[-2:] == [BlockFinish(1), TextDelta(0, "b")]


def test_a_first_piece_of_arguments_may_be_empty() -> None:
    decoded = in_message(tool_use(0), args(0, ""), args(0, '{"a"'), args(0, ": 1}"), stop(0))
    assert decoded[1:] == [ToolCallDelta(0, '{"a"'), ToolCallDelta(0, ": 1}"), BlockFinish(0)]


def test_parallel_calls() -> None:
    chunks = [tool_use(0, "a"), args(0, '{"n": 1}'), stop(0), tool_use(1, "b"), args(1, '{"n": 2}'), stop(1)]
    assert calls(reply(START, *chunks, message_stop("tool_use"))) == [
        ("tool_call", "a", {"n": 1}),
        ("tool_call", "b", {"n": 2}),
    ]


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([tool_use(0)], id="before its arguments"),
        pytest.param([tool_use(0), stop(0)], id="before its arguments, and stopped"),
        pytest.param([tool_use(0), args(0, '{"a"')], id="amid them"),
        pytest.param([tool_use(0), args(0, '{"a"'), stop(0)], id="amid them, and stopped"),
        pytest.param([tool_use(0), args(0, "{}")], id="at what looks whole, but was not stopped"),
    ],
)
def test_a_call_cut_off_by_the_token_limit_is_never_one_to_run(chunks: list[Chunk], reason: str) -> None:
    snapshot = reply(START, *chunks, message_stop(reason), metadata())
    assert [kind for kind, _, _ in calls(snapshot)] == ["invalid_tool_call"]
    assert snapshot.to_message().status == "length"


def test_a_call_whose_arguments_are_no_json_is_invalid_and_keeps_them() -> None:
    snapshot = reply(START, tool_use(0), args(0, '{"a": '), stop(0), message_stop("tool_use"))
    assert calls(snapshot) == [("invalid_tool_call", "tooluse_1", '{"a": ')]


def test_arguments_may_be_an_object() -> None:
    assert calls(reply(START, tool_use(0), args(0, {"a": 1}), args(0, "x"), stop(0), message_stop()))[0][
        2
    ] == {"a": 1}
    assert calls(reply(START, tool_use(0, input={"a": 1}), stop(0), message_stop()))[0][2] == {"a": 1}


def test_a_call_without_an_id_gets_one() -> None:
    call = reply(START, tool_use(3, None), stop(3), message_stop()).tool_calls[0]
    assert (call.call_id, call.metadata) == ("call-3", {"synthetic_id": True})


def test_a_call_that_calls_itself_one_is_ours_to_run() -> None:
    assert calls(reply(START, tool_use(0, type="tool_use"), stop(0), message_stop()))[0][0] == "tool_call"


def test_a_call_in_whose_place_another_block_begins_is_no_call_to_run() -> None:
    found = calls(reply(START, tool_use(0, "a"), tool_use(0, "b"), stop(0), message_stop()))
    assert [(kind, call_id) for kind, call_id, _ in found] == [("invalid_tool_call", "a"), ("tool_call", "b")]


def test_arguments_of_no_call_are_passed_on() -> None:
    chunk = args(4, "{}")
    assert in_message(chunk) == [ProviderEvent("bedrock", "contentBlockDelta", chunk)]
    assert in_message(args(4, "")) == []


# The provider's own tools.


def test_a_tool_that_nova_runs_is_never_ours_to_run() -> None:
    snapshot = reply(*RICH)
    assert [call.call_id for call in snapshot.tool_calls] == ["tooluse_1", "tooluse_2"]
    only = [START, tool_use(0, type="server_tool_use"), args(0, "{}"), stop(0), message_stop("end_turn")]
    assert reply(*only).finish_reason == "stop"


def test_the_parts_of_a_result_are_joined_and_seen_before_it_has_ended() -> None:
    start = block_start(0, toolResult={"toolUseId": "s"})
    chunks = [start, *(delta(0, toolResult=[{"text": str(n)}]) for n in range(100))]
    early = only_part(in_message(*chunks)).options["output"]
    assert len(early) > 80
    decoded = in_message(*chunks, stop(0))
    assert [item["text"] for item in only_part(decoded).options["output"]] == [str(n) for n in range(100)]
    assert sum(isinstance(event, BlockDelta) for event in decoded) < 50


def test_a_result_that_never_began_is_passed_on() -> None:
    chunk = delta(0, toolResult=[{"text": "x"}])
    assert in_message(chunk) == [ProviderEvent("bedrock", "contentBlockDelta", chunk)]


# Reasoning.


def test_a_reasoning_keeps_its_signature_also_one_in_pieces() -> None:
    assert blocks(
        delta(0, reasoningContent={"text": "Hm"}), delta(0, reasoningContent={"signature": "abc"})
    ) == [{"type": "reasoning", "text": "Hm", "options": {"signature": "abc"}}]
    pieces = [delta(0, reasoningContent={"signature": piece}) for piece in "abcdefghijklmnop"]
    assert blocks(*pieces, stop(0))[0]["options"] == {"signature": "abcdefghijklmnop"}


@pytest.mark.parametrize("whole", [b"\x00opaque\xff", b"ab"])
def test_redacted_content_is_base64_whatever_it_came_as(whole: bytes) -> None:
    text = base64.b64encode(whole).decode()
    wanted = [{"type": "reasoning", "text": "", "options": {"redacted": True, "data": text}}]
    assert blocks(delta(0, reasoningContent={"redactedContent": whole}), stop(0)) == wanted
    assert blocks(delta(0, reasoningContent={"redactedContent": text}), stop(0)) == wanted
    pieces = [delta(0, reasoningContent={"redactedContent": whole[n : n + 1]}) for n in range(len(whole))]
    assert blocks(*pieces, stop(0)) == wanted
    body = {"output": {"message": {"content": [{"reasoningContent": {"redactedContent": whole}}]}}}
    assert reply({**body, "stopReason": "end_turn"}).to_message().to_dict()["blocks"] == wanted


def test_what_is_no_base64_is_joined_as_it_is() -> None:
    pieces = [delta(0, reasoningContent={"redactedContent": piece}) for piece in ("?!", "ab")]
    assert blocks(*pieces, stop(0))[0]["options"]["data"] == "?!ab"


# Images.


def test_an_image_in_pieces_is_one_base64_text() -> None:
    data = bytes(range(20))
    pieces = [data[:4], data[4:5], data[5:]]
    for form in (bytes, lambda piece: base64.b64encode(piece).decode()):
        deltas = [delta(0, image={"source": {"bytes": form(piece)}}) for piece in pieces]
        decoded = in_message(block_start(0, image={"format": "png"}), *deltas, stop(0))
        assert sum(isinstance(event, DataDelta) for event in decoded) == 3
        (image,) = fold(decoded).blocks
        assert image.to_dict() == {
            "key": 0,
            "type": "image",
            "text": base64.b64encode(data).decode(),
            "options": {"format": "png", "mime_type": "image/png"},
        }


def test_an_image_may_lie_elsewhere_or_have_failed() -> None:
    (image,) = blocks(
        block_start(0, image={"format": "png"}),
        delta(0, image={"source": {"s3Location": {"uri": "s3://b/k"}}}),
        delta(0, image={"error": {"message": "blocked"}}),
        stop(0),
    )
    assert image["options"]["source"] == {"s3Location": {"uri": "s3://b/k"}}
    assert image["options"]["error"] == {"message": "blocked"}


def test_the_media_of_a_body() -> None:
    content: list[Chunk] = [
        {"image": {"format": "png", "source": {"bytes": b"abc"}}},
        {"audio": {"format": "mp3", "source": {"bytes": b"abcd"}}},
        {"video": {"format": "mp4", "source": {"s3Location": {"uri": "s3://b/k"}}}},
        {"document": {"format": "txt", "name": "n", "source": {"bytes": "YQ=="}}},
        {"guardContent": {"image": {"format": "png", "source": {"bytes": b"abc"}}}},
    ]
    snapshot = reply({"output": {"message": {"content": content}}, "stopReason": "end_turn"})
    kinds = [(block.type, getattr(block, "text", None)) for block in snapshot.blocks]
    assert kinds == [
        ("image", "YWJj"),
        ("audio", "YWJjZA=="),
        ("video", None),
        ("file", "YQ=="),
        ("unsupported", None),
    ]
    guard = snapshot.blocks[-1]
    assert isinstance(guard, rd.ContentPart)
    assert thaw(guard.options) == {"guardContent": {"image": {"format": "png", "source": {"bytes": "YWJj"}}}}


# Citations.


def test_citations_in_a_text_are_that_text_s() -> None:
    (text,) = blocks(delta(0, text="Twice"), delta(0, citation=WEB), delta(0, text=" a day"), stop(0))
    assert (text["text"], text["citations"]) == ("Twice a day", [{"url": "https://a.example/x", "raw": WEB}])


def test_many_citations_are_told_in_steps_and_none_is_lost() -> None:
    decoded = in_message(*[delta(0, citation={**WEB, "title": str(n)}) for n in range(100)], stop(0))
    assert sum(isinstance(event, BlockDelta) for event in decoded) < 50
    assert [citation.title for citation in only_part(decoded).citations] == [str(n) for n in range(100)]


@pytest.mark.parametrize("end", [[], [{"throttlingException": {"message": "Too many requests"}}]])
def test_a_stream_that_breaks_off_loses_no_citation(end: list[Chunk]) -> None:
    decoded = decode(START, *[delta(0, citation={**WEB, "title": str(n)}) for n in range(100)], *end)
    last = [event for event in decoded if isinstance(event, BlockDelta)][-1]
    assert len(last.fields["citations"]) == 100


# The end.


def test_the_message_finishes_with_the_usage_which_follows_the_stop() -> None:
    assert isinstance(decode(START, message_stop(), close=False)[-1], MessageStart)
    finish = decode(START, message_stop(), metadata(), close=False)[-1]
    assert isinstance(finish, MessageFinish)
    assert finish.usage is not None
    assert (finish.usage.input_tokens, finish.usage.output_tokens, thaw(finish.usage.raw)) == (7, 3, USAGE)


def test_metadata_before_the_stop_is_told_at_once_and_the_stop_is_the_end() -> None:
    decoded = decode(START, metadata(), message_stop(), close=False)
    assert isinstance(decoded[1], UsageUpdate)
    assert isinstance(decoded[-1], MessageFinish)


def test_without_metadata_the_message_finishes_with_the_input_and_has_no_usage() -> None:
    message = reply(START, delta(0, text="Hi"), message_stop()).to_message()
    assert (message.text, message.usage) == ("Hi", None)


def test_without_a_stop_it_was_cut_off() -> None:
    assert reply(START, delta(0, text="Hi"), stop(0), metadata()).status == "incomplete"


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("malformed_model_output", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("content_filtered", "content_filter"),
        ("guardrail_intervened", "content_filter"),
        ("something_new", "stop"),
    ],
)
def test_finish_reasons(word: str, reason: str) -> None:
    message = reply(START, delta(0, text="Hi"), message_stop(word), metadata()).to_message()
    assert (message.finish_reason, message.provider_finish_reason) == (reason, word)


def test_of_two_stops_the_first_counts() -> None:
    message = reply(
        START, tool_use(0), stop(0), message_stop("max_tokens"), message_stop("tool_use")
    ).to_message()
    assert (message.provider_finish_reason, [call.type for call in message.blocks]) == (
        "max_tokens",
        ["invalid_tool_call"],
    )


def test_a_stop_without_a_reason_is_an_end() -> None:
    message = reply(START, delta(0, text="Hi"), {"messageStop": {}}).to_message()
    assert (message.finish_reason, message.provider_finish_reason) == ("stop", None)


def test_the_model_s_own_fields_the_trace_and_the_tier_are_the_message_s_metadata() -> None:
    trace: Chunk = {"guardrail": {"inputAssessment": {"g": {"topicPolicy": {"topics": []}}}}}
    chunks = [
        message_stop(
            "guardrail_intervened", additionalModelResponseFields={"delta": {"stop_sequence": None}}
        ),
        metadata(trace=trace, serviceTier={"type": "flex"}, performanceConfig={"latency": "optimized"}),
    ]
    assert thaw(reply(START, *chunks).to_message().metadata) == {
        "additionalModelResponseFields": {"delta": {"stop_sequence": None}},
        "metrics": {"latencyMs": 12},
        "trace": trace,
        "serviceTier": {"type": "flex"},
        "performanceConfig": {"latency": "optimized"},
    }


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
        ProviderEvent("bedrock", "modelStreamErrorException", error),
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


def test_an_empty_chunk_and_a_null_say_nothing() -> None:
    assert in_message({}, {"p": "abc"}, delta(0, text=None, toolUse=None)) == []


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


def test_what_came_before_the_fault_in_a_chunk_comes_out_with_the_next() -> None:
    decoder = BedrockConverseDecoder()
    body = {"output": {"message": {"content": [{"text": "Hi"}, {"text": 5}]}}, "stopReason": "end_turn"}
    with pytest.raises(MalformedChunkError):
        decoder.decode(body)
    assert fold(decoder.close()).text == "Hi"


# Recognising.


@pytest.mark.parametrize("chunk", [*RICH, {**metadata(), "amazon-bedrock-invocationMetrics": {}}])
def test_every_chunk_is_recognised(chunk: Chunk) -> None:
    assert rd.providers.detect(chunk) == "bedrock-converse"


@pytest.mark.parametrize(
    "chunk",
    [
        {"outputText": "Hi", "index": 0, "completionReason": None},
        {"generation": "Hi", "prompt_token_count": 3, "stop_reason": None},
        {"results": [{"generated_text": "Hi", "stop_reason": "not_finished"}]},
        {"value": "Hi"},
        {"metadata": {"usage": {"prompt_tokens": 1}}},
        {"output": {"text": "Hi"}},
        {"messageStart": "x"},
    ],
)
def test_other_models_own_formats_are_no_format_of_ours(chunk: Chunk) -> None:
    assert not recognises(chunk)
    with pytest.raises(rd.UnknownWireFormatError):
        rd.providers.detect(chunk)


# Anything at all.

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2**33)
    | st.floats()
    | st.text(max_size=6)
    | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def sometimes(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 11).flatmap(lambda n: json_values if n == 0 else good)


indexes = sometimes(st.integers(0, 3))
words = st.sampled_from(["", "a", '{"a"', ": 1}", "{}", "YQ=="])
ids = st.sampled_from(["t1", "t2", "", None])
sources = st.fixed_dictionaries(
    {}, optional={"bytes": sometimes(st.binary(max_size=5) | words), "s3": json_values}
)
media = st.fixed_dictionaries(
    {}, optional={"format": words, "source": sometimes(sources), "error": json_values}
)
starts = st.fixed_dictionaries(
    {},
    optional={
        "toolUse": sometimes(
            st.fixed_dictionaries(
                {"toolUseId": ids, "name": words},
                optional={"type": st.sampled_from(["server_tool_use", "tool_use"]), "input": json_values},
            )
        ),
        "toolResult": sometimes(st.fixed_dictionaries({"toolUseId": ids}, optional={"type": words})),
        "image": sometimes(media),
        "new": json_values,
    },
)
deltas = st.fixed_dictionaries(
    {},
    optional={
        "text": sometimes(words),
        "reasoningContent": sometimes(
            st.dictionaries(st.sampled_from(["text", "signature", "redactedContent", "x"]), words, max_size=2)
        ),
        "toolUse": sometimes(st.fixed_dictionaries({"input": sometimes(words)})),
        "toolResult": sometimes(st.lists(json_values, max_size=2)),
        "citation": sometimes(st.just(WEB)),
        "image": sometimes(media),
        "new": json_values,
    },
)
reasons = st.sampled_from(["end_turn", "tool_use", "max_tokens", None])
chunks = st.one_of(
    st.just(START),
    st.builds(lambda index, start: block_start(index, **start), indexes, starts),
    st.builds(lambda index, fields: delta(index, **fields), indexes, deltas),
    st.builds(lambda index, fields: delta(index, **fields), indexes, deltas),
    st.builds(stop, indexes),
    st.builds(message_stop, reasons),
    st.builds(lambda usage: {"metadata": {"usage": usage}}, sometimes(st.just(USAGE))),
    st.dictionaries(
        st.sampled_from(["throttlingException", "new", "metadata", "amazon-bedrock-x"]), json_values
    ),
    st.builds(
        lambda content, reason: {"output": {"message": {"content": content}}, "stopReason": reason},
        sometimes(st.lists(starts | deltas, max_size=3)),
        reasons,
    ),
)


@pytest.mark.slow
@given(stream=st.lists(chunks, max_size=20), begun=st.booleans())
@settings(max_examples=300, deadline=None)
def test_whatever_comes_gives_events_in_legal_order_or_one_of_our_errors(
    stream: list[Chunk], begun: bool
) -> None:
    decoder = BedrockConverseDecoder()
    decoded: list[Event] = []
    for chunk in [START, *stream] if begun else stream:
        recognises(chunk)
        with suppress(MalformedChunkError, LimitExceededError):
            decoded += decoder.decode(chunk)
    decoded += decoder.close()
    lifecycle, folding = ProtocolChecker(), Fold()
    for event in decoded:
        json.dumps(event.to_dict()).encode()
        if isinstance(event, MessageStart) and folding.snapshot.status != "incomplete":
            lifecycle, folding = ProtocolChecker(), Fold()
        assert lifecycle.check(event) in (None, "error_event")
        if isinstance(event, StreamError):
            assert event is decoded[-1]
        else:
            folding.step(event)


@given(stream=st.lists(json_values, max_size=4))
def test_any_json_gives_events_or_one_of_our_errors(stream: list[Any]) -> None:
    for chunk in stream:
        with suppress(MalformedChunkError, LimitExceededError):
            decode(chunk)


def test_what_is_nested_absurdly_deep_is_no_crash() -> None:
    deep: Any = 0
    for _ in range(5000):
        deep = {"a": deep}
    with suppress(rd.RxDeltaError):
        decode(
            START, {"new": deep}, block_start(0, new=deep), message_stop(additionalModelResponseFields=deep)
        )
