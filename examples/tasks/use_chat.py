"""An agent behind `useChat`: its turns and tools are one message in the page."""

from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import rxdelta as rd
from rxdelta.asgi import EventStreamResponse
from rxdelta.testing import sample_chunks


async def get_forecast(city: str, **more: object) -> dict[str, object]:
    """The weather of a city."""
    return {"city": city, "celsius": 17}


TOOLS = {"get_forecast": get_forecast}


def ask(messages: list[rd.Message]):
    # in your code: request = rd.to_request(messages, "anthropic-messages", tools=TOOLS)
    #               return client.messages.create(stream=True, **request)
    sample = "weather" if messages[-1].role == "user" else "forecast"
    return sample_chunks(sample, pause=0.02)


async def turns(messages: list[rd.Message]) -> AsyncIterator[rd.Event]:
    for _ in range(5):  # a model may ask for ever
        async with rd.stream(ask(messages), tools=TOOLS) as reply:
            async for event in rd.iterate(reply.events):
                yield event
        messages = [*messages, reply.message]  # with the results of its calls
        if reply.message.finish_reason != "tool_use":
            break


async def chat(request: Request) -> Response:
    try:
        messages = rd.from_ai_sdk((await request.json())["messages"])
    except (rd.InvalidValueError, LookupError, TypeError, ValueError):
        return JSONResponse({"error": "These are no messages of useChat."}, 400)
    return EventStreamResponse(rd.from_async_iterable(turns(messages)), rd.to_ai_sdk())


app = Starlette(routes=[Route("/api/chat", chat, methods=["POST"])])
