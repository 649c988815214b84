"""A reply that goes on through a reload, for `useChat({ resume: true })`."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from uuid import uuid4

from fastapi import FastAPI, Request, Response

import rxdelta as rd
from rxdelta.asgi import RelayResponse
from rxdelta.relay import Relay
from rxdelta.testing import sample_chunks

DATABASE = "chats.sqlite"  # of the application; the relay has tables of its own in it


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    with closing(sqlite3.connect(DATABASE, isolation_level=None)) as app.state.database:
        app.state.database.execute("CREATE TABLE IF NOT EXISTS chats (id PRIMARY KEY, stream)")
        async with Relay.open(f"sqlite:///{DATABASE}") as app.state.relay:
            yield


app = FastAPI(lifespan=lifespan)


def ask(messages: list[rd.Message]):
    # in your code: request = rd.to_request(messages, "anthropic-messages")
    #               return client.messages.create(stream=True, **request)
    return sample_chunks("forecast", pause=0.02)


@app.post("/api/chat")
async def chat(request: Request) -> Response:
    body = await request.json()
    messages = rd.from_ai_sdk(body["messages"])
    chunks = rd.from_async_iterable(lambda: ask(messages))
    events = chunks.pipe(rd.decode("anthropic-messages"))
    stream = str(uuid4())
    app.state.database.execute("REPLACE INTO chats VALUES (?, ?)", [body["id"], stream])
    await app.state.relay.start(stream, events)
    return RelayResponse(app.state.relay, stream, rd.to_ai_sdk())


@app.get("/api/chat/{chat_id}/stream")
async def resume(chat_id: str) -> Response:
    newest = "SELECT stream FROM chats WHERE id = ?"
    found = app.state.database.execute(newest, [chat_id]).fetchone()
    if found is None:
        return Response(status_code=204)
    return RelayResponse(app.state.relay, found[0], rd.to_ai_sdk(), live_only=True)
