"""What a stream is: its framing by the first line of bytes, its envelope and its format by the first chunks.

The lines of a recording, whose form `rxdelta.recording` documents, are read as what was recorded.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, cast

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    InvalidValueError,
    Limits,
    MalformedChunkError,
    Snapshot,
    UnknownWireFormatError,
    is_mapping,
    quote,
)
from rxdelta.core.events import (
    EVENT_TYPES,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    StreamError,
    UsageUpdate,
    from_dict,
)
from rxdelta.formats import registry
from rxdelta.formats.decoding import Decoder, Json, as_mapping, word
from rxdelta.formats.endings import error_code, error_events, failure_in
from rxdelta.formats.format import Format
from rxdelta.formats.gateways import Envelope, envelope_of, refuse_stranger
from rxdelta.framing import DONE, NdjsonParser, SseParser, check_loads

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


_SSE_FIELDS = (b"data", b"event", b"id", b"retry", b":")
_SSE_LINES = (b"data:", b"event:", b"id:", b"retry:")
_BLANK = b"\xef\xbb\xbf \t\r\n"


class AutoParser:
    """Bytes or text of server-sent events, or of newline-delimited JSON, in; chunks out.

    The first line tells which of the two it is. The pieces may be cut anywhere, or be lines without their ends, as an
    HTTP client's `iter_lines()` gives them. A list is a list of chunks, unless it is one of LangGraph's items.

    Args:
        limits: See `SseParser` and `NdjsonParser`.
        loads: The same.

    Raises:
        MalformedChunkError: From `feed` and `close`, as these two.
        LimitExceededError: As these two.

    Example:
        >>> parser = AutoParser()
        >>> parser.feed(b'{"done": false}\\n{"done": '), parser.feed(b"true}"), parser.close()
        ([{'done': False}], [], [{'done': True}])
        >>> lines = AutoParser()
        >>> lines.feed("event: ping"), lines.feed('data: {"a": 2}'), lines.feed(""), lines.close()
        ([], [], [{'a': 2, '_event': 'ping'}], [])
    """

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS, loads: Callable[[str], Any] | None = None) -> None:
        check_loads(loads)
        self._limits = limits
        self._loads = loads
        self._held: list[Any] = []  # until the first line is whole
        self._first = b""  # of these pieces, the first with something in it
        self._head = bytearray()  # all of them
        self._parser: SseParser | NdjsonParser | None = None
        self._cut_lines = False  # the pieces are lines without their ends

    def feed(self, data: bytes | bytearray | str) -> list[Any]:
        """The chunks that `data` completes, in order; often none."""
        piece = data if isinstance(data, str) else bytes(data)
        if self._parser is not None:
            return self._parsed(self._parser, piece)
        self._held.append(piece)
        shown = piece.encode("utf-8", "replace") if isinstance(piece, str) else piece
        if self._first:
            self._head += shown
        else:
            self._first = shown.lstrip(_BLANK)
            self._head += self._first
        return self._begin()[1] if self._shows_framing(shown) else []

    def close(self) -> list[Any]:
        """End the input: the chunks that were still incomplete."""
        if self._parser is not None:
            return [*_flat(self._parser.close())]
        is_text, first = isinstance((self._held or [b""])[0], str), self._first
        try:
            parser, chunks = self._begin()
            return [*chunks, *_flat(parser.close())]
        except MalformedChunkError as error:
            if not is_text or first.startswith((b"{", b"[", b"<", *_SSE_FIELDS)):
                raise
            advice = "text is read as SSE or NDJSON; a reply's own text is given as events.TextDelta(0, text)"
            raise MalformedChunkError(
                f"{error}; {advice}", wire_format=error.wire_format, path=error.path, found=error.found
            ) from None

    def _begin(self) -> tuple[SseParser | NdjsonParser, list[Any]]:
        line = bytes(self._head.partition(b"\n")[0].partition(b"\r")[0])
        is_ndjson = not line.startswith(_SSE_FIELDS) and _is_json(line)
        # An SseParser refuses all else, and reads a document of several lines.
        make = NdjsonParser if is_ndjson else SseParser
        self._parser = parser = make(limits=self._limits, loads=self._loads)
        held, self._held = self._held, []
        return parser, [chunk for piece in held for chunk in self._parsed(parser, piece)]

    def _parsed(self, parser: SseParser | NdjsonParser, piece: Any) -> list[Any]:
        if self._cut_lines:
            piece += "\n" if isinstance(piece, str) else b"\n"
        return [*_flat(parser.feed(piece))]

    def _shows_framing(self, last: bytes) -> bool:
        """Whether the first line is whole: by its end, or because the next line follows without one."""
        shown = self._first if len(self._first) == len(self._head) else last
        if b"\n" in shown or b"\r" in shown or len(self._head) > self._limits.line_bytes:
            return True
        if shown is not self._first:
            follows = last.startswith(_SSE_LINES) and self._first.startswith(_SSE_FIELDS)
            self._cut_lines = follows or (last.startswith((b"{", b"[")) and _is_json(self._first))
        return self._cut_lines


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _flat(records: Sequence[Any]) -> Iterator[Any]:
    for record in records:
        if isinstance(record, list) and not _is_item(record):  # pyright: ignore[reportUnknownArgumentType]
            yield from record
        else:
            yield record


def _is_item(record: list[Any]) -> bool:
    """Whether it is an item of LangGraph's. Apart from their metadata, the messages of several nodes would be woven."""
    match record:
        case [dict(), dict()]:
            return "langgraph_node" in record[1]
        case [list(), *_]:
            return all(isinstance(part, str) for part in record[0])
        case _:
            return bool(record) and isinstance(record[0], str)


Decode: TypeAlias = Callable[[object], Sequence[Event]]
NameOrMaker: TypeAlias = str | Callable[..., Decoder]

_LOOK_AT = 20  # chunks that may come before the first one that shows the format
_WITHOUT_CONTENT = frozenset([ProviderEvent, MessageStart, MessageFinish, UsageUpdate])


def detect(chunk: object) -> str:
    """The name of the wire format whose stream begins with this chunk.

    For a chunk in an envelope, such as an event of an agent's SDK, it is the format of the chunk inside.

    Raises:
        UnknownWireFormatError: It looks like none; the error lists the formats known and what was seen.
        MalformedChunkError: It is of a protocol that is known to be no format here, such as OpenAI Realtime.

    Example:
        >>> import rxdelta as rd
        >>> rd.providers.detect({"type": "message_start", "message": {"id": "m1", "content": []}})
        'anthropic-messages'
    """
    envelope = envelope_of(chunk)
    if envelope is not None:
        inner = envelope.chunk_in(chunk)
        if inner is None and envelope.format is not None:
            return envelope.format
        chunk = inner
    try:
        fields = as_mapping(chunk, "unknown")
    except MalformedChunkError as error:
        again = "; what scan_deltas() has made isn't decoded again" if isinstance(chunk, Snapshot) else ""
        wrong = f"{_unknown()}: a chunk is an object, this is {error.found}{again}"
        raise UnknownWireFormatError(wrong) from None
    refuse_stranger(fields)
    name = registry.recognise(fields)
    if name is None:
        raise UnknownWireFormatError(_unknown(fields))
    return name


def _unknown(fields: Mapping[str, Any] | None = None) -> str:
    seen = "" if fields is None else f"; {_seen(fields)}"
    return f"no known wire format begins so (known: {', '.join(sorted(registry.names()))}{seen})"


def _seen(fields: Mapping[str, Any]) -> str:
    return f"seen: {', '.join(_shown(str(name), fields[name]) for name in sorted(fields, key=str)[:20]) or 'no fields'}"


def _shown(name: str, value: object) -> str:
    """A field by its name; where it names the chunk's kind, or says what went wrong, by that too."""
    if name in ("type", "object", "event", "detail", "message") and isinstance(value, str):
        return f"{quote(name)}={quote(repr(value[:60]))}"
    return quote(name)


class AutoDecoder:
    """A decoder that finds out what its stream is made of.

    Chunks are decoded by the format that the first of them show. Chunks before the first one that tells are held.
    Bytes and text are read by an `AutoParser` first; events are passed on. Lines of a recording give what was recorded.

    Args:
        make: Makes the decoder of a format, or of a user's function.
        only: The format or the function, if it is known.
        parser: Reads bytes and text.
        again: Makes another decoder like this, for what was recorded.
    """

    def __init__(
        self,
        make: Callable[[NameOrMaker], Decoder],
        only: NameOrMaker | None,
        parser: AutoParser,
        again: Callable[[], Decoder],
    ) -> None:
        self.wire_format: str | None = None
        """The format that the chunks have shown, or that was given."""
        self._make = make
        self._parser = parser
        self._again = again
        self._held: list[object] = []
        self._has_begun = False
        self._decoder: Decoder | None = None
        self._decode: Decode = self._detect
        if only is not None:
            self._decode = self._named(only).decode
        self.decode: Decode = self._begin

    def close(self) -> Sequence[Event]:
        events = self._decoded(self._parser.close())
        if self._decoder is not None:
            return [*events, *self._decoder.close()]
        if self._held:
            return [*events, *self._give_up()]
        return events

    def _begin(self, chunk: object) -> Sequence[Event]:
        """Decide by the first value; from then on `decode` is the chosen method."""
        if chunk is DONE:  # it shows nothing, here and below
            return ()
        if isinstance(chunk, (bytes, bytearray, str)):
            self.decode = self._parse
        elif type(chunk) in EVENT_TYPES:
            self.decode = _passed_on
        else:
            self._look_for_lines(chunk)
            self.decode = self._decode
        return self.decode(chunk)

    def _look_for_lines(self, first: object) -> None:
        self._has_begun = True
        if is_recorded(first):
            self._decoder = RecordedLines(self._again())
            self._decode = self._decoder.decode

    def _parse(self, data: Any) -> Sequence[Event]:
        if data is DONE:
            return ()
        if not isinstance(data, (bytes, bytearray, str)):
            raise MalformedChunkError.at("auto", "", "bytes or text, as before", data)
        return self._decoded(self._parser.feed(data))

    def _decoded(self, chunks: Sequence[object]) -> Sequence[Event]:
        if chunks and not self._has_begun:
            self._look_for_lines(chunks[0])
        return [event for chunk in chunks for event in self._decode(chunk)]

    def _detect(self, chunk: object) -> Sequence[Event]:
        if chunk is DONE or _is_ping(chunk):
            return ()
        self._held.append(chunk)
        try:
            name = _detect_item(chunk)
        except UnknownWireFormatError:
            if len(self._held) < _LOOK_AT:
                return ()
            return self._give_up()
        self._go_on(self._named(name).decode)
        held, self._held = self._held, []
        return self._decoded(held)

    def _give_up(self) -> Sequence[Event]:
        """No chunk has shown the format: the first one explains the most. It may be the error of a gateway's framework.

        Raises:
            UnknownWireFormatError: It isn't.
        """
        first = self._held[0]
        failure = failure_in(cast("Json", first)) if isinstance(first, Mapping) else None
        if failure is None:
            _detect_item(self._held[0])  # raises
        return error_events("gateway", failure or {}, None, frozenset())

    def _named(self, known: NameOrMaker) -> NamedDecoder:
        self.wire_format = known if isinstance(known, str) else None
        decoder = NamedDecoder(known, partial(self._make, known), self._go_on)
        self._decoder = decoder
        return decoder

    def _go_on(self, decode: Decode) -> None:
        """Decode the next chunks by this function."""
        if self.decode == self._decode:
            self.decode = decode
        self._decode = decode


def _by(decoder: Decoder, chunk: object) -> Sequence[Event]:
    """The events of a decoder that isn't ours. It may change its `decode`, and doesn't know `DONE`."""
    return () if chunk is DONE else decoder.decode(chunk)


def _passed_on(event: object) -> Sequence[Event]:
    if event is DONE:
        return ()
    if type(event) not in EVENT_TYPES:
        raise MalformedChunkError.at("auto", "", "an event, as before", event)
    return (event,)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def _is_ping(chunk: object) -> bool:
    """Whether it only keeps the connection open. Gateways send Anthropic's ping in front of other vendors' chunks."""
    kind: Any = chunk.get("type") if isinstance(chunk, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return isinstance(kind, str) and kind == "ping"


def _telling(chunk: object) -> object:
    """The part that shows the format. LangGraph's items are tuples: of a message, or ending in what the mode gives."""
    shown: Any = chunk
    while isinstance(shown, (list, tuple)) and shown:
        items = cast("Sequence[Any]", shown)
        shown = items[-1] if isinstance(items[0], (str, list, tuple)) else items[0]
    return shown  # pyright: ignore[reportUnknownVariableType]


def _detect_item(chunk: object) -> str:
    """The format of a stream's item. LangGraph's own items may hold anything of an application's, such as an error."""
    shown = _telling(chunk)
    name = detect(shown)
    if shown is not chunk and registry.is_own(name) and name != "langchain":
        raise UnknownWireFormatError(_unknown(as_mapping(shown, "unknown")))
    return name


class NamedDecoder:
    """A decoder that looks at the first chunks of its stream, and then steps aside.

    It opens envelopes, and if the first chunks don't fit, its error says which format does. Most decoders pass unknown chunks
    on as `ProviderEvent`s, and would make an empty message of another format's stream. So this looks at chunks until one of
    them has content, or begins a reply of the named format. If none has until the end, that is an error.

    Args:
        known: The name of the format; or a user's function, whose chunks are taken out of their envelope and no more.
        make: Makes a decoder of it.
        settled: Gets the function that decodes the chunks after the first ones.
    """

    def __init__(
        self, known: NameOrMaker, make: Callable[[], Decoder], settled: Callable[[Decode], None] | None = None
    ) -> None:
        self._name = known if isinstance(known, str) else ""
        self._make = make
        self._settled = settled
        self._decoder = make()
        self._is_own = registry.is_own(self._name)
        self._envelope: Envelope | None = None
        self._looked_at = 0
        self._fits = self._begun = not self._name  # a chunk was of the named format; was more than passed on
        self._other: str | None = None  # the format that the chunks seem to have
        self._unread: Mapping[str, Any] | None = None  # a chunk of which nothing was read
        self.decode: Decode = self._look

    def close(self) -> Sequence[Event]:
        self._refuse()
        events = self._decoder.close()
        if self._unread is None or _have_content(events) or self._carries_more():
            return events
        raise self._nothing_read(self._unread)

    def _look(self, chunk: object) -> Sequence[Event]:
        if chunk is DONE:
            self._refuse()
            return self._decoder.decode(chunk) if self._is_own else ()
        fields = self._open(chunk)
        try:
            events = self._decoder.decode(chunk)
        except MalformedChunkError as error:
            if self._fits or not fields:
                raise
            self._compare(fields)
            events = self._failure(fields)
            if not events:
                self._refuse(error)
                if not self._fits and error.path.isidentifier() and error.path not in fields:
                    raise self._error(f"{error}; {_unknown(fields)}", error) from error
                raise
        if _is_ping(fields):
            return events
        self._looked_at += 1
        if isinstance(chunk, (list, tuple)):  # which the decoders of other formats refuse
            self._fits = True
        if not (self._fits or _have_content(events)) and self._looked_at <= _LOOK_AT:
            self._compare(fields)
            events = self._failure(fields) or events
        has_content = _have_content(events)
        self._begun = self._begun or any(type(event) is not ProviderEvent for event in events)
        if has_content or (self._begun and (self._fits or self._looked_at >= _LOOK_AT)):
            self._step_aside()
        elif not self._unread and (events or not fields):
            self._unread = fields
        return events

    def _step_aside(self) -> None:
        self._other = self._unread = None
        self.decode = self._decoder.decode if self._is_own else partial(_by, self._decoder)
        if self._settled is not None:
            self._settled(self.decode)

    def _open(self, chunk: object) -> Mapping[str, Any]:
        """The fields of a chunk, without its envelope; none if it is no chunk."""
        if self._envelope is None and not (self._looked_at and self._begun):
            self._envelope = envelope_of(chunk)
            if self._envelope is not None:
                self._decoder = self._envelope.decoder(self._make)
        shown = chunk if self._envelope is None else self._envelope.chunk_in(chunk)
        try:
            fields = as_mapping(_telling(shown), self._name)
        except MalformedChunkError:
            return {}
        if self._name:
            refuse_stranger(fields)
        return fields

    def _compare(self, fields: Mapping[str, Any]) -> None:
        """Note whether a chunk without content is of the named format, or of which other one."""
        found = self._format_of(fields)
        if found == self._name:
            self._fits, self._other = True, None
            return
        self._other = self._other or found
        if self._looked_at == _LOOK_AT:
            self._refuse()

    def _failure(self, fields: Mapping[str, Any]) -> Sequence[Event]:
        """The error that a chunk of the other format is, if it is one: a gateway answers in its own form."""
        other = registry.find(self._other) if self._other and registry.is_own(self._other) else None
        events: Sequence[Event] = ()
        if other is not None:
            with suppress(MalformedChunkError):
                events = other.decoder().decode(fields)
        return events if {type(event) for event in events} - {ProviderEvent} == {StreamError} else ()

    def _format_of(self, fields: Mapping[str, Any]) -> str | None:
        """Our own name if the chunk may be ours, or that of another format."""
        own = registry.find(self._name)
        if own is None or own.recognises(fields):
            return self._name
        name = registry.recognise(fields)
        other = None if name is None else registry.find(name)
        return self._name if other is not None and _is_dialect(own, other) else name

    def _refuse(self, cause: MalformedChunkError | None = None) -> None:
        if self._other not in (None, self._name):
            wrong = f"decode({self._name!r}) got a chunk of {self._other}: use decode({self._other!r})"
            raise self._error(wrong, cause) from cause

    def _carries_more(self) -> bool:
        own = registry.find(self._name)
        return self._fits and own is not None and own.carries_more

    def _nothing_read(self, unread: Mapping[str, Any]) -> MalformedChunkError:
        if self._envelope is not None and not unread:
            why = f"its items are of {self._envelope.name}, and none holds a chunk ({self._envelope.missing})"
        elif self._fits:
            why = f"no chunk begins a reply ({_seen(unread)})"
        else:
            why = _unknown(unread)
        return self._error(f"nothing of this stream could be read as {self._name}: {why}")

    def _error(self, message: str, cause: MalformedChunkError | None = None) -> MalformedChunkError:
        path, found = ("", "") if cause is None else (cause.path, cause.found)
        return MalformedChunkError(message, wire_format=self._name, path=path, found=found)


def _have_content(events: Sequence[Event]) -> bool:
    return any(type(event) not in _WITHOUT_CONTENT for event in events)


def _is_dialect(one: Format, another: Format) -> bool:
    """Whether one of the two decoders is made of the other, and may well read its chunks."""
    made: tuple[Any, Any] = one.decoder, another.decoder
    return all(isinstance(decoder, type) for decoder in made) and (
        issubclass(made[0], made[1]) or issubclass(made[1], made[0])
    )
