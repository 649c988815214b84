"""Events as the response of a web application."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from reactivex.subject import AsyncSubject
from starlette.responses import StreamingResponse

from rxdelta.aio import from_async_iterable, to_async_iterable
from rxdelta.asgi._open_streams import opened
from rxdelta.operators import to_sse, until_stopped
from rxdelta.wire import KEEP_ALIVE, SSE_HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from reactivex import Observable
    from starlette.background import BackgroundTask
    from starlette.types import Receive, Scope, Send

    from rxdelta.core import Event

__all__ = ["EventStreamResponse"]

_STOPPING = "the server is stopping"
_SECONDS = 5.0
"""How long a stream that is ended may take to tell its reader so."""


class EventStreamResponse(StreamingResponse):
    """A pipeline's events in a front end's protocol, as a response of Starlette or FastAPI.

    The pipeline is subscribed when the response is sent, once. Each event is encoded and sent as it comes. While the
    reader is slower than the events are, those that wait are joined (`overflow="join"`), so it gets fewer, larger
    deltas: neither the provider nor another reader of a shared source waits for it, and what is queued doesn't grow. What
    can't be joined, such as a provider's own events, waits in a bounded queue: the source waits for its only reader; one
    whom the others of a shared source leave far behind is told a `BufferOverflowError`.

    When the reader leaves, the pipeline is disposed at once, and with it the provider's request, whether or not
    anything is being sent; the response has ended when its sources have closed. When the server stops, the stream
    ends as if the reader had stopped it, with a `MessageInterrupted`; see `end_streams` for servers that don't stop on a
    signal. A reader that takes no more is given five seconds then.

    What the pipeline ends with, the encoder tells: an error is the protocol's, and not the response's.

    Args:
        events: What to tell, such as `…pipe(rd.decode(…), rd.run_tools(…))`.
        encode: The protocol: `rd.to_ai_sdk()`, `rd.to_ag_ui(…)` or `rd.to_langchain_events()`, or any operator that
            makes frames for `to_sse()` of events.
        headers: Those of the protocol: `rd.wire.AI_SDK_HEADERS`, ….
        keep_alive: Seconds of silence after which a comment is sent, so that proxies keep the connection; `None`
            for none.
        status_code, background: As of Starlette's responses.

    Raises:
        InvalidValueError: At once, if `keep_alive` isn't a positive number.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from rxdelta.asgi import EventStreamResponse
        >>> hello = rd.Snapshot(merged_content=[rd.ContentPart("text", "Hi")], status="complete")
        >>> async def endpoint(request):
        ...     events = rx.from_iterable(rd.to_events(hello))
        ...     return EventStreamResponse(events, rd.to_ai_sdk(), headers=rd.wire.AI_SDK_HEADERS)
        >>> asyncio.run(endpoint(None)).headers["x-vercel-ai-ui-message-stream"]
        'v1'
    """

    def __init__(
        self,
        events: Observable[Event],
        encode: Callable[[Observable[Event]], Observable[Any]],
        *,
        headers: Mapping[str, str] = SSE_HEADERS,
        keep_alive: float | None = 15.0,
        status_code: int = 200,
        background: BackgroundTask | None = None,
    ) -> None:
        to_sse(keep_alive)  # says at once what is wrong with it
        self._stopped = AsyncSubject[str]()
        self._sending: asyncio.Task[None] | None = None
        told = events.pipe(until_stopped(self._stopped))
        # Only as many events are encoded as the reader takes; the others wait before that, and are joined.
        written = from_async_iterable(partial(_joined, told)).pipe(encode, to_sse())
        super().__init__(_body(written, keep_alive), status_code, headers, None, background)

    def end(self) -> None:
        """End the stream as a stop by the reader would. On its own loop; may be called at any time."""
        self._stopped.on_next(_STOPPING)
        self._stopped.on_completed()
        sending = self._sending
        if sending is not None and not sending.done():
            late = asyncio.get_running_loop().call_later(_SECONDS, sending.cancel)
            sending.add_done_callback(lambda _: late.cancel())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response.

        Starlette's own hears of a reader who left only where the server speaks an older ASGI, and leaves the body to
        be closed whenever it is collected.
        """
        if scope["type"] == "websocket":  # the denial of one
            await super().__call__(scope, receive, send)
            return
        sending = self._sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(self._left(receive))
        try:
            with opened(self):
                await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()
            await asyncio.wait((sending, leaving))
        for task in (sending, leaving):
            if not task.cancelled():
                task.result()
        if self.background is not None:
            await self.background()

    async def _send(self, send: Send) -> None:
        try:
            with suppress(OSError):  # so a server says that the reader has left
                await self.stream_response(send)
        finally:
            close = getattr(self.body_iterator, "aclose", None)  # it may have been wrapped
            if close is not None:
                await close()

    async def _left(self, receive: Receive) -> None:
        with suppress(OSError):
            await self.listen_for_disconnect(receive)


async def _joined(events: Observable[Event]) -> AsyncIterator[Event]:
    async with to_async_iterable(events, "join") as waiting:
        async for event in waiting:
            yield event


async def _body(written: Observable[bytes], keep_alive: float | None) -> AsyncIterator[bytes]:
    async with to_async_iterable(written, "block", maxsize=1) as pieces:
        while True:
            silence = asyncio.timeout(keep_alive)
            try:
                async with silence:
                    piece = await anext(pieces)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if not silence.expired():
                    raise
                piece = KEEP_ALIVE
            yield piece
