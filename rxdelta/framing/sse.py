"""Frames → server-sent events, in UTF-8. Lines end with LF alone, the only line end that AG-UI's client accepts.

Server-sent events → JSON records, as model providers and their gateways send them.

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
  anything else is waiting. So it is last, unless its sender pauses and then continues.
- A JSON document without `data:` is a record: at the start (an error instead of a stream) and between events
  (Gemini's pretty-printed error), over any number of lines.
- A body that does not begin as an event stream (an HTML page, a gateway's plain text) raises an error that quotes
  the body; it is not an empty stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring as _text
from typing import Any, Final, Literal, cast

from rxdelta.core import (
    DEFAULT_LIMITS,
    InvalidValueError,
    LimitExceededError,
    Limits,
    Snapshot,
    clean_text,
    is_mapping,
    parse_json,
)
from rxdelta.core.events import EVENT_TYPES
from rxdelta.framing.json_records import JsonRecordParser, nesting


class NamedFrame(dict[str, Any]):
    """A frame whose `type` is also the name of its event: `to_sse` writes `event: <type>` in front of the data.

    Anthropic's and OpenAI's clients read the event by that name. Front ends that listen to an `EventSource`'s messages would
    miss an event with a name, so other frames have none.
    """

    __slots__ = ()


class Done:
    """The type of `DONE`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DONE"

    def __reduce__(self) -> str:
        return "DONE"  # a copy is the same object, also behind a pickle


DONE: Final = Done()
"""The end of a stream, as an item: `[DONE]`.

`to_ai_sdk` emits it last, and `to_sse` writes it as `data: [DONE]`. `parse_sse` emits it for a `[DONE]` that was read, and
every decoder takes it: the provider has said that the reply is whole.
"""

KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment: every client skips it, and proxies see that the connection is alive."""

SSE_HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
"""Headers of a response that streams events, also through proxies."""

LINE_ENDS: Final = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""Characters that end a line to some clients, as to `httpx`, with which clients in Python read lines; and how JSON escapes them."""

_ends_a_line = re.compile("[\x85\u2028\u2029]").search

_FORBIDDEN = frozenset("\r\n\0")
"""Characters that would end the field of an id, or void it."""


def sse_frame(frame: object, id: str | None = None) -> bytes:
    """Write a frame as one event. A frame is a JSON object, an `ag_ui.core` event, or `DONE`.

    Args:
        frame: What the event's data is.
        id: The event's id, from which a reader can continue: an `EventSource` sends it back as `Last-Event-ID`.

    Raises:
        InvalidValueError: The frame is none of these, or not JSON; or the id has a line end or a NUL.

    Example:
        >>> sse_frame({"type": "text-delta", "id": "0", "delta": "é\\n"})
        b'data: {"type":"text-delta","id":"0","delta":"\\xc3\\xa9\\\\n"}\\n\\n'
        >>> sse_frame(DONE)
        b'data: [DONE]\\n\\n'
        >>> sse_frame({"type": "text-end"}, id="7-0")
        b'id: 7-0\\ndata: {"type":"text-end"}\\n\\n'
    """
    if id is not None and not _FORBIDDEN.isdisjoint(id):
        raise InvalidValueError.of([("id", id, "must be on one line, without NUL")])
    field = "" if id is None else f"id: {id}\n"
    if type(frame) is NamedFrame:
        name = frame.get("type")
        if not isinstance(name, str) or not _FORBIDDEN.isdisjoint(name):
            raise InvalidValueError.of([("frame", frame, "must have a `type` that is a string on one line")])
        field += f"event: {name}\n"
    try:
        return f"{field}data: {_on_each_clients_line(_by_form(frame) or _data(frame))}\n\n".encode()
    except UnicodeEncodeError:  # half a surrogate pair, which an object that writes itself may refuse
        return f"{field}data: {_on_each_clients_line(clean_text(_data(frame)))}\n\n".encode()


def _on_each_clients_line(data: str) -> str:
    """JSON without the characters that end a line to some clients only."""
    return data if data.isascii() or _ends_a_line(data) is None else data.translate(LINE_ENDS)


_FORMS: Final[dict[object, tuple[object, str, str, str, str, str]]] = {}


def add_form(frame: object, first: str, second: str) -> None:
    """Make frames of this one's kind cheap to write if they differ from it in two texts only: most frames do.

    The form is what the frame's own writer puts around the texts, so the bytes are the same.

    Args:
        frame: A frame whose two texts are `"1"` and `"2"`.
        first, second: Their names, in the order in which they are written.
    """
    kind, names = (frame["type"], (*frame,)) if is_mapping(frame) else (type(frame), {first, second})
    if (around := re.fullmatch('(.*)"1"(.*)"2"(.*)', _data(frame))) is not None:
        _FORMS[kind] = (names, first, second, around[1], around[2], around[3])


def _by_form(frame: object) -> str | None:
    """The data of a frame that has a form; `None` for any other frame."""
    given: Any = frame
    kind: Any = type(frame)
    try:
        form = _FORMS.get(given.get("type") if kind is dict else kind)
        if form is None:
            return None
        names, first, second, head, middle, tail = form
        if kind is dict:
            texts, same = given, (*given,) == names
        else:
            texts, same = given.__dict__, given.model_fields_set == names and not given.model_extra
        return f"{head}{_text(texts[first])}{middle}{_text(texts[second])}{tail}" if same else None
    except (KeyError, TypeError):  # something else than a text
        return None


def _data(frame: Any) -> str:
    return "[DONE]" if frame is DONE else frame_json(frame)


def frame_json(frame: Any) -> str:
    """The JSON of a frame, on one line.

    Raises:
        InvalidValueError: It is no frame, or not JSON.
    """
    dump = getattr(frame, "model_dump_json", None)
    try:
        if isinstance(frame, dict):
            return _write(frame)
        if callable(dump):
            return _on_one_line(dump(by_alias=True))
    except Exception as error:  # RecursionError, and anything that an object's own method raises
        raise InvalidValueError(f"a frame must be JSON: {error}", field="frame", value=frame) from error  # pyright: ignore[reportUnknownArgumentType]
    raise refuse_frame(frame, "must be a JSON object, an AG-UI event, or DONE")


def refuse_frame(frame: object, wanted: str) -> InvalidValueError:
    """The error of a value that is no frame."""
    makers = "to_ai_sdk(), to_ag_ui(), to_langchain_events() or to_openai_chat() makes frames of events"
    is_ours = type(frame) in EVENT_TYPES or isinstance(frame, Snapshot)
    return InvalidValueError.of([("frame", frame, wanted, makers if is_ours else "")])


def _on_one_line(written: Any) -> str:
    """The JSON that an object wrote. A line end in it would end the event, and could begin another."""
    if not isinstance(written, str):
        raise TypeError(f"it wrote itself as {type(written).__name__}")
    return _write(parse_json(written)) if "\n" in written or "\r" in written else written


_write = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


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

        # At once, not at the input's end: a connection may stay open behind `[DONE]`, and no reply waits for it.
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
