"""A chat in the browser: the AI SDK's `useChat` on `/`, a plain page on an `EventSource` on `/plain`.

    pip install 'rxdelta[asgi]' uvicorn && python examples/chat_web/server.py

It plays recorded streams. With ANTHROPIC_API_KEY set (and `pip install anthropic`) it is live. The page of `/` is built
from npm at the first start; where there is no npm, `/` shows the plain page.

The server keeps the messages, in `chats.sqlite`, and the pages show them. A question is kept before its reply begins; a
reply goes on and is kept whoever reads it. So a reload, a second tab and a broken line lose nothing, and after a crash the
pages show what was kept and say that the rest is missing. Who knows a chat's address may read it: add your own login.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import assistant
import kept
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

relay: Relay
live: dict[
    str, tuple[str, asyncio.Task[None]]
] = {}  # by chat: the id of the reply that is coming, and its keeper
changes: Subject[Custom] = Subject()  # its name is a chat whose messages have changed


@asynccontextmanager
async def running(app: Starlette) -> AsyncIterator[None]:
    global relay
    kept.end_lost()
    async with Relay.open() as relay:
        yield
        for reply, keeping in [*live.values()]:
            await relay.cancel(reply, "interrupted: the server was stopped")
            await keeping


async def keep(chat: str, reply: str) -> None:
    """Write a reply down as it comes, whether or not a page reads it."""
    ended = kept.DONE
    try:
        async with rd.to_async_iterable(relay.watch(reply), overflow="join") as events:
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


async def post_question(request: Request) -> Response:
    """Keep the question, begin the reply, and read it. The reply goes on when its reader leaves."""
    chat, body = request.path_params["chat"], await request.body()
    if len(body) > LONGEST:
        return PlainTextResponse("the question is too long", 413)
    question = json.loads(body)["message"]
    json.dumps(question, ensure_ascii=False, allow_nan=False).encode()  # raises for half an emoji or a NaN
    asked = rd.from_ai_sdk([question])
    if [message.role for message in asked] != ["user"]:
        return PlainTextResponse("a question is a message of the user", 400)
    if chat in live:
        return PlainTextResponse("a reply is still coming", 409)
    events = rd.from_async_iterable(assistant.reply([*kept.conversation(chat), *asked]))
    reply = kept.begin(chat, question)
    live[chat] = reply, asyncio.create_task(keep(chat, reply))
    await relay.start(reply, events)
    changes.on_next(Custom(chat, None))
    return read(reply)


async def get_stream(request: Request) -> Response:
    """The reply that is coming: from its start for `useChat`, behind its `Last-Event-ID` for an `EventSource`."""
    chat = request.path_params["chat"]
    return read(live[chat][0]) if chat in live else Response(status_code=204)


def read(reply: str) -> Response:
    encode = rd.to_ai_sdk(message_id=reply)
    return RelayResponse(relay, reply, encode, live_only=True, headers=rd.wire.AI_SDK_HEADERS)


async def get_messages(request: Request) -> Response:
    """A chat's messages. A reply is what its stream said so far, in the same chunks, and how it ended."""
    chat, shown = request.path_params["chat"], list[Any]()
    for exchange in kept.exchanges(chat):
        encoder = rd.wire.AiSdkEncoder(message_id=exchange.id)
        events = [event for message in exchange.messages() for event in rd.to_events(message)]
        chunks = [chunk for event in events for chunk in encoder.encode(event)]
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
    return JSONResponse({"stopped": chat in live and await relay.cancel(live[chat][0], "stopped")})


async def refuse(request: Request, error: Exception) -> Response:
    """What a browser sent that is no question."""
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
        Route("/api/chat/{chat}", post_question, methods=["POST"]),
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
    uvicorn.run(app, port=port, log_level="warning")
