"""The example's server, with a model that says what a test wants, when the test wants it. A program: `scripted.py PORT`.

POST /test/script  {"messages": [[chunk, …], …]}: what the model says from now on, one list for each of its messages
POST /test/tell    {"chunks": 3}: let the model say so much more, or without an end (`null`); answers when it has
GET /test          {"requests_open": …, "returned": the Last-Event-IDs that were sent, "asked": what the model was asked last,
                    "booked": the rooms that were}
"""

from __future__ import annotations

import asyncio
import fcntl
import math
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "chat_web"))

import assistant  # type: ignore[import-not-found]
import server  # type: ignore[import-not-found]
import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import rxdelta as rd

scripts: list[list[Any]] = []
returned: list[str] = []
asked: list[Any] = []
allowed: float = 0
told = asyncio.Condition()


async def ask(conversation: Any) -> AsyncIterator[Any]:
    global allowed
    asked[:] = rd.to_request(conversation, "anthropic-messages")["messages"]
    assistant.open_requests += 1
    try:
        for chunk in scripts.pop(0):
            async with told:
                while not allowed:
                    await told.wait()
                allowed -= 1
                told.notify_all()
            yield chunk
    finally:
        assistant.open_requests -= 1


async def book_room(city: str, nights: int) -> Any:
    assistant.booked.append(city)
    if city == "Atlantis":  # the hotel never answers
        await asyncio.Event().wait()
    return {"city": city, "nights": nights, "confirmation": "R-1"}


async def script(request: Request) -> JSONResponse:
    global allowed
    allowed = 0
    scripts[:] = (await request.json())["messages"]
    return JSONResponse({})


async def tell(request: Request) -> JSONResponse:
    global allowed
    chunks = (await request.json())["chunks"]
    async with told:
        allowed = math.inf if chunks is None else allowed + chunks
        told.notify_all()
        if chunks is not None:
            await told.wait_for(lambda: allowed == 0)
    return JSONResponse({})


async def state(request: Request) -> JSONResponse:
    known = {"requests_open": assistant.open_requests, "returned": returned}
    return JSONResponse(known | {"asked": asked, "booked": assistant.booked})


class Watched:
    """The application; what an `EventSource` sends when it comes back is written down."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            returned.extend(value.decode() for name, value in scope["headers"] if name == b"last-event-id")
        await server.app(scope, receive, send)


if __name__ == "__main__":
    assistant.ask, assistant.PACE = ask, 0
    assistant.ASKED["book_room"] = book_room
    server.app.router.routes += [
        Route("/test/script", script, methods=["POST"]),
        Route("/test/tell", tell, methods=["POST"]),
        Route("/test", state),
    ]
    with (Path(tempfile.gettempdir()) / "rxdelta-chat-page.lock").open(
        "w"
    ) as lock:  # another worker may build it
        fcntl.flock(lock, fcntl.LOCK_EX)
        server.build()
    uvicorn.run(Watched(), port=int(sys.argv[1]), log_level="warning", timeout_graceful_shutdown=8)
