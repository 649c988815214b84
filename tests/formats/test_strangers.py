"""Streams that look like a known format's and are none."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from support.shared import RECORDED, recordings

import rxdelta as rd


def decoded(name: str, chunks: list[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(name)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "event_id": "event_1", **fields}


REALTIME = [
    event("session.created", session={"object": "realtime.session", "id": "sess_1"}),
    event("conversation.item.added", item={"object": "realtime.item", "id": "item_1"}),
    event("response.created", response={"object": "realtime.response", "id": "resp_1", "output": []}),
    {"type": "response.created", "response": {"object": "realtime.response", "id": "resp_1", "output": []}},
    event("response.output_item.added", response_id="resp_1", output_index=0, item={"type": "message"}),
    event("response.output_text.delta", response_id="resp_1", output_index=0, content_index=0, delta="Hi"),
    {"type": "response.output_audio.delta", "response_id": "resp_1", "output_index": 0, "delta": "AAAA"},
    event("response.output_audio_transcript.delta", output_index=0, delta="Hi"),
    event("response.done", response={"object": "realtime.response", "status": "cancelled"}),
    event("input_audio_buffer.speech_started", item_id="item_1"),
    event("rate_limits.updated", rate_limits=[]),
    {"object": "realtime.response", "id": "resp_1", "output": []},
]


@pytest.mark.parametrize("first", range(len(REALTIME)))
def test_realtime_is_refused_whatever_comes_first(first: int) -> None:
    with pytest.raises(rd.errors.MalformedChunkError, match="OpenAI Realtime"):
        rd.providers.detect(REALTIME[first])
    for name in ("auto", "openai-responses", "openai-chat"):
        with pytest.raises(rd.errors.MalformedChunkError, match=r"OpenAI Realtime.*Responses API"):
            decoded(name, REALTIME[first:])


def test_an_error_of_realtime_is_an_error() -> None:
    error = event("error", error={"type": "invalid_request_error", "message": "No", "event_id": "x"})
    assert isinstance(decoded("openai-responses", [error])[-1], rd.events.StreamError)


@pytest.mark.parametrize("wire_format", RECORDED)
def test_no_recorded_stream_is_refused(wire_format: str) -> None:
    for case in recordings(wire_format):
        if not case.marks:
            for chunk in case.values[0]:
                with suppress(rd.errors.UnknownWireFormatError):
                    rd.providers.detect(chunk)


# Relatives of the AI SDK's UI message stream. https://mastra.ai/reference/streaming/ChunkType, and `TextStreamPart` and
# `LanguageModelV3StreamPart` in vercel/ai.

FULL_STREAM = [
    {"type": "start"},
    {"type": "start-step", "request": {}, "warnings": []},
    {"type": "text-start", "id": "0"},
    {"type": "text-delta", "id": "0", "text": "Hello"},
    {"type": "text-end", "id": "0"},
    {"type": "reasoning-start", "id": "1"},
    {"type": "reasoning-delta", "id": "1", "text": "Hm"},
    {"type": "tool-input-start", "id": "c", "toolName": "f"},
    {"type": "tool-input-delta", "id": "c", "delta": "{}"},
    {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}},
    {"type": "tool-result", "toolCallId": "c", "toolName": "f", "input": {}, "output": "done"},
]
MODEL_STREAM = [
    {"type": "stream-start", "warnings": []},
    {"type": "text-start", "id": "0"},
    {"type": "text-delta", "id": "0", "delta": "Hello"},
    {"type": "text-end", "id": "0"},
    {"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": "{}"},
]
VERSION_4 = [{"type": "text-delta", "textDelta": "Hello"}, {"type": "reasoning", "textDelta": "Hm"}]
MASTRA = [
    {"type": kind, "runId": "r", "from": "AGENT", "payload": payload}
    for kind, payload in (
        ("start", {}),
        ("step-start", {"messageId": "m"}),
        ("text-start", {"id": "0"}),
        ("text-delta", {"id": "0", "text": "Hello"}),
        ("tool-call", {"toolCallId": "c", "toolName": "f", "args": {"a": 1}}),
        ("finish", {"stepResult": {"reason": "stop"}}),
    )
]
RELATIVES = [("AI SDK", FULL_STREAM), ("AI SDK", MODEL_STREAM), ("AI SDK", VERSION_4), ("Mastra", MASTRA)]


@pytest.mark.parametrize(
    ("name", "chunks"),
    [pytest.param(name, chunks[first:], id=f"{name}-{chunks[first]['type']}") for name, chunks in RELATIVES for first in range(len(chunks))],
)  # fmt: skip
@pytest.mark.parametrize("wire_format", ["auto", "ai-sdk", "openai-chat"])
def test_a_relative_of_the_ai_sdk_is_refused_whatever_comes_first(
    wire_format: str, name: str, chunks: list[Any]
) -> None:
    with pytest.raises(
        rd.errors.MalformedChunkError, match=rf"{name}.*which is no format here: .*decode\('ai-sdk'\)"
    ):
        decoded(wire_format, chunks)


def test_a_relative_is_refused_by_its_bytes_too() -> None:
    data = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in MASTRA).encode()
    with pytest.raises(rd.errors.MalformedChunkError, match="Mastra"):
        decoded("auto", [data])


@pytest.mark.parametrize(
    "chunk", [part for part in FULL_STREAM[3:] if part["type"] not in ("text-end", "reasoning-start")]
)
def test_a_part_of_a_relative_amid_ui_messages_is_refused(chunk: dict[str, Any]) -> None:
    ours = [
        {"type": "start"},
        {"type": "text-start", "id": "0"},
        {"type": "text-delta", "id": "0", "delta": "Hi"},
    ]
    with pytest.raises(rd.errors.MalformedChunkError, match="AI SDK's own parts"):
        decoded("ai-sdk", [*ours, chunk])


@pytest.mark.parametrize(
    "chunk",
    [
        {"type": "text-start", "text": "Hello"},
        {"type": "tool-input-start", "name": "f"},
        {"type": "tool-input-available", "toolCallId": "c", "args": {}},
        {"type": "message-metadata", "metadata": {}},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "1", "content": "Hello"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "args": "{}"},
        {"type": "RUN_STARTED", "run": "r"},
        {"event": "content-block-delta", "index": 0, "text": "Hello"},
        {"event": "error", "data": "Oops"},
    ],
)
def test_the_word_of_a_type_alone_shows_no_format(chunk: dict[str, Any]) -> None:
    with pytest.raises(rd.errors.UnknownWireFormatError):
        rd.providers.detect(chunk)


LINE = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False}


@pytest.mark.parametrize("wire_format", [name for name in rd.providers.FORMATS if name != "ollama"])
@pytest.mark.parametrize("message", [{"message": {"role": "assistant", "content": "Hi"}}, {"response": "Hi"}])
def test_a_stream_of_ollama_is_known_whatever_format_was_named(
    wire_format: str, message: dict[str, Any]
) -> None:
    with pytest.raises(rd.errors.MalformedChunkError, match=r"got a chunk of ollama: use decode\('ollama'\)"):
        decoded(wire_format, [{**LINE, **message}, {**LINE, **message, "done": True}])
