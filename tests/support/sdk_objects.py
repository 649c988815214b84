"""Recorded chunks as the objects that the provider's SDK makes of them."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

__all__ = ["SDK_FORMATS", "sdk_objects"]


def sdk_objects(wire_format: str, chunks: list[Any]) -> list[Any]:
    """What a client of this format gives its caller for these chunks."""
    return _MAKERS[wire_format](copy.deepcopy(chunks))


def openai_objects(kind: str) -> Any:
    def make(chunks: list[Any]) -> list[Any]:
        types = pytest.importorskip("openai.types")
        from openai._models import construct_type

        if kind == "chat":
            made: Any = types.chat.ChatCompletionChunk
        else:
            made = types.Completion if kind == "completions" else types.responses.ResponseStreamEvent
        return [construct_type(type_=made, value=chunk) for chunk in chunks]

    return make


def anthropic_objects(chunks: list[Any]) -> list[Any]:
    types = pytest.importorskip("anthropic.types")
    from anthropic._models import construct_type_unchecked

    return [construct_type_unchecked(type_=types.RawMessageStreamEvent, value=chunk) for chunk in chunks]


def gemini_objects(chunks: list[Any]) -> list[Any]:
    types = pytest.importorskip("google.genai.types")
    whole = [chunk for chunk in chunks if "error" not in chunk]  # at an error its client raises
    return [types.GenerateContentResponse._from_response(response=chunk, kwargs={}) for chunk in whole]


def mistral_objects(chunks: list[Any]) -> list[Any]:
    models = pytest.importorskip("mistralai.client.models")
    return [models.CompletionEvent.model_validate({"data": chunk}) for chunk in chunks]


def boto3_events(chunks: list[Any]) -> list[Any]:
    """The chunks as boto3 gives them: without padding, bytes as bytes, and no more than its types know."""
    session = pytest.importorskip("botocore.session").get_session()
    parsers = pytest.importorskip("botocore.parsers")
    service = session.get_service_model("bedrock-runtime")
    shape = service.operation_model("ConverseStream").output_shape.members["stream"]
    parser = parsers.EventStreamJSONParser()
    found = []
    for chunk in chunks:
        ((name, body),) = [(name, body) for name, body in chunk.items() if not name.startswith("amazon-")]
        if body.get("start") == {}:
            continue  # made by hand: boto3 refuses it, and it says nothing
        headers = {":event-type": name, ":message-type": "event"}
        response = {"status_code": 200, "headers": headers, "body": json.dumps(body).encode()}
        found.append(parser.parse(response, shape))
    return found


def cohere_events(chunks: list[Any]) -> list[Any]:
    types = pytest.importorskip("cohere.v2.types.v2chat_stream_response")
    from cohere.core.unchecked_base_model import construct_type

    return [construct_type(type_=types.V2ChatStreamResponse, object_=chunk) for chunk in chunks]


def ollama_events(chunks: list[Any]) -> list[Any]:
    ollama = pytest.importorskip("ollama")
    kinds = [ollama.ChatResponse if "message" in chunk else ollama.GenerateResponse for chunk in chunks]
    return [kind(**chunk) for kind, chunk in zip(kinds, chunks)]


_MAKERS = {
    "openai-chat": openai_objects("chat"),
    "openai-completions": openai_objects("completions"),
    "openai-responses": openai_objects("responses"),
    "anthropic-messages": anthropic_objects,
    "gemini": gemini_objects,
    "mistral": mistral_objects,
    "bedrock-converse": boto3_events,
    "cohere": cohere_events,
    "ollama": ollama_events,
}
SDK_FORMATS = tuple(_MAKERS)
