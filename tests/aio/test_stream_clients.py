"""`rd.stream` with real clients over a real connection: each way in which they give a stream."""

from __future__ import annotations

import asyncio
import json
import threading
import warnings
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest
from support.http_server import Reply, Server
from support.replies import ANTHROPIC, OPENAI

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import Callable

httpx = pytest.importorskip("httpx")
openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")
genai = pytest.importorskip("google.genai")

MESSAGES: list[Any] = [{"role": "user", "content": "Look."}]
CHAT: Any = {"model": "small", "messages": MESSAGES}
RESPONSE: Any = {"model": "small", "input": "Look."}
CLAUDE: Any = {"model": "small", "messages": MESSAGES, "max_tokens": 9}
GEMINI: Any = {"model": "small", "contents": "Look."}


def response(kind: str, number: int, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "sequence_number": number, **fields}


def whole(status: str, output: list[Any]) -> dict[str, Any]:
    return {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": "small",
        "output": output,
    }


PART = {"type": "output_text", "text": "Let me look.", "annotations": []}
ITEM = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [PART]}
AT = {"item_id": "m1", "output_index": 0, "content_index": 0}
RESPONSES = [
    response("created", 0, response=whole("in_progress", [])),
    response("output_item.added", 1, output_index=0, item={**ITEM, "status": "in_progress", "content": []}),
    response("content_part.added", 2, **AT, part={**PART, "text": ""}),
    response("output_text.delta", 3, **AT, delta="Let me ", logprobs=[]),
    response("output_text.delta", 4, **AT, delta="look.", logprobs=[]),
    response("output_text.done", 5, **AT, text="Let me look.", logprobs=[]),
    response("content_part.done", 6, **AT, part=PART),
    response("output_item.done", 7, output_index=0, item=ITEM),
    response("completed", 8, response=whole("completed", [ITEM])),
]
GEMINIS = [
    {"candidates": [{"content": {"role": "model", "parts": [{"text": "Let me "}]}, "index": 0}]},
    {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "look."}]}, "finishReason": "STOP", "index": 0}
        ]
    },
]
STREAMS = {"chat": OPENAI, "responses": RESPONSES, "claude": ANTHROPIC, "gemini": GEMINIS}


def pieces(chunks: list[Any]) -> list[bytes]:
    def named(chunk: Any) -> str:
        return f"event: {chunk['type']}\n" if "type" in chunk else ""

    return [f"{named(chunk)}data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]


class Clients:
    """The clients, each made when it is first asked for; without certificates, which take long to load."""

    def __init__(self, url: str, asynchronous: bool) -> None:
        self.url = url
        self.asynchronous = asynchronous
        self._made: list[Any] = []

    def _make(self, vendor: Any) -> Any:
        name, http = ("Async", "DefaultAsyncHttpxClient") if self.asynchronous else ("", "DefaultHttpxClient")
        name += "OpenAI" if vendor is openai else "Anthropic"
        made = getattr(vendor, name)(
            api_key="x", base_url=self.url, max_retries=0, http_client=getattr(vendor, http)(verify=False)
        )
        self._made.append(made)
        return made

    @cached_property
    def openai(self) -> Any:
        return self._make(openai)

    @cached_property
    def claude(self) -> Any:
        return self._make(anthropic)

    @cached_property
    def http(self) -> Any:
        made = (httpx.AsyncClient if self.asynchronous else httpx.Client)(verify=False)
        self._made.append(made)
        return made

    @cached_property
    def gemini(self) -> Any:
        without: Any = {"client_args": {"verify": False}, "async_client_args": {"verify": False}}
        made = genai.Client(api_key="x", http_options={"base_url": self.url, **without})
        self._made.append(made.aio if self.asynchronous else made)
        return made.aio.models if self.asynchronous else made.models

    async def aclose(self) -> None:
        for made in self._made:
            await (made.aclose if hasattr(made, "aclose") else made.close)()

    def close(self) -> None:
        for made in self._made:
            made.close()


WAYS: dict[str, tuple[str, Callable[[Clients], Any]]] = {
    "openai chat": ("chat", lambda c: c.openai.chat.completions.create(stream=True, **CHAT)),
    "openai chat, function": (
        "chat",
        lambda c: lambda: c.openai.chat.completions.create(stream=True, **CHAT),
    ),
    "openai chat, manager": ("chat", lambda c: c.openai.chat.completions.stream(**CHAT)),
    "openai responses": ("responses", lambda c: c.openai.responses.create(stream=True, **RESPONSE)),
    "openai responses, manager": ("responses", lambda c: c.openai.responses.stream(**RESPONSE)),
    "openai, streaming response": (
        "chat",
        lambda c: c.openai.chat.completions.with_streaming_response.create(stream=True, **CHAT),
    ),
    "anthropic": ("claude", lambda c: c.claude.messages.create(stream=True, **CLAUDE)),
    "anthropic, function": ("claude", lambda c: lambda: c.claude.messages.create(stream=True, **CLAUDE)),
    "anthropic, manager": ("claude", lambda c: c.claude.messages.stream(**CLAUDE)),
    "anthropic, function of a manager": ("claude", lambda c: lambda: c.claude.messages.stream(**CLAUDE)),
    "anthropic, streaming response": (
        "claude",
        lambda c: c.claude.messages.with_streaming_response.create(stream=True, **CLAUDE),
    ),
    "google-genai": ("gemini", lambda c: c.gemini.generate_content_stream(**GEMINI)),
    "google-genai, function": ("gemini", lambda c: lambda: c.gemini.generate_content_stream(**GEMINI)),
    "httpx": ("claude", lambda c: c.http.stream("POST", c.url, json={})),
}


SLOW = pytest.mark.slow
SOME = (
    "openai chat, manager",
    "openai responses",
    "anthropic, streaming response",
    "google-genai, function",
    "httpx",
)
ALL_WAYS = [pytest.param(way, marks=() if way in SOME else SLOW) for way in WAYS]


def asynchronously(server: Server, read: Callable[[Clients], Any]) -> None:
    async def main() -> None:
        clients = Clients(server.url, asynchronous=True)
        try:
            await read(clients)
        finally:
            await clients.aclose()

    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        asyncio.run(main())


@pytest.mark.parametrize("way", ALL_WAYS)
def test_an_asynchronous_client(way: str) -> None:
    kind, create = WAYS[way]
    with Server(Reply(pieces(STREAMS[kind]))) as server:

        async def read(clients: Clients) -> None:
            async with rd.stream(create(clients)) as reply:
                async for _ in reply:
                    pass
            assert reply.message.text == "Let me look."

        asynchronously(server, read)
        assert len(server.requests) == 1
        assert server.open == 0 or server.was_left()


@pytest.mark.parametrize("block", ["with", pytest.param("async with", marks=SLOW)])
@pytest.mark.parametrize("way", ALL_WAYS)
def test_a_synchronous_client(way: str, block: str) -> None:
    kind, create = WAYS[way]
    with Server(Reply(pieces(STREAMS[kind]))) as server:
        clients = Clients(server.url, asynchronous=False)

        async def ask(source: Any) -> None:
            async with rd.stream(source) as reply:
                assert "".join([piece async for piece in reply.text_deltas]) == "Let me look."

        if block == "with":
            with rd.stream(create(clients)) as reply:
                assert "".join(reply.text_deltas) == "Let me look."
        else:
            asyncio.run(ask(create(clients)))
        clients.close()
        assert len(server.requests) == 1


@pytest.mark.parametrize("way", ["openai chat, function", "anthropic, function"])
def test_an_asynchronous_client_in_synchronous_code(way: str) -> None:
    kind, create = WAYS[way]
    with (
        Server(Reply(pieces(STREAMS[kind]), headers=[("connection", "close")])) as server,
        rd.stream(create(Clients(server.url, asynchronous=True))) as reply,
    ):
        assert reply.result().text == "Let me look."


@pytest.mark.parametrize(
    "way",
    ["openai chat, manager", "anthropic"]
    + [
        pytest.param(way, marks=SLOW)
        for way in ("openai chat", "openai responses, manager", "anthropic, manager")
    ],
)
def test_leaving_ends_the_connection_although_the_provider_is_silent(way: str) -> None:
    kind, create = WAYS[way]
    part = Reply(pieces(STREAMS[kind])[:-3], end="stall")
    with Server(part, part) as server:

        async def read(clients: Clients) -> None:
            async with rd.stream(create(clients)) as reply:
                async for snapshot in reply:
                    if snapshot.text:
                        break

        asynchronously(server, read)
        assert server.was_left()
        clients = Clients(server.url, asynchronous=False)
        before = set(threading.enumerate())
        with rd.stream(create(clients)) as reply:
            for snapshot in reply:
                if snapshot.text:
                    break
        assert server.was_left()
        assert set(threading.enumerate()) <= before
        clients.close()


@pytest.mark.parametrize("asynchronous", [True, False])
@pytest.mark.parametrize(
    "forgot",
    [
        lambda c: c.openai.chat.completions.create(**CHAT),
        lambda c: lambda: c.openai.responses.create(**RESPONSE),
        lambda c: lambda: c.claude.messages.create(**CLAUDE),
    ],
)
def test_a_client_that_was_asked_for_no_stream_says_so(
    forgot: Callable[[Clients], Any], asynchronous: bool
) -> None:
    body = {"id": "x", "object": "chat.completion", "choices": [], "content": [], "output": []}
    with Server(Reply([json.dumps(body).encode()], kind="application/json")) as server:

        async def read(clients: Clients) -> None:
            with pytest.raises(rd.InvalidValueError, match="stream=True"):
                await rd.stream(forgot(clients))

        if asynchronous:
            asynchronously(server, read)
            return
        clients = Clients(server.url, asynchronous=False)
        with pytest.raises(rd.InvalidValueError, match="stream=True"), rd.stream(forgot(clients)) as reply:
            reply.result()
        clients.close()


def test_a_refusal_of_the_provider_is_the_clients_own_error_behind_ours() -> None:
    with Server(Reply([b'{"error": {"message": "no"}}'], status=401, kind="application/json")) as server:

        async def read(clients: Clients) -> None:
            with pytest.raises(rd.StreamInterrupted) as caught:
                await rd.stream(clients.openai.chat.completions.create(stream=True, **CHAT))
            assert isinstance(caught.value.__cause__, openai.AuthenticationError)

        asynchronously(server, read)
