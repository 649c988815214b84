"""The open streams. They are ended when the server stops, because it would wait for them.

A response that is open for as long as its stream: until the end, the reader's leaving, or the server's stop.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from reactivex import Observable, abc
from starlette.responses import StreamingResponse

from rxdelta.aio import ReaderMeter, Reading, from_async_iterable, to_async_iterable
from rxdelta.core import Event, InvalidValueError, Limits
from rxdelta.operators import to_ndjson, to_sse, until_stopped
from rxdelta.runtime import headers_of, refuse_all_but_events
from rxdelta.wire import KEEP_ALIVE, NDJSON_HEADERS, NDJSON_KEEP_ALIVE, SSE_HEADERS

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STOPPING_SECONDS = 5.0
"""For how long after such a signal a server may still take requests. A page whose stream has ended asks again at once."""


class OpenStream(Protocol):
    def end(self) -> None: ...


_streams: dict[asyncio.AbstractEventLoop, set[OpenStream]] = {}
_stopping: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = (
    WeakKeyDictionary()
)  # until when, by its clock
_lock = threading.RLock()  # reentrant: a signal may arrive while this thread holds it
_chained: dict[
    int, tuple[Callable[..., object], Any]
] = {}  # by signal: our handler, and the server's that it calls


def end_streams() -> None:
    """End every open response, on any loop, as each does when the server stops. May be called from any thread.

    Where the server runs on the main thread of the process that gets Ctrl-C or `SIGTERM`, the streams end by themselves:
    under `uvicorn`, also with `--workers`, and under `hypercorn --workers 0`. Without that option hypercorn's command runs the
    application in a child that gets no signal, so its streams aren't ended. Call this for a server that is stopped in
    another way or isn't on the main thread, before it waits for its connections to close, such as in the
    `shutdown_trigger` of `hypercorn.asyncio.serve`.
    """
    with _lock:
        loops = [(loop, list(streams)) for loop, streams in _streams.items()]
    for loop, streams in loops:
        for stream in streams:
            if not loop.is_closed():
                loop.call_soon_threadsafe(stream.end)


@contextmanager
def opened(stream: OpenStream) -> Generator[None]:
    """Register the stream as open within the `with` block."""
    loop = asyncio.get_running_loop()
    with _lock:
        _chain_handlers()
        _streams.setdefault(loop, set()).add(stream)
        if loop.time() < _stopping.get(loop, 0):
            loop.call_soon(stream.end)
    try:
        yield
    finally:
        with _lock:
            _streams[loop].discard(stream)
            if not _streams[loop]:
                del _streams[loop]
            if not _streams:
                _restore_handlers()


def _chain_handlers() -> None:
    """Put our handler behind the server's, for the signals that stop a server."""
    # Python sets signal handlers on the main thread only.
    if threading.current_thread() is not threading.main_thread():
        return
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        ours = _chained.get(number)
        if callable(handler) and (ours is None or handler is not ours[0]):
            chain = partial(_on_signal, handler)
            _chained[number] = chain, handler
            signal.signal(number, chain)


def _on_signal(handler: Callable[..., object], *arguments: Any) -> None:
    try:
        # The server's own first; it may raise, as that of Ctrl-C does.
        handler(*arguments)
    finally:
        with _lock:
            for loop in _streams:
                _stopping[loop] = loop.time() + _STOPPING_SECONDS
        end_streams()


def _restore_handlers() -> None:
    """Restore the server's handlers, except where somebody has replaced ours."""
    if threading.current_thread() is not threading.main_thread():
        return
    for number, (chain, handler) in _chained.items():
        if signal.getsignal(number) is chain:
            signal.signal(number, handler)
    _chained.clear()


STOPPING = "the server is stopping"
_SECONDS_TO_END = 5.0
"""How long a stream may take to send its end."""


class OpenResponse(StreamingResponse):
    """The base of the responses: how they are sent, left and ended."""

    _sending: asyncio.Task[None] | None = None

    def end(self) -> None:
        """End the stream, because the server stops. Call it on the stream's loop, at any time."""
        self._stop()
        sending = self._sending
        if sending is not None and not sending.done():
            late = asyncio.get_running_loop().call_later(_SECONDS_TO_END, sending.cancel)
            sending.add_done_callback(lambda _: late.cancel())

    def _stop(self) -> None:
        """End the stream by what its protocol has for it."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response.

        Starlette's own method listens for a disconnect only below ASGI 2.4, and doesn't close the body of a reader that
        has left: the garbage collector does, at any time.
        """
        if scope["type"] == "websocket":  # the connection is denied with this response
            await self._respond(scope, self._wrap_websocket_denial_send(send))
            if self.background is not None:
                await self.background()
            return
        sending = self._sending = asyncio.create_task(self._send(scope, send))
        leaving = asyncio.create_task(self._wait_for_disconnect(receive))
        try:
            with opened(self):
                await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()
            # Both are awaited: the source must be closed before the server takes the response for done.
            await asyncio.wait((sending, leaving))
        for task in (sending, leaving):
            if not task.cancelled():
                task.result()
        if self.background is not None:
            await self.background()

    async def _send(self, scope: Scope, send: Send) -> None:
        with suppress(OSError):  # some servers report a reader that has left by an OSError
            await self._respond(scope, send)

    async def _respond(self, scope: Scope, send: Send) -> None:
        """Send the status, the headers and the body, and close what the body is read from."""
        raise NotImplementedError

    async def _wait_for_disconnect(self, receive: Receive) -> None:
        with suppress(OSError):
            await self.listen_for_disconnect(receive)


def written_for(
    by: str,
    events: Observable[Event],
    encode: Callable[[Observable[Event]], Observable[Any]],
    *,
    stopped: Observable[str],
    limits: Limits | None,
    meter: ReaderMeter | None,
) -> Observable[Any]:
    """What the encoder writes of the events for one reader.

    Args:
        by: The response's name in messages.
        events: The events.
        encode: The encoder.
        stopped: The signal that the server stops.
        limits, meter: As for `EventStreamResponse`.

    Raises:
        InvalidValueError: `events` is no stream of events, or `meter` no meter.
    """
    if not isinstance(events, abc.ObservableBase):
        made = "from_async_iterable(…).pipe(decode(…)) makes one, and rd.stream has it as `reply.events`"
        raise InvalidValueError.of([("events", events, f"must be an Observable of events: {made}")])
    refuse_all_but_events(events, by)
    # An event is encoded when the reader has room. Others wait in front of the encoder, and are joined.
    waiting = to_async_iterable(events.pipe(until_stopped(stopped)), "join", limits=limits, meter=meter)
    return from_async_iterable(partial(_joined, waiting)).pipe(encode)


async def _joined(waiting: Reading[Event]) -> AsyncIterator[Event]:
    async with waiting as events:
        async for event in events:
            yield event


def headers_for(
    encode: Callable[[Observable[Event]], Observable[Any]], given: Mapping[str, str] | None
) -> dict[str, str]:
    """The headers of the encoder's protocol, and those of the application, which win."""
    own = {name.lower(): value for name, value in (given or {}).items()}
    return {**(headers_of(encode) or SSE_HEADERS), **own}


class Framing(NamedTuple):
    """How frames are written into the body."""

    write: Callable[[Observable[Any]], Observable[bytes]]
    comment: bytes


def framing_of(encode: Callable[[Observable[Event]], Observable[Any]]) -> Framing:
    """How the encoder's frames are written: as lines if its headers say so, else as server-sent events."""
    headers = headers_of(encode) or SSE_HEADERS
    if headers["content-type"] == NDJSON_HEADERS["content-type"]:
        return Framing(to_ndjson(), NDJSON_KEEP_ALIVE)
    return Framing(to_sse(), KEEP_ALIVE)


async def next_piece(pieces: AsyncIterator[bytes], keep_alive: float | None, comment: bytes) -> bytes:
    """The next piece, or after a silence of that many seconds a comment."""
    silence = asyncio.timeout(keep_alive)
    try:
        async with silence:
            return await anext(pieces)
    except TimeoutError:
        if not silence.expired():
            raise
        return comment


async def no_pieces() -> AsyncGenerator[bytes]:
    """The body of a response that has none, such as the answer to a HEAD."""
    for piece in b"":
        yield bytes(piece)


async def break_off(send: Send) -> None:
    """Make the server close the connection, so that the reader doesn't take the body for whole.

    A response that raises or just returns is taken for whole behind Starlette's `BaseHTTPMiddleware`, which is
    `@app.middleware("http")` of FastAPI: it ends the body before the server hears of it. A body that isn't bytes goes
    through it, and no server can send that.
    """
    with suppress(Exception):  # the server's
        await send({"type": "http.response.body", "body": " ", "more_body": True})
