"""Streams that look like a known format's and are none. They are refused by name, instead of giving an empty message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rxdelta.core import MalformedChunkError
from rxdelta.formats.decoding import Chunk

__all__ = ["refuse_stranger"]


def refuse_stranger(chunk: Chunk) -> None:
    """Raise if the chunk is of a protocol that is known to be no format here.

    Raises:
        MalformedChunkError: It is. The error says what the protocol is, and what to use instead.

    Example:
        >>> refuse_stranger({"type": "text-delta", "id": "0", "delta": "Hello"})
        >>> refuse_stranger({"type": "text-delta", "id": "0", "text": "Hello"})
        Traceback (most recent call last):
        rxdelta.core._errors.MalformedChunkError: this is a stream of the AI SDK's own parts (fullStream), which is no format here...
    """
    for is_stranger, what in _STRANGERS.items():
        if is_stranger(chunk):
            raise MalformedChunkError(f"this is {what}")


# OpenAI Realtime.


def _is_realtime(chunk: Chunk) -> bool:
    """Whether it is an event of OpenAI Realtime. It shares names with Responses, whose events have a number and no id."""
    kind: Any = chunk.get("type")
    if not isinstance(kind, str):
        return _is_realtime_object(chunk)
    if kind.startswith("response.output_audio"):
        return True
    if kind.startswith(_REALTIME) and "event_id" in chunk and "sequence_number" not in chunk:
        return True
    return any(_is_realtime_object(chunk.get(name)) for name in ("response", "item", "session"))


def _is_realtime_object(value: object) -> bool:
    kind: Any = value.get("object") if isinstance(value, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return isinstance(kind, str) and kind.startswith("realtime.")


_REALTIME = (
    "response.",
    "session.",
    "conversation.",
    "input_audio_buffer.",
    "output_audio_buffer.",
    "rate_limits.",
)

# Relatives of the AI SDK's UI message stream, which share the types of its chunks.


def _is_full_stream(chunk: Chunk) -> bool:
    """Whether it is a part of `fullStream`, also of version 4, or of a model of the AI SDK's."""
    kind: Any = chunk.get("type")
    fields = _PARTS.get(kind) if isinstance(kind, str) else None
    if fields is None:
        return False
    shown, not_with = fields
    return not_with not in chunk and any(name in chunk for name in shown)


_PARTS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "text-delta": (("text", "textDelta"), "delta"),
    "reasoning-delta": (("text",), "delta"),
    "reasoning": (("textDelta",), "delta"),
    "tool-input-start": (("id",), "toolCallId"),
    "tool-input-delta": (("id",), "toolCallId"),
    "tool-call": (("toolCallId",), "id"),
    "tool-result": (("toolCallId",), "id"),
    "tool-error": (("toolCallId",), "id"),
    "file": (("file",), "url"),
    "start-step": (("request", "warnings"), "messageId"),
    "stream-start": (("warnings",), "messageId"),
}
"""The parts by their types: the fields of which each has one, and the field that it has in another protocol.

`TextStreamPart` in https://github.com/vercel/ai/tree/main/packages/ai/src/generate-text
"""


def _is_mastra(chunk: Chunk) -> bool:
    """Whether it is one of Mastra's chunks, which wrap their fields (mastra.ai/reference/streaming/ChunkType)."""
    return (
        isinstance(chunk.get("type"), str)
        and isinstance(chunk.get("from"), str)
        and isinstance(chunk.get("payload"), Mapping)
    )


_STRANGERS: Mapping[Callable[[Chunk], bool], str] = {
    _is_realtime: (
        "a stream of OpenAI Realtime, which is no format here: it is a session of sound, with many replies. "
        "For a reply as text use the Responses API, or write a decoder of your own"
    ),
    _is_mastra: (
        "a stream of Mastra's own chunks, which is no format here: let the server send the AI SDK's UI messages, "
        "by chatRoute() or toAISdkStream() of @mastra/ai-sdk, and use decode('ai-sdk')"
    ),
    _is_full_stream: (
        "a stream of the AI SDK's own parts (fullStream), which is no format here: let the server send its UI messages, "
        "by result.toUIMessageStreamResponse() or result.toUIMessageStream(), and use decode('ai-sdk')"
    ),
}
"""How each is known, and what the error says."""
