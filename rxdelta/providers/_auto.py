"""The first chunks tell what a stream is: its framing, its format, and whether the named format fits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    Limits,
    MalformedChunkError,
    UnknownWireFormatError,
    quote,
)
from rxdelta.core.events import EVENT_TYPES, MessageFinish, MessageStart, ProviderEvent, UsageUpdate
from rxdelta.formats import registry
from rxdelta.formats.decoding import Decoder, as_mapping
from rxdelta.formats.format import Format
from rxdelta.framing import DONE, NdjsonParser, SseParser

__all__ = ["AutoDecoder", "AutoParser", "NamedDecoder", "detect"]

Decode = Callable[[object], Sequence[Event]]

_LOOK_AT = 20  # chunks that may come before the first one that shows the format
_SSE_FIELDS = (b"data", b"event", b"id", b"retry", b":")
_SSE_LINES = (b"data:", b"event:", b"id:", b"retry:")
_WITHOUT_CONTENT = (ProviderEvent, MessageStart, MessageFinish, UsageUpdate)
_BLANK = b"\xef\xbb\xbf \t\r\n"


def detect(chunk: object) -> str:
    """The name of the wire format whose stream begins with this chunk.

    Raises:
        UnknownWireFormatError: It looks like none; the error lists the formats known and what was seen.

    Example:
        >>> import rxdelta as rd
        >>> rd.providers.detect({"type": "message_start", "message": {"id": "m1", "content": []}})
        'anthropic-messages'
    """
    try:
        fields = as_mapping(chunk, "unknown")
    except MalformedChunkError as error:
        raise UnknownWireFormatError(
            f"no known wire format begins so (known: {', '.join(sorted(registry.names()))}): a chunk is an object, this is {error.found}"
        ) from None
    name = registry.recognise(fields)
    if name is not None:
        return name
    seen = ", ".join(_seen(str(name), fields[name]) for name in sorted(fields, key=str)[:20]) or "no fields"
    raise UnknownWireFormatError(
        f"no known wire format begins so (known: {', '.join(sorted(registry.names()))}; seen: {seen})"
    )


def _seen(name: str, value: object) -> str:
    """A field by its name; where it names the chunk's kind, by that too."""
    if name in ("type", "object", "event") and isinstance(value, str):
        return f"{quote(name)}={quote(repr(value[:60]))}"
    return quote(name)


class AutoDecoder:
    """A decoder that finds out what its stream is made of.

    Chunks are decoded by the format that the first of them show. Chunks before the first one that tells are held.
    Bytes and text are read by an `AutoParser` first; events are passed on.

    Args:
        make: Makes the decoder of a format.
        only: The decoder, if the format is known.
        limits: The limits of the `AutoParser`.
    """

    def __init__(
        self, make: Callable[[str], Decoder], only: Decoder | None = None, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self._make = make
        self._parser = AutoParser(limits=limits)
        self._held: list[object] = []
        self._decoder = only
        self._decode: Decode = self._detect if only is None else partial(_by, only)
        self.decode: Decode = self._begin

    def close(self) -> Sequence[Event]:
        events = self._decoded(self._parser.close())
        if self._decoder is not None:
            return [*events, *self._decoder.close()]
        if self._held:
            detect(_telling(self._held[0]))
        return events

    def _begin(self, chunk: object) -> Sequence[Event]:
        """Decide by the first value; from then on `decode` is the chosen method."""
        if chunk is DONE:  # it shows nothing, here and below
            return ()
        if isinstance(chunk, (bytes, bytearray, str)):
            self.decode = self._parse
        elif type(chunk) in EVENT_TYPES:
            self.decode = _passed_on
        elif _wrapped(chunk) is not None:
            self.decode = self._unwrap
        else:
            self.decode = self._decode
        return self.decode(chunk)

    def _parse(self, data: Any) -> Sequence[Event]:
        return self._decoded(self._parser.feed(data))

    def _decoded(self, chunks: Sequence[object]) -> Sequence[Event]:
        return [event for chunk in chunks for event in self._decode(chunk)]

    def _unwrap(self, event: object) -> Sequence[Event]:
        """Decode the chunk in an event of a helper. The helper's other events only repeat what chunks say."""
        chunk = event if event is DONE else _wrapped(event)
        return () if chunk is None else self._decode(chunk)

    def _detect(self, chunk: object) -> Sequence[Event]:
        if chunk is DONE:
            return ()
        self._held.append(chunk)
        try:
            name = detect(_telling(chunk))
        except UnknownWireFormatError:
            if len(self._held) < _LOOK_AT:
                return ()
            name = detect(_telling(self._held[0]))  # raises: the first chunk explains the most
        self._decoder = self._make(name)
        if self.decode == self._detect:
            self.decode = self._decoder.decode
        self._decode = self._decoder.decode
        held, self._held = self._held, []
        return self._decoded(held)


def _by(decoder: Decoder, chunk: object) -> Sequence[Event]:
    return decoder.decode(chunk)  # a `NamedDecoder` changes this


def _passed_on(event: object) -> Sequence[Event]:
    if event is DONE:
        return ()
    if type(event) not in EVENT_TYPES:
        raise MalformedChunkError.at("auto", "", "an event, as before", event)
    return (event,)  # type: ignore[return-value]  # pyright: ignore[reportReturnType]


def _wrapped(event: Any) -> object:
    """The chunk in an event of an SDK's helper, such as those of OpenAI's `chat.completions.stream()`."""
    return getattr(event, "chunk", None) if getattr(event, "type", None) == "chunk" else None


def _telling(chunk: object) -> object:
    """The part that shows the format. LangGraph's items are tuples: of a message, or ending in what the mode gives."""
    shown: Any = chunk
    while isinstance(shown, (list, tuple)) and shown:
        items = cast("Sequence[Any]", shown)
        shown = items[-1] if isinstance(items[0], (str, list, tuple)) else items[0]
    return shown  # pyright: ignore[reportUnknownVariableType]


class NamedDecoder:
    """The decoder of a named format. If the first chunks don't fit, the error says which format does.

    Most decoders pass unknown chunks on as `ProviderEvent`s, and would make an empty message of another format's
    stream. So this looks at chunks until one of them has content, or begins a stream of the named format.
    """

    def __init__(self, name: str, decoder: Decoder) -> None:
        self._name = name
        self._decoder = decoder
        self._looked_at = 0
        self._other: str | None = None  # the format that the chunks seem to have
        self.decode: Decode = self._look

    def close(self) -> Sequence[Event]:
        self._refuse()
        return self._decoder.close()

    def _look(self, chunk: object) -> Sequence[Event]:
        if chunk is DONE:
            self._refuse()
            return self._decoder.decode(chunk)
        try:
            events = self._decoder.decode(chunk)
        except MalformedChunkError as error:
            self._other = self._other or self._format_of(chunk)
            self._refuse(error)
            raise
        self._looked_at += 1
        if all(type(event) in _WITHOUT_CONTENT for event in events):
            found = self._format_of(chunk)
            if found != self._name:
                self._other = self._other or found
                if self._looked_at < _LOOK_AT:
                    return events
                self._refuse()
        self._other = None
        self.decode = self._decoder.decode
        return events

    def _format_of(self, chunk: object) -> str | None:
        """Our own name if the chunk may be ours, or that of another format."""
        try:
            fields = as_mapping(_telling(chunk), self._name)
        except MalformedChunkError:
            return None
        own, name = registry.find(self._name), registry.recognise(fields)
        other = None if name is None else registry.find(name)
        if own is None or own.recognises(fields) or (other is not None and _is_dialect(own, other)):
            return self._name
        return name

    def _refuse(self, cause: MalformedChunkError | None = None) -> None:
        if self._other not in (None, self._name):
            raise MalformedChunkError(
                f"decode({self._name!r}) got a chunk of {self._other}: use decode({self._other!r})",
                wire_format=self._name,
                path="" if cause is None else cause.path,
                found="" if cause is None else cause.found,
            ) from cause


def _is_dialect(one: Format, another: Format) -> bool:
    """Whether one of the two decoders is made of the other, and may well read its chunks."""
    made: tuple[Any, Any] = one.decoder, another.decoder
    return all(isinstance(decoder, type) for decoder in made) and (
        issubclass(made[0], made[1]) or issubclass(made[1], made[0])
    )


class AutoParser:
    """Bytes or text of server-sent events, or of newline-delimited JSON, in; chunks out.

    The first line tells which of the two it is. The pieces may be cut anywhere, or be lines without their ends, as an
    HTTP client's `iter_lines()` gives them. A list is a list of chunks, unless it is one of LangGraph's items.

    Args:
        limits: See `SseParser` and `NdjsonParser`.

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

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
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
        parser, chunks = self._begin() if self._parser is None else (self._parser, [])
        return [*chunks, *_flat(parser.close())]

    def _begin(self) -> tuple[SseParser | NdjsonParser, list[Any]]:
        line = bytes(self._head.partition(b"\n")[0].partition(b"\r")[0])
        is_ndjson = not line.startswith(_SSE_FIELDS) and _is_json(line)
        parser = NdjsonParser(limits=self._limits) if is_ndjson else SseParser(limits=self._limits)
        self._parser = parser  # an SseParser refuses all else, and reads a document of several lines
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
