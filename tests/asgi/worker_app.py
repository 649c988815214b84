"""An application whose replies go on through a deploy, for servers in processes of their own.

`RELAY` is the relay's URL, `DRAIN` the seconds of `drain`. A reply says as many words as the file `WORDS` has, and ends when
the file says `end`; so the test decides how far it gets, at whichever worker.

    python -m uvicorn asgi.worker_app:app            and so with hypercorn's command
    python -m asgi.worker_app PORT                   `hypercorn.asyncio.serve` with a trigger of the program's own
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import rxdelta as rd
from rxdelta.asgi import EventStreamResponse, RelayResponse, end_streams
from rxdelta.relay import Relay

ev = rd.events
WORDS = Path(os.environ["WORDS"])


async def reply() -> AsyncIterator[rd.Event]:
    said = 0
    yield ev.MessageStart("m")
    yield ev.BlockStart(0, {"type": "text", "text": ""})
    while (told := WORDS.read_text().split()) or True:
        for word in told[said:]:
            if word == "end":
                yield ev.BlockFinish(0)
                yield ev.MessageFinish("stop")
                return
            yield ev.TextDelta(0, f"{word} ")
        said = len(told)
        await asyncio.sleep(0.01)


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    async with Relay.open(os.environ["RELAY"]) as relay:
        app.state.relay = relay
        yield
        left = await relay.drain(float(os.environ["DRAIN"]))
        print("drained", *left, flush=True)


async def start(request: Request) -> Response:
    name = request.path_params["name"]
    return JSONResponse(await request.app.state.relay.start(name, rd.from_async_iterable(reply)))


async def read(request: Request) -> Response:
    return RelayResponse(request.app.state.relay, request.path_params["name"], rd.to_ai_sdk())


async def chat(request: Request) -> Response:
    name = (await request.json())["id"]
    await request.app.state.relay.start(name, rd.from_async_iterable(reply))
    return RelayResponse(request.app.state.relay, name, rd.to_ai_sdk())


async def resume(request: Request) -> Response:
    name = request.path_params["name"]
    return RelayResponse(request.app.state.relay, name, rd.to_ai_sdk(), live_only=True)


async def ready(request: Request) -> Response:
    health = await request.app.state.relay.health()
    return JSONResponse(health.why, 200 if health.ready else 503)


async def direct(request: Request) -> Response:
    return EventStreamResponse(rd.from_async_iterable(reply), rd.to_ai_sdk())


app = Starlette(
    routes=[
        Route("/start/{name}", start, methods=["POST"]),
        Route("/read/{name}", read),
        Route("/api/chat", chat, methods=["POST"]),
        Route("/api/chat/{name}/stream", resume),
        Route("/direct", direct),
        Route("/ready", ready),
    ],
    lifespan=lifespan,
)


async def main(port: int) -> None:
    from hypercorn.asyncio import serve
    from hypercorn.config import Config

    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)

    async def stop() -> None:
        await stopping.wait()
        end_streams()

    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.shutdown_timeout = 120  # of the lifespan, and so of the drain
    await serve(app, config, shutdown_trigger=stop)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
