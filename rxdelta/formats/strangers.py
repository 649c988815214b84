"""Streams that look like a known format's and are none. They are refused by name, instead of giving an empty message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.core import MalformedChunkError
from rxdelta.formats.decoding import Chunk

__all__ = ["refuse_stranger"]


def refuse_stranger(chunk: Chunk) -> None:
    """Raise if the chunk is of a protocol that is known to be no format here: OpenAI Realtime.

    Raises:
        MalformedChunkError: It is. The error says what the protocol is, and what to use instead.
    """
    if _is_realtime(chunk):
        raise MalformedChunkError(
            "this is a stream of OpenAI Realtime, which is no format here: it is a session of sound, with many replies. "
            "For a reply as text use the Responses API, or write a decoder of your own"
        )


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
