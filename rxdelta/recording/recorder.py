"""`record`, which writes a passing stream to a file, the writer of one recording, and its masks.

What a mask hides depends on where it stands, not on its name alone.
"""

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
from functools import lru_cache
from itertools import count
from threading import RLock
from typing import IO, TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar
from uuid import UUID

from reactivex.disposable import Disposable

from rxdelta.core import InvalidValueError, Snapshot, check_function
from rxdelta.core.events import EVENT_TYPES
from rxdelta.framing import DONE
from rxdelta.providers import as_item
from rxdelta.recording.errors import error_to_dict
from rxdelta.runtime import Sink, lift, mark_of, operator_maker, report, seconds

if TYPE_CHECKING:
    from reactivex import Observable, abc


_GONE = "[redacted]"
_REPLY = frozenset(
    {"args", "arguments", "input", "parsed", "partial_json"}
    | {"content", "delta", "output", "reasoning", "refusal", "text", "thinking"}
    | {"functionResponse", "partial_result", "result", "results", "snapshot"}
)
"""Below these names stands what the model wrote or a tool answered. It is kept, whatever it looks like."""

_SECRETS = ("authorization", "cookie", "cookie2", "credentials", "passphrase", "passwd")
_SECRET_ENDINGS = (
    *("apikey", "accesskey", "accesskeyid", "authkey", "privatekey", "secretkey"),
    *("accesstoken", "authtoken", "bearertoken", "idtoken", "refreshtoken", "securitytoken", "sessiontoken"),
    *("clientsecret", "password"),
)
_IN_HEADERS = ("auth", "cookie", "credential", "key", "password", "secret", "session", "signature", "token")
_LONGEST_NAME = 64
_ATOMS = frozenset({str, int, float, bool, type(None)})


def masked(value: Any, data_of: Callable[[Any], Any], *, in_headers: bool = False) -> Any:
    """The value without its secrets: the same object if it has none, otherwise a copy.

    Args:
        value: JSON, in which objects may stand.
        data_of: Gives the data of such an object.
        in_headers: Whether the value stands below `headers`, where more names are secret.
    """
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in _ATOMS:
        return value
    if kind is dict or isinstance(value, Mapping):
        return _masked_fields(value, data_of, in_headers)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, (list, tuple)):
        items: Any = value  # pyright: ignore[reportUnknownVariableType]
        match items:
            case [str(name), str()] if in_headers and _is_secret(name, True):
                return [name, _GONE]
            case _:
                found = [masked(item, data_of, in_headers=in_headers) for item in items]
        return value if all(map(_is, found, items)) else found  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (str, bytes, bytearray, int, float)):
        return value
    return masked(data_of(value), data_of, in_headers=in_headers)


def _masked_fields(fields: Mapping[Any, Any], data_of: Callable[[Any], Any], in_headers: bool) -> Any:
    changed: dict[Any, Any] | None = None
    for name, value in fields.items():
        kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
        if kind is str:
            new: Any = _GONE if value and _is_secret(name, in_headers) else value
        elif kind in _ATOMS or name in _REPLY:
            continue
        elif (
            isinstance(value, (list, tuple)) and value and _is_secret(name, in_headers) and _are_texts(value)
        ):  # pyright: ignore[reportUnknownArgumentType]
            new = _GONE
        else:
            new = masked(value, data_of, in_headers=in_headers or _names_headers(name))
        if new is not value:
            changed = dict(fields) if changed is None else changed
            changed[name] = new
    return fields if changed is None else changed


def _is(one: object, other: object) -> bool:
    return one is other


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _names_headers(name: object) -> bool:
    return isinstance(name, str) and name[-7:].lower() == "headers"


def _is_secret(name: object, in_headers: bool) -> bool:
    return isinstance(name, str) and len(name) <= _LONGEST_NAME and _known_secret(name, in_headers)


@lru_cache(4096)
def _known_secret(name: str, in_headers: bool) -> bool:
    plain = name.lower().replace("-", "").replace("_", "")
    if plain.removeprefix("proxy").removeprefix("set") in _SECRETS or plain.endswith(_SECRET_ENDINGS):
        return True
    return in_headers and "ratelimit" not in plain and any(word in plain for word in _IN_HEADERS)


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
