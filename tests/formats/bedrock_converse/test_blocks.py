"""Bedrock's ConverseStream: the blocks of a message."""

from __future__ import annotations

import base64

import pytest
from support.bedrock_converse import (
    RICH,
    START,
    WEB,
    Chunk,
    args,
    block_start,
    blocks,
    calls,
    decode,
    delta,
    fold,
    in_message,
    message_stop,
    metadata,
    only_part,
    reply,
    stop,
    tool_use,
)

import rxdelta as rd
from rxdelta.core import thaw
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    DataDelta,
    ProviderEvent,
    TextDelta,
)

# Blocks and their starts.


def test_a_start_or_stop_sent_twice_is_one() -> None:
    once = [START, tool_use(0), args(0, "{}"), stop(0), message_stop("tool_use"), metadata()]
    twice = [START, START, tool_use(0), tool_use(0), args(0, "{}"), stop(0), stop(0), *once[4:]]
    assert decode(*twice) == decode(*once)


# Calls.


def test_text_that_goes_on_in_an_older_block_releases_it_too() -> None:
    decoded = in_message(delta(0, text="a"), tool_use(1), stop(1), delta(0, text="b"))
    assert decoded[-2:] == [BlockFinish(1), TextDelta(0, "b")]


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


def test_a_call_in_whose_place_another_block_begins_is_no_call_to_run() -> None:
    found = calls(reply(START, tool_use(0, "a"), tool_use(0, "b"), stop(0), message_stop()))
    assert [(kind, call_id) for kind, call_id, _ in found] == [("invalid_tool_call", "a"), ("tool_call", "b")]


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
    ) == [{"type": "reasoning", "text": "Hm", "options": {"signature": "abc", "signed_by": "anthropic"}}]
    pieces = [delta(0, reasoningContent={"signature": piece}) for piece in "abcdefghijklmnop"]
    assert blocks(*pieces, stop(0))[0]["options"] == {
        "signature": "abcdefghijklmnop",
        "signed_by": "anthropic",
    }


@pytest.mark.parametrize("whole", [b"\x00opaque\xff", b"ab"])
def test_redacted_content_is_base64_whatever_it_came_as(whole: bytes) -> None:
    text = base64.b64encode(whole).decode()
    wanted = [
        {
            "type": "reasoning",
            "text": "",
            "options": {"redacted": True, "data": text, "signed_by": "bedrock-converse"},
        }
    ]
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


@pytest.mark.parametrize("end", [[], [{"throttlingException": {"message": "Too many requests"}}]])
def test_a_stream_that_breaks_off_loses_no_citation(end: list[Chunk]) -> None:
    decoded = decode(START, *[delta(0, citation={**WEB, "title": str(n)}) for n in range(100)], *end)
    last = [event for event in decoded if isinstance(event, BlockDelta)][-1]
    assert len(last.fields["citations"]) == 100
