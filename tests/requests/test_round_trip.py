"""What every recorded reply becomes in the next request: what the SDK's own types allow, and the same reply again.

The request's assistant message is put into a body that was not streamed and decoded: a thing that got lost on
the way is missing then.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.shared import recordings

import rxdelta as rd


def reply_of(wire_format: str, chunks: list[Any]) -> rd.Message | None:
    """The message, if the stream has one: an error or a cut leaves none that would be sent."""
    decoder, fold = rd.providers.decoder(wire_format), rd.Fold(choice=0)
    for event in [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]:
        if isinstance(event, rd.events.StreamError):
            return None
        fold.step(event)
    return fold.snapshot.to_message() if fold.snapshot.status in ("complete", "length") else None


def cases(*formats: str) -> list[Any]:
    return [
        pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
        for wire_format in formats
        for case in recordings(wire_format)
    ]


def _chat_body(request: dict[str, Any], message: rd.Message) -> Any:
    choice = {"index": 0, "message": request["messages"][0], "finish_reason": message.provider_finish_reason}
    return {"id": message.id, "model": message.model, "object": "chat.completion", "choices": [choice]}


def _anthropic_body(request: dict[str, Any], message: rd.Message) -> Any:
    if not request["messages"]:
        return None
    return {
        "type": "message",
        "role": "assistant",
        "id": message.id,
        "model": message.model,
        "content": request["messages"][0]["content"],
        "stop_reason": message.provider_finish_reason,
    }


def _bedrock_body(request: dict[str, Any], message: rd.Message) -> Any:
    return {
        "output": {"message": request["messages"][0]},
        "stopReason": message.provider_finish_reason,
        "usage": {"inputTokens": 1, "outputTokens": 1},
    }


def _cohere_body(request: dict[str, Any], message: rd.Message) -> Any:
    return {
        "id": message.id,
        "message": request["messages"][0],
        "finish_reason": message.provider_finish_reason,
    }


def _ollama_body(request: dict[str, Any], message: rd.Message) -> Any:
    said = {"message": request["messages"][0], "created_at": message.metadata["created_at"]}
    return {"model": message.model, **said, "done": True, "done_reason": message.provider_finish_reason}


def _responses_body(request: dict[str, Any], message: rd.Message) -> Any:
    said = message.provider_finish_reason
    asked = [
        call.name for call in message.tool_calls if call.metadata.get("provider_type") == "custom_tool_call"
    ]
    return {
        "object": "response",
        "id": message.id,
        "model": message.model,
        "status": said,
        "incomplete_details": {"reason": "max_output_tokens"} if message.finish_reason == "length" else None,
        "output": request["input"],
        # by which the provider's own tools are told from the client's
        "tools": [{"type": "web_search"}, *({"type": "custom", "name": name} for name in asked)],
    }


def _gemini_body(request: dict[str, Any], message: rd.Message) -> Any:
    if not request["contents"]:
        return None
    candidate = {"content": request["contents"][0], "finishReason": message.provider_finish_reason}
    return {"candidates": [candidate], "responseId": message.id, "modelVersion": message.model}


def _interactions_body(request: dict[str, Any], message: rd.Message) -> Any:
    status = message.provider_finish_reason
    return {"object": "interaction", "id": message.id, "status": status, "steps": request["input"]}


BODIES: dict[str, Callable[[dict[str, Any], rd.Message], Any]] = {
    "anthropic-messages": _anthropic_body,
    "bedrock-converse": _bedrock_body,
    "cohere": _cohere_body,
    "gemini": _gemini_body,
    "gemini-interactions": _interactions_body,
    "mistral": _chat_body,
    "ollama": _ollama_body,
    "openai-chat": _chat_body,
    "openai-responses": _responses_body,
}
WITH_BYTES = {"bedrock-converse"}  # formats whose request isn't JSON alone
WITHOUT_BLANKS = {
    "anthropic-messages",
    "bedrock-converse",
}  # a text of nothing but space is joined to another
ONE_TEXT = {"ollama", "openai-chat"}  # formats whose message has one text, so that its blocks are joined

NOT_SENT = {
    "openai-chat": {"server_tool_call", "server_tool_result", "image", "unsupported"},
    "anthropic-messages": set[str](),
    "bedrock-converse": {"image", "audio", "video", "file", "unsupported"},  # media are a person's
    "cohere": {"unsupported"},  # a content is a text or a thinking
    "gemini": set[str](),
    "gemini-interactions": {"unsupported"},
    "mistral": {"image", "audio", "file", "unsupported"},  # media are a person's
    "ollama": set[str](),
    "openai-responses": {"audio"},
}
"""What a format takes no block of in a request, though it gives such in a reply."""


def shape(wire_format: str, message: rd.Message) -> list[Any]:
    """The blocks as far as a request can say them."""
    shapes: list[Any] = []
    for block in message.blocks:
        if block.type in NOT_SENT[wire_format]:
            continue
        if isinstance(block, rd.ToolCall):
            arguments = rd.core.thaw(block.arguments) if block.type != "invalid_tool_call" else "invalid"
            shapes.append((block.type, block.call_id, block.name, arguments, block.metadata.get("signature")))
        elif block.text or block.options:
            signed = {name: block.options.get(name) for name in ("signature", "data", "output")}
            shapes.append((block.type, block.text or "", rd.core.thaw(signed)))
    if wire_format in WITHOUT_BLANKS:
        for place in range(len(shapes) - 1, 0, -1):
            (before, said, *_), (kind, blank, *_) = shapes[place - 1], shapes[place]
            if (before, kind) == ("text", "text") and not blank.strip():
                shapes[place - 1 : place + 1] = [(kind, said + blank, *shapes[place - 1][2:])]
    if wire_format in ONE_TEXT:
        for kind in ("text", "refusal", "reasoning"):
            plain = [one for one in shapes if one[0] == kind and not any(one[2].values())]
            shapes = [one for one in shapes if one not in plain]
            shapes += [(kind, "".join(one[1] for one in plain))] if plain else []
        shapes.sort(key=lambda one: one[0])
    return shapes


@pytest.mark.parametrize(("wire_format", "chunks"), cases(*BODIES))
def test_a_recorded_reply_comes_back_from_its_request(wire_format: str, chunks: list[Any]) -> None:
    message = reply_of(wire_format, chunks)
    if message is None:
        return
    request = rd.to_request([message], wire_format)
    assert wire_format in WITH_BYTES or json.loads(json.dumps(request)) == request
    body = BODIES[wire_format](request, message)
    if body is None:
        assert not shape(wire_format, message)
        return
    again = reply_of(wire_format, [body])
    assert again is not None
    told = [(("tool_call", *one[1:3], "invalid", one[4]) if one[0] == "invalid_tool_call" else one)
            for one in shape(wire_format, message)]  # fmt: skip
    back = [
        ("tool_call", *one[1:3], "invalid", one[4])
        if one[0] == "tool_call" and isinstance(one[3], dict) and "invalid_arguments" in one[3]
        else one
        for one in shape(wire_format, again)
    ]
    assert back == told


def _openai_types() -> Any:
    from openai.types.chat import ChatCompletionMessageParam

    return list[ChatCompletionMessageParam]


def _anthropic_types() -> Any:
    from anthropic.types.beta import BetaMessageParam

    return list[BetaMessageParam]


def _cohere_types() -> Any:
    from cohere import ChatMessageV2

    return list[ChatMessageV2]


def _mistral_types() -> Any:
    from mistralai.client.models import ChatCompletionRequestMessage

    return list[ChatCompletionRequestMessage]


def _ollama_types() -> Any:
    from ollama import Message

    return list[Message]


def _responses_types() -> Any:
    from openai.types.responses import ResponseInputParam

    return ResponseInputParam


def _gemini_types() -> Any:
    from google.genai.types import Content

    return list[Content]


def _interactions_types() -> Any:
    from google.genai.interactions import Step

    return list[Step]


# Whose names aren't those of the formats.
SDKS = {"gemini": "google.genai", "gemini-interactions": "google.genai", "mistral": "mistralai"}
TYPES: dict[str, tuple[str, Callable[[], Any]]] = {
    "anthropic-messages": ("messages", _anthropic_types),
    "cohere": ("messages", _cohere_types),
    "gemini": ("contents", _gemini_types),
    "gemini-interactions": ("input", _interactions_types),
    "mistral": ("messages", _mistral_types),
    "ollama": ("messages", _ollama_types),
    "openai-chat": ("messages", _openai_types),
    "openai-responses": ("input", _responses_types),
}


@pytest.mark.slow
@pytest.mark.parametrize(("wire_format", "chunks"), cases(*TYPES))
def test_the_sdks_types_take_the_request(wire_format: str, chunks: list[Any]) -> None:
    pytest.importorskip(SDKS.get(wire_format, wire_format.partition("-")[0]))
    pydantic = pytest.importorskip("pydantic")
    message = reply_of(wire_format, chunks)
    if message is None:
        return
    results = [rd.ToolResult(call.call_id, {"ok": True}) for call in message.tool_calls]
    field, types = TYPES[wire_format]
    request = rd.to_request(["Well?", message, *results, "Go on."], wire_format)
    pydantic.TypeAdapter(types()).validate_python(request[field])


ACROSS = ("anthropic-messages", "gemini", "gemini-interactions", "openai-responses")
"""The formats whose requests the types take with a reply of any other provider in them."""


def _looked_at(value: Any) -> None:
    """Go through a validated value: what its type calls an iterable is validated only then."""
    if isinstance(value, dict):
        value = [*value.values()]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, (str, bytes, int, float, type(None))) and not hasattr(value, "model_fields_set"):
        for item in value:
            _looked_at(item)


@pytest.mark.slow
@pytest.mark.parametrize("wire_format", ACROSS)
@pytest.mark.parametrize("reasoning", [True, False])
def test_the_sdks_types_take_the_replies_of_other_providers(wire_format: str, reasoning: bool) -> None:
    pytest.importorskip(SDKS.get(wire_format, wire_format.partition("-")[0]))
    pydantic = pytest.importorskip("pydantic")
    field, types = TYPES[wire_format]
    adapter = pydantic.TypeAdapter(types())
    for case in cases(*BODIES.keys() - {wire_format}):
        source, chunks = case.values
        message = None if chunks is None else reply_of(source, chunks)
        if message is None or any(
            "..." in (part.text or "") for part in message.blocks if part.type == "image"
        ):
            continue  # a picture that the recording has shortened is no base64
        results = [rd.ToolResult(call.call_id, "no", is_error=True) for call in message.tool_calls]
        request = rd.to_request(["Well?", message, *results, "Go on."], wire_format, reasoning=reasoning)
        _looked_at(adapter.validate_python(request[field]))
