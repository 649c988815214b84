"""Messages for the tests of requests: short ones by hand, and the replies that were recorded."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import rxdelta as rd
from support.shared import recordings


def call(call_id: str | None, name: str = "f", arguments: Any = None, **more: Any) -> rd.ToolCall:
    given = {} if arguments is None else arguments
    return rd.ToolCall(call_id=call_id, name=name, arguments=given, status="complete", **more)


def invalid(call_id: str, text: str) -> rd.ToolCall:
    return rd.ToolCall(call_id=call_id, name="f", arguments=text, type="invalid_tool_call", error="cut off")


def reply(*blocks: Any, **more: Any) -> rd.Message:
    return rd.Message(blocks=blocks, **more)


def user(*blocks: Any) -> rd.Message:
    return rd.Message(role="user", blocks=blocks)


def system(*blocks: Any) -> rd.Message:
    return rd.Message(role="system", blocks=blocks)


def text(said: str, **options: Any) -> rd.ContentPart:
    return rd.ContentPart("text", said, options)


def thought(said: str, **options: Any) -> rd.ContentPart:
    return rd.ContentPart("reasoning", said, options)


def without_signers(message: rd.Message) -> rd.Message:
    """The message as one that was stored before decoders noted whose a signature is."""

    def told(found: Any) -> Any:
        if isinstance(found, dict):
            return {name: told(value) for name, value in found.items() if name != "signed_by"}
        return [told(value) for value in found] if isinstance(found, list) else found

    return rd.Message.from_dict(told(message.to_dict()))


FORMATS = (
    "anthropic-messages",
    "bedrock-converse",
    "cohere",
    "gemini",
    "mistral",
    "ollama",
    "openai-chat",
    "openai-responses",
)


@cache
def _recorded() -> list[Any]:
    return [
        pytest.param(message, id=f"{wire_format}/{case.id}", marks=case.marks)
        for wire_format in FORMATS
        for case in recordings(wire_format)
        if (message := _reply_of(wire_format, case.values[0])) is not None or case.marks
    ]


def recorded() -> list[Any]:
    """Every recorded reply of every format, decoded, as parameters: any of them may be sent to any provider."""
    return [*_recorded()]


def whole(message: rd.Message) -> list[Any]:
    """A conversation with a reply in its middle, whose calls are answered."""
    results = [rd.ToolResult(call.call_id, {"ok": True}) for call in message.tool_calls]
    return ["Well?", message, *results, "Go on."]


def _reply_of(wire_format: str, chunks: list[Any] | None) -> rd.Message | None:
    """The message, if the stream has one: an error or a cut leaves none that would be sent."""
    decoder, fold = rd.providers.decoder(wire_format), rd.Fold(choice=0)
    for event in [*(event for chunk in chunks or () for event in decoder.decode(chunk)), *decoder.close()]:
        if isinstance(event, rd.events.StreamError):
            return None
        fold.step(event)
    snapshot = fold.snapshot
    return snapshot.to_message() if snapshot.status in ("complete", "length") else None
