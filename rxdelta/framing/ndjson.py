"""Newline-delimited JSON (JSON Lines): one document per line.

    stream   BOM? (document? LF)* document?

A CR before the LF is white space to JSON, as is a CR within a document. An empty line is a keep-alive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rxdelta.core import DEFAULT_LIMITS, Limits
from rxdelta.framing.json_records import JsonRecordParser

__all__ = ["NdjsonParser"]


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
