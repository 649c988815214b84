"""`from_recording`, which replays a recorded stream."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Any

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxdelta.core import InvalidValueError
from rxdelta.recording._reading import read_lines
from rxdelta.recording._record import check_path
from rxdelta.runtime import ABOUT_NOW, checks_options, create, running_loop, seconds

if TYPE_CHECKING:
    from rxdelta.recording._reading import Line
    from rxdelta.runtime import Sink

__all__ = ["LONGEST_WAIT", "check_speed", "from_recording"]

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
        """Emit what is due."""
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
        if self._waits_for_room():
            return True
        if self._yields and count >= _YIELD_EVERY:
            self._timer.start(0, self.go_on)
            return True
        return False

    def _waits_for_room(self) -> bool:
        session = self._sink.session
        if session is None or session.backpressure.is_ready():
            return False
        backpressure = session.backpressure
        self._watching.dispose()

        def look() -> None:
            # Under the lock of the backpressure: what is emitted here could need it.
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
