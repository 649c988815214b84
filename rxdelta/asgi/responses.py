"""The responses: a pipeline's events, the text of a reply, or a relay's stream, which its reader can resume."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Final

from reactivex import Observable, operators as ops
from reactivex.subject import AsyncSubject
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse

from rxdelta.aio import ReaderMeter, to_async_iterable
from rxdelta.asgi.open_response import (
    STOPPING,
    OpenResponse,
    break_off,
    framing_of,
    headers_for,
    next_piece,
    no_pieces,
    written_for,
)
from rxdelta.core import (
    AccessDeniedError,
    EmptyStreamError,
    Event,
    InvalidValueError,
    Limits,
    Seconds,
    StreamInterrupted,
    check_function,
    check_seconds,
)
from rxdelta.core.events import StreamError
from rxdelta.operators import to_openai_chat, to_resumable_sse, until_stopped
from rxdelta.wire import DONE, KEEP_ALIVE, SSE_HEADERS, Done, Masked, OpenAiChatFrame, masked

if TYPE_CHECKING:
    from starlette.background import BackgroundTask
    from starlette.types import Scope, Send

    from rxdelta.relay import Relay


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


_PLAIN: Final = "text/plain; charset=utf-8"
_HEADERS: Final = {**SSE_HEADERS, "content-type": _PLAIN, "x-content-type-options": "nosniff"}
"""A model may write HTML, which no browser should take it for."""


class TextResponse(OpenResponse):
    """The text of a reply as `text/plain`, piece by piece, as a response of Starlette or FastAPI.

    For `useCompletion({ streamProtocol: "text" })`, `useObject`, `TextStreamChatTransport` and every client that reads a
    body as it comes, such as `curl`. The text is what the model answers: its texts and refusals, without reasoning, calls
    and what sub-agents say. A blank line separates the texts of an agent's turns. If there are several choices, the
    first that comes counts, or that of `rd.only_choice(n)` in front.

    The pipeline is subscribed when the response is sent, once, and not for a HEAD. Slow readers, and readers that
    leave, are treated as by `EventStreamResponse`.

    A plain text has no place for an error. So the status waits for the first piece, and a reply that ends well without
    any is an empty body:

    | the reply | before the first piece | later |
    | --- | --- | --- |
    | fails, or ends before its message does | status 500, the text of `on_error` | broken off |
    | is interrupted, also because the server stops | status 503, the reason | broken off |
    | takes back what the reader has, as another attempt does | | broken off |

    A text that is broken off is an error for its reader, who has what came before. For this the response raises a
    `StreamInterrupted` into the server, which closes the connection; it has the same text that the reader of a status would
    get, and nothing else of the error. The background task doesn't run then.

    A reader that speaks HTTP/1.0, as nginx does by default, can't tell a text that is broken off from a whole one. So it
    gets the whole text at the end, in one piece.

    A message that has ended is whole for this response, whatever the reason: also one that was cut at its limit of tokens.

    Args:
        events: The events of the reply, such as `…pipe(rd.decode(…))`, or `reply.events` of `rd.stream`.
        on_error: The text of an error for the reader; by default a fixed text, and the error is logged.
        headers: More headers of the response. `content-type`, `cache-control` and what keeps proxies from
            holding pieces back are there already.
        status_code, background: As for Starlette's responses.
        limits: Bounds on what the pipeline may hold in memory; see `rd.with_limits`.
        meter: Measures the events that wait for the reader, see `rd.ReaderMeter`.

    Raises:
        InvalidValueError: At once, if `events` is no Observable, or comes out of an operator that emits something else, such
            as `rd.text_deltas()`; if `on_error` is no function, or `meter` no meter.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from rxdelta.asgi import TextResponse
        >>> hello = rd.Message.of("assistant", "Hi")
        >>> async def endpoint(request):
        ...     return TextResponse(rx.from_iterable(rd.to_events(hello)))
        >>> async def send(message):
        ...     print(message.get("status") or message["body"])
        >>> async def main():
        ...     response = await endpoint(None)
        ...     await response({"type": "http"}, asyncio.Event().wait, send)
        >>> asyncio.run(main())
        200
        b'Hi'
        b''
    """

    def __init__(
        self,
        events: Observable[Event],
        *,
        on_error: Masked = masked,
        headers: Mapping[str, str] | None = None,
        status_code: int = 200,
        background: BackgroundTask | None = None,
        limits: Limits | None = None,
        meter: ReaderMeter | None = None,
    ) -> None:
        check_function("on_error", on_error, "a function of an error")
        # The rules of a chat completion decide which agent's text counts, and when a reply is whole.
        encode = to_openai_chat(reasoning=False, include_usage=False, on_error=on_error)

        def encode_one(events: Observable[Event]) -> Observable[OpenAiChatFrame | Done]:
            return events.pipe(ops.filter(_of_one_choice()), encode)

        self._stopped = AsyncSubject[str]()
        frames = written_for(
            "TextResponse", events, encode_one, stopped=self._stopped, limits=limits, meter=meter
        )
        self._limits = limits
        self._failure: tuple[int, str] | None = None  # the status, and the text for the reader
        own = {name.lower(): value for name, value in (headers or {}).items()}
        super().__init__(self._pieces(frames), status_code, {**_HEADERS, **own}, None, background)

    def _stop(self) -> None:
        self._stopped.on_next(STOPPING)
        self._stopped.on_completed()

    async def _respond(self, scope: Scope, send: Send) -> None:
        pieces: Any = self.body_iterator
        try:
            if scope.get("method") == "HEAD":
                self.body_iterator = no_pieces()
            else:
                self.body_iterator = await self._begun(pieces, at_once=scope.get("http_version") != "1.0")
            await self.stream_response(send)
        except StreamInterrupted:
            await break_off(send)
            raise
        finally:
            for opened in (self.body_iterator, pieces):
                close: Any = getattr(opened, "aclose", None)  # absent if a middleware has wrapped it
                if close is not None:
                    await close()

    async def _begun(self, pieces: AsyncIterator[bytes], *, at_once: bool) -> AsyncIterator[bytes]:
        """The body, when it is known whether there is one: after the first piece, or after all."""
        read: list[bytes] = []
        try:
            async for piece in pieces:
                read.append(piece)
                if at_once:
                    break
        except StreamInterrupted:
            if self._failure is None:
                raise
            self.status_code, shown = self._failure
            self.headers["content-type"] = _PLAIN
            read = [shown.encode()]
        if not at_once:
            self.headers["content-length"] = str(sum(map(len, read)))
        return _chained(read, pieces)

    async def _pieces(self, frames: Observable[OpenAiChatFrame | Done]) -> AsyncGenerator[bytes]:
        async with to_async_iterable(frames, "block", maxsize=1, limits=self._limits) as written:
            async for frame in written:
                if frame is DONE:
                    return
                error, text = _read(frame)
                if error is not None:
                    self._failure = error
                    raise StreamInterrupted(f"the text was broken off: {error[1]}")
                if text:
                    yield text.encode()


def _read(frame: Any) -> tuple[tuple[int, str] | None, str]:
    """The error that a frame of a chat completion tells, with its status, and the text."""
    if "error" in frame:
        error = frame["error"]
        return (503 if error["type"] == "interrupted" else 500, error["message"]), ""
    deltas = [choice["delta"] for choice in frame["choices"]]
    return None, "".join(delta.get("content") or delta.get("refusal") or "" for delta in deltas)


def _of_one_choice() -> Callable[[Event], bool]:
    """Whether an event is of the choice that comes first, or of all."""
    first: int | None = None

    def is_of_it(event: Event) -> bool:
        nonlocal first
        choice: int | None = getattr(event, "choice", None)
        if first is None:
            first = choice
        return choice in (None, first) or isinstance(event, StreamError)

    return is_of_it


async def _chained(read: list[bytes], rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    for piece in read:
        yield piece
    async for piece in rest:
        yield piece


_FROM_THE_REQUEST = ("after", "split_at", "stream_id")
_log = logging.getLogger("rxdelta")
_COMMENT = KEEP_ALIVE.removesuffix(b"\n")
"""Without an empty line, which OpenAI's client for Python takes for an event once it has read an `id:`."""


class RelayResponse(OpenResponse):
    """A stream of a relay in a front end's protocol, from the start or behind the reader's `Last-Event-ID`.

    The response only reads: `relay.start(…)` makes the reply, which continues when the reader leaves, and
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
    on. For any other reader it depends on the relay. With a store the stream may continue, so the body is broken off: the
    reader gets an error of the network, and can ask again at another worker; uvicorn logs that the response wasn't
    completed. In memory the stream ends with the process, so the reader gets the end of an interrupted message, as by
    `EventStreamResponse`.

    Args:
        relay: The relay, which the application opens once.
        stream_id: The stream's name, as given to `relay.start`.
        encode: The protocol: `rd.to_ai_sdk()`, `rd.to_ag_ui(…)` or `rd.to_langchain_events()`, or any operator that
            turns events into frames for `to_sse()`.
        after: The id behind which to continue, instead of the request's `Last-Event-ID`.
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
        self._is_cut = False  # by the server's stop, while the stream continues

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
        # From the start: an encoder can't begin in the middle, so its frames for what the reader has are dropped.
        entries = self._relay.entries(self._stream_id, split_at=after)
        is_live = await self._relay.is_live(self._stream_id)
        if self._live_only and after is None and not is_live:
            return 204
        returns = scope.get("method") == "GET" and "text/event-stream" in headers.get("accept", "")
        pieces = await stack.enter_async_context(
            to_async_iterable(entries.pipe(*self._written(after, returns)), "block", maxsize=1)
        )
        read: list[bytes] = []
        # Answered before the model's first word: no entry can change this status.
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
