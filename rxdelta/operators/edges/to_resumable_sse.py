"""The entries of a stream's log as the bytes of a streaming response, which a reader can resume."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from threading import get_ident
from typing import TYPE_CHECKING, Any, Protocol

from reactivex.subject import Subject

from rxdelta.core import (
    JOINABLE,
    AccessDeniedError,
    EmptyStreamError,
    Event,
    InvalidValueError,
    Seconds,
    check_seconds,
)
from rxdelta.core.events import EVENT_TYPES, Custom, ProviderEvent, UsageUpdate
from rxdelta.operators.edges.encode import IdsOf
from rxdelta.runtime import Sink, headers_of, lift, operator_maker
from rxdelta.wire import SSE_HEADERS, sse_frame

if TYPE_CHECKING:
    from reactivex import Observable


_CHANGEABLE = {*JOINABLE, UsageUpdate, ProviderEvent}
"""Events that another reader of the log may get joined, with another id, or not at all."""


class LogEntry(Protocol):
    """An event of a stream's log, and its id, from which a reader can go on. Those of a relay are such."""

    @property
    def id(self) -> str:
        """The entry's place in the log: printable, and no other entry's."""
        ...

    @property
    def event(self) -> Event:
        """The frames of that place."""
        ...


@operator_maker
def to_resumable_sse(
    encode: Callable[[Observable[Event]], Observable[Any]], after: str | None = None, *, retry: Seconds = 1.0
) -> Callable[[Observable[LogEntry]], Observable[bytes]]:
    """Encode the log of a relay, not frames, as server-sent events with ids, from the start or behind an id.

    In: the entries of a log, always from its start: `relay.entries(stream_id, split_at=after)`. Out: for each entry whose
    event has frames these frames, as one piece of bytes. Only the last of them has an `id:`, the entry's, because only
    behind it a reader can go on. Frames before the first event come with it. Frames that come by themselves, such as those of the end, have none, and neither has a
    transient `Custom`, which no log keeps.

    With `after` the encoder is fed the whole log, and what it says up to this entry is left out. So what follows is
    what the first connection would have got, with the same ids of messages and blocks, also where the encoder made
    them up. The encoder must be made with the same arguments as for the first connection.

    The first piece is the line `retry:`, the seconds after which an `EventSource` comes back; it comes with the first
    entry, or when `after` has been found. No empty line follows it. Some clients take each empty line behind a `retry:` or
    an `id:` for an event, so a comment between two pieces must be one line, too.

    Completes with the encoder, at the latest with the source.

    Args:
        encode: The protocol: `rd.to_ai_sdk()`, `rd.to_ag_ui(…)`, `rd.to_langchain_events()`, or any operator that turns
            events into frames for `to_sse()`. Frames that it emits later than the event they are of, as behind
            `smooth`, have no id.
        after: The id behind which to go on: what the reader sent as `Last-Event-ID`.
        retry: Seconds after which an `EventSource` whose line is broken comes back.

    Raises:
        InvalidValueError: At once, if `retry` isn't a positive number, if `encode` can't be called, or if its frames aren't
            written as server-sent events, as those of `rd.to_ollama()`: nothing else has ids.

    Errors: `InvalidValueError` if the log ends without the entry `after`. Before its first entry, the source's
    `InvalidValueError` of such an id, its `EmptyStreamError` (there is no such stream) and its `AccessDeniedError`. All
    other errors, also an `InvalidValueError` for a value that is no entry, are the encoder's to write; one that doesn't
    passes them on.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from types import SimpleNamespace
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> log = rx.from_iterable([SimpleNamespace(id=str(at), event=event) for at, event in enumerate(reply)])
        >>> log.pipe(rd.to_resumable_sse(rd.to_ai_sdk(), after="1")).subscribe(print).dispose()
        b'retry: 1000\\n'
        b'data: {"type":"text-end","id":"1"}\\n\\nid: 3\\ndata: {"type":"finish-step"}\\n\\n'
        b'data: {"type":"finish","finishReason":"stop","messageMetadata":{"status":"complete","finishReason":"stop"}}\\n\\ndata: [DONE]\\n\\n'
    """
    if not callable(encode):
        raise InvalidValueError.of([("encode", encode, "must be an operator, such as to_ai_sdk()")])
    wait = check_seconds("retry", retry)
    kind = (headers_of(encode) or SSE_HEADERS)["content-type"]
    if kind != SSE_HEADERS["content-type"]:
        wanted = f"must write server-sent events, because {kind} has no ids from which a reader could go on"
        instead = "EventStreamResponse(relay.watch(…), …) sends such a stream from its start"
        raise InvalidValueError.of([("encode", encode, wanted, instead)])
    return lift("to_resumable_sse", lambda sink: _Resuming(sink, encode, after, wait), emits="frames")


class _Resuming:
    """One subscription's state."""

    def __init__(
        self,
        sink: Sink[bytes],
        encode: Callable[[Observable[Event]], Observable[Any]],
        after: str | None,
        retry: float,
    ) -> None:
        self._sink = sink
        self._after = after
        self._retry = b"retry: %d\n" % round(retry * 1000)
        self._behind = False  # whether the reader gets what comes now
        self._begun = False
        self._ids: IdsOf | None = None
        self._newest: str | None = None  # the id of the newest entry
        self._events = Subject[Any]()
        self._frames: list[Any] = []  # of the call that is running
        self._end: Exception | bool = False  # how the encoder has ended: `True`, or an error
        self._thread: int | None = None  # the thread that feeds the encoder
        encoded = self._events.pipe(encode)
        self._thread = get_ident()  # what the encoder says before the first event comes with that event
        try:
            sink.own(encoded.subscribe(self._emitted, self._ended, self._ended, scheduler=sink.scheduler))
        finally:
            self._thread = None

    def on_next(self, entry: LogEntry) -> None:
        event = getattr(entry, "event", None)
        if type(event) not in EVENT_TYPES:
            made = "relay.entries(…) emits such entries"
            raise InvalidValueError.of([("entry", entry, "must have an id and an event", made)])
        if not self._begun and self._after is None:
            self._begin()
        self._begun = True
        self._newest = entry.id
        is_transient = isinstance(event, Custom) and event.transient
        if self._ids is None and not is_transient and type(event) not in _CHANGEABLE:
            self._ids = IdsOf(entry.id)
        frames = self._feed(self._events.on_next, event)
        self._write(frames, None if is_transient else entry.id)
        if not self._behind and entry.id == self._after:
            self._begin()
        self._finish()

    def on_error(self, error: Exception) -> None:
        if not self._begun and _is_of_the_request(error):
            self._sink.on_error(error)
            return
        self._close(self._events.on_error, error)

    def on_completed(self) -> None:
        self._close(self._events.on_completed)

    def _begin(self) -> None:
        self._behind = True
        self._sink.on_next(self._retry)

    def _close(self, end: Callable[..., None], *arguments: Any) -> None:
        if not self._behind:
            if self._after is not None:
                wanted = "must be the id of an entry of this stream"
                self._sink.on_error(InvalidValueError.of([("after", self._after, wanted)]))
                return
            self._begin()
        if self._ids is None and self._newest is not None:  # a log without a message: its end needs ids, too
            self._ids = IdsOf(self._newest)
        self._write(self._feed(end, *arguments), None)
        self._finish()

    def _feed(self, call: Callable[..., None], *arguments: Any) -> list[Any]:
        """Give the encoder an event, and return the frames that it emits at once. Later ones come to `_emitted`."""
        self._thread = get_ident()
        try:
            with nullcontext() if self._ids is None else self._ids.made():
                call(*arguments)
        finally:
            self._thread = None
            frames, self._frames = self._frames, []
        return frames

    def _write(self, frames: list[Any], id: str | None) -> None:
        if frames and self._behind:
            *first, last = frames
            self._sink.on_next(b"".join(map(sse_frame, first)) + sse_frame(last, id))

    def _finish(self) -> None:
        """End as the encoder has ended, but not before `after` has been found."""
        if self._end and self._behind:
            if isinstance(self._end, Exception):
                self._sink.on_error(self._end)
            else:
                self._sink.on_completed()

    def _emitted(self, frame: Any) -> None:
        if (
            self._thread == get_ident() or self._newest is None
        ):  # what comes before the first entry goes with it
            self._frames.append(frame)
        else:
            self._sink.run(self._write, [frame], None)

    def _ended(self, error: Exception | None = None) -> None:
        self._end = error or True
        if self._thread != get_ident():
            self._sink.run(self._finish)


def _is_of_the_request(error: Exception) -> bool:
    """Whether there is no log that could be read. Other errors are the log's own, for the encoder to write."""
    ids = isinstance(error, InvalidValueError) and error.field in ("after", "split_at", "stream_id")
    return ids or isinstance(error, (AccessDeniedError, EmptyStreamError))
