"""Bytes to chunks, and frames to bytes: server-sent events and newline-delimited JSON, as operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from rxdelta.core import Seconds, check_seconds
from rxdelta.framing import NdjsonParser, SseParser, check_loads
from rxdelta.runtime import Sink, lift, lift_machine, lift_map, operator_maker
from rxdelta.wire import KEEP_ALIVE, NDJSON_KEEP_ALIVE, ndjson_line, sse_frame

if TYPE_CHECKING:
    from reactivex import Observable, abc


def frames_as_bytes(
    name: str,
    write: Callable[[Any], bytes],
    comment: bytes,
    keep_alive: Seconds | None,
    scheduler: abc.SchedulerBase | None,
) -> Callable[[Observable[Any]], Observable[bytes]]:
    """Write each frame, and after a silence of `keep_alive` seconds the comment.

    Raises:
        InvalidValueError: `keep_alive` isn't a positive number.
    """
    if keep_alive is None:
        return lift_map(name, lambda _: _Writer(write), emits="frames")
    silence = check_seconds("keep_alive", keep_alive)
    return lift(
        name, lambda sink: _Writing(sink, write, comment, silence, sink.clock(scheduler)), emits="frames"
    )


class _Writer:
    """The state without comments."""

    def __init__(self, write: Callable[[Any], bytes]) -> None:
        self.step = write


class _Writing:
    """One subscription's state with comments."""

    def __init__(
        self,
        sink: Sink[bytes],
        write: Callable[[Any], bytes],
        comment: bytes,
        keep_alive: float,
        time: abc.SchedulerBase,
    ) -> None:
        self._sink = sink
        self._write = write
        self._comment = comment
        self._keep_alive = keep_alive
        self._timer = sink.timer(time)
        self._silent = True
        self._wait()

    def _wait(self) -> None:
        """Start the timer. When it fires, it checks whether a frame was written meanwhile."""
        self._timer.start(self._keep_alive, self._on_timer)

    def _on_timer(self) -> None:
        if self._silent:
            self._sink.on_next(self._comment)
        self._silent = True
        self._wait()

    def on_next(self, frame: Any) -> None:
        self._silent = False
        self._sink.on_next(self._write(frame))


class _Parser(Protocol):
    @property
    def error(self) -> Exception | None: ...

    def feed(self, data: bytes | str) -> list[Any]: ...

    def close(self) -> list[Any]: ...


def parse_records(
    name: str, parser: Callable[..., _Parser], loads: Callable[[str], Any] | None
) -> Callable[[Observable[bytes | str]], Observable[Any]]:
    """Parse the source's bytes into records, by a parser of this class for each subscription."""
    check_loads(loads)
    return lift_machine(
        name, lambda sink: _Reading(parser(limits=sink.limits, loads=loads)), emits="chunks", needs_all=True
    )


class _Reading:
    """One subscription's state."""

    def __init__(self, parser: _Parser) -> None:
        self._parser = parser

    def step(self, data: bytes | str) -> Iterable[Any]:
        return self._until_error(self._parser.feed(data))

    def close(self) -> Iterable[Any]:
        return self._until_error(self._parser.close())

    def _until_error(self, records: list[Any]) -> Iterable[Any]:
        error = self._parser.error
        return records if error is None else _then(records, error)

    def fail(self, error: Exception) -> tuple[list[Any], Exception]:
        records: list[Any] = []
        with suppress(Exception):  # an incomplete last record needs no error: `error` explains the cut
            records += self._parser.close()
        return records, error


def _then(records: list[Any], error: Exception) -> Iterator[Any]:
    yield from records
    raise error


@operator_maker
def to_ndjson(
    keep_alive: Seconds | None = None, *, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[Any]], Observable[bytes]]:
    """Encode each frame as one line of JSON: UTF-8, with LF as the only line end.

    ::

        frames  <{'done': False}> ------  -<{'done': True}> |
                to_ndjson(keep_alive=0.3)
        bytes   <{"done":false}\\n>-----< >-<{"done":true}\\n>|

    The source emits frames: JSON objects, such as those of `to_ollama()`, or `ag_ui.core` events. Each frame is emitted at
    once. Characters that end a line to some clients, such as U+2028, are escaped. With `keep_alive`, a space in front of the
    next line breaks a silence of that many seconds, after twice as many at the latest, so that proxies keep the connection;
    JSON parsers skip it, but would refuse an empty line. Completes with the source.

    Args:
        keep_alive: Seconds of silence that proxies tolerate; `None` for no spaces.
        scheduler: The scheduler of the timers. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, if `keep_alive` isn't a positive number.

    Errors: The source's own. `InvalidValueError` for any other frame, and for `wire.DONE`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> rx.of({"done": False}, {"done": True}).pipe(rd.to_ndjson()).subscribe(print).dispose()
        b'{"done":false}\\n'
        b'{"done":true}\\n'
    """
    return frames_as_bytes("to_ndjson", ndjson_line, NDJSON_KEEP_ALIVE, keep_alive, scheduler)


@operator_maker
def to_sse(
    keep_alive: Seconds | None = None, *, scheduler: abc.SchedulerBase | None = None
) -> Callable[[Observable[Any]], Observable[bytes]]:
    """Encode each frame as the bytes of one server-sent event: UTF-8, with LF as the only line end.

    ::

        frames  <{'type': 'start'}>         ------                 -<{'type': 'finish'}>         |
                to_sse(keep_alive=0.3)
        bytes   <data: {"type":"start"}\\n\\n>-----<: keep-alive\\n\\n>-<data: {"type":"finish"}\\n\\n>|

    The source emits frames: JSON objects, `ag_ui.core` events, or `wire.DONE`, which becomes `data: [DONE]`. Each
    frame is emitted at once. With `keep_alive`, a comment breaks a silence of that many seconds, after twice as
    many at the latest, so that proxies keep the connection; clients skip comments. The type of a `wire.NamedFrame` is
    also written as the name of the event.
    Completes with the source.

    Args:
        keep_alive: Seconds of silence that proxies tolerate; `None` for no comments.
        scheduler: The scheduler of the timers. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, if `keep_alive` isn't a positive number.

    Errors: The source's own. `InvalidValueError` for any other frame.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> rx.of({"type": "start"}, rd.wire.DONE).pipe(rd.to_sse()).subscribe(print).dispose()
        b'data: {"type":"start"}\\n\\n'
        b'data: [DONE]\\n\\n'
    """
    return frames_as_bytes("to_sse", sse_frame, KEEP_ALIVE, keep_alive, scheduler)


@operator_maker
def parse_ndjson(
    *, loads: Callable[[str], Any] | None = None
) -> Callable[[Observable[bytes | str]], Observable[Any]]:
    """Parse each line as JSON, for bytes that are split anywhere.

    ::

        bytes   <'{"n": 1}\\n{"n'>-<'": 2}\\n'>-<'{"n": 3}'>|
                parse_ndjson()
        chunks  <{"n": 1}>       -<{"n": 2}> --           [<{"n": 3}>|]

    The source emits the body of the response in any pieces, as bytes or as text with its line ends (an HTTP
    client's `aiter_bytes()`, not `aiter_lines()`). Each record is emitted as soon as its line has ended;
    empty lines emit nothing.

    Completes with the source. The last record needs no line end: it is emitted before the source's completion, and
    before the source's error if it is whole.

    Args:
        loads: Reads the JSON of a line, see `parse_sse`.

    Errors: `MalformedChunkError` for a line that is not one JSON document; `LimitExceededError` for a line that
    is larger than the limits allow. Both come after the records before that line.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> body = rx.of(b'{"done": fal', b'se}\\n{"done": true}')
        >>> body.pipe(rd.parse_ndjson()).run()
        {'done': True}
    """
    return parse_records("parse_ndjson", NdjsonParser, loads)


@operator_maker
def parse_sse(
    *, loads: Callable[[str], Any] | None = None
) -> Callable[[Observable[bytes | str]], Observable[Any]]:
    """Parse the data of each server-sent event as JSON, for bytes that are split anywhere.

    ::

        bytes   <'data: {"te'>-<'xt": "Hi"}\\n\\n'>-<'data: [DONE]\\n\\n'>|
                parse_sse()
        chunks  -             -<{"text": "Hi"}>  -<DONE>              |

    The source emits the body of the response in any pieces, as bytes or as text with its line ends (an HTTP
    client's `aiter_bytes()`, not `aiter_lines()`). Each record is emitted as soon as its last byte has arrived.
    Comments and events without data emit nothing. `[DONE]` emits `rd.wire.DONE`, which `decode` takes. An event's
    name is added as `"_event"` if the record doesn't contain it. `rxdelta.providers.SseParser` has the rules.

    Completes with the source. The last record needs no blank line after it: it is emitted before the source's
    completion, and before the source's error if it is whole.

    Args:
        loads: Reads the JSON of a record, a `str`; `orjson.loads`, say. It makes parsing quicker and changes no value: what it
            refuses, and what has 19 digits in a row, is read by `json.loads`. Other values, such as decimals, are emitted. By
            default msgspec's parser if that is installed (`rxdelta[fast]`), else `json.loads`.

    Raises:
        InvalidValueError: At once, if `loads` is no function.

    Errors: `MalformedChunkError` for data that is no JSON and for a body that is no event stream;
    `LimitExceededError` for an event that is larger than the limits allow. Both come after the records before it.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> body = rx.of(b'data: {"te', b'xt": "Hi"}\\n\\n', b"data: [DONE]\\n\\n")
        >>> _ = body.pipe(rd.parse_sse()).subscribe(print)
        {'text': 'Hi'}
        DONE
    """
    return parse_records("parse_sse", SseParser, loads)
