"""A response that streams a pipeline's events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactivex.subject import AsyncSubject

from rxdelta.aio import to_async_iterable
from rxdelta.asgi._open_response import (
    STOPPING,
    OpenResponse,
    framing_of,
    headers_for,
    next_piece,
    no_pieces,
    written_for,
)
from rxdelta.core import InvalidValueError, check_seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from reactivex import Observable
    from starlette.background import BackgroundTask
    from starlette.types import Scope, Send

    from rxdelta.aio import ReaderMeter
    from rxdelta.core import Event, Limits, Seconds

__all__ = ["EventStreamResponse"]


class EventStreamResponse(OpenResponse):
    """A pipeline's events in a front end's protocol, as a response of Starlette or FastAPI.

    The pipeline is subscribed when the response is sent, once; for a HEAD, which Starlette adds to each route of GET, it is
    not subscribed, and the headers are sent alone. Each event is encoded and sent as it comes. While the
    reader is slower than the events, the waiting events are joined (`overflow="join"`): the reader gets fewer, larger
    deltas, and the provider and other readers of a shared source don't wait. For one reader 1 MiB of text waits in memory, and
    1,024 events that can't be joined, such as a provider's own. With more the source waits for its reader, and so does the
    provider's line; a reader that falls far behind the others of a shared source gets a `BufferOverflowError`. A client
    that reads nothing keeps its response open until its connection breaks or the server stops.

    When the reader leaves, the pipeline is disposed at once, and with it the provider's request, whether or not
    anything is being sent; the response ends when its sources have closed. When the server stops, the stream ends with
    a `MessageInterrupted`, as if the reader had stopped it; see `end_streams` for servers that don't stop on a signal.
    A reader that accepts nothing more then has five seconds.

    The encoder writes how the pipeline ended: an error is a frame of the protocol, not an error of the response.

    Args:
        events: The events to send, such as `…pipe(rd.decode(…), rd.run_tools(…))`.
        encode: The protocol: `rd.to_ai_sdk()`, `rd.to_ag_ui(…)` or `rd.to_langchain_events()`, or any operator that
            turns events into frames for `to_sse()`. The frames of `rd.to_ollama()` are sent as lines of JSON.
        headers: More headers of the response. Those of the protocol are there already.
        keep_alive: Seconds of silence after which a comment is sent, in front of a line of JSON a space, so that proxies keep the
            connection; `None` for none.
        status_code, background: As for Starlette's responses.
        limits: Bounds on what the pipeline and the encoder may hold in memory; see `rd.with_limits`. One within `events`
            doesn't reach the encoder.
        meter: Measures the events that wait for the reader, see `rd.ReaderMeter`.

    Raises:
        InvalidValueError: At once, if `events` is no Observable, or comes out of an operator that emits something else, such as
            snapshots or frames; if `keep_alive` is no positive number, or `meter` no meter.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from rxdelta.asgi import EventStreamResponse
        >>> hello = rd.Message.of("assistant", "Hi")
        >>> async def endpoint(request):
        ...     events = rx.from_iterable(rd.to_events(hello))
        ...     return EventStreamResponse(events, rd.to_ai_sdk())
        >>> asyncio.run(endpoint(None)).headers["x-vercel-ai-ui-message-stream"]
        'v1'
    """

    def __init__(
        self,
        events: Observable[Event],
        encode: Callable[[Observable[Event]], Observable[Any]],
        *,
        headers: Mapping[str, str] | None = None,
        keep_alive: Seconds | None = 15.0,
        status_code: int = 200,
        background: BackgroundTask | None = None,
        limits: Limits | None = None,
        meter: ReaderMeter | None = None,
    ) -> None:
        silence = None if keep_alive is None else check_seconds("keep_alive", keep_alive)
        if not callable(encode):  # pyright: ignore[reportUnnecessaryComparison]
            raise InvalidValueError.of([("encode", encode, "must be an encoder, such as rd.to_ai_sdk()")])
        self._stopped = AsyncSubject[str]()
        frames = written_for(
            "EventStreamResponse", events, encode, stopped=self._stopped, limits=limits, meter=meter
        )
        framing = framing_of(encode)
        written = frames.pipe(framing.write)
        super().__init__(
            _body(written, silence, framing.comment, limits),
            status_code,
            headers_for(encode, headers),
            None,
            background,
        )

    def _stop(self) -> None:
        self._stopped.on_next(STOPPING)
        self._stopped.on_completed()

    async def _respond(self, scope: Scope, send: Send) -> None:
        if scope.get("method") == "HEAD":
            self.body_iterator = no_pieces()
        try:
            await self.stream_response(send)
        finally:
            close: Any = getattr(self.body_iterator, "aclose", None)  # absent if a middleware has wrapped it
            if close is not None:
                await close()


async def _body(
    written: Observable[bytes], keep_alive: float | None, comment: bytes, limits: Limits | None
) -> AsyncIterator[bytes]:
    async with to_async_iterable(written, "block", maxsize=1, limits=limits) as pieces:
        while True:
            try:
                piece = await next_piece(pieces, keep_alive, comment)
            except StopAsyncIteration:
                return
            yield piece
