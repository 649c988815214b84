"""Server-sent events, as model providers and their gateways send them.

The framing is that of the WHATWG (HTML, "Parsing an event stream"):

    stream   BOM? event*
    event    (comment | field)* blank
    comment  ":" anything
    field    name (":" " "? value)?          a line without a colon is a name without a value
    a line ends with CRLF, LF or CR, in any mix; unknown fields are ignored

    data     appended to the event's data, lines joined by LF
    event    the event's name, the last one counts
    id       ignored: who resumes a provider's stream does so with the provider's own words
    retry    ignored
    blank    dispatches the event; one without data dispatches nothing

Beyond it, because of what is really sent:

- The last event counts without its blank line: a browser drops it, some servers forget it.
- `[DONE]` is nothing: it may be missing, come twice, or before the last record.
- A JSON document that stands there without `data:` is a record, at the start (an error in place of a stream)
  and amid events (Gemini's pretty-printed error), over as many lines as it has.
- A body that does not begin as an event stream (an HTML page, a gateway's plain text) is an error that quotes
  it, not an empty stream.
"""

from __future__ import annotations

import re
from typing import Any, cast

from rxdelta.core import DEFAULT_LIMITS, LimitExceededError, Limits
from rxdelta.framing.json_records import RecordParser, nesting

__all__ = ["SseParser"]

# What might be a field that we don't know. "<html>" and "upstream connect error" cannot be one.
_FIELD_NAME = re.compile(r"[A-Za-z_-]+")


class SseParser(RecordParser):
    """Bytes of an event stream in, the JSON value of each event out, however the bytes are split.

    A record is returned by the call that brings its blank line, the last one at the latest by `close()`. An
    event's name is added to its record as `"_event"` if it says something that the record does not: not for
    `message`, nor for an object that has a `type` or `event` itself. Values that are no objects are returned
    as they are; it is for the decoder to refuse them.

    `str` is taken as well as `bytes`, in any mix. Line ends must be in it: an HTTP client's `aiter_lines()`
    has already cut them off, use its `aiter_bytes()`.

    Args:
        limits: `line_bytes` bounds a line, `block_chars` the data of one event, `json_depth` its nesting.

    Raises:
        MalformedChunkError: From `feed` and `close`: data that is no JSON, or a body that is no event stream;
            `path` says in which line, `found` what stands there.
        LimitExceededError: From `feed` and `close`: a limit was passed.

    Example:
        >>> parser = SseParser()
        >>> parser.feed(b': hello\\n\\nevent: error\\ndata: {"code"')
        []
        >>> parser.feed(b': 529}\\n\\ndata: [DONE]\\n\\n')
        [{'code': 529, '_event': 'error'}]
        >>> parser.close()
        []
    """

    wire_format = "sse"

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(limits, carriage_returns=True)
        # The lines of the event's data, or of a document without `data:`, of which `_open` brackets are open.
        self._most_chars = limits.block_chars
        self._held: list[str] = []
        self._held_chars = 0
        self._held_from = 0
        self._open = 0
        self._name = ""
        self._is_sse = False
        self._stray: tuple[str, int] | None = None

    def _lines(self, lines: list[str], records: list[Any]) -> None:
        for line in lines:
            self._number += 1
            if self._open > 0:
                self._bare(line, records)
            elif line.startswith("data: "):  # nearly all lines are this, or the blank one behind it
                self._is_sse = True
                self._hold(line[6:])
            elif line.startswith("event: "):
                self._is_sse = True
                self._name = line[7:]
            elif line:
                self._line(line, records)
            elif self._held or self._name:
                self._dispatch(records)

    def _line(self, line: str, records: list[Any]) -> None:
        name, colon, value = line.partition(":")
        match name:
            case "data":
                self._hold(value.removeprefix(" "))
            case "event":
                self._name = value.removeprefix(" ")
            case "" | "id" | "retry":  # no name: a comment
                pass
            case _:
                self._unknown(line, name, colon, records)
                return
        self._is_sse = True

    def _end(self, records: list[Any]) -> None:
        self._dispatch(records)
        if self._stray is not None and not self._is_sse:
            raise self._malformed("an event stream", *self._stray)

    def _unknown(self, line: str, name: str, colon: str, records: list[Any]) -> None:
        if line.lstrip().startswith(("{", "[")):
            self._dispatch(records)
            self._bare(line, records)
        elif self._is_sse or not line.strip():
            pass
        elif not _FIELD_NAME.fullmatch(name):
            raise self._malformed("a field of an event stream", line, self._number)
        elif not colon and self._stray is None:
            # "Unauthorized" is a legal field without a value. If no event follows, it was the whole answer.
            self._stray = line, self._number

    def _bare(self, line: str, records: list[Any]) -> None:
        """A line of a JSON document that has no `data:` in front. It ends where its brackets do."""
        if line.startswith(("data:", "event:")):
            self._dispatch(records)  # raises: no line of JSON begins so, the document was cut off
        self._hold(line)
        # A string of JSON has no line break in it, so that lines can be looked at one by one.
        self._open += nesting(line)[1]
        if self._open <= 0:
            self._dispatch(records)

    def _hold(self, text: str) -> None:
        if not self._held:
            self._held_from = self._number
        self._held_chars += len(text) + 1
        if self._held_chars > self._most_chars:
            raise LimitExceededError.of("block_chars", self._most_chars, "the data of one event")
        self._held.append(text)

    def _dispatch(self, records: list[Any]) -> None:
        text, name = "\n".join(self._held), self._name
        self._held, self._held_chars, self._open, self._name = [], 0, 0, ""
        if not text.startswith("{") and text.strip() in ("", "[DONE]"):
            return
        record = self._document(text, self._held_from)
        if name not in ("", "message") and isinstance(record, dict):
            fields = cast("dict[str, Any]", record)
            if "type" not in fields and "event" not in fields:
                fields.setdefault("_event", name)
        records.append(record)
