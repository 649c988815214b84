"""The lines of a recording, whose form `rxdelta.recording` documents, as what was recorded."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import Event, InvalidValueError, MalformedChunkError, is_mapping
from rxdelta.core.events import StreamError, from_dict
from rxdelta.formats.decoding import Decoder
from rxdelta.formats.json_values import word
from rxdelta.formats.provider_errors import error_code
from rxdelta.framing import DONE

__all__ = ["RecordedLines", "is_recorded", "recorded_value"]

_KINDS = frozenset({"chunk", "event", "text", "bytes", "error", "end"})


def is_recorded(chunk: object) -> bool:
    """Whether it is a line of a recording, the first or another."""
    if not is_mapping(chunk):
        return False
    return chunk.get("rxdelta") == "recording" or (
        len(chunk) == 2 and "t" in chunk and not _KINDS.isdisjoint(chunk)
    )


def recorded_value(line: Mapping[str, Any]) -> object:
    """The value in a line that has one.

    Raises:
        InvalidValueError: There is none, or the event can't be read.
        ValueError: The bytes aren't in base64.
    """
    match line:
        case {"chunk": chunk}:
            return DONE if chunk == "[DONE]" else chunk
        case {"event": event}:
            return from_dict(event)
        case {"text": str(text)}:
            return text
        case {"bytes": str(data)}:
            return base64.b64decode(data, validate=True)
        case _:
            wanted = "must have one of `chunk`, `event`, `text`, `bytes`, `error` and `end`, with its kind of value"
            raise InvalidValueError.of([("line", {**line}, wanted)])


class RecordedLines:
    """Decodes the values in a recording's lines by another decoder."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    def decode(self, line: object, /) -> Sequence[Event]:
        if line is DONE:
            return ()
        if not is_mapping(line):
            raise MalformedChunkError.at("recording", "", "a line of a recording, as before", line)
        if "rxdelta" in line or "end" in line:
            return ()
        error = line.get("error")
        if is_mapping(error):
            transient = error.get("transient")
            return (
                StreamError(
                    word(error.get("message")) or word(error.get("type")) or "unknown error",
                    word(error.get("type")),
                    error_code(error.get("status_code")),
                    transient=transient if isinstance(transient, bool) else None,
                ),
            )
        try:
            value = recorded_value(line)
        except ValueError as wrong:  # also ours
            raise MalformedChunkError(f"malformed recording: {wrong}", wire_format="recording") from wrong
        return self._decoder.decode(value)

    def close(self) -> Sequence[Event]:
        return self._decoder.close()
