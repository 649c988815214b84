"""A pipeline behind Ollama's own package for Python, through `EventStreamResponse` on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.loops import run

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.asgi import EventStreamResponse, RelayResponse, end_streams
from rxdelta.relay import Relay

uvicorn = pytest.importorskip("uvicorn")
applications = pytest.importorskip("starlette.applications")
responses = pytest.importorskip("starlette.responses")
routing = pytest.importorskip("starlette.routing")
ollama = pytest.importorskip("ollama")

THOUGHT: list[rd.Event] = [
    ev.BlockStart(0, {"type": "reasoning"}),
    ev.ReasoningDelta(0, "Hm."),
    ev.BlockFinish(0),
]
TEXT: list[rd.Event] = [
    ev.BlockStart(1, {"type": "text"}),
    ev.TextDelta(1, "Hel\u2028"),
    ev.TextDelta(1, "lo\x85 👋"),
]
CALL = {"type": "tool_call", "id": "c1", "name": "look", "args": {"at": 1}}
START = ev.MessageStart("m1", "small")
STOP = ev.MessageFinish("stop", usage=rd.TokenUsage(3, 5))
ANSWER = [START, *THOUGHT, *TEXT, ev.BlockFinish(1), STOP]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


def model(name: str) -> rx.Observable[rd.Event]:
    scripts: dict[str, rx.Observable[rd.Event]] = {
        "answers": rx.from_iterable(ANSWER),
        "calls": rx.from_iterable([START, ev.BlockFinish(0, CALL), ev.MessageFinish("tool_use")]),
        "breaks": rx.concat(rx.from_iterable(ANSWER[:6]), rx.throw(ValueError("secret"))),
        "pauses": rx.concat(
            rx.timer(0.05).pipe(ops.ignore_elements()),
            rx.from_iterable(ANSWER[:6]),
            rx.timer(0.05).pipe(ops.ignore_elements()),
            rx.from_iterable(ANSWER[6:]),
        ),
    }
    return scripts[name]


async def chat(request: Any) -> Any:
    body = await request.json()
    encode = rd.to_ollama(tools=())
    events = model(body["model"])
    if body.get("stream"):
        return EventStreamResponse(events, encode, keep_alive=0.01)
    whole = rd.wire.ollama_chat(await events.pipe(encode, ops.to_list()))
    return responses.JSONResponse(whole, 500 if "error" in whole else 200)


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    app = applications.Starlette(routes=[routing.Route("/api/chat", chat, methods=["POST"])])
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, lifespan="off", log_level="critical", access_log=False)
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.001)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        end_streams()
        server.should_exit = True
        await serving


def asked(ask: Callable[[Any], Any]) -> Any:
    """What the synchronous client gets."""

    async def main() -> Any:
        async with served() as url:
            with ollama.Client(url, trust_env=False) as client:
                return await asyncio.to_thread(ask, client)

    return run(main)


def streamed(name: str, lines: list[Any]) -> Callable[[Any], None]:
    def ask(client: Any) -> None:
        lines.extend(client.chat(name, [{"role": "user", "content": "Hi"}], stream=True))

    return ask


@pytest.mark.parametrize("name", ["answers", "pauses"])
def test_ollama_s_client_reads_the_reply_through_any_silence(name: str) -> None:
    lines: list[Any] = []
    asked(streamed(name, lines))
    assert "".join(line.message.thinking or "" for line in lines) == "Hm."
    assert "".join(line.message.content for line in lines) == "Hel\u2028lo\x85 👋"
    assert [line.done for line in lines].index(True) == len(lines) - 1
    last = lines[-1]
    assert (last.model, last.done_reason, last.prompt_eval_count, last.eval_count) == ("small", "stop", 3, 5)


def test_ollama_s_client_reads_the_calls() -> None:
    lines: list[Any] = []
    asked(streamed("calls", lines))
    (call,) = [call for line in lines for call in line.message.tool_calls or ()]
    assert (call.function.name, call.function.arguments) == ("look", {"at": 1})


def test_ollama_s_client_raises_the_masked_error_behind_what_came_before() -> None:
    lines: list[Any] = []
    with pytest.raises(ollama.ResponseError) as raised:
        asked(streamed("breaks", lines))
    assert raised.value.error == rd.wire.MASKED
    assert "".join(line.message.content for line in lines) == "Hel\u2028"
    assert not any(line.done for line in lines)


def test_ollama_s_client_reads_the_whole_body() -> None:
    message = [{"role": "user", "content": "Hi"}]
    whole = asked(lambda client: client.chat("answers", message))
    assert (whole.message.content, whole.message.thinking, whole.done) == ("Hel\u2028lo\x85 👋", "Hm.", True)
    with pytest.raises(ollama.ResponseError) as raised:
        asked(lambda client: client.chat("breaks", message))
    assert raised.value.status_code == 500


def test_the_encoder_s_protocol_decides_how_the_response_is_written() -> None:
    async def main() -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        response = EventStreamResponse(rx.from_iterable(ANSWER), rd.to_ollama())
        await response({"type": "http", "method": "POST"}, asyncio.Event().wait, send)
        return sent

    start, *pieces = run(main)
    assert dict(start["headers"])[b"content-type"] == b"application/x-ndjson"
    body = b"".join(piece["body"] for piece in pieces)
    assert all(line.startswith(b"{") and line.endswith(b"}") for line in body.splitlines())


def test_a_relay_s_response_refuses_a_protocol_that_has_no_ids() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            with pytest.raises(rd.InvalidValueError, match=r"server-sent events.*relay\.watch"):
                RelayResponse(relay, "c1", rd.to_ollama())

    run(main)
