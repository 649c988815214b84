"""Recorded streams: files, captures and pipes as paced chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from threading import Thread
from typing import IO, Any

from rxdelta.providers import AutoParser

__all__ = ["UnreadableError", "chunks_of", "paced"]

_GZIP = b"\x1f\x8b"
_LOOK_AT = 1000  # bytes
CHUNKS_A_SECOND = 30.0
"""The pace of a recording at speed 1."""


class UnreadableError(Exception):
    """The input can't be opened or read."""


async def chunks_of(file: IO[bytes]) -> AsyncIterator[Any]:
    """Read a file's chunks, as an `AutoParser` does, and raise its errors.

    Raises:
        UnreadableError: The reading fails, or it is no text.
    """
    parser = AutoParser()
    async for data in _blocks_of(file):
        if b"\0" in data[:_LOOK_AT] or data.startswith(_GZIP):
            compressed = "; it is compressed, so unpack it: gunzip -c FILE | rxdelta replay -"
            raise UnreadableError(f"it is no text{compressed if data.startswith(_GZIP) else ''}")
        for chunk in parser.feed(data):
            yield chunk
    for chunk in parser.close():
        yield chunk


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


async def paced(chunks: AsyncIterator[Any], speed: float) -> AsyncIterator[Any]:
    """The chunks at a pace for people to watch; 0 doesn't wait."""
    async for chunk in chunks:
        yield chunk
        if speed > 0:
            await asyncio.sleep(1 / (CHUNKS_A_SECOND * speed))
