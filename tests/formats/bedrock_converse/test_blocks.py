"""Bedrock's ConverseStream: the blocks of a message."""

from __future__ import annotations

import base64

import pytest
from support.bedrock_converse import (
    RICH,
    START,
    USAGE,
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
    violations,
)

import rxdelta as rd
from rxdelta.core import thaw
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)

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


def test_many_citations_are_told_in_steps_and_none_is_lost() -> None:
    decoded = in_message(*[delta(0, citation={**WEB, "title": str(n)}) for n in range(100)], stop(0))
    assert sum(isinstance(event, BlockDelta) for event in decoded) < 50
    assert [citation.title for citation in only_part(decoded).citations] == [str(n) for n in range(100)]


@pytest.mark.parametrize("end", [[], [{"throttlingException": {"message": "Too many requests"}}]])
def test_a_stream_that_breaks_off_loses_no_citation(end: list[Chunk]) -> None:
    decoded = decode(START, *[delta(0, citation={**WEB, "title": str(n)}) for n in range(100)], *end)
    last = [event for event in decoded if isinstance(event, BlockDelta)][-1]
    assert len(last.fields["citations"]) == 100
