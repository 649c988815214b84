"""A response that is open for as long as its stream: until the end, the reader's leaving, or the server's stop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from starlette.responses import StreamingResponse

from rxdelta.asgi._open_streams import opened
from rxdelta.runtime import headers_of
from rxdelta.wire import KEEP_ALIVE, SSE_HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    from reactivex import Observable
    from starlette.types import Receive, Scope, Send

    from rxdelta.core import Event

__all__ = ["STOPPING", "OpenResponse", "headers_for", "next_piece", "no_pieces"]

STOPPING = "the server is stopping"
_SECONDS_TO_END = 5.0
"""How long a stream may take to send its end."""


class OpenResponse(StreamingResponse):
    """The base of both responses: how they are sent, left and ended."""

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


def headers_for(
    encode: Callable[[Observable[Event]], Observable[Any]], given: Mapping[str, str] | None
) -> dict[str, str]:
    """The headers of the encoder's protocol, and those of the application, which win."""
    own = {name.lower(): value for name, value in (given or {}).items()}
    return {**(headers_of(encode) or SSE_HEADERS), **own}


async def next_piece(
    pieces: AsyncIterator[bytes], keep_alive: float | None, comment: bytes = KEEP_ALIVE
) -> bytes:
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
