"""The first line of bytes or text tells its framing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rxdelta.core import DEFAULT_LIMITS, Limits, MalformedChunkError
from rxdelta.framing import NdjsonParser, SseParser, check_loads

__all__ = ["AutoParser"]

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
