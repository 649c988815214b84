"""Server-sent events → JSON records, as model providers and their gateways send them.

The framing is the WHATWG's (HTML, "Parsing an event stream"):

    stream   BOM? event*
    event    (comment | field)* blank
    comment  ":" anything
    field    name (":" " "? value)?          a line without a colon is a name without a value
    a line ends with CRLF, LF or CR, in any mix; unknown fields are ignored

    data     appended to the event's data, lines joined by LF
    event    sets the event's name; the last one counts
    id       ignored: each provider has its own way to resume a stream
    retry    ignored
    blank    dispatches the event; an event without data dispatches nothing

Servers deviate from it, so:

- The last event counts without its blank line. A browser would drop it, but some servers forget the line.
- `[DONE]` may be missing, come twice, or precede the last record. It becomes `DONE`, once, and as soon as no byte of
  anything else is waiting. So it is last, unless its sender pauses and then goes on.
- A JSON document without `data:` is a record: at the start (an error instead of a stream) and between events
  (Gemini's pretty-printed error), over any number of lines.
- A body that does not begin as an event stream (an HTML page, a gateway's plain text) raises an error that quotes
  the body; it is not an empty stream.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, cast

from rxdelta.core import DEFAULT_LIMITS, LimitExceededError, Limits
from rxdelta.framing.json_records import JsonRecordParser, nesting
from rxdelta.framing.sse_frames import DONE

__all__ = ["SseParser"]

# The name of an unknown field. "<html>" and "upstream connect error" cannot be one.
_FIELD_NAME = re.compile(r"[A-Za-z_-]+")


class SseParser(JsonRecordParser):
    """Bytes of an event stream, cut anywhere, in; the JSON value of each event out, and `rd.wire.DONE` for `[DONE]`.

    The call that brings an event's blank line returns its record; `close()` returns a last record without one. An
    event's name is added to its record as `"_event"`, unless the name is `message` or the record has a `type` or
    `event` of its own. Values other than objects are returned unchanged; a decoder refuses them.

    Input may be `bytes` or `str`, in any mix. Line ends must be included: an HTTP client's `aiter_lines()` has
    removed them, so use its `aiter_bytes()`.

    Args:
        limits: `line_bytes` bounds a line, `block_chars` the data of one event, `json_depth` its nesting.
        loads: Reads the JSON, see `parse_sse`.

    Raises:
        MalformedChunkError: From `feed` and `close`: data is not JSON, or the body is not an event stream; `path`
            names the line, `found` quotes it.
        LimitExceededError: From `feed` and `close`: a limit was exceeded.

    Example:
        >>> parser = SseParser()
        >>> parser.feed(b': hello\\n\\nevent: error\\ndata: {"code"')
        []
        >>> parser.feed(b': 529}\\n\\ndata: [DONE]\\n\\n')
        [{'code': 529, '_event': 'error'}, DONE]
        >>> parser.close()
        []
    """

    wire_format = "sse"

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, loads: Callable[[str], Any] | None = None) -> None:
        super().__init__(limits, loads, carriage_returns=True)
        self._max_chars = limits.block_chars
        self._data: list[str] = []  # the lines of an event's data, or of a JSON document without `data:`
        self._data_chars = 0
        self._data_from = 0  # the number of the first of these lines
        self._open_brackets = 0  # of a JSON document without `data:`
        self._name = ""
        self._is_sse = False
        self._done: Literal["unsaid", "held", "said"] = "unsaid"
        self._suspect: tuple[str, int] | None = (
            None  # a line that is an error if no event follows, and its number
        )

    def _lines(self, lines: list[str], records: list[Any]) -> None:
        for line in lines:
            self._number += 1
            if self._open_brackets:
                self._json_line(line, records)
            elif not line:
                if self._data or self._name:
                    self._dispatch(records)
            elif line.startswith("data: "):  # nearly every line is this, or the blank line after it
                self._is_sse = True
                self._add_data(line[6:])
            elif line.startswith("event: "):
                self._is_sse = True
                self._name = line[7:]
            else:
                self._line(line, records)

        if self._done == "held" and not (self._data or self._splitter.is_amid_line):
            self._say_done(records)

    def _say_done(self, records: list[Any]) -> None:
        records.append(DONE)
        self._done = "said"

    def _line(self, line: str, records: list[Any]) -> None:
        name, colon, value = line.partition(":")
        match name:
            case "data":
                self._add_data(value.removeprefix(" "))
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
        if self._done == "held":
            self._say_done(records)
        if self._suspect is not None and not self._is_sse:
            raise self._malformed("an event stream", *self._suspect)

    def _unknown(self, line: str, name: str, colon: str, records: list[Any]) -> None:
        if line.lstrip().startswith(("{", "[")):
            self._dispatch(records)
            self._json_line(line, records)
        elif self._is_sse or not line.strip():
            pass
        elif not _FIELD_NAME.fullmatch(name):
            raise self._malformed("a field of an event stream", line, self._number)
        elif not colon and self._suspect is None:
            # "Unauthorized" is a legal field without a value, or the whole answer if no event follows.
            self._suspect = line, self._number

    def _json_line(self, line: str, records: list[Any]) -> None:
        """Read a line of a JSON document without `data:`. The document ends where its brackets are closed."""
        if line.startswith(("data:", "event:")):
            self._dispatch(records)  # raises: no line of JSON begins so, so the document was cut off
        self._add_data(line)
        # A JSON string contains no line break, so each line can be scanned by itself.
        self._open_brackets += nesting(line)[1]
        if self._open_brackets <= 0:
            self._dispatch(records)

    def _add_data(self, text: str) -> None:
        if not self._data:
            self._data_from = self._number
        self._data_chars += len(text) + 1
        if self._data_chars > self._max_chars:
            raise LimitExceededError.of("block_chars", self._max_chars, "the data of one event")
        self._data.append(text)

    def _dispatch(self, records: list[Any]) -> None:
        text, name = "\n".join(self._data), self._name
        self._data, self._name = [], ""
        self._data_chars = self._open_brackets = 0
        if text[:1] != "{" and (said := text.strip()) in ("", "[DONE]"):
            if said and self._done == "unsaid":
                self._done = "held"
            return
        if self._done == "said":
            self._done = "unsaid"
        record = self._document(text, self._data_from)
        if name and name != "message" and isinstance(record, dict) and "type" not in record:
            fields = cast("dict[str, Any]", record)
            if "event" not in fields:
                fields.setdefault("_event", name)
        records.append(record)
