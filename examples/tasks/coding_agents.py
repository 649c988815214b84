"""Codex and Claude Code ask this server, and any model answers."""

from reactivex import operators as ops
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import rxdelta as rd
from rxdelta.asgi import EventStreamResponse
from rxdelta.testing import sample_chunks


def ask(messages: list[rd.Message], tools: list[rd.ToolDefinition]):
    # in your code: request = rd.to_request(messages, "anthropic-messages", tools=tools)
    #               return client.messages.create(stream=True, **request)
    return sample_chunks("forecast", pause=0.02)


async def respond(request: Request, write, whole, messages, tools) -> Response:
    chunks = rd.from_async_iterable(lambda: ask(messages, tools))
    events = chunks.pipe(rd.decode("anthropic-messages"))
    if (await request.json()).get("stream"):
        return EventStreamResponse(events, write)
    body = whole(await events.pipe(write, ops.to_list()))
    return JSONResponse(body, 500 if body.get("error") else 200)


async def codex(request: Request) -> Response:
    body = await request.json()
    messages = rd.requests.from_openai_responses(body, system=True)
    custom = rd.requests.custom_tools_from_openai_responses(body)
    write = rd.to_openai_responses(body.get("model"), tools=(), custom=custom)
    tools = rd.requests.tools_from_openai_responses(body)
    return await respond(request, write, rd.wire.openai_response, messages, tools)


async def claude_code(request: Request) -> Response:
    body = await request.json()
    messages = rd.requests.from_anthropic_messages(body, system=True)
    write = rd.to_anthropic_messages(body.get("model"), tools=())
    tools = rd.requests.tools_from_anthropic_messages(body)
    return await respond(request, write, rd.wire.anthropic_message, messages, tools)


async def refuse(request: Request, error: Exception) -> Response:
    refusal = {"type": "invalid_request_error", "message": str(error)}
    return JSONResponse({"error": refusal}, 400)


app = Starlette(
    routes=[
        Route("/v1/responses", codex, methods=["POST"]),
        Route("/v1/messages", claude_code, methods=["POST"]),
    ],
    exception_handlers={rd.InvalidValueError: refuse},
)
