import asyncio

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

import rxdelta as rd
from rxdelta.asgi import EventStreamResponse
from rxdelta.testing import sample_chunks


async def chat(request: Request) -> EventStreamResponse:
    conversation = rd.from_ai_sdk((await request.json())["messages"])
    print("asked:", conversation[-1].text)
    chunks = rd.from_async_iterable(lambda: sample_chunks("forecast"))
    return EventStreamResponse(chunks.pipe(rd.decode("auto")), rd.to_ai_sdk())


app = Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])  # uvicorn serves it
if __name__ == "__main__":
    browser = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")
    message = {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Lisbon or Oslo?"}]}
    print(asyncio.run(browser.post("/api/chat", json={"messages": [message]})).text)
