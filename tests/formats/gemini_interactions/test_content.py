"""Google's Interactions API: texts, media and thoughts."""

from __future__ import annotations

from typing import Any

import pytest
from support.gemini_interactions import (
    CREATED,
    completed,
    delta,
    message,
    parts_of,
    step,
    text,
)

import rxdelta as rd


def test_a_start_may_hold_the_beginning() -> None:
    content, summary = [{"type": "text", "text": "Hel"}], [{"type": "text", "text": "H"}]
    thought = step(0, "thought", delta(0, "thought_signature", signature="s"), summary=summary, signature="")
    found = message(CREATED, *thought, *step(1, "model_output", text(1, "lo"), content=content), completed())
    assert [(part.type, part.text, part.options) for part in parts_of(found)] == [
        ("reasoning", "H", {"signature": "s", "signed_by": "google"}),
        ("text", "Hello", {}),
    ]


def test_a_thought_may_be_a_signature_and_nothing_else() -> None:
    found = message(CREATED, *step(0, "thought", delta(0, "thought_signature", signature="s")), completed())
    assert [(part.type, part.text, part.options) for part in parts_of(found)] == [
        ("reasoning", "", {"signature": "s", "signed_by": "google"})
    ]


def test_a_summary_is_nested_and_an_empty_signature_takes_none_back() -> None:
    summary = [delta(0, "thought_summary", content={"type": "text", "text": piece}) for piece in ("a", "b")]
    signature = [delta(0, "thought_signature", signature=one) for one in ("", "s", "")]
    found = message(CREATED, *step(0, "thought", *summary, *signature), completed())
    assert [(part.text, part.options) for part in parts_of(found)] == [
        ("ab", {"signature": "s", "signed_by": "google"})
    ]


def test_an_image_in_a_thought_is_a_block_of_its_own() -> None:
    image = delta(0, "thought_summary", content={"type": "image", "mime_type": "image/png", "data": "aaaa"})
    said = [delta(0, "thought_summary", content={"type": "text", "text": piece}) for piece in ("a", "b")]
    found = message(CREATED, *step(0, "thought", said[0], image, said[1]), completed())
    assert [(part.type, part.text) for part in parts_of(found)] == [
        ("reasoning", "a"),
        ("image", "aaaa"),
        ("reasoning", "b"),
    ]
    assert parts_of(found)[1].options["thought"] is True


@pytest.mark.parametrize("type", ["hologram", None, 1, [], {}])
def test_a_content_of_no_known_type_is_kept_whole(type: Any) -> None:
    strange = {"type": type, "data": "QUJD"}
    chunks = [CREATED, *step(0, "model_output", content=[strange]), completed()]
    (part,) = parts_of(message(*chunks))
    assert (part.type, rd.core.thaw(part.options)["data"]) == ("unsupported", "QUJD")


def test_annotations_are_the_texts_citations() -> None:
    annotation = {
        "type": "url_citation",
        "url": "https://e.org",
        "title": "E",
        "start_index": 0,
        "end_index": 2,
    }
    place = {"type": "file_citation", "document_uri": "gs://x", "file_name": "x"}
    deltas = [text(0, "Hi"), delta(0, "text_annotation_delta", annotations=[annotation, place])]
    (part,) = parts_of(message(CREATED, *step(0, "model_output", *deltas), completed()))
    first, second = part.citations
    assert (first.url, first.title, first.start_index, first.end_index, first.raw) == (
        "https://e.org",
        "E",
        0,
        2,
        annotation,
    )
    assert (second.url, second.title) == ("gs://x", "x")


def test_audio_in_pieces_is_one_base64_text() -> None:
    pieces = [delta(0, "audio", mime_type="audio/l16", data=piece) for piece in ("aA==", "aWo=", "aw==")]
    (part,) = parts_of(message(CREATED, *step(0, "model_output", *pieces), completed()))
    assert part.text == "aGlqaw=="
