"""A choice's content, and the fields of a delta that have no file of their own."""

from __future__ import annotations

from typing import Any

import pytest
from support.openai_chat import (
    USAGE,
    Chunk,
    annotation,
    call,
    chunk,
    decode,
    fold,
    fragment,
    of_type,
    parts_of,
    reply,
    shape,
    text,
    usage,
    violations,
)

from rxdelta.core import MalformedChunkError
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageStart,
    TextDelta,
    UsageUpdate,
)
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder


def test_a_text_stream_is_start_deltas_finish() -> None:
    found = decode(
        chunk({"role": "assistant", "content": ""}), text("Hel"), text("lo"), chunk({}, "stop"), usage()
    )

    assert [type(event) for event in found] == [
        MessageStart, BlockStart, TextDelta, TextDelta, BlockFinish, UsageUpdate, MessageFinish,
    ]  # fmt: skip
    message = fold(found)
    assert (message.id, message.model, message.text, message.status) == ("c1", "m", "Hello", "complete")
    assert (message.finish_reason, message.provider_finish_reason) == ("stop", "stop")
    assert message.usage is not None
    assert (message.usage.input_tokens, message.usage.output_tokens, message.usage.raw) == (7, 3, USAGE)


@pytest.mark.parametrize(
    "nothing", [{}, {"content": ""}, {"content": None}, {"content": []}, {"role": "assistant"}, None]
)
def test_an_empty_delta_makes_no_block(nothing: Any) -> None:
    empty = chunk({}) | {"choices": [{"index": 0, "delta": nothing}]}
    message = reply(empty, call(fragment(0, "{}", "a", "f")), empty, chunk({}, "tool_calls"))
    assert shape(message) == [("tool_call", "f")]


def test_the_last_text_may_come_with_the_finish_reason() -> None:
    assert reply(text("a"), text("b", "stop")).text == "ab"


def test_another_kind_ends_a_text_at_once_and_text_after_it_is_a_new_block() -> None:
    found = decode(
        text("a"), call(fragment(0, "{}", "x", "f")), text("b"), chunk({"refusal": "no"}), text("c", "stop")
    )
    assert violations(found) == []
    assert shape(fold(found)) == [
        ("text", "a"),
        ("tool_call", "f"),
        ("text", "b"),
        ("refusal", "no"),
        ("text", "c"),
    ]
    starts_and_finishes = [
        event.event[14:] + str(event.index) for event in found if type(event) in (BlockStart, BlockFinish)
    ]
    assert starts_and_finishes == [
        "start0", "finish0", "start1", "start2", "finish2", "start3", "finish3", "start4", "finish1", "finish4",
    ]  # fmt: skip


def test_role_on_every_chunk_opens_nothing() -> None:
    found = decode(*(chunk({"role": "assistant", "content": piece}) for piece in "abc"), chunk({}, "stop"))
    assert len(of_type(MessageStart, found)) == 1
    assert fold(found).text == "abc"


@pytest.mark.parametrize("extra", ["native_finish_reason", "logprobs"])
def test_a_plain_chunk_and_a_careful_one_say_the_same(extra: str) -> None:
    plain = decode(text("a"), text("b"), close=False)
    assert decode(text("a"), text("b", said={extra: None}), close=False) == plain
    assert decode(text("a"), text("b", said={extra: {"x": [1]}}), close=False) == plain
    assert decode(text("a"), text("b", said={"extra": 1}), close=False) == plain


@pytest.mark.parametrize("index", [True, False])
def test_an_index_that_only_equals_a_number_is_not_one(index: Any) -> None:
    decoder = OpenAIChatDecoder()
    decoder.decode(text("a"))
    with pytest.raises(MalformedChunkError) as caught:
        decoder.decode(text("b", index=index))
    assert caught.value.path == "choices[0].index"


def test_content_may_be_a_list_of_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, {"type": "reference", "ids": [1]}]},
        {"type": "thinking", "thinking": "so", "signature": "s"},
        {"type": "text", "text": "Hi"},
        "!",
        {"type": "image_url", "image_url": "https://x/y.png"},
        {"type": "refusal", "refusal": "no"},
        {"type": "tool_use", "id": "t", "name": "evil", "input": {}},
    ]
    message = reply(chunk({"content": parts}), chunk({"content": [{"type": "text", "text": "."}]}, "stop"))
    assert shape(message) == [
        ("reasoning", "hm"), ("unsupported", None), ("reasoning", "so"), ("text", "Hi!"), ("image", None),
        ("refusal", "no"), ("unsupported", None), ("text", "."),
    ]  # fmt: skip
    reasoning, passed_on = parts_of(message)[2], parts_of(message)[6]
    assert reasoning.options == {
        "sent_as": "thinking",
        "signature": "s",
        "signed_by": "mistral via openai-chat",
    }
    assert passed_on.options == parts[-1]
    assert message.tool_calls == ()


def test_a_reasoning_in_the_content_may_have_a_summary_with_its_signature() -> None:
    def said(text: str, signature: str) -> Chunk:
        summary = [{"type": "summary_text", "text": text, "signature": signature}]
        return chunk({"content": [{"type": "reasoning", "summary": summary}]})

    message = reply(
        said("Hm", ""),
        said("m.", ""),
        said("", "s"),
        chunk({"content": [{"type": "text", "text": "Hi"}]}, "stop"),
    )
    assert shape(message) == [("reasoning", "Hmm."), ("text", "Hi")]
    (reasoning, _) = parts_of(message)
    assert reasoning.options == {
        "provider_type": "summary_text",
        "signature": "s",
        "signed_by": "openai-chat",
    }


def test_refusal_is_a_block_of_its_own_and_null_or_empty_beside_content_is_nothing() -> None:
    message = reply(chunk({"content": "a", "refusal": None}), chunk({"content": "b", "refusal": ""}, "stop"))
    assert shape(message) == [("text", "ab")]
    assert shape(reply(chunk({"refusal": "I "}), chunk({"refusal": "won't"}, "stop"))) == [
        ("refusal", "I won't")
    ]


def test_annotations_are_citations_of_the_text_being_written() -> None:
    message = reply(
        chunk({"content": "a", "annotations": [annotation(0)]}), chunk({"annotations": [annotation(1)]}),
        chunk({"annotations": [{"url": "u2", "cited_text": "w"}]}, "stop"),
    )  # fmt: skip
    first, second, third = parts_of(message)[0].citations
    assert first.to_dict() == {
        "cited_text": "words", "title": "t0", "url": "u0", "start_index": 0, "end_index": 1, "raw": annotation(0),
    }  # fmt: skip
    assert (second.url, third.url, third.cited_text) == ("u1", "u2", "w")


def test_annotations_before_a_text_are_citations_of_it() -> None:
    found = [chunk({"content": "", "annotations": [annotation(n)]}) for n in range(2)]
    message = reply(
        *found, chunk({"reasoning": "Hm"}), text("a"), chunk({"annotations": [annotation(2)]}, "stop")
    )
    assert [citation.url for citation in parts_of(message)[1].citations] == ["u0", "u1", "u2"]
    assert "annotations" not in message.metadata


def test_annotations_without_a_text_are_kept_for_the_finish() -> None:
    message = reply(chunk({"content": "a"}), chunk({}, "stop"), chunk({"annotations": [annotation(0)]}))
    assert parts_of(message)[0].citations == ()
    assert message.metadata["annotations"] == [annotation(0)]


def test_many_annotations_are_told_in_linear_space() -> None:
    found = decode(
        text("a"), *(chunk({"annotations": [annotation(n)]}) for n in range(500)), chunk({}, "stop")
    )
    assert len(parts_of(fold(found))[0].citations) == 500
    assert sum(len(event.fields["citations"]) for event in of_type(BlockDelta, found)) < 12 * 500


def test_message_beside_delta_is_not_read() -> None:
    pieces = ["a", "ab", "abc"]
    chunks = [text(piece[-1], said={"message": {"role": "assistant", "content": piece}}) for piece in pieces]
    assert reply(*chunks, chunk({}, "stop")).text == "abc"


@pytest.mark.parametrize("delta", [{}, {"delta": None}])
def test_a_message_behind_the_deltas_sums_them_up_and_is_not_read(delta: Chunk) -> None:
    whole = {"index": 0, "message": {"content": "ab"}, "finish_reason": "stop", **delta}
    message = reply(text("a"), text("b"), {"id": "c1", "object": "chat.completion.done", "choices": [whole]})
    assert (message.text, message.finish_reason) == ("ab", "stop")
    assert reply({"id": "c1", "choices": [whole]}).text == "ab"  # and alone it is all there is
    first = {"index": 0, "message": {"content": "a"}, "delta": {}}
    deltas = chunk({}), text("b", usage=USAGE), {"id": "c1", "choices": [whole]}
    assert reply({"id": "c1", "choices": [first]}, *deltas).text == "ab"


def test_steps_of_reasoning_are_kept_over_the_chunks() -> None:
    one, two = {"thought": "1", "type": "web_search"}, {"thought": "2", "type": "web_search"}
    message = reply(
        chunk({"reasoning_steps": [one]}), chunk({"reasoning_steps": [two]}), text("a"), chunk({}, "stop")
    )
    assert message.metadata["reasoning_steps"] == [one, two]


def test_what_is_not_known_goes_to_the_metadata_and_the_last_wins() -> None:
    message = reply(
        chunk({"content": "a", "channel": ["x"]}, said={"content_filter_results": {"hate": 1}}, system_fingerprint="fp"),
        chunk({"channel": ["y"], "note": None}, "stop", said={"native_finish_reason": "end_turn", "content_filter_results": {}},
              provider="P", service_tier="", obfuscation="zz", x_groq={"id": "r", "usage": USAGE}, citations=["u"]),
    )  # fmt: skip
    assert message.metadata == {
        "created": 5, "system_fingerprint": "fp", "provider": "P", "x_groq": {"id": "r"}, "citations": ["u"],
        "channel": ["y"], "content_filter_results": {"hate": 1}, "native_finish_reason": "end_turn",
    }  # fmt: skip


def test_logprobs_are_appended_over_the_chunks() -> None:
    message = reply(
        text("a", said={"logprobs": {"content": [], "refusal": None}}), text("b", said={"logprobs": {"content": [1, 2]}}),
        text("c", said={"logprobs": {"content": [3], "refusal": [4]}, "token_ids": [8]}), text("d", said={"logprobs": None}),
        chunk({}, "stop", said={"logprobs": {"content": None, "refusal": None}, "token_ids": [9]}),
    )  # fmt: skip
    assert message.text == "abcd"
    assert message.metadata["logprobs"] == {"content": [1, 2, 3], "refusal": [4]}
    assert message.metadata["token_ids"] == [8, 9]
