"""The reader of recordings and of other captures of a stream, line by line."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Generator, Mapping
from typing import IO, Any, Literal

import attrs

from rxdelta.core import DEFAULT_LIMITS, InvalidValueError, MalformedChunkError, RxDeltaError
from rxdelta.providers import AutoParser, recorded_value
from rxdelta.recording._errors import RecordedError, error_from_dict
from rxdelta.recording._recorder import VERSION

__all__ = ["Line", "read_lines"]

_LONGEST_HEAD = 4096
_LONGEST_LINE = 64 * DEFAULT_LIMITS.line_bytes
_BLOCK = 65536
_MARK = b"\xef\xbb\xbf"


@attrs.frozen
class Line:
    """One line of a recording.

    Attributes:
        at: Seconds since the subscription.
        kind: `value`; or how the stream ended: `error` or `end`, which comes once, as the last.
        value: The chunk, event, text or bytes; the error; `None` at the end.
    """

    at: float
    kind: Literal["value", "error", "end"]
    value: Any = None


def read_lines(file: str | os.PathLike[str] | IO[bytes]) -> Generator[Line]:
    """Read a recording lazily. The last line is always an `error` or an `end`.

    A recording that has neither ends with a `RecordedError` whose `type` is `"StreamInterrupted"`. An `AutoParser` reads
    any other file; its chunks have the time 0.

    Args:
        file: The path; or a binary file, which may be a pipe, and isn't closed.

    Raises:
        OSError: By the iterator, if the file can't be opened or read.
        MalformedChunkError: By the iterator, with the number of the line that is no line of a recording; or as `AutoParser`.
        InvalidValueError: By the iterator, if a newer version of this library has written the file.

    Example:
        >>> import io
        >>> head = b'{"rxdelta": "recording", "version": 1}\\n'
        >>> [*read_lines(io.BytesIO(head + b'{"t": 0.5, "text": "Hi"}\\n{"t": 0.75, "end": true}\\n'))]
        [Line(at=0.5, kind='value', value='Hi'), Line(at=0.75, kind='end', value=None)]
    """
    if not isinstance(file, (str, os.PathLike)):
        yield from _read(file)
        return
    with open(file, "rb") as opened:
        yield from _read(opened)


def _read(file: IO[bytes]) -> Generator[Line]:
    first = file.readline(_LONGEST_HEAD)
    head = _json_object(first.removeprefix(_MARK))
    if head is None or head.get("rxdelta") != "recording":
        return _read_capture(file, first)
    version = head.get("version")
    if type(version) is not int or version < 1:
        raise _malformed(1, "expected the version of the recording, a whole number from 1", version)
    if version > VERSION:
        raise InvalidValueError(
            f"the recording has version {version}, which a newer rxdelta has written; this one reads version {VERSION}",
            field="version",
            value=version,
        )
    return _read_recording(file)


def _read_recording(file: IO[bytes]) -> Generator[Line]:
    number, at = 1, 0.0
    while raw := file.readline(_LONGEST_LINE):
        number += 1
        if not raw.strip():
            continue
        fields = _json_object(raw)
        if fields is None:
            if len(raw) < _LONGEST_LINE and not raw.endswith(b"\n"):
                break  # written in half
            raise _malformed(number, "expected a JSON object", raw[:_LONGEST_HEAD])
        line = _line(fields, number)
        yield line
        if line.kind != "value":
            return
        at = line.at
    yield Line(at, "error", RecordedError("the recording ends before the stream did", "StreamInterrupted"))


def _read_capture(file: IO[bytes], first: bytes) -> Generator[Line]:
    parser = AutoParser()
    read = getattr(file, "read1", file.read)
    data = first
    while data:
        for chunk in parser.feed(data):
            yield Line(0.0, "value", chunk)
        data = read(_BLOCK)
    for chunk in parser.close():
        yield Line(0.0, "value", chunk)
    yield Line(0.0, "end")


def _line(fields: Mapping[str, Any], number: int) -> Line:
    at = fields.get("t")
    if isinstance(at, bool) or not isinstance(at, (int, float)) or not 0 <= at < math.inf:
        raise _malformed(number, "expected the time `t`, a number of seconds", at)
    at = float(at)
    match fields:
        case {"error": dict()}:
            return Line(at, "error", error_from_dict(fields["error"]))
        case {"end": True}:
            return Line(at, "end")
        case _:
            pass
    try:
        return Line(at, "value", recorded_value(fields))
    except (RxDeltaError, ValueError) as error:
        raise MalformedChunkError(
            f"malformed recording: line {number}: {error}", wire_format="recording", path=f"line {number}"
        ) from error


def _malformed(number: int, wanted: str, found: object) -> MalformedChunkError:
    shown = MalformedChunkError.at("recording", f"line {number}", "", found).found
    return MalformedChunkError(
        f"malformed recording: line {number}: {wanted}, found {shown}",
        wire_format="recording",
        path=f"line {number}",
        found=shown,
    )


def _json_object(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType]
