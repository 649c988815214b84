"""A chat in the browser: the AI SDK's `useChat` on `/`, a plain page on an `EventSource` on `/plain`.

    pip install 'rxdelta[asgi]' uvicorn && python examples/chat_web/server.py

It plays recorded streams. With ANTHROPIC_API_KEY set (and `pip install anthropic 'rxdelta[tools]'`) it is live. The page of
`/` is built from npm at the first start; where there is no npm, `/` shows the plain page.

The server keeps the messages, in `chats.sqlite`, and the pages show them. A question is kept before its reply begins; a
reply goes on and is kept whoever reads it. So a reload, a second tab and a broken line lose nothing, and after a crash the
pages show what was kept and say that the rest is missing. "Book a room in Lisbon" asks the page for its time zone, and the
person whether to book. Who knows a chat's address may read it: add your own login.

With `--workers 2` two processes serve the pages, each page by any of them. They need nothing more, because the relay is a
file, too: `chats-relay.sqlite`. RELAY=postgresql://host/database or RELAY=valkey://host names another place. When a worker is
killed, a page that read another's reply there goes on reading it elsewhere; a reply of its own ends where it was.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import assistant
import kept
import reactivex as rx
import uvicorn
from reactivex import operators as ops
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import rxdelta as rd
from rxdelta.asgi import EventStreamResponse, RelayResponse
from rxdelta.events import Custom, MessageInterrupted
from rxdelta.relay import Relay

PAGE = Path(__file__).parent / "page"
PUBLIC = PAGE / "public"
LONGEST = 5_000_000  # bytes of a question with its images
RELAY = os.environ.get("RELAY") or f"sqlite:///{quote(kept.PATH.with_name('chats-relay.sqlite').as_posix())}"
LEASE = 5.0  # seconds without a sign of life after which a worker is dead
DRAIN = 1.0  # seconds for which a reply goes on when its worker is stopped; a real site allows minutes

relay: Relay
mine: dict[str, asyncio.Task[None]] = {}  # by stream: what waits for the ends of this worker's replies


@asynccontextmanager
async def running(app: Starlette) -> AsyncIterator[None]:
    global relay
    async with Relay.open(RELAY, lease=LEASE, prefix=f"chat-{kept.NAME}") as relay:
        yield
        await relay.drain(DRAIN, "interrupted: the server was stopped")
        await asyncio.gather(*mine.values())


async def publish(exchange: kept.Exchange, events: AsyncIterator[rd.Event]) -> None:
    """Let a reply come, or go on: here, for readers at any worker. What they may see of it is kept before."""
    broke_off = "interrupted: the model's reply broke off"
    keep = ops.do_action(partial(kept.add, exchange), lambda _: kept.end(exchange, broke_off))
    mine[exchange.stream] = asyncio.create_task(keep_end(exchange))
    mine[exchange.stream].add_done_callback(lambda _: mine.pop(exchange.stream))
    await relay.start(exchange.stream, rd.from_async_iterable(events).pipe(keep))


async def keep_end(exchange: kept.Exchange) -> None:
    """Wait for the end of a reply, which any worker may run, and keep how it ended."""
    try:
        last = await rd.last_value(relay.watch(exchange.stream))
    except rd.RxDeltaError:  # that of a model is kept already; what is left is that its worker has died
        kept.end(exchange, kept.LOST)
    else:
        kept.end(exchange, last.reason or "stopped" if isinstance(last, MessageInterrupted) else kept.DONE)


async def has_begun(stream: str) -> bool:
    """Wait until a stream says something, at whichever worker. `False` if nobody has begun it for a lease."""
    try:
        await rd.last_value(relay.watch(stream).pipe(ops.take(1)))
    except rd.errors.EmptyStreamError:
        return False
    return True


async def coming(chat: str) -> kept.Exchange | None:
    """The reply that is coming, at whichever worker. If that has died, the first who asks says so."""
    last = kept.last(chat)
    if last is None or last.ended is not None:
        return None
    if await relay.is_live(last.stream):
        return last
    if not await has_begun(last.stream):
        kept.end(last, kept.LOST)
    elif await relay.is_live(last.stream):  # it had been kept, and begins only now
        return last
    else:
        await keep_end(last)
    return None


async def post_message(request: Request) -> Response:
    """Keep what the person says, and read the reply. The reply goes on when its reader leaves."""
    chat, body = request.path_params["chat"], bytearray()
    # No page of another origin may send JSON.
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        return PlainTextResponse("a message is JSON", 415)
    async for piece in request.stream():
        body += piece
        if len(body) > LONGEST:
            return PlainTextResponse("the message is too long", 413)
    message = json.loads(body)["message"]
    json.dumps(message, ensure_ascii=False, allow_nan=False).encode()  # raises for half an emoji or a NaN
    if await coming(chat):
        return PlainTextResponse("a reply is still coming", 409)
    if [one.role for one in rd.from_ai_sdk([message])] != ["user"]:
        return await go_on(chat, message)
    exchange = kept.begin(chat, message)
    if exchange is None:
        return PlainTextResponse("a reply is still coming", 409)
    await publish(exchange, assistant.reply(kept.conversation(chat)))
    return read(exchange, rd.to_ai_sdk(message_id=exchange.id))


async def go_on(chat: str, message: Any) -> Response:
    """Answer calls that wait in the last reply. The calls are those that we keep: the page's message only has the answers."""
    last = kept.last(chat)
    said = last.messages() if last is not None else []
    answers = assistant.Answers.to(said[-1].to_message(), message) if said else None
    exchange = kept.go_on(last) if last is not None and answers else None
    if exchange is None:
        return PlainTextResponse("no call waits for this answer", 409)
    await publish(exchange, assistant.reply(kept.conversation(chat), answers))
    return read(exchange, rd.to_ai_sdk(messages=[message]))


async def get_stream(request: Request) -> Response:
    """The reply that is coming: from its start for `useChat`, behind its `Last-Event-ID` for an `EventSource`."""
    exchange = await coming(request.path_params["chat"])
    if exchange is None:
        return Response(status_code=204)
    before = events_of(exchange.messages(before=exchange.run))  # what its stream doesn't say again
    return read(exchange, rx.compose(behind(before), rd.to_ai_sdk(message_id=exchange.id)), live_only=True)


def behind(before: Sequence[rd.Event]) -> Any:
    """An operator: the events `before`, at once, and then the source. `ops.start_with` would leave the moment to a scheduler."""

    def apply(events: rx.Observable[rd.Event]) -> rx.Observable[rd.Event]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            for event in before:
                observer.on_next(event)
            return events.subscribe(observer, scheduler=scheduler)

        return rx.create(subscribe)

    return apply


def read(exchange: kept.Exchange, encode: Any, live_only: bool = False) -> Response:
    return RelayResponse(relay, exchange.stream, encode, live_only=live_only)


def events_of(messages: list[rd.Snapshot]) -> list[rd.Event]:
    return [event for message in messages for event in rd.to_events(message)]


async def get_messages(request: Request) -> Response:
    """A chat's messages. A reply is what its stream said so far, in the same chunks, and how it ended."""
    chat, shown = request.path_params["chat"], list[Any]()
    is_coming = await coming(chat) is not None
    for exchange in kept.exchanges(chat):
        encoder = rd.wire.AiSdkEncoder(message_id=exchange.id)
        chunks = [chunk for event in events_of(exchange.messages()) for chunk in encoder.encode(event)]
        if chunks and exchange.ended:
            chunks += [chunk for chunk in encoder.close() if chunk is not rd.wire.DONE]
        shown += [exchange.question, {"id": exchange.id, "ended": exchange.ended, "chunks": chunks}]
    return JSONResponse({"live": is_coming, "messages": shown})


async def get_changes(request: Request) -> Response:
    """Tells a page when to look at the messages again: at first, and whenever a reply begins or goes on. Its end it reads."""
    told = rd.from_async_iterable(changes(request.path_params["chat"]))
    return EventStreamResponse(told, ops.map(lambda event: event.to_dict()))


async def changes(chat: str) -> AsyncIterator[rd.Event]:
    while True:
        stream = kept.next_stream(chat)
        yield Custom("changed", None)
        while not await has_begun(stream):  # the relay waits for it; nobody asks again and again
            pass


async def post_stop(request: Request) -> Response:
    """Stop the reply, for all who read it."""
    exchange = await coming(request.path_params["chat"])
    return JSONResponse({"stopped": exchange is not None and await relay.cancel(exchange.stream, "stopped")})


async def refuse(request: Request, error: Exception) -> Response:
    """What a browser sent that is no message; or the relay's store is away."""
    return PlainTextResponse(str(error), 503 if isinstance(error, rd.StreamInterrupted) else 400)


async def index(request: Request) -> Response:
    return FileResponse(PUBLIC / ("index.html" if (PUBLIC / "built" / "main.js").exists() else "plain.html"))


async def plain(request: Request) -> Response:
    return FileResponse(PUBLIC / "plain.html")


app = Starlette(
    routes=[
        Route("/", index),
        Route("/plain", plain),
        Route("/api/chat/{chat}", get_messages),
        Route("/api/chat/{chat}", post_message, methods=["POST"]),
        Route("/api/chat/{chat}/stream", get_stream),
        Route("/api/chat/{chat}/stop", post_stop, methods=["POST"]),
        Route("/api/chat/{chat}/changes", get_changes),
        Mount("/page", StaticFiles(directory=PUBLIC)),
    ],
    exception_handlers={rd.RxDeltaError: refuse, ValueError: refuse, KeyError: refuse, TypeError: refuse},
    lifespan=running,
)


def build() -> None:
    """The page that needs npm, once."""
    npm = shutil.which("npm")
    if (PUBLIC / "built" / "main.js").exists():
        return
    if npm is None:
        print("npm is not here, so / shows the plain page")
        return
    print("building the page: npm ci && npm run build")
    subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=PAGE, check=True)
    subprocess.run([npm, "run", "build"], cwd=PAGE, check=True)


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--port", type=int, default=8000)
    arguments.add_argument("--workers", type=int, default=1, help="processes that serve the pages")
    given = arguments.parse_args()
    build()
    print(f"http://127.0.0.1:{given.port}/ and http://127.0.0.1:{given.port}/plain")
    how: Any = {"log_level": "warning", "timeout_graceful_shutdown": 8}
    uvicorn.run("server:app", port=given.port, workers=given.workers, **how)
