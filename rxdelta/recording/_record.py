"""`record`, which writes a passing stream to a file."""

from __future__ import annotations

import os
from itertools import count
from typing import IO, TYPE_CHECKING, Any, Generic, TypeVar

from reactivex.disposable import Disposable

from rxdelta.core import InvalidValueError, check_function
from rxdelta.recording._recorder import Recorder, open_anew
from rxdelta.runtime import lift, mark_of, operator_maker, report, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

    from rxdelta.recording._recorder import Mask
    from rxdelta.runtime import Sink

__all__ = ["RecordingFile", "check_path", "record"]

T = TypeVar("T")


@operator_maker
def record(
    path: str | os.PathLike[str],
    *,
    mask: Mask | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """The same values; each is written to a file with its time, and `from_recording` replays them.

    In: chunks (dicts, or an SDK's objects), events, texts or bytes. In front of `decode` it records the provider's stream,
    behind it the events. The file is newline-delimited JSON, see the page on recordings. Each line is written at once, so that
    a crash leaves all that came before it.

    Each subscription writes the file anew. `{n}` in the name is the number of this operator's subscription, from 1. To keep
    each attempt of `retry_stream`, make one `record("run-{n}.jsonl")` outside of the factory, and use it within: another
    operator would begin with 1 again. Only the file's owner may read it.

    Keys, passwords, cookies and authorizations are masked where names say that there are some; what the model wrote and what
    tools answered is kept, whatever it looks like. So keep the file as you would keep the reply.

    Recording doesn't change the stream. If a value can't be written (the disk is full, the mask raises, it is an unknown
    object), the recording ends before it, so it has no holes, and replays as one that broke off. The reason goes to the
    running loop's exception handler, or without a loop to the log `rxdelta`. If the subscriber leaves early, the recording
    has no end either.

    Completes with the source.

    Args:
        path: The file. Its directory must be there.
        mask: Called with each line, such as `{"t": 0.5, "chunk": {…}}`, as a dict that it may change. Returns the line to be
            written. It is called after our own masks.
        scheduler: The scheduler of the times. By default the subscriber's, else the running asyncio loop, else the clock.

    Raises:
        InvalidValueError: At once, if the path is none or the mask can't be called. In `pipe`, behind an operator that
            emits snapshots or streams.

    Errors: The source's own. `OSError` if the file can't be opened; the source isn't subscribed then.

    Example:
        >>> import os, tempfile
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> path = os.path.join(tempfile.mkdtemp(), "run-{n}.jsonl")
        >>> rx.of({"id": 1}, {"id": 2}).pipe(rd.record(path)).subscribe(print).dispose()
        {'id': 1}
        {'id': 2}
        >>> rd.from_recording(path.format(n=1), speed=0).subscribe(print).dispose()
        {'id': 1}
        {'id': 2}
    """
    if mask is not None:
        check_function("mask", mask, "a function of a line")
    return RecordingFile(path).writes(mask, scheduler)


def check_path(path: Any) -> str:
    """The path as a string.

    Raises:
        InvalidValueError: It is none.
    """
    found: Any = path.__fspath__() if hasattr(path, "__fspath__") else path
    if not isinstance(found, str) or not found or "\0" in found:
        raise InvalidValueError.of([("path", path, "must be the path of a file")])
    return found


class RecordingFile:
    """The file, or the files, of one operator.

    Raises:
        InvalidValueError: The path is none.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = check_path(path)
        self._numbers = count(1)
        self._opened: IO[bytes] | None = None

    def open(self) -> None:
        """Open it before the next subscription, so that a failure is seen early.

        Raises:
            OSError: It can't be opened.
        """
        self._opened = self._next()

    def _next(self) -> IO[bytes]:
        return open_anew(self._path.replace("{n}", str(next(self._numbers))))

    def take(self) -> IO[bytes]:
        """The file for a subscription.

        Raises:
            OSError: It can't be opened.
        """
        opened, self._opened = self._opened, None
        return self._next() if opened is None else opened

    def writes(
        self, mask: Mask | None = None, scheduler: abc.SchedulerBase | None = None
    ) -> Callable[[Observable[T]], Observable[T]]:
        """The operator."""

        def begin(sink: Sink[T]) -> _Recording[T]:
            return _Recording(sink, Recorder(self.take(), seconds(sink.clock(scheduler)), mask))

        recording = lift("record", begin, serial=False, emits="same")

        def apply(source: Observable[T]) -> Observable[T]:
            mark = mark_of(source)
            if mark is not None and mark.emits in ("snapshots", "streams"):
                raise InvalidValueError(
                    f"record writes chunks, events, texts and bytes, and {mark.operator}() emits {mark.emits}: put it in front"
                    f" of {mark.operator}()",
                    field="source",
                )
            return recording(source)

        return apply


class _Recording(Generic[T]):
    """One subscription's state. It may be disposed from another thread than the source's."""

    def __init__(self, sink: Sink[T], recorder: Recorder) -> None:
        self._sink = sink
        self._recorder = recorder
        sink.own(Disposable(lambda: self._write(recorder.close)))

    def on_next(self, value: T) -> None:
        self._write(self._recorder.value, value)
        self._sink.on_next(value)

    def on_error(self, error: Exception) -> None:
        self._write(self._recorder.error, error)
        self._sink.on_error(error)

    def on_completed(self) -> None:
        self._write(self._recorder.end)
        self._sink.on_completed()

    def _write(self, step: Callable[..., object], *arguments: Any) -> None:
        try:
            step(*arguments)
        except Exception as error:
            report(error, "a recording broke off; the stream goes on")
