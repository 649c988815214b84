"""The writer of one recording."""

from __future__ import annotations

import base64
import json
import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from threading import RLock
from typing import IO, Any, TypeAlias
from uuid import UUID

from rxdelta.core import InvalidValueError, Snapshot
from rxdelta.core.events import EVENT_TYPES
from rxdelta.framing import DONE
from rxdelta.providers import as_item
from rxdelta.recording._errors import error_to_dict
from rxdelta.recording._masks import masked

__all__ = ["VERSION", "Mask", "Recorder", "open_anew"]

VERSION = 1
Mask: TypeAlias = Callable[[dict[str, Any]], Mapping[str, Any]]
"""A function that gets a line, as a dict of its own, and returns the line that is to be written."""

_TRIES = 20


class Recorder:
    """Writes one recording, line by line, so that a crash leaves all that came before it. Any thread may call it.

    Once it is closed, or has failed, it writes nothing more.

    Args:
        file: The path, or a binary file that is open for writing, which is then this object's to close.
        now: Gives the time in seconds, since any moment.
        mask: Called with each line but the first.

    Raises:
        OSError: The file can't be opened, or not be written.
    """

    def __init__(
        self, file: str | os.PathLike[str] | IO[bytes], now: Callable[[], float], mask: Mask | None = None
    ) -> None:
        self._now, self._mask, self._zero = now, mask, now()
        self._lock = RLock()  # a signal handler, or the mask, may close it while a line is written
        opened = open_anew(file) if isinstance(file, (str, os.PathLike)) else file
        self._file: IO[bytes] | None = opened
        date_and_time = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            self._write({"rxdelta": "recording", "version": VERSION, "recorded": date_and_time})
        except BaseException:
            self._close()
            raise

    def value(self, value: object) -> None:
        """Write a value.

        Raises:
            InvalidValueError: It is neither a chunk, an event, a text nor bytes; or the mask returned no mapping.
            OSError: The file can't be written.
            Exception: The mask's own.

        The recording has then ended: it has no holes.
        """
        if self._file is not None:
            self._add(self._line, value)

    def error(self, error: BaseException) -> None:
        """Write the error that ended the stream, and close the file. Raises as `value`."""
        self._add(lambda one: {"error": error_to_dict(one)}, error, last=True)

    def end(self) -> None:
        """Write that the stream completed, and close the file. Raises as `value`."""
        self._add(lambda _: {"end": True}, None, last=True)

    def close(self) -> None:
        """Close the file. Without `error` or `end` before it, the recording replays as one that broke off."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _add(self, line_of: Callable[[Any], dict[str, Any]], value: Any, *, last: bool = False) -> None:
        at = round(self._now() - self._zero, 6)
        with self._lock:
            if self._file is None:
                return
            try:
                line: Mapping[str, Any] = {"t": at, **line_of(value)}
                if self._mask is not None:
                    # What it may change is its own: the chunk is still the stream's.
                    line = self._mask(json.loads(_encode(line)))
                    if not isinstance(line, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
                        raise InvalidValueError.of([("mask", self._mask, "must return the line, a mapping")])
                self._write(line)
                if last:
                    self._close()
            except BaseException as error:
                is_over = self._file is None  # it was closed meanwhile
                self._close()
                if not (is_over and isinstance(error, Exception)):
                    raise

    def _line(self, value: Any) -> dict[str, Any]:
        kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
        if kind is dict:
            return {"chunk": masked(value, _data_of)}
        if kind in EVENT_TYPES:
            return {"event": masked(value.to_dict(), _data_of)}
        if isinstance(value, str):
            return {"text": str(value)}
        if isinstance(value, (bytes, bytearray, memoryview)):
            return {"bytes": _base64(value)}  # pyright: ignore[reportUnknownArgumentType]
        if value is DONE:
            return {"chunk": "[DONE]"}
        if isinstance(value, Snapshot):
            wrong = (
                "is a reply so far, which has all before it once more: put record() in front of scan_deltas()"
            )
            raise InvalidValueError.of([("value", value, wrong)])
        return {"chunk": masked(value, _data_of)}

    def _write(self, line: Mapping[str, Any]) -> None:
        text = _encode(line)
        try:
            data = text.encode()
        except UnicodeEncodeError:  # half a surrogate pair
            data = json.dumps(json.loads(text)).encode()
        data += b"\n"
        file: Any = self._file
        while data:  # a disk that is nearly full takes a part
            data = data[file.write(data) or 0 :]


def _base64(data: bytes | bytearray | memoryview[Any]) -> str:
    return base64.b64encode(data).decode()


def _data_of(value: Any) -> Any:
    """What JSON has of an object.

    Raises:
        InvalidValueError: It is no data.
    """
    if isinstance(value, Mapping):
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _base64(value)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, (datetime, date)):
        return value.isoformat().replace("+00:00", "Z")  # as providers write it
    if isinstance(value, (set, frozenset)):
        return list(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, (Decimal, UUID)):
        return str(value)
    if type(value) in EVENT_TYPES:
        return value.to_dict()
    found = as_item(value)
    if found is None:
        wanted = (
            "can't be recorded: it must be a chunk (a dict or an SDK's object), an event, a text or bytes"
        )
        raise InvalidValueError.of([("value", value, wanted)])
    return dict(found)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_data_of).encode


def open_anew(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for writing, which only its owner may read.

    A regular file of this name is replaced, not emptied: what another recorder is still writing stays whole, and a file that
    others may read doesn't keep its mode. A device or a pipe is written to.

    Raises:
        OSError: It can't be opened.
    """
    return open(_descriptor(path), "wb", buffering=0)


def _descriptor(path: str | os.PathLike[str]) -> int:
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0)
    for _ in range(_TRIES):  # another recorder may make one of this name meanwhile
        mode = None
        with suppress(FileNotFoundError):
            mode = os.lstat(path).st_mode
            if not stat.S_ISREG(mode):
                break
        try:
            if mode is not None:
                with suppress(FileNotFoundError):
                    os.unlink(path)
            return os.open(path, flags | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        except PermissionError:  # of the directory; or it is open, on Windows
            break
    return os.open(path, flags | os.O_TRUNC, 0o600)
