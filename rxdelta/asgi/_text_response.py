"""A response that streams the text of a reply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from reactivex import operators as ops
from reactivex.subject import AsyncSubject

from rxdelta.aio import to_async_iterable
from rxdelta.asgi._open_response import STOPPING, OpenResponse, break_off, no_pieces, written_for
from rxdelta.core import StreamInterrupted, check_function
from rxdelta.core.events import StreamError
from rxdelta.operators import to_openai_chat
from rxdelta.wire import DONE, SSE_HEADERS, masked

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping

    from reactivex import Observable
    from starlette.background import BackgroundTask
    from starlette.types import Scope, Send

    from rxdelta.aio import ReaderMeter
    from rxdelta.core import Event, Limits
    from rxdelta.wire import Done, Masked, OpenAiChatFrame

__all__ = ["TextResponse"]

_PLAIN: Final = "text/plain; charset=utf-8"
_HEADERS: Final = {**SSE_HEADERS, "content-type": _PLAIN, "x-content-type-options": "nosniff"}
"""A model may write HTML, which no browser should take it for."""


class TextResponse(OpenResponse):
    """The text of a reply as `text/plain`, piece by piece, as a response of Starlette or FastAPI.

    For `useCompletion({ streamProtocol: "text" })`, `useObject`, `TextStreamChatTransport` and every client that reads a
    body as it comes, such as `curl`. The text is what the model answers: its texts and refusals, without reasoning, calls
    and what sub-agents say. A blank line separates the texts of an agent's turns. Of several choices it is the one
    that comes first, or that of `rd.only_choice(n)` in front.

    The pipeline is subscribed when the response is sent, once, and not for a HEAD. What happens when the reader is slow or
    leaves is as for `EventStreamResponse`.

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
        # Who speaks, and when a reply is whole, is as in a chat completion.
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
