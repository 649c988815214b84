"""Newline-delimited JSON (JSON Lines): one document a line.

    stream   BOM? (document? LF)* document?

A CR before the LF, like any one inside a document, is white space to JSON. Empty lines are keep-alives.
"""

from __future__ import annotations

from typing import Any

from rxdelta.core import DEFAULT_LIMITS, Limits
from rxdelta.framing.json_records import RecordParser

__all__ = ["NdjsonParser"]


class NdjsonParser(RecordParser):
    """Bytes of newline-delimited JSON in, the value of each line out, however the bytes are split.

    A record is returned by the call that brings its line end, the last one at the latest by `close()`. Values
    that are no objects are returned as they are. `str` is taken as well as `bytes`, in any mix, with its line
    ends.

    Args:
        limits: `line_bytes` bounds a line, `json_depth` its nesting.

    Raises:
        MalformedChunkError: From `feed` and `close`: a line that is not one JSON document; `path` says which
            line, `found` what stands there.
        LimitExceededError: From `feed` and `close`: a limit was passed.

    Example:
        >>> parser = NdjsonParser()
        >>> parser.feed(b'{"done": false}\\n\\n{"done"')
        [{'done': False}]
        >>> parser.feed(b': true}'), parser.close()
        ([], [{'done': True}])
    """

    wire_format = "ndjson"

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits, carriage_returns=False)

    def _line(self, line: str, records: list[Any]) -> None:
        if line.strip():
            records.append(self._document(line.rstrip("\r"), self._number))

    def _end(self, records: list[Any]) -> None:
        """Nothing waits for it: a last line without an end has gone through `_line`."""
