"""A chat in the browser: the AI SDK's `useChat` on `/`, a plain page on an `EventSource` on `/plain`.

    pip install 'rxdelta[asgi]' uvicorn && python examples/chat_web/server.py

It plays recorded streams. With ANTHROPIC_API_KEY set (and `pip install anthropic`) it is live. The page of `/` is built
from npm at the first start; where there is no npm, `/` shows the plain page.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

import rxdelta as rd
from rxdelta.asgi import EventStreamResponse
from rxdelta.testing import sample_chunks

PAGE = Path(__file__).parent / "page"
PACE = float(os.environ.get("PACE", "0.03"))  # seconds between two recorded chunks
FORECASTS = {"Lisbon": (17, "dry"), "Oslo": (-4, "snow, 10 cm")}
TOOL = {
    "name": "get_forecast",
    "description": "The weather of a city on some days.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "string"}}},
        "required": ["city"],
    },
}
KEPT = 1_000_000  # bytes of a chat; it's an example, and a browser may send anything
requests_open = 0  # to the provider: it falls when a reader stops, or leaves
kept: dict[str, bytes] = {}  # the messages of each chat, as the page has sent them


async def get_forecast(city: str, days: list[str] | None = None, **more: Any) -> AsyncIterator[Any]:
    yield rd.ToolProgress(display_text=f"Looking up {city}")
    await asyncio.sleep(10 * PACE)
    degrees, sky = FORECASTS.get(city, (21, "sunny"))
    yield {"city": city, "days": days, "celsius": degrees, "sky": sky}


async def ask(conversation: list[rd.Message]) -> AsyncIterator[Any]:
    """The chunks of the model's next reply."""
    global requests_open
    requests_open += 1
    try:
        if "ANTHROPIC_API_KEY" in os.environ:
            from anthropic import AsyncAnthropic

            request: dict[str, Any] = rd.to_request(conversation, "anthropic-messages") | {"tools": [TOOL]}
            model = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5")
            client = AsyncAnthropic()
            async with await client.messages.create(
                model=model, max_tokens=2000, stream=True, **request
            ) as chunks:
                async for chunk in chunks:
                    yield chunk
        else:
            answered = any(message.tool_calls for message in conversation)
            async for chunk in sample_chunks("forecast" if answered else "weather", pause=PACE):
                yield chunk
    finally:
        requests_open -= 1


async def reply(conversation: list[rd.Message]) -> AsyncIterator[rd.Event]:
    """The events of the model's turns: while it asks for tools, they run, and it gets their results."""
    for _ in range(5):
        turn = rd.Fold()
        events = rd.from_async_iterable(ask(conversation)).pipe(
            rd.decode("anthropic-messages"), rd.run_tools({"get_forecast": get_forecast}, timeout=30)
        )
        async with rd.to_async_iterable(events, overflow="block") as told:
            async for event in told:
                turn.step(event)
                yield event
        conversation = [*conversation, turn.snapshot.to_message()]
        if turn.snapshot.finish_reason != "tool_use":
            return


def stream(conversation: list[rd.Message]) -> Response:
    events = rd.from_async_iterable(reply(conversation))
    return EventStreamResponse(events, rd.to_ai_sdk(), headers=rd.wire.AI_SDK_HEADERS)


async def chat(request: Request) -> Response:
    said = rd.from_ai_sdk((await request.json())["messages"])
    return stream(said[-1:] if "ANTHROPIC_API_KEY" not in os.environ else said)


async def plain_chat(request: Request) -> Response:
    question = rd.ContentPart("text", request.query_params.get("question", ""))
    return stream([rd.Message(role="user", blocks=[question])])


async def messages(request: Request) -> Response:
    name = request.path_params["chat"]
    if request.method == "PUT":
        kept[name] = (await request.body())[:KEPT]
    return Response(kept.get(name, b"[]"), media_type="application/json")


async def refuse(request: Request, error: Exception) -> Response:
    """What a browser sent that is no conversation."""
    return JSONResponse({"error": str(error)}, status_code=400)


async def status(request: Request) -> Response:
    return JSONResponse({"requests_open": requests_open})


async def index(request: Request) -> Response:
    return FileResponse(PAGE / ("index.html" if (PAGE / "built" / "main.js").exists() else "plain.html"))


async def plain(request: Request) -> Response:
    return FileResponse(PAGE / "plain.html")


app = Starlette(
    routes=[
        Route("/", index),
        Route("/plain", plain),
        Route("/plain/stream", plain_chat),
        Route("/api/chat/{chat}", chat, methods=["POST"]),
        Route("/api/chat/{chat}/messages", messages, methods=["GET", "PUT"]),
        Route("/status", status),
        Mount("/page", StaticFiles(directory=PAGE)),
    ],
    exception_handlers={rd.RxDeltaError: refuse, ValueError: refuse, KeyError: refuse},
)


def build() -> None:
    """The page that needs npm, once."""
    npm = shutil.which("npm")
    if (PAGE / "built" / "main.js").exists():
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
