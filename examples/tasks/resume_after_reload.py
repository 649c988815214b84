"""A reply that goes on through a reload, for `useChat({ resume: true })`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from fastapi import FastAPI, Request, Response

import rxdelta as rd
from rxdelta.asgi import RelayResponse
from rxdelta.relay import Relay
from rxdelta.testing import sample_chunks

streams: dict[str, str] = {}  # of each chat the newest: a column of your table


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with Relay.open() as app.state.relay:
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
    stream = streams[body["id"]] = str(uuid4())
    await app.state.relay.start(stream, events)
    return RelayResponse(app.state.relay, stream, rd.to_ai_sdk())


@app.get("/api/chat/{chat_id}/stream")
async def resume(chat_id: str) -> Response:
    if chat_id not in streams:
        return Response(status_code=204)
    stream = streams[chat_id]
    return RelayResponse(app.state.relay, stream, rd.to_ai_sdk(), live_only=True)
