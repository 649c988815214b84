"""Newline-delimited JSON (JSON Lines), read and written: one document per line, in UTF-8.

    stream   BOM? (document? LF)* document?

A CR before the LF is white space to JSON, as is a CR within a document. An empty line is a keep-alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rxdelta.core import DEFAULT_LIMITS, Limits, clean_text
from rxdelta.framing.json_records import JsonRecordParser
from rxdelta.framing.sse import DONE, LINE_ENDS, frame_json, refuse_frame


class NdjsonParser(JsonRecordParser):
    """Bytes of newline-delimited JSON, cut anywhere, in; the value of each line out.

    The call that brings a line's end returns its record; `close()` returns a last record without one. Values other
    than objects are returned unchanged. Input may be `bytes` or `str`, in any mix; line ends must be included.

    Args:
        limits: `line_bytes` bounds a line, `json_depth` its nesting.
        loads: Reads the JSON, see `parse_sse`.

    Raises:
        MalformedChunkError: From `feed` and `close`: a line is not one JSON document; `path` names the line,
            `found` quotes it.
        LimitExceededError: From `feed` and `close`: a limit was exceeded.

    Example:
        >>> parser = NdjsonParser()
        >>> parser.feed(b'{"done": false}\\n\\n{"done"')
        [{'done': False}]
        >>> parser.feed(b': true}'), parser.close()
        ([], [{'done': True}])
    """

    wire_format = "ndjson"

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, loads: Callable[[str], Any] | None = None) -> None:
        super().__init__(limits, loads, carriage_returns=False)

    def _line(self, line: str, records: list[Any]) -> None:
        if line.strip():
            records.append(self._document(line.rstrip("\r"), self._number))

    def _end(self, records: list[Any]) -> None:
        """No record is left: a last line without an end has already gone through `_line`."""


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
