"""Frames → newline-delimited JSON, in UTF-8."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rxdelta.core import clean_text
from rxdelta.framing.sse_frames import DONE, LINE_ENDS, frame_json, refuse_frame

__all__ = ["NDJSON_HEADERS", "NDJSON_KEEP_ALIVE", "ndjson_line"]

NDJSON_KEEP_ALIVE: Final = b" "
"""White space in front of the next line's JSON, which every parser skips: proxies see that the connection is alive.

An empty line would be an error to clients that parse each line, such as Ollama's.
"""

NDJSON_HEADERS: Final[Mapping[str, str]] = {
    "content-type": "application/x-ndjson",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
"""Headers of a response that streams lines of JSON, also through proxies."""


def ndjson_line(frame: object) -> bytes:
    """Write a frame as one line of JSON. A frame is a JSON object or an `ag_ui.core` event.

    Raises:
        InvalidValueError: The frame is none of these, or not JSON.

    Example:
        >>> ndjson_line({"message": {"content": "é\\n"}, "done": False})
        b'{"message":{"content":"\\xc3\\xa9\\\\n"},"done":false}\\n'
    """
    if frame is DONE:
        raise refuse_frame(frame, "must be a JSON object or an AG-UI event")
    written = frame_json(frame)
    if not written.isascii():
        written = clean_text(written).translate(LINE_ENDS)
    return f"{written}\n".encode()
