"""A chat in the browser: the AI SDK's `useChat` on `/`, a plain page on an `EventSource` on `/plain`.

    pip install 'rxdelta[asgi]' uvicorn && python examples/chat_web/server.py

It plays recorded streams. With ANTHROPIC_API_KEY set (and `pip install anthropic 'rxdelta[tools]'`) it is live. The page of
`/` is built from npm at the first start; where there is no npm, `/` shows the plain page.

The server keeps the messages, in `chats.sqlite`, and the pages show them. A question is kept before its reply begins; a
reply goes on and is kept whoever reads it. So a reload, a second tab and a broken line lose nothing, and after a crash the
pages show what was kept and say that the rest is missing. "Book a room in Lisbon" asks the page for its time zone, and the
person whether to book. Who knows a chat's address may read it: add your own login.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import shutil
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import assistant
import attrs
import kept
import reactivex as rx
import uvicorn
from reactivex import operators as ops
from reactivex.subject import Subject
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


@attrs.frozen
class Coming:
    """A reply that is coming. Its stream says only what comes behind `before`: what it said until its calls were answered."""

    reply: str
    before: Sequence[rd.Event]
    stream: str
    keeping: asyncio.Task[None]


relay: Relay
live: dict[str, Coming] = {}  # by chat
changes: Subject[Custom] = Subject()  # its name is a chat whose messages have changed


@asynccontextmanager
async def running(app: Starlette) -> AsyncIterator[None]:
    global relay
    kept.end_lost()
    async with Relay.open() as relay:
        yield
        for coming in [*live.values()]:
            await relay.cancel(coming.stream, "interrupted: the server was stopped")
            await coming.keeping


async def begin(
    chat: str, reply: str, events: AsyncIterator[rd.Event], before: Sequence[rd.Event] = ()
) -> str:
    """Let a reply come, or go on. Returns its stream."""
    stream = secrets.token_hex(8)
    live[chat] = Coming(reply, before, stream, asyncio.create_task(keep(chat, reply, stream)))
    await relay.start(stream, rd.from_async_iterable(events))
    changes.on_next(Custom(chat, None))
    return stream


async def keep(chat: str, reply: str, stream: str) -> None:
    """Write a reply down as it comes, whether or not a page reads it."""
    ended = kept.DONE
    try:
        async with rd.to_async_iterable(relay.watch(stream), overflow="join") as events:
            async for event in events:
                kept.add(reply, event)
                if isinstance(event, MessageInterrupted):
                    ended = event.reason or "stopped"
    except rd.RxDeltaError:
        ended = "interrupted: the model's reply broke off"
    finally:
        kept.end(reply, ended)
        del live[chat]
        changes.on_next(Custom(chat, None))


async def post_message(request: Request) -> Response:
    """Keep what the person says, and read the reply. The reply goes on when its reader leaves."""
    chat, body = request.path_params["chat"], bytearray()
    if (
        request.headers.get("content-type", "").partition(";")[0] != "application/json"
    ):  # which no page of another origin may send
        return PlainTextResponse("a message is JSON", 415)
    async for piece in request.stream():
        body += piece
        if len(body) > LONGEST:
            return PlainTextResponse("the message is too long", 413)
    message = json.loads(body)["message"]
    json.dumps(message, ensure_ascii=False, allow_nan=False).encode()  # raises for half an emoji or a NaN
    if chat in live:
        return PlainTextResponse("a reply is still coming", 409)
    said = rd.from_ai_sdk([message])
    if [one.role for one in said] != ["user"]:
        return await go_on(chat, message)
    events = assistant.reply([*kept.conversation(chat), *said])
    reply = kept.begin(chat, message)
    return read(await begin(chat, reply, events), rd.to_ai_sdk(message_id=reply))


async def go_on(chat: str, message: Any) -> Response:
    """Answer calls that wait in the last reply. The calls are those that we keep: the page's message only has the answers."""
    last = kept.last(chat)
    said = last.messages() if last is not None else []
    answers = assistant.Answers.to(said[-1].to_message(), message) if said else None
    if last is None or not answers or not kept.go_on(last.id):
        return PlainTextResponse("no call waits for this answer", 409)
    events = assistant.reply(kept.conversation(chat), answers)
    return read(await begin(chat, last.id, events, events_of(said)), rd.to_ai_sdk(messages=[message]))


async def get_stream(request: Request) -> Response:
    """The reply that is coming: from its start for `useChat`, behind its `Last-Event-ID` for an `EventSource`."""
    coming = live.get(request.path_params["chat"])
    if coming is None:
        return Response(status_code=204)
    encode = rx.compose(behind(coming.before), rd.to_ai_sdk(message_id=coming.reply))
    return read(coming.stream, encode, live_only=True)


def behind(before: Sequence[rd.Event]) -> Any:
    """An operator: the events `before`, at once, and then the source. `ops.start_with` would leave the moment to a scheduler."""

    def apply(events: rx.Observable[rd.Event]) -> rx.Observable[rd.Event]:
        def subscribe(observer: Any, scheduler: Any = None) -> Any:
            for event in before:
                observer.on_next(event)
            return events.subscribe(observer, scheduler=scheduler)

        return rx.create(subscribe)

    return apply


def read(stream: str, encode: Any, live_only: bool = False) -> Response:
    return RelayResponse(relay, stream, encode, live_only=live_only, headers=rd.wire.AI_SDK_HEADERS)


def events_of(messages: list[rd.Snapshot]) -> list[rd.Event]:
    return [event for message in messages for event in rd.to_events(message)]


async def get_messages(request: Request) -> Response:
    """A chat's messages. A reply is what its stream said so far, in the same chunks, and how it ended."""
    chat, shown = request.path_params["chat"], list[Any]()
    for exchange in kept.exchanges(chat):
        encoder = rd.wire.AiSdkEncoder(message_id=exchange.id)
        chunks = [chunk for event in events_of(exchange.messages()) for chunk in encoder.encode(event)]
        if chunks and exchange.ended:
            chunks += [chunk for chunk in encoder.close() if chunk is not rd.wire.DONE]
        shown += [exchange.question, {"id": exchange.id, "ended": exchange.ended, "chunks": chunks}]
    return JSONResponse({"live": chat in live, "messages": shown})


async def get_changes(request: Request) -> Response:
    """Tells a page when to look at the messages again: once at first, and whenever they have changed."""
    chat = request.path_params["chat"]
    told = changes.pipe(ops.filter(lambda event: event.name == chat), ops.start_with(Custom(chat, None)))
    return EventStreamResponse(told, ops.map(lambda event: event.to_dict()))


async def post_stop(request: Request) -> Response:
    """Stop the reply, for all who read it."""
    chat = request.path_params["chat"]
    return JSONResponse({"stopped": chat in live and await relay.cancel(live[chat].stream, "stopped")})


async def refuse(request: Request, error: Exception) -> Response:
    """What a browser sent that is no message."""
    return PlainTextResponse(str(error), 400)


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
    port = arguments.parse_args().port
    build()
    print(f"http://127.0.0.1:{port}/ and http://127.0.0.1:{port}/plain")
    uvicorn.run(app, port=port, log_level="warning", timeout_graceful_shutdown=8)
