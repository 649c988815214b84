"""Texts and thoughts, and the signatures that hang on parts."""

from __future__ import annotations

from typing import Any

import pytest
from support.gemini import STOP, blocks, call, message, parts_of, said, text

import rxdelta as rd
from rxdelta.core.events import (
    ReasoningDelta,
    TextDelta,
)
from rxdelta.formats.gemini.decoder import GeminiDecoder


def test_a_piece_of_text_takes_the_short_way_to_the_same_event() -> None:
    decoder = GeminiDecoder()
    decoder.decode(said(text("a"), index=0))
    assert decoder.decode(said(text("b"))) == (TextDelta(0, "b"),)
    assert decoder.decode(said(text("c"), index=0)) == (TextDelta(0, "c"),)
    assert decoder.decode(said(text("d", thought=False))) == (TextDelta(0, "d"),)
    decoder.decode(said(text("e", thought=True)))
    assert decoder.decode(said(text("f", thought=True))) == (ReasoningDelta(1, "f"),)


@pytest.mark.parametrize(
    "content",
    [{"role": "model"}, {}, None, {"parts": []}, {"parts": None}, {"parts": [{"text": ""}]}, {"parts": [{}]}],
)
def test_content_without_anything_in_it_makes_no_block(content: Any) -> None:
    chunk = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    assert blocks(said(text("Hi")), chunk) == [("text", "Hi")]


# Signatures


def test_a_signature_on_an_empty_text_is_of_the_text_before() -> None:
    (part,) = parts_of(message(said(text("Hi")), said(text("", thoughtSignature="s1"), reason="STOP")))
    assert (part.text, part.options) == ("Hi", {"signature": "s1", "signed_by": "google"})


def test_a_signature_comes_with_the_first_piece_of_a_text_too() -> None:
    found = message(said(text("a", thoughtSignature="s1")), said(text("b")), STOP)
    assert [(part.text, part.options["signature"]) for part in parts_of(found)] == [("ab", "s1")]


def test_a_second_signature_begins_a_block_so_that_none_is_lost() -> None:
    found = message(said(text("a", thoughtSignature="s1")), said(text("b", thoughtSignature="s2")), STOP)
    assert [(part.text, part.options["signature"]) for part in parts_of(found)] == [
        ("a", "s1"),
        ("b", "s2"),
    ]
    found = message(said(text("a", thoughtSignature="s1")), said(text("", thoughtSignature="s2")), STOP)
    assert [(part.text, part.options["signature"]) for part in parts_of(found)] == [
        ("a", "s1"),
        ("", "s2"),
    ]


def test_a_signature_with_no_text_before_it_has_a_block_of_its_own() -> None:
    found = message(said(call("f", args={})), said({"thoughtSignature": "s1"}, reason="STOP"))
    assert [block.type for block in found.blocks] == ["tool_call", "text"]
    assert parts_of(found)[0].options == {"signature": "s1", "signed_by": "google"}


def test_the_signature_of_a_thought() -> None:
    found = message(
        said(text("Hm", thought=True)),
        said({"thought": True, "thoughtSignature": "s"}),
        said(text("a")),
        STOP,
    )
    assert parts_of(found)[0].options == {"signature": "s", "signed_by": "google"}
    assert [block.type for block in found.blocks] == ["reasoning", "text"]


def test_the_other_parts_keep_their_signatures() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s1"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}, "thoughtSignature": "s2"},
        {"toolCall": {"toolType": "FILE_SEARCH", "id": "t"}, "thoughtSignature": "s3"},
        {"toolResponse": {"toolType": "FILE_SEARCH", "id": "t"}, "thoughtSignature": "s4"},
        {"inlineData": {"mimeType": "image/png", "data": "aaaa"}, "thoughtSignature": "s5"},
    ]
    found = message(said(*parts), STOP)
    fields = [block.metadata if isinstance(block, rd.ToolCall) else block.options for block in found.blocks]
    assert [each["signature"] for each in fields] == ["s1", "s2", "s3", "s4", "s5"]
