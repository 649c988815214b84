"""Questions and a stop button over one websocket; the reply comes as events."""

import asyncio
import logging

from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

import rxdelta as rd
from rxdelta.testing import sample_chunks

log = logging.getLogger(__name__)


def ask(question: str):
    # in your code: request = rd.to_request([question], "anthropic-messages")
    #               return client.messages.create(stream=True, **request)
    return sample_chunks("forecast", pause=0.02)


async def answer(socket: WebSocket, question: str, stop: asyncio.Event) -> None:
    chunks = rd.from_async_iterable(lambda: ask(question))
    events = chunks.pipe(rd.decode("anthropic-messages"), rd.until_stopped(stop))

    async def send(event: rd.Event) -> None:
        await socket.send_json(event.to_dict())

    try:
        await rd.for_each(events, send, overflow="join")  # waiting deltas become one
    except WebSocketDisconnect:
        pass
    except Exception:
        log.exception("the reply failed")
        await socket.send_json({"event": "failed"})  # the page learns no more


async def chat(socket: WebSocket) -> None:
    await socket.accept()
    running, stop = None, asyncio.Event()
    async for said in socket.iter_json():  # it ends when the page leaves
        stop.set()
        if running is not None:
            await running
        if "question" in said:
            stop = asyncio.Event()
            running = asyncio.create_task(answer(socket, said["question"], stop))
    if running is not None:
        running.cancel()


app = Starlette(routes=[WebSocketRoute("/chat", chat)])
