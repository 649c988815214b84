"""Mistral: what its dialect has beyond OpenAI's, and that it is told from that."""

from __future__ import annotations

from typing import Any

import pytest
from support.shared import recordings

import rxdelta as rd

Chunk = dict[str, Any]

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
ID = "6dc321029f5d4aa5899c1b38c9657a61"


def chunk(delta: Chunk, finish: str | None = None, **extras: Any) -> Chunk:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": ID,
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **extras,
    }


def thinking(*texts: Any, **extras: Any) -> Chunk:
    entries = [{"type": "text", "text": one} if isinstance(one, str) else one for one in texts]
    return {"type": "thinking", "thinking": entries, **extras}


def text(said: str) -> Chunk:
    return {"type": "text", "text": said}


def decoded(*chunks: Any, close: bool = True) -> list[rd.events.Event]:
    decoder = rd.providers.decoder("mistral")
    events = [event for one in chunks for event in decoder.decode(one)]
    return [*events, *(decoder.close() if close else ())]


def folded(*chunks: Any) -> rd.Snapshot:
    fold, lifecycle = rd.Fold(choice=0), rd.core.ProtocolChecker()
    for event in decoded(*chunks):
        assert lifecycle.check(event) is None, event
        fold.step(event)
    return fold.snapshot


def blocks(*chunks: Any) -> list[dict[str, Any]]:
    return (
        folded(*chunks, chunk({"content": ""}, "stop", usage=USAGE)).to_message().to_dict().get("blocks", [])
    )


def told(*chunks: Any) -> list[tuple[str, str]]:
    return [(one["type"], one["text"]) for one in blocks(*chunks)]


def test_the_signature_of_a_thinking() -> None:
    (one,) = blocks(chunk({"content": [thinking("Hm", signature="sig")]}))
    assert one["options"]["signature"] == "sig"


def test_the_index_of_a_message_in_a_choice_begins_a_new_text() -> None:
    parts = [
        chunk({"index": 0, "content": "a"}),
        chunk({"index": 0, "content": "b"}),
        chunk({"index": 1, "content": "c"}),
    ]
    assert told(*parts) == [("text", "ab"), ("text", "c")]
    assert "index" not in folded(*parts, chunk({}, "stop")).metadata


def test_the_reason_error_is_an_error() -> None:
    error = decoded(chunk({"content": "a"}, "error", usage=USAGE))[-1]
    assert isinstance(error, rd.events.StreamError)
    assert (error.code, error.transient) == ("error", True)


def test_a_reference_is_a_citation_of_what_is_being_written() -> None:
    reference = {"type": "reference", "reference_ids": [1, "x"]}
    source = {
        "type": "tool_reference",
        "tool": "web_search",
        "title": "A",
        "url": "https://a",
        "description": None,
    }
    one, other = blocks(
        chunk({"content": [thinking("Hm", source, ".")]}),
        chunk({"content": [text("a"), reference, text("b")]}),
    )
    assert (one["type"], one["text"], other["text"]) == ("reasoning", "Hm.", "ab")
    assert one["citations"] == [{"title": "A", "url": "https://a", "raw": source}]
    assert other["citations"] == [{"raw": reference}]


def test_a_reference_of_nothing_is_a_block_of_its_own() -> None:
    reference = {"type": "reference", "reference_ids": [1]}
    assert blocks(chunk({"content": [reference]})) == [{"type": "unsupported", "options": reference}]


def test_documents_files_images_and_audio() -> None:
    assert blocks(
        chunk({"content": [{"type": "document_url", "document_url": "https://d", "document_name": "d.pdf"}]}),
        chunk({"content": [{"type": "file", "file_id": "f1"}]}),
        chunk({"content": [{"type": "image_url", "image_url": {"url": "https://i", "detail": "low"}}]}),
        chunk({"content": [{"type": "image_url", "image_url": "data:image/png;base64,AA"}]}),
        chunk({"content": [{"type": "input_audio", "input_audio": "BB"}]}),
        chunk({"content": [{"type": "input_audio", "input_audio": "https://a"}]}),
        chunk({"content": [{"type": "input_audio", "input_audio": {"data": "CC", "format": "wav"}}]}),
        chunk({"content": [{"type": "resource_link", "uri": "https://r"}]}),
    ) == [
        {"type": "file", "options": {"url": "https://d", "filename": "d.pdf"}},
        {"type": "file", "options": {"file_id": "f1"}},
        {"type": "image", "options": {"url": "https://i", "detail": "low"}},
        {"type": "image", "text": "AA", "options": {"mime_type": "image/png"}},
        {"type": "audio", "text": "BB"},
        {"type": "audio", "options": {"url": "https://a"}},
        {"type": "audio", "text": "CC", "options": {"format": "wav"}},
        {"type": "unsupported", "options": {"type": "resource_link", "uri": "https://r"}},
    ]


def test_padding_says_nothing() -> None:
    assert "p" not in folded(chunk({"content": "a"}, p="abc"), chunk({}, "stop", p="ab")).metadata


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"object": "error", "message": "No", "type": "invalid_request_error", "code": "1500"}, "No"),
        ({"object": "error", "message": {"detail": [{"msg": "bad"}]}}, '{"detail": [{"msg": "bad"}]}'),
        ({"error": {"message": "No", "code": 3505}}, "No"),
        ({"detail": "No"}, "No"),
        ({"detail": [{"msg": "bad"}]}, '[{"msg": "bad"}]'),
    ],
)
def test_an_error_ends_the_stream(error: Chunk, said: str) -> None:
    events = decoded(chunk({"content": "a"}), error, chunk({"content": "b"}))
    assert isinstance(events[-1], rd.events.StreamError)
    assert events[-1].message == said
    assert "b" not in [getattr(event, "text", "") for event in events]


@pytest.mark.parametrize("index", [True, 1.5, "x"])
def test_what_is_no_index_is_malformed(index: Any) -> None:
    with pytest.raises(rd.errors.MalformedChunkError, match="malformed mistral chunk"):
        decoded(chunk({"index": index, "content": "a"}))


@pytest.mark.parametrize(("chunks", "expected"), recordings("mistral"))
def test_the_sdks_events_say_the_same(chunks: list[Any], expected: Any) -> None:
    models = pytest.importorskip("mistralai.client.models")
    made = [models.CompletionEvent.model_validate({"data": one}) for one in chunks]
    wanted = folded(*chunks)
    assert folded(*made) == wanted
    assert folded(*(one.data for one in made)) == wanted
    assert rd.providers.detect(made[0]) == "mistral"
    assert expected["text"] == wanted.text
