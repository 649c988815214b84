"""A recording as a reply of a fake provider."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

from rxdelta.core import Event, MalformedChunkError, RxDeltaError, UnknownWireFormatError
from rxdelta.core.events import EVENT_TYPES, StreamError
from rxdelta.providers import AutoParser, decoder, detect
from rxdelta.recording import LONGEST_WAIT, Line
from rxdelta.testing._script import Item, Script, Written
from rxdelta.wire import DONE

__all__ = ["recorded_script"]


def recorded_script(lines: Iterable[Line], speed: float) -> Script:
    """The script of a recording, with its pauses. Its chunks are kept as they are for the format that they have.

    Args:
        lines: Its lines.
        speed: How fast it comes; 0 leaves the pauses out.

    Raises:
        RxDeltaError: Nothing of a reply could be read before this error.
        Exception: What the reading of the lines raises.
    """
    reading = _Reading(speed)
    for line in lines:
        reading.pause_until(line.at)
        if line.kind == "error":
            reading.fail(line.value)
        elif line.kind == "end":
            reading.end()
        else:
            reading.read(line.value)
    return reading.script()


class _Reading:
    """What has been read of a recording, as chunks and as events."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._due = 0.0
        self._parser = AutoParser()
        self._decoder = decoder("auto")
        self._format: str | None = None
        self._chunks: list[Written] = []
        self._items: list[Item] = []
        self._broken = False  # a chunk could not be decoded

    def pause_until(self, at: float) -> None:
        due = min(at / self._speed, LONGEST_WAIT) if self._speed else 0.0
        if due > self._due:
            self._add(due - self._due)
            self._due = due

    def read(self, value: Any) -> None:
        """Read a chunk, an event, or a piece of a body."""
        for one in self._parser.feed(value) if isinstance(value, (str, bytes)) else [value]:
            self._read(one)

    def _read(self, chunk: Any) -> None:
        if chunk is not DONE and type(chunk) not in EVENT_TYPES:
            if self._format is None:
                with suppress(UnknownWireFormatError, MalformedChunkError):
                    self._format = detect(chunk)
            self._chunks.append(chunk)
        self._decode(lambda: self._decoder.decode(chunk))

    def _decode(self, decode: Callable[[], Sequence[Event]]) -> None:
        if not self._broken:
            try:
                self._items += decode()
            except RxDeltaError as error:  # in its own format the recording goes on
                if self._format is None and not self._items:
                    raise
                self._items.append(error)
                self._broken = True

    def fail(self, error: Exception) -> None:
        """The recorded stream ended with this error."""
        if not any(isinstance(item, StreamError) for item in self._items):  # its reader leaves, as at an end
            self._add(error)
        self._broken = True

    def end(self) -> None:
        """The recorded stream completed."""
        for chunk in self._parser.close():
            self._read(chunk)
        self._decode(self._decoder.close)

    def _add(self, item: float | Exception) -> None:
        self._chunks.append(item)
        if not self._broken:
            self._items.append(item)

    def script(self) -> Script:
        own = None if self._format is None else (self._format, tuple(self._chunks))
        return Script(tuple(self._items), own)
