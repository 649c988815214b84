"""A client of a direct response that reads nothing, on a real server: how far the provider is read for it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from support.loops import run

import rxdelta as rd

asgi = pytest.importorskip("rxdelta.asgi")
uvicorn = pytest.importorskip("uvicorn")
applications = pytest.importorskip("starlette.applications")
routing = pytest.importorskip("starlette.routing")

ev = rd.events
PIECE = "0123456789" * 3_000
BLOCKS, PIECES = 5, 600  # 90 MB


class Provider:
    """A reply that is always ready to go on."""

    def __init__(self) -> None:
        self.pieces = 0
        self.closed = asyncio.Event()

    async def __call__(self) -> AsyncIterator[rd.Event]:
        try:
            yield ev.MessageStart("m")
            for block in range(BLOCKS):
                yield ev.BlockStart(block, {"type": "text", "text": ""})
                for _ in range(PIECES):
                    self.pieces += 1
                    yield ev.TextDelta(block, PIECE)
                yield ev.BlockFinish(block)
            yield ev.MessageFinish("stop")
        finally:
            self.closed.set()

    async def stands_still(self) -> None:
        known = -1
        while known != self.pieces and not self.closed.is_set():
            known = self.pieces
            for _ in range(100):
                await asyncio.sleep(0.001)


RESPONSES: dict[str, Callable[[Any], Any]] = {
    "events": lambda events: asgi.EventStreamResponse(events, rd.to_ai_sdk()),
    "text": asgi.TextResponse,
}


@asynccontextmanager
async def client_of(provider: Provider, kind: str) -> AsyncIterator[socket.socket]:
    """A client that has asked a server for the reply, and has read nothing."""

    async def answer(_: Any) -> Any:
        return RESPONSES[kind](rd.from_async_iterable(lambda: provider()))

    app = applications.Starlette(routes=[routing.Route("/", answer)])
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="critical", access_log=False))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.001)
    loop = asyncio.get_running_loop()
    try:
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await loop.sock_connect(client, listening.getsockname())
            await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
            yield client
            client.close()
            await provider.closed.wait()
    finally:
        asgi.end_streams()
        server.should_exit = True
        await serving
        listening.close()


async def body_of(client: socket.socket) -> bytes:
    """What the client gets when it reads at last."""
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**20)
    got = bytearray()
    while piece := await asyncio.get_running_loop().sock_recv(client, 2**18):
        got += piece
    rest = bytes(got).partition(b"\r\n\r\n")[2]
    chunks = list[bytes]()
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    assert chunks.pop() == b""  # the whole body
    return b"".join(chunks)


def text_of(kind: str, body: bytes) -> str:
    if kind == "text":
        return body.decode()
    frames = [line[6:] for line in body.decode().splitlines() if line.startswith("data: ")]
    assert frames.pop() == "[DONE]"
    return "".join(json.loads(frame).get("delta", "") for frame in frames)


@pytest.mark.parametrize("kind", RESPONSES)
def test_a_client_that_reads_nothing_is_read_ahead_for_by_little_of_its_reply_and_closes_it_when_it_leaves(
    kind: str,
) -> None:
    async def main() -> None:
        provider = Provider()
        async with client_of(provider, kind):
            await provider.stands_still()
            assert provider.pieces * len(PIECE) < 5_000_000  # of 90 MB
            assert not provider.closed.is_set()

    run(main)


@pytest.mark.parametrize("kind", RESPONSES)
def test_a_client_that_reads_again_gets_the_whole_reply(kind: str) -> None:
    async def main() -> None:
        provider = Provider()
        async with client_of(provider, kind) as client:
            await provider.stands_still()
            text = text_of(kind, await body_of(client))
        assert text.replace("\n\n", "") == PIECE * PIECES * BLOCKS

    run(main)


def test_a_server_that_stops_ends_the_reply_of_a_client_that_reads_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rxdelta.asgi.open_response._SECONDS_TO_END", 0.05)

    async def main() -> None:
        provider = Provider()
        async with client_of(provider, "events"):
            await provider.stands_still()
            asgi.end_streams()
            await provider.closed.wait()
            assert provider.pieces < BLOCKS * PIECES

    run(main)
