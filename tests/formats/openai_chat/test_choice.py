"""A choice's content, and the fields of a delta that have no file of their own."""

from __future__ import annotations

from support.openai_chat import (
    USAGE,
    Chunk,
    annotation,
    chunk,
    decode,
    fold,
    of_type,
    parts_of,
    reply,
    shape,
    text,
)

from rxdelta.core.events import (
    BlockDelta,
)


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
