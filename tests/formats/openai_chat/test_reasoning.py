"""Reasoning under its several names, with its signatures."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from support.openai_chat import Chunk, chunk, decode, detail, parts_of, reply, shape, text


def test_reasoning_in_details_alone_counts() -> None:
    summary = {"type": "reasoning.summary", "summary": "b", "id": "r1"}
    message = reply(chunk({"reasoning_details": [detail("a"), summary]}, "stop"))
    assert message.reasoning == "ab"
    assert parts_of(message)[0].options == {
        "format": "f1",
        "id": "r1",
        "provider_type": "reasoning.summary",
    }


def test_encrypted_reasoning_is_kept_to_be_sent_back() -> None:
    entry = {"type": "reasoning.encrypted", "data": "xyz", "id": "r1", "format": "f1", "index": 0}
    message = reply(
        chunk({"content": "", "reasoning": None, "reasoning_details": [entry]}), text("a", "stop")
    )
    assert shape(message) == [("reasoning", None), ("text", "a")]
    assert parts_of(message)[0].options == {
        "redacted": True,
        "data": "xyz",
        "id": "r1",
        "format": "f1",
        "signed_by": "openai-chat",
    }


def test_fields_of_an_encrypted_reasoning_are_not_those_of_the_text_beside_it() -> None:
    encrypted = {"type": "reasoning.encrypted", "data": "xyz", "id": "r1", "format": "f1", "index": 0}
    message = reply(chunk({"reasoning_details": [detail("a"), encrypted, detail("b", id="r1")]}, "stop"))
    assert shape(message) == [("reasoning", "ab"), ("reasoning", None)]
    assert parts_of(message)[0].options == {"format": "f1", "id": "r1"}


def test_a_signature_without_text_opens_a_reasoning() -> None:
    first, late = chunk({"reasoning_details": [detail(signature="s")]}), chunk({"reasoning": "a"})
    message = reply(first, late, text("b", "stop"))
    assert shape(message) == [("reasoning", "a"), ("text", "b")]
    assert parts_of(message)[0].options["signature"] == "s"


def test_a_signature_that_comes_late_neither_gets_lost_nor_cuts_the_text() -> None:
    message = reply(
        chunk({"reasoning": "a"}),
        text("b"),
        chunk({"reasoning_details": [detail(signature="s")]}),
        text("c", "stop"),
    )
    assert shape(message) == [("reasoning", "a"), ("text", "bc"), ("reasoning", "")]
    assert parts_of(message)[2].options["signature"] == "s"


def test_after_a_signature_another_index_is_another_reasoning() -> None:
    message = reply(
        chunk({"reasoning_details": [detail("a", 0), detail(None, 0, signature="s0"), detail("b", 1)]}),
        chunk({"reasoning_details": [detail(None, 1, signature="s1"), detail("c", 1)]}, "stop"),
    )
    assert [(part.text, part.options["signature"]) for part in parts_of(message)] == [
        ("a", "s0"),
        ("bc", "s1"),
    ]


def test_a_second_signature_is_not_written_over_the_first() -> None:
    entries = [detail("a"), detail(signature="s0"), detail(signature="s0"), detail(signature="s1")]
    message = reply(chunk({"reasoning_details": entries}, "stop"))
    assert [part.options["signature"] for part in parts_of(message)] == ["s0", "s1"]


def test_thinking_blocks_sign_the_reasoning_beside_them() -> None:
    def thinking(text: str, signature: str = "") -> Chunk:
        block = {"type": "thinking", "thinking": text, "signature": signature}
        return chunk({"reasoning_content": text, "thinking_blocks": [block]})

    hidden = {"type": "redacted_thinking", "data": "x"}
    message = reply(
        thinking("a"), thinking("b"), thinking("", "s0"), thinking("c"), thinking("", "s1"),
        chunk({"thinking_blocks": [hidden]}), text("Hi", "stop"),
    )  # fmt: skip
    assert shape(message) == [("reasoning", "ab"), ("reasoning", "c"), ("reasoning", None), ("text", "Hi")]
    sent_as = {"sent_as": "thinking_blocks", "signed_by": "openai-chat"}
    assert [part.options for part in parts_of(message)] == [
        {**sent_as, "signature": "s0"}, {**sent_as, "signature": "s1"}, {**sent_as, "redacted": True, "data": "x"}, {},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "delta",
    [
        {"reasoning_content": "b"},
        {"role": "assistant", "content": "", "reasoning": "b"},
        {"content": None, "reasoning": "", "reasoning_text": "b"},
        {"reasoning_content": "b", "reasoning": "c"},
        {"reasoning": "b", "content": "c"},
        {"reasoning": "b", "channel": "analysis"},
        {"reasoning": "b", "refusal": ""},
        {"reasoning": "b", "token_id": 3},
        {"reasoning": "b", "closed": False},
        {"reasoning": "b", "reasoning_details": []},
        {"reasoning": "b", "tool_calls": []},
        {"reasoning": "b", "reasoning_opaque": "s"},
        {"reasoning": ""},
        {},
    ],
)
@pytest.mark.parametrize("beside", [{}, {"text": "copy", "logprobs": None}, {"logprobs": {"content": [1]}}])
def test_a_piece_of_reasoning_says_the_same_in_a_mapping_of_another_kind(delta: Chunk, beside: Chunk) -> None:
    first, end = chunk({"reasoning_content": "a"}), chunk({}, "stop")
    piece = chunk(delta, said=beside)
    slowly: Any = MappingProxyType(piece)  # which no quick way takes
    head = [first, chunk({"reasoning_content": " and"})]
    assert decode(*head, piece, end) == decode(*head, slowly, end)
