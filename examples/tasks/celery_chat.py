"""A worker asks the model, and the web shows the reply, by a relay on Valkey."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from celery import Celery
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import rxdelta as rd
from rxdelta.asgi import RelayResponse
from rxdelta.relay import Relay
from rxdelta.testing import sample_chunks

SERVER = os.environ.get("VALKEY", "redis://127.0.0.1:6379")
app = Celery("chat", broker=SERVER)


def open_relay():
    return Relay.open(SERVER, lease=30)  # who reads waits so long for a worker to begin


def ask(question: str):
    # in your code: request = rd.to_request([question], "anthropic-messages")
    #               return client.messages.create(stream=True, **request)
    return sample_chunks("forecast", pause=0.02)


async def publish(stream_id: str, question: str) -> None:
    chunks = rd.from_async_iterable(lambda: ask(question))
    events = chunks.pipe(rd.decode("anthropic-messages"))
    async with open_relay() as relay:
        await rd.for_each(events.pipe(relay.publish(stream_id)), lambda event: None)


@app.task
def answer(stream_id: str, question: str) -> None:
    asyncio.run(publish(stream_id, question))


async def begin(request: Request) -> Response:
    stream_id = str(uuid4())
    answer.delay(stream_id, (await request.json())["question"])
    return JSONResponse({"stream": stream_id}, 202)


async def read(request: Request) -> Response:  # in your code: check whose stream it is
    relay, stream_id = request.app.state.relay, request.path_params["id"]
    return RelayResponse(relay, stream_id, rd.to_ai_sdk())


@asynccontextmanager
async def lifespan(web: Starlette) -> AsyncIterator[None]:
    async with open_relay() as web.state.relay:
        yield


routes = [Route("/replies", begin, methods=["POST"]), Route("/replies/{id}", read)]
web = Starlette(routes=routes, lifespan=lifespan)
