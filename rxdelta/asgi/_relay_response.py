"""A response that streams what a relay has of a stream, and that its reader can resume."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from reactivex import operators as ops
from reactivex.subject import AsyncSubject
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from rxdelta.aio import to_async_iterable
from rxdelta.asgi._open_response import (
    STOPPING,
    OpenResponse,
    break_off,
    headers_for,
    next_piece,
    no_pieces,
)
from rxdelta.core import AccessDeniedError, EmptyStreamError, InvalidValueError, check_seconds
from rxdelta.operators import to_resumable_sse, until_stopped
from rxdelta.wire import KEEP_ALIVE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    from reactivex import Observable
    from starlette.background import BackgroundTask
    from starlette.types import Scope, Send

    from rxdelta.core import Event, Seconds
    from rxdelta.relay import Relay

__all__ = ["RelayResponse"]

_FROM_THE_REQUEST = ("after", "split_at", "stream_id")
_log = logging.getLogger("rxdelta")
_COMMENT = KEEP_ALIVE.removesuffix(b"\n")
"""Without an empty line, which OpenAI's client for Python takes for an event once it has read an `id:`."""


class RelayResponse(OpenResponse):
    """A stream of a relay in a front end's protocol, from the start or behind the reader's `Last-Event-ID`.

    The response only reads: `relay.start(…)` makes the reply, which goes on when the reader leaves, and
    `relay.cancel(…)` stops it. Any number of readers get the same stream, each at its own pace. Make the response in a
    handler that knows who asks, of this user's `relay.scope(…)`: an id is no secret, and whoever gets the response reads
    the stream.

    Frames have the ids of `to_resumable_sse`. A reader that sends the last one as `Last-Event-ID`, as an `EventSource`
    does by itself, gets what comes behind it. The encoder must be made with the same arguments as for the first
    connection.

    Before the response begins it is decided what it is:

    | status | |
    | --- | --- |
    | 200 | the stream |
    | 204 | nothing comes: behind the id of a stream that has ended, or nothing is live and `live_only` is set. An `EventSource` stops asking, and `useChat` has nothing to resume. |
    | 400 | The `Last-Event-ID` is no id of this stream, or the stream's name is none. |
    | 403 | The relay is a scope, and its `allow` refuses this reader, whether the stream exists or not. The log `rxdelta` has the error of an `allow` that raised. |
    | 404 | There is no such stream, and none began within the relay's `lease`. |

    The request's method decides whether there is a body: a HEAD gets the status and the headers.

    When the server stops, the response of an `EventSource` ends without a word, because it comes back by itself and goes
    on. For any other reader it depends on the relay. With a store the stream may go on, so the body is broken off: the
    reader gets an error of the network, and can ask again at another worker; uvicorn logs that the response wasn't
    completed. In memory the stream ends with the process, so the reader is told that the message was interrupted, as by
    `EventStreamResponse`.

    Args:
        relay: The relay, which the application opens once.
        stream_id: The stream's name, as given to `relay.start`.
        encode: The protocol: `rd.to_ai_sdk()`, `rd.to_ag_ui(…)` or `rd.to_langchain_events()`, or any operator that
            turns events into frames for `to_sse()`.
        after: The id behind which to go on, instead of the request's `Last-Event-ID`.
        live_only: Whether a reader without an id gets 204 unless the stream is live, as `useChat`'s `resume` expects it.
        headers: More headers of the response. Those of the protocol are there already.
        keep_alive: Seconds of silence after which a comment is sent, so that proxies keep the connection; `None`
            for none.
        retry: Seconds after which an `EventSource` whose line is broken comes back.
        background: As for Starlette's responses.

    Raises:
        InvalidValueError: At once, if `keep_alive` or `retry` is no positive number.

    Example:
        >>> import asyncio
        >>> import rxdelta as rd
        >>> from rxdelta.asgi import RelayResponse
        >>> from rxdelta.relay import Relay
        >>> async def resume(request, relay):
        ...     theirs = relay.scope("acme", allow=lambda action, stream_id: action == "watch")  # what this user may do
        ...     chat = request["path_params"]["chat"]
        ...     return RelayResponse(theirs, chat, rd.to_ai_sdk(), live_only=True)
        >>> async def main():
        ...     async with Relay.open() as relay:
        ...         sent = []
        ...         async def send(message):
        ...             sent.append(message)
        ...         request = {"type": "http", "method": "GET", "headers": [], "path_params": {"chat": "c1"}}
        ...         response = await resume(request, relay)
        ...         await response(request, asyncio.Event().wait, send)
        ...         return sent[0]["status"]
        >>> asyncio.run(main())
        204
    """

    def __init__(
        self,
        relay: Relay,
        stream_id: str,
        encode: Callable[[Observable[Event]], Observable[Any]],
        *,
        after: str | None = None,
        live_only: bool = False,
        headers: Mapping[str, str] | None = None,
        keep_alive: Seconds | None = 15.0,
        retry: Seconds = 1.0,
        background: BackgroundTask | None = None,
    ) -> None:
        silence = None if keep_alive is None else check_seconds("keep_alive", keep_alive)
        to_resumable_sse(encode, after, retry=retry)  # raises at once if something is invalid
        super().__init__((), 200, headers_for(encode, headers), None, background)
        self._relay = relay
        self._stream_id = stream_id
        self._encode = encode
        self._after = after
        self._live_only = live_only
        self._keep_alive = silence
        self._retry = retry
        self._stopped = AsyncSubject[str]()
        self._deciding: asyncio.Timeout | None = None  # while the status isn't decided
        self._is_cut = False  # by the server's stop, while the stream goes on

    def _stop(self) -> None:
        if self._deciding is not None:
            self._deciding.reschedule(0)
        self._stopped.on_next(STOPPING)
        self._stopped.on_completed()

    async def _respond(self, scope: Scope, send: Send) -> None:
        async with AsyncExitStack() as stack:
            try:
                begun = await self._begin(scope, stack)
            except InvalidValueError as error:
                if error.field not in _FROM_THE_REQUEST:
                    raise
                await _refuse(send, 400, "this is no id of an event of this stream")
            except EmptyStreamError:
                await _refuse(send, 404, "there is no such stream")
            except AccessDeniedError as error:
                if error.__cause__ is not None:
                    _log.error("a check of who may read a stream failed", exc_info=error)
                await _refuse(send, 403, "this stream isn't for this reader")
            else:
                if isinstance(begun, int):
                    await _refuse(send, begun, "")
                else:
                    body = self._body(*begun) if scope.get("method") != "HEAD" else no_pieces()
                    stack.push_async_callback(body.aclose)
                    self.body_iterator = body
                    try:
                        await self.stream_response(send)
                    except _BrokenOff:
                        await break_off(send)

    async def _begin(
        self, scope: Scope, stack: AsyncExitStack
    ) -> tuple[list[bytes], AsyncIterator[bytes]] | int:
        """Read until the status is certain. Return what was read and the rest, or a status without a body."""
        headers = Headers(scope=scope)
        after = headers.get("last-event-id") or None if self._after is None else self._after
        entries = self._relay.entries(self._stream_id, split_at=after)
        is_live = await self._relay.is_live(self._stream_id)
        if self._live_only and after is None and not is_live:
            return 204
        returns = scope.get("method") == "GET" and "text/event-stream" in headers.get("accept", "")
        pieces = await stack.enter_async_context(
            to_async_iterable(entries.pipe(*self._written(after, returns)), "block", maxsize=1)
        )
        read: list[bytes] = []
        if after is None and is_live:
            return read, pieces
        deciding = self._deciding = asyncio.timeout(None)
        try:
            async with deciding:
                read.append(await anext(pieces))  # the stream exists, and so does the entry `after`
                if not is_live:
                    read.append(await anext(pieces))
        except StopAsyncIteration:
            return 204
        except TimeoutError:
            if not deciding.expired():
                raise
            return (read, no_pieces()) if returns else 503  # an `EventSource` comes back only after a 200
        finally:
            self._deciding = None
        return read, pieces

    def _written(self, after: str | None, returns: bool) -> tuple[Callable[..., Observable[Any]], ...]:
        if returns or self._relay.is_shared:
            stop = self._stopped if returns else self._stopped.pipe(ops.do_action(self._cut))
            return to_resumable_sse(self._encode, after, retry=self._retry), ops.take_until(stop)

        def encode(events: Observable[Event]) -> Observable[Any]:
            return events.pipe(until_stopped(self._stopped), self._encode)

        return (to_resumable_sse(encode, after, retry=self._retry),)

    def _cut(self, _: str) -> None:
        self._is_cut = True

    async def _body(self, read: list[bytes], pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        for piece in read:
            yield piece
        while True:
            try:
                piece = await next_piece(pieces, self._keep_alive, _COMMENT)
            except StopAsyncIteration:
                if self._is_cut:
                    raise _BrokenOff from None
                return
            yield piece


class _BrokenOff(Exception):
    """The body isn't whole."""


async def _refuse(send: Send, status: int, why: str) -> None:
    response = PlainTextResponse(why, status, {"cache-control": "no-store"})
    await send({"type": "http.response.start", "status": status, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body})
