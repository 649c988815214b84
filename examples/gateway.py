"""A gateway: the clients of OpenAI, Anthropic and Ollama ask one model, whatever provider it comes from.

    pip install 'rxdelta[asgi]' uvicorn && python examples/gateway.py

| path | read by |
| --- | --- |
| `/v1/responses` | Codex, the Agents SDK, `openai()` of the AI SDK |
| `/v1/chat/completions` | every client of a chat completion: Open WebUI, LibreChat, … |
| `/v1/messages` | Claude Code, Anthropic's packages |
| `/api/chat` | front ends of local models, Ollama's packages |
| `/` | a person: what has come by, what it cost |

It plays recorded replies. With ANTHROPIC_API_KEY (and `pip install anthropic`) or OPENAI_API_KEY (and `pip install openai`) it
is live; MODEL names the model for all. With `pip install genai-prices` it knows what a reply costs. The tools are the clients' own: the model hears of
them, and the client runs the calls. What only one provider knows, such as an effort, a choice of tools or its own models, is passed
on to that provider alone. For a model of another, a gateway of yours may translate more: `wanted` is the place.

A key in a reply's text is hidden. With REFUSED, a regular expression, the reply ends in front of a sentence in which it is found. The server
listens on 127.0.0.1, and serves whoever can reach it there: GATEWAY_KEY names a key that clients must show. It answers to no other
name, which a page of the web could give to this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import hmac
import html
import json
import logging
import os
import re
import sys
import time
import urllib.request
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, TypeAlias

import attrs
import uvicorn
from reactivex import Observable
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

import rxdelta as rd
from rxdelta.asgi import EventStreamResponse
from rxdelta.testing import sample_chunks

Body: TypeAlias = dict[str, Any]

ANTHROPIC = "ANTHROPIC_API_KEY" in os.environ
OPENAI = "OPENAI_API_KEY" in os.environ and not ANTHROPIC
WIRE_FORMAT = "openai-responses" if OPENAI else "anthropic-messages"  # of the provider behind
MODEL = os.environ.get("MODEL", "gpt-5-mini" if OPENAI else "claude-sonnet-4-5")
KEY = os.environ.get("GATEWAY_KEY")
REFUSED = os.environ.get("REFUSED")
LONGEST = 32_000_000  # bytes of a request, with its images
FAILED = "The provider of this model failed."

log = logging.getLogger("gateway")


# The provider behind.


@attrs.frozen
class Asked:
    """What a client wants."""

    messages: list[rd.Message]
    tools: list[Any]  # definitions, or the provider's own form
    request: Body  # the same for the provider


async def ask(asked: Asked) -> AsyncIterator[Any]:
    """The chunks of the model's reply."""
    request: Any = asked.request
    if OPENAI:
        from openai import AsyncOpenAI

        async with await AsyncOpenAI().responses.create(stream=True, store=False, **request) as chunks:
            async for chunk in chunks:
                yield chunk
    elif ANTHROPIC:
        from anthropic import AsyncAnthropic

        async with await AsyncAnthropic().messages.create(stream=True, **request) as chunks:
            async for chunk in chunks:
                yield chunk
    else:  # a recorded model, which asks for the weather if it may
        names = [tool.get("name") if isinstance(tool, dict) else tool.name for tool in asked.tools]
        asks = "get_forecast" in names and asked.messages[-1].role == "user"
        async for chunk in sample_chunks("weather" if asks else "forecast", pause=0.01):
            yield chunk


KEPT = {
    "anthropic-messages": ("thinking", "output_config", "tool_choice", "stop_sequences"),
    "openai-responses": ("reasoning", "include", "text", "tool_choice", "temperature", "top_p", "prompt_cache_key"),
}  # fmt: skip
"""What a client's request may say in the provider's own words, where both speak the same."""


def wanted(protocol: Protocol, body: Body) -> Asked:
    """Read a request.

    Raises:
        RxDeltaError: It makes no sense, refers to what only the provider's own server would know, or has what the
            provider doesn't take.
    """
    messages = protocol.read(body)
    if not messages:
        raise Refusal(400, "There must be a message.")
    tools: list[Any] = protocol.tools(body)
    fields: Body = {"model": MODEL}
    if protocol.name == WIRE_FORMAT:  # the provider knows its own tools, too
        tools = body.get("tools") or tools
        kept = KEPT[WIRE_FORMAT] if "MODEL" in os.environ else ("model", *KEPT[WIRE_FORMAT])
        fields |= {name: body[name] for name in kept if body.get(name) is not None}
    elif body.get("tool_choice") in ("none", {"type": "none"}):
        tools = []
    options: Any = body.get("options") or {}  # Ollama's
    limits = [body.get(name) for name in ("max_tokens", "max_output_tokens", "max_completion_tokens")]
    limits += [options.get("num_predict") if isinstance(options, dict) else None]
    limit = next((one for one in limits if type(one) is int and one > 0), None)
    if OPENAI and limit is not None:
        fields["max_output_tokens"] = limit
    elif not OPENAI:
        fields["max_tokens"] = limit or 8192
    return Asked(messages, tools, rd.to_request(messages, WIRE_FORMAT, tools=tools) | fields)


# The clients' protocols.


def openai_error(message: str, kind: str) -> Body:
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def anthropic_error(message: str, kind: str) -> Body:
    return {"type": "error", "error": {"type": kind, "message": message}}


def ollama_error(message: str, kind: str) -> Body:
    return {"error": message}


def write_response(body: Body) -> Any:
    """Some tools take a text, such as Codex' `apply_patch`, and not an object."""
    custom = rd.requests.custom_tools_from_openai_responses(body)
    return rd.to_openai_responses(body.get("model"), tools=(), custom=custom)


def write_completion(body: Body) -> Any:
    options: Any = body.get("stream_options")
    usage = not body.get("stream") or (isinstance(options, dict) and options.get("include_usage") is True)
    return rd.to_openai_chat(body.get("model"), tools=(), include_usage=usage)


def write_message(body: Body) -> Any:
    return rd.to_anthropic_messages(body.get("model"), tools=())


def write_lines(body: Body) -> Any:
    return rd.to_ollama(body.get("model"), tools=())


def read_completion(body: Body) -> list[rd.Message]:
    messages: Any = body.get("messages")
    return rd.requests.from_openai_chat(messages, system=True)


def read_lines(body: Body) -> list[rd.Message]:
    messages: Any = body.get("messages")
    return rd.requests.from_ollama(messages, system=True)


@attrs.frozen
class Protocol:
    """What differs between the protocols. The instructions are a program's, so they are read: `system=True`."""

    name: str
    read: Callable[[Body], list[rd.Message]]
    tools: Callable[[Body], list[rd.ToolDefinition]]
    write: Callable[[Body], Any]
    whole: Callable[[Any], Body]  # without `stream`: the frames as one body
    error: Callable[[str, str], Body]
    streams: bool = False  # where a request doesn't say


RESPONSES = Protocol(
    "openai-responses",
    partial(rd.requests.from_openai_responses, system=True),
    rd.requests.tools_from_openai_responses,
    write_response,
    rd.wire.openai_response,
    openai_error,
)
CHAT = Protocol(
    "openai-chat",
    read_completion,
    rd.requests.tools_from_openai_chat,
    write_completion,
    rd.wire.openai_chat_completion,
    openai_error,
)
MESSAGES = Protocol(
    "anthropic-messages",
    partial(rd.requests.from_anthropic_messages, system=True),
    rd.requests.tools_from_anthropic_messages,
    write_message,
    rd.wire.anthropic_message,
    anthropic_error,
)
OLLAMA = Protocol(
    "ollama",
    read_lines,
    rd.requests.tools_from_openai_chat,
    write_lines,
    rd.wire.ollama_chat,
    ollama_error,
    streams=True,
)

KINDS = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 413: "request_too_large", 429: "rate_limit_error"}  # fmt: skip


class Refusal(Exception):
    """Ends a request with this status and this text."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def failure(error: Exception) -> Refusal:
    """What a client may know of the provider's error. The log has the rest.

    The statuses are those after which clients ask again, and those after which they don't.
    """
    log.error("the provider failed", exc_info=error)
    status = getattr(error, "status_code", None)
    if status in (400, 413, 422):
        return Refusal(400, "The provider of this model refused the request.")
    if rd.errors.is_transient(error):
        return Refusal(429 if status == 429 else 503, f"{FAILED} Try again later.")
    return Refusal(500, FAILED)


# A request.


async def body_of(request: Request) -> Body:
    given = request.headers.get("x-api-key") or request.headers.get("authorization", "").removeprefix(
        "Bearer "
    )
    if KEY is not None and not hmac.compare_digest(given.encode(), KEY.encode()):
        raise Refusal(401, "The key is wrong.")
    if "origin" in request.headers:  # a page of any site may post to 127.0.0.1, and would spend our money
        raise Refusal(403, "Pages can't ask here.")
    raw = bytearray()
    async for piece in request.stream():
        raw += piece
        if len(raw) > LONGEST:
            raise Refusal(413, "The request is too long.")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refusal(400, "The body must be a JSON object.")
    return body


async def answer(protocol: Protocol, request: Request) -> Response:
    try:
        body = await body_of(request)
        try:
            asked, encode = wanted(protocol, body), protocol.write(body)
        except rd.RxDeltaError as error:
            raise Refusal(400, str(error)) from None
        streams = body.get("stream", protocol.streams) is True
        entry = Entry(protocol.name, str(asked.request["model"])[:80], streams, len(asked.tools))
        entries.append(entry)
        events = reply(asked, entry)
        if entry.streams:
            return EventStreamResponse(await while_here(request, begun(events)), encode)
        return await while_here(request, whole(protocol, events, encode))
    except Refusal as refusal:
        kind = KINDS.get(refusal.status, "api_error")
        again = {"x-should-retry": str(refusal.status in (429, 503)).lower()}
        return JSONResponse(protocol.error(str(refusal), kind), refusal.status, again)


async def while_here(request: Request, work: Coroutine[Any, Any, Any]) -> Any:
    """What the work returns. A client that leaves ends it, and with it the provider's request."""

    async def left() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            """The body has been read."""

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(left())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise Refusal(499, "The client has left.")  # which nobody reads
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.wait((working, leaving))


def reply(asked: Asked, entry: Entry) -> Observable[rd.Event]:
    """The events of a reply, as they come. A key that the model has seen is in no text. Arguments of calls stay as they are."""
    hidden = rd.redact(r"\bsk-[\w-]{16,}", "[key]")
    checked = rd.guard(may_be_said, context=1000, arguments=False)
    return rd.from_async_iterable(partial(ask, asked)).pipe(
        rd.decode(WIRE_FORMAT), *([checked] if REFUSED else []), hidden, rd.tap_metrics(entry.end)
    )


def may_be_said(text: str) -> bool:
    """Whether the newest sentence, behind those before, may reach the client."""
    return re.search(REFUSED or "$^", text) is None


async def begun(events: Observable[rd.Event]) -> Observable[rd.Event]:
    """The same events once the first has come. Before it, an error still has a status of its own."""
    reading: Any = rd.iterate(events)
    try:
        first = await anext(reading)
    except StopAsyncIteration:
        raise failure(rd.StreamInterrupted("the provider sent nothing")) from None
    except Exception as error:
        raise failure(error) from error
    except asyncio.CancelledError:
        await reading.aclose()
        raise

    async def all_of_them() -> AsyncIterator[rd.Event]:
        async with aclosing(reading):
            yield first
            async for event in reading:
                yield event

    return rd.from_async_iterable(all_of_them())


async def whole(protocol: Protocol, events: Observable[rd.Event], encode: Any) -> Response:
    """The body for a client that doesn't stream."""
    frames: Any = (await begun(events)).pipe(encode)
    async with rd.to_async_iterable(frames, "block") as written:
        body = protocol.whole([frame async for frame in written])
    return JSONResponse(body, 500 if body.get("error") else 200)


async def count_tokens(request: Request) -> Response:
    """An estimate, for clients that watch their context: no provider is asked."""
    try:
        body = await body_of(request)
    except Refusal as refusal:
        return JSONResponse(
            anthropic_error(str(refusal), KINDS.get(refusal.status, "api_error")), refusal.status
        )
    said = json.dumps([body.get(name) for name in ("system", "messages", "tools")], ensure_ascii=False)
    return JSONResponse({"input_tokens": len(said) // 4})


async def models(request: Request) -> Response:
    """The one model, for OpenAI's clients and for Anthropic's."""
    model = {
        "id": MODEL, "object": "model", "created": 0, "owned_by": "gateway",
        "type": "model", "display_name": MODEL, "created_at": "1970-01-01T00:00:00Z",
    }  # fmt: skip
    return JSONResponse(
        {"object": "list", "data": [model], "has_more": False, "first_id": MODEL, "last_id": MODEL}
    )


async def tags(request: Request) -> Response:
    """The one model, for Ollama's clients."""
    model = {"name": MODEL, "model": MODEL, "modified_at": "1970-01-01T00:00:00Z", "size": 0, "digest": ""}
    return JSONResponse({"models": [{**model, "details": {"format": "", "family": ""}}]})


# What has come by.


@attrs.define(eq=False)
class Entry:
    """A request, for the log and the page. Nothing of what was said is kept."""

    protocol: str
    model: str
    streams: bool
    tools: int
    began: float = attrs.field(factory=time.time)
    ended: str = "…"
    seconds: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    dollars: float | None = None

    def end(self, metrics: rd.types.StreamMetrics) -> None:
        assert metrics.outcome is not None
        error = metrics.outcome.error
        self.ended = metrics.outcome.kind if error is None else type(error).__name__
        self.seconds = metrics.seconds
        if metrics.usage is not None:
            billed = metrics.usage.billed
            self.tokens_in, self.tokens_out = billed.get("input_tokens", 0), billed.get("output_tokens", 0)
            self.dollars = price(billed, self.model)
        spent = self.tokens_in, self.tokens_out, "?" if self.dollars is None else f"{self.dollars:.4f}"
        asked = self.protocol, self.model, self.ended  # a client's words are quoted
        log.info("%s %r %s in %.1f s: %d tokens in, %d out, %s dollars", *asked, self.seconds, *spent)


entries: deque[Entry] = deque(maxlen=200)


def price(billed: Mapping[str, int], model: str) -> float | None:
    try:
        from genai_prices import calc_price

        return float(calc_price(billed, model).total_price)
    except (ImportError, LookupError):  # the package isn't here, or doesn't know the model
        return None


PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width"><title>Gateway</title><style>
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem; margin: 0 } p { margin: .2rem 0 1.5rem; opacity: .7 }
dl { display: flex; gap: 2.5rem; flex-wrap: wrap; margin: 0 0 1.5rem } dt { opacity: .7 } dd { margin: 0; font-size: 1.6rem }
table { border-collapse: collapse; width: 100%% } th { text-align: left; font-weight: 500; opacity: .7 }
th, td { padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #8884; overflow-wrap: anywhere }
.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap } .failed { color: #c33 }
</style><h1>Gateway</h1><p>%s, over %s</p><dl>%s</dl>
<table><tr>%s</tr>%s</table></html>"""
COLUMNS = "time", "protocol", "model", "tools", "reply", "ended", "tokens in", "out", "dollars", "seconds"  # fmt: skip
NUMBERS = "tools", "tokens in", "out", "dollars", "seconds"


def row(entry: Entry) -> str:
    values = (
        time.strftime("%H:%M:%S", time.localtime(entry.began)), entry.protocol, entry.model, entry.tools,
        "streamed" if entry.streams else "whole", entry.ended, entry.tokens_in, entry.tokens_out,
        "" if entry.dollars is None else f"{entry.dollars:.4f}",
        "" if entry.seconds is None else f"{entry.seconds:.1f}",
    )  # fmt: skip
    failed = ' class="failed"' if entry.ended not in ("…", "completed") else ""
    cells = "".join(cell("td", name, value) for name, value in zip(COLUMNS, values))
    return f"<tr{failed}>{cells}</tr>"


def cell(tag: str, column: str, value: object) -> str:
    return f"<{tag}{' class=n' if column in NUMBERS else ''}>{html.escape(str(value))}</{tag}>"


async def page(request: Request) -> Response:
    """The page. It runs no script, and what clients have sent is escaped."""
    known = [entry.dollars for entry in entries if entry.dollars is not None]
    sums = {
        "requests": len(entries),
        "tokens in": sum(entry.tokens_in for entry in entries),
        "tokens out": sum(entry.tokens_out for entry in entries),
        "dollars": f"{sum(known):.4f}" if known else "unknown",
    }
    shown = PAGE % (
        html.escape(MODEL),
        WIRE_FORMAT if OPENAI or ANTHROPIC else "recorded replies",
        "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in sums.items()),
        "".join(cell("th", name, name) for name in COLUMNS),
        "".join(map(row, reversed(entries))),
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    return HTMLResponse(shown.encode(errors="replace"), headers={"content-security-policy": policy})


app = Starlette(
    routes=[
        Route("/v1/responses", partial(answer, RESPONSES), methods=["POST"]),
        Route("/v1/chat/completions", partial(answer, CHAT), methods=["POST"]),
        Route("/v1/messages", partial(answer, MESSAGES), methods=["POST"]),
        Route("/api/chat", partial(answer, OLLAMA), methods=["POST"]),
        Route("/api/tags", tags),
        Route("/v1/messages/count_tokens", count_tokens, methods=["POST"]),
        Route("/v1/models", models),
        Route("/", page),
    ],
    middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"])],
)


# The program.

QUESTIONS: dict[str, Body] = {
    "/v1/responses": {"input": "Lisbon or Oslo?"},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Lisbon or Oslo?"}]},
    "/v1/messages": {"messages": [{"role": "user", "content": "Lisbon or Oslo?"}], "max_tokens": 500},
    "/api/chat": {"messages": [{"role": "user", "content": "Lisbon or Oslo?"}], "stream": False},
}


async def ask_itself() -> None:
    """Ask once by each protocol, and print what came back."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]

    def post(path: str, body: Body) -> bytes:
        headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
        asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(asked) as got:
            return bytes(got.read())

    for path, body in QUESTIONS.items():
        print(path, (await asyncio.to_thread(post, path, {"model": MODEL, **body})).decode())
    server.should_exit = True
    await serving


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("--port", type=int, default=8000)
    given = arguments.parse_args()
    if sys.stdout.isatty() or len(sys.argv) > 1:
        print(f"http://127.0.0.1:{given.port}/")
        uvicorn.run(app, port=given.port, log_level="warning")
    else:
        asyncio.run(ask_itself())
