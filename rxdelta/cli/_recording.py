"""Recorded streams: files, captures and pipes as paced chunks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from threading import Thread
from typing import IO, Any

from rxdelta.core import MalformedChunkError, UnknownWireFormatError
from rxdelta.providers import NdjsonParser, SseParser, detect

__all__ = ["UnreadableError", "chunks_of", "detected", "paced"]

CHUNKS_A_SECOND = 30.0
"""The pace of a recording at speed 1."""

_SSE_FIELDS = (b"data", b"event", b"id", b"retry", b":")
_LOOK_AT = 20  # chunks to detect a format from


class UnreadableError(Exception):
    """The input can't be opened or read."""


async def chunks_of(file: IO[bytes]) -> AsyncIterator[Any]:
    """Read a file's chunks: SSE, one JSON document per line, or a single document. A list is a list of chunks, unless it
    is one of LangGraph's tuples.

    Raises:
        MalformedChunkError: The file has another format, or a record is no JSON.
        UnreadableError: The reading fails.
    """
    parser: SseParser | NdjsonParser | None = None
    head = b""
    async for data in _blocks_of(file):
        if parser is None:
            head += data
            first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
            if not first[1]:
                continue  # the first line is incomplete
            parser, data = _parser_for(first[0]), head
        for chunk in _flat(parser.feed(data)):
            yield chunk
    if parser is None:
        parser = _parser_for(head.strip())
        for chunk in _flat(parser.feed(head)):
            yield chunk
    for chunk in _flat(parser.close()):
        yield chunk


def _parser_for(line: bytes) -> SseParser | NdjsonParser:
    if line.startswith(_SSE_FIELDS):
        return SseParser()
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return SseParser()  # it also reads a document of several lines, and refuses any other file
    return NdjsonParser()


def _flat(records: Iterable[Any]) -> Iterable[Any]:
    for record in records:
        if isinstance(record, list) and not _is_tuple(record):  # pyright: ignore[reportUnknownArgumentType]
            yield from record
        else:
            yield record


def _is_tuple(record: list[Any]) -> bool:
    """Whether it is an item of LangGraph's. Apart from their metadata, the messages of several nodes would be woven."""
    match record:
        case [dict(), dict()]:
            return "langgraph_node" in record[1]
        case [list(), *_]:
            return all(isinstance(part, str) for part in record[0])
        case _:
            return bool(record) and isinstance(record[0], str)


def _object_in(chunk: Any) -> Any:
    """What shows the format of a chunk: of LangGraph's tuples the message, or what the mode gives."""
    while isinstance(chunk, list) and chunk:
        chunk = chunk[0] if isinstance(chunk[0], dict) else chunk[-1]  # pyright: ignore[reportUnknownVariableType]
    return chunk  # pyright: ignore[reportUnknownVariableType]


async def _blocks_of(file: IO[bytes]) -> AsyncIterator[bytes]:
    """Read a file on a daemon thread, so that a silent pipe doesn't delay the exit."""
    loop = asyncio.get_running_loop()
    blocks: asyncio.Queue[bytes | Exception] = asyncio.Queue()
    # A thread that waits inside a buffer holds the buffer's lock, and the interpreter's exit aborts if it is held.
    raw = getattr(file, "raw", file)
    read = getattr(raw, "read1", raw.read)

    def run() -> None:
        # After the reading the file is closed (ValueError), and then the loop (RuntimeError).
        with suppress(RuntimeError, ValueError):
            try:
                while data := read(65536):
                    loop.call_soon_threadsafe(blocks.put_nowait, data)
                loop.call_soon_threadsafe(blocks.put_nowait, b"")
            except OSError as error:
                loop.call_soon_threadsafe(blocks.put_nowait, error)

    Thread(target=run, name="rxdelta-replay", daemon=True).start()
    while data := await blocks.get():
        if isinstance(data, Exception):
            raise UnreadableError(getattr(data, "strerror", None) or data) from data
        yield data


async def detected(
    chunks: AsyncIterator[Any], wire_format: str
) -> tuple[str, str | None, AsyncIterator[Any]]:
    """Return the stream's format, the one that it looks like, and its chunks from the beginning.

    Raises:
        UnknownWireFormatError: `wire_format` is `auto`, and the first chunks match no format.
        MalformedChunkError: There are no chunks at all.
    """
    seen: list[Any] = []
    likely: str | None = None
    error: Exception = MalformedChunkError("there is no chunk in it")
    async for chunk in chunks:
        seen.append(chunk)
        try:
            likely = detect(_object_in(chunk))
        except UnknownWireFormatError as unknown:
            error = unknown if len(seen) == 1 else error
        if likely is not None or wire_format != "auto" or len(seen) == _LOOK_AT:
            break
    if not seen or (likely is None and wire_format == "auto"):
        raise error

    async def whole() -> AsyncIterator[Any]:
        for chunk in seen:
            yield chunk
        async for chunk in chunks:
            yield chunk

    return likely if wire_format == "auto" and likely is not None else wire_format, likely, whole()


async def paced(chunks: AsyncIterator[Any], speed: float) -> AsyncIterator[Any]:
    """The chunks at a pace for people to watch; 0 doesn't wait."""
    async for chunk in chunks:
        yield chunk
        if speed > 0:
            await asyncio.sleep(1 / (CHUNKS_A_SECOND * speed))
