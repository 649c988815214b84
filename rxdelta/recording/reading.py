"""The reader of recordings and of other captures of a stream, and `from_recording`, which replays one."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Generator, Mapping
from threading import Lock
from typing import IO, Any, Literal

import attrs
from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxdelta.core import DEFAULT_LIMITS, InvalidValueError, MalformedChunkError, RxDeltaError
from rxdelta.providers import AutoParser, recorded_value
from rxdelta.recording.errors import RecordedError, error_from_dict
from rxdelta.recording.recorder import VERSION, check_path
from rxdelta.runtime import ABOUT_NOW, Sink, checks_options, create, running_loop, seconds

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


_YIELD_EVERY = 64
LONGEST_WAIT = 999_999_999.0  # seconds: no time of the library is more than 1e9


@checks_options
def from_recording(
    path: str | os.PathLike[str],
    speed: float = 1.0,
    scheduler: abc.SchedulerBase | None = None,
) -> Observable[Any]:
    """Emit what `record` has written, with the times of the recording.

    Out: chunks as dicts, events, texts or bytes, as they were recorded. Each value comes at its recorded time after the
    subscription, however long its readers take for the others; a time that has passed isn't waited for. In virtual time the
    times are exact.

    It also reads plain captures: newline-delimited JSON and server-sent events, as `rd.providers.AutoParser` does. All their
    chunks come at once.

    The file is read at each subscription, line by line as the values are emitted. Disposing closes it. With `speed=0` and
    without an asyncio loop all is emitted during the subscription, unless a slow reader has to be waited for.

    Completes where the recorded stream completed.

    Args:
        path: The file.
        speed: How many times as fast as recorded: 2 takes half the time, 0 doesn't wait.
        scheduler: The scheduler of the times. By default the subscriber's, else the running asyncio loop, else a thread that
            ends with the subscription.

    Raises:
        InvalidValueError: At once, if the path is none, or the speed is no number from 0.

    Errors: The recorded stream's own: those of Python and of this library as themselves, others as `RecordedError`. A
    `RecordedError` if the recording ends before the stream did. `OSError` if the file can't be read, `MalformedChunkError`
    for a line that isn't one of a recording, `InvalidValueError` if a newer version of this library has written the file.

    Example:
        >>> import os, tempfile
        >>> import rxdelta as rd
        >>> path = os.path.join(tempfile.mkdtemp(), "reply.jsonl")
        >>> chunks = [{"id": "c1", "choices": [{"index": 0, "delta": {"content": text}}]} for text in ("Hel", "lo")]
        >>> chunks += [{"id": "c1", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
        >>> with rd.stream(chunks, record=path) as reply:
        ...     reply.result().text
        'Hello'
        >>> with rd.stream(rd.from_recording(path, speed=0)) as reply:
        ...     reply.result().text
        'Hello'
    """
    file = check_path(path)
    times = check_speed(speed)

    def begin(sink: Sink[Any]) -> None:
        replay = _Replay(sink, file, times, scheduler)
        sink.effect(replay.go_on)

    return create("rd.from_recording(…)", begin)


def check_speed(speed: object) -> float:
    """How many times as fast a recording comes.

    Raises:
        InvalidValueError: It is no number from 0.
    """
    if isinstance(speed, bool) or not isinstance(speed, (int, float)) or not 0 <= speed < float("inf"):
        raise InvalidValueError.of([("speed", speed, "must be a number, 0 or more")])
    return float(speed)


class _Replay:
    """One subscription. It may be disposed from any thread, also while it emits."""

    def __init__(self, sink: Sink[Any], file: str, speed: float, scheduler: abc.SchedulerBase | None) -> None:
        self._sink, self._speed = sink, speed
        self._lines = read_lines(file)
        self._next: Line | None = None  # its time hasn't come
        time = sink.clock(scheduler)
        self._timer = sink.timer(time)
        self._now = seconds(time)
        self._zero = self._now()
        # Others on the loop, such as a reader of the values, have their turns between these.
        self._yields = running_loop() is not None
        self._lock = Lock()
        self._reading = self._over = False
        self._watching: abc.DisposableBase = Disposable()
        sink.own(Disposable(self._dispose))

    def go_on(self) -> None:
        """Emit the values that are due."""
        with self._lock:
            if self._over or self._reading:
                return
            self._reading = True
        try:
            self._emit()
        finally:
            with self._lock:
                self._reading = False
                if self._over:
                    self._close()

    def _emit(self) -> None:
        sink, count = self._sink, 0
        while not sink.closed:
            line = self._next or next(self._lines, None)
            self._next = line
            if line is None or self._has_to_wait(line, count):
                return
            self._next = None
            count += 1
            if line.kind == "value":
                sink.on_next(line.value)
            elif line.kind == "error":
                sink.on_error(line.value)
            else:
                sink.on_completed()

    def _has_to_wait(self, line: Line, count: int) -> bool:
        wait = 0.0
        if self._speed:
            due = self._zero + min(line.at / self._speed, LONGEST_WAIT)
            wait = due - self._now()
        if wait > ABOUT_NOW:
            self._timer.start(wait, self.go_on)
            return True
        if self._waits_for_reader():
            return True
        if self._yields and count >= _YIELD_EVERY:
            self._timer.start(0, self.go_on)
            return True
        return False

    def _waits_for_reader(self) -> bool:
        session = self._sink.session
        if session is None or session.backpressure.is_ready():
            return False
        backpressure = session.backpressure
        self._watching.dispose()

        def look() -> None:
            # Under the lock of the backpressure: a value that is emitted here could need it.
            if backpressure.is_ready():
                self._timer.start(0, self.go_on)

        self._watching = backpressure.watch(look)
        look()
        return True

    def _dispose(self) -> None:
        with self._lock:
            self._over = True
            if not self._reading:
                self._close()

    def _close(self) -> None:
        self._watching.dispose()
        self._lines.close()
