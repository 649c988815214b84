"""The files that commands read: opened, looked at, and as lines of a recording, whatever they hold; and their errors."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from threading import Semaphore, Thread
from typing import IO, Any, cast

from rxdelta.cli.output import UnusableError
from rxdelta.core import Message, RxDeltaError, Snapshot, StreamInterrupted, to_events
from rxdelta.providers import AutoParser
from rxdelta.recording import Line, RecordedError

_GZIP = b"\x1f\x8b"
_LOOK_AT = 1000  # bytes
_BLOCK = 65536
_AHEAD = 1000  # lines that the thread reads ahead
CHUNKS_A_SECOND = 30.0
"""The pace at speed 1 of what has no times."""


@contextmanager
def opened(path: str) -> Generator[IO[bytes]]:
    """A file, or standard input for `-`.

    Raises:
        UnusableError: It can't be opened.
    """
    if path != "-":
        # A failure while the file is used, such as a write to a closed pipe, is no failure to read it.
        with _open(path) as file:
            yield cast("IO[bytes]", _Input(file, path))
        return
    stdin: Any = sys.stdin
    if stdin is None:
        raise UnusableError(f"cannot read {path}: {os.strerror(errno.EBADF)}")
    yield cast("IO[bytes]", _Input(stdin.buffer, path))


def _open(path: str) -> IO[bytes]:
    try:
        return open(path, "rb")
    except OSError as error:
        raise UnusableError(f"cannot read {path}: {error.strerror}") from error


class _Input:
    """A file with a buffer of its own, that looks at what it reads.

    A thread that waits inside Python's buffer holds the buffer's lock, and the interpreter's exit aborts if it is held.

    Raises:
        UnusableError: From `readline` and `read`, if the reading fails, or it is no text.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file: Any = getattr(file, "raw", file)
        self._name = name
        self._held = bytearray()
        self._has_begun = False

    def readline(self, limit: int) -> bytes:
        looked_at = 0
        while (end := self._held.find(b"\n", looked_at, limit)) < 0 and len(self._held) < limit:
            looked_at = len(self._held)
            if not (data := self._read()):
                break
            self._held += data
        return self._take(limit if end < 0 else end + 1)

    def read(self, limit: int) -> bytes:
        return self._take(limit) if self._held else self._read()

    def _take(self, size: int) -> bytes:
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def _read(self) -> bytes:
        try:
            data: bytes = self._file.read(_BLOCK)
        except OSError as error:
            raise UnusableError(f"cannot read {self._name}: {error.strerror or error}") from error
        if not data and not self._has_begun:
            raise UnusableError(f"{self._name} is no known stream: it is empty")
        self._has_begun = True
        if b"\0" in data[:_LOOK_AT] or data.startswith(_GZIP):
            compressed = "; it is compressed, so unpack it: gunzip -c FILE | rxdelta replay -"
            hint = compressed if data.startswith(_GZIP) else ""
            raise UnusableError(f"cannot read {self._name}: it is no text{hint}")
        return data


def unwrapped(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines of a recording, with chunks and events in the place of everything else.

    Bytes and text that were recorded become the chunks in them. Stored messages and snapshots become events. Only the
    last of successive snapshots of one reply counts; messages of other roles than the assistant's are left out.

    Raises:
        RxDeltaError: What the lines raise; and for a stored message that is none.
    """
    parser = AutoParser()
    kept: Snapshot | Message | None = None
    for line in lines:
        if line.kind == "value" and isinstance(line.value, (bytes, str)):
            yield from _at(line.at, parser.feed(line.value))
        elif line.kind == "value" and is_stored(line.value):
            reply = _stored(line.value)
            if kept is not None and not _continues(kept, reply):
                yield from _at(line.at, to_events(kept))
            kept = reply if reply.role in ("assistant", "unknown") else None
        else:
            if line.kind != "value":
                yield from _at(line.at, parser.close())
                yield from _at(line.at, to_events(kept) if kept is not None else ())
            yield line


def _at(at: float, values: Iterable[Any]) -> Iterator[Line]:
    return (Line(at, "value", value) for value in values)


def is_stored(value: Any) -> bool:
    """Whether it is a message or a snapshot, as `to_dict` gives it."""
    return (
        isinstance(value, dict)
        and "role" in value
        and "status" in value
        and isinstance(value.get("blocks"), list)  # pyright: ignore[reportUnknownMemberType]
    )


def _stored(data: Any) -> Snapshot | Message:
    # A message's blocks have no keys.
    has_keys = any(isinstance(block, dict) and "key" in block for block in data["blocks"])
    if has_keys or data["status"] == "incomplete":
        return Snapshot.from_dict(data)
    return Message.from_dict(data)


def _continues(one: Snapshot | Message, later: Snapshot | Message) -> bool:
    same = (one.id, one.run_id, one.choice) == (later.id, later.run_id, later.choice)
    return same and isinstance(one, Snapshot)


async def read_on_a_thread(lines: Iterator[Line]) -> AsyncIterator[Line]:
    """The lines, read on a daemon thread, so that a silent pipe doesn't delay the exit. Raises what the reading raises."""
    loop = asyncio.get_running_loop()
    ready: deque[Line | Exception] = deque()
    news, slots, over = asyncio.Event(), Semaphore(_AHEAD), False

    def tell(one: Line | Exception) -> None:
        ready.append(one)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(news.set)

    def run() -> None:
        try:
            for line in lines:
                slots.acquire()
                if over:
                    return
                tell(line)
        except Exception as error:  # a ValueError if the file was closed, when nobody waits any longer
            tell(error)

    Thread(target=run, name="rxdelta-reader", daemon=True).start()
    try:
        while True:
            await news.wait()
            news.clear()
            while ready:
                one = ready.popleft()
                slots.release()
                if isinstance(one, Exception):
                    raise one
                yield one
                if one.kind != "value":
                    return
    finally:
        over = True
        slots.release()


async def at_their_times(lines: AsyncIterator[Line], speed: float) -> AsyncIterator[Any]:
    """The values of a recording at its pace, or of other files at a pace for people to watch; 0 doesn't wait.

    Raises:
        Exception: The recorded one; and what the reading raises.
    """
    loop = asyncio.get_running_loop()
    zero = loop.time()
    async for line in lines:
        if speed > 0 and line.at > 0:
            await asyncio.sleep(zero + line.at / speed - loop.time())
        if line.kind == "error":
            raise _of_a_stream(line.value)
        if line.kind == "end":
            return
        yield line.value
        if speed > 0 and line.at == 0:
            await asyncio.sleep(1 / (CHUNKS_A_SECOND * speed))


def _of_a_stream(error: Exception) -> RxDeltaError:
    """A recorded error as ours, so that it is no error of this program's own files."""
    if isinstance(error, RxDeltaError):
        return error
    if isinstance(error, RecordedError) and error.type == StreamInterrupted.__name__:
        return StreamInterrupted(str(error))
    return StreamInterrupted(f"the stream broke off: {error_text(error)}")


def name_of(error: BaseException) -> str:
    """The name of an error's class; of a recorded one the name that it had."""
    return error.type if isinstance(error, RecordedError) else type(error).__name__


def error_text(error: BaseException) -> str:
    """An error with the name of its class and its HTTP status, as far as there is one."""
    status = getattr(error, "status_code", None)
    name = f"{name_of(error)} (HTTP {status})" if isinstance(status, int) else name_of(error)
    return f"{name}: {error}" if str(error) else name
