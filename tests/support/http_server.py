"""A real HTTP server on a thread, which answers as it is told and notes what becomes of its connections."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, Self

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Reply", "Server"]

SECONDS = 30  # nothing takes time; what hangs is found


@attrs.frozen
class Reply:
    """What one request is answered with.

    Each piece is sent by itself. Then the body ends (`whole`), or the connection does (`drop`), or nothing comes any
    more until the client has left (`stall`).
    """

    pieces: Sequence[bytes] = ()
    end: Literal["whole", "drop", "stall"] = "whole"
    status: int = 200
    kind: str = "text/event-stream"
    headers: Sequence[tuple[str, str]] = ()


class Server:
    """Answers the nth request with the nth reply, and further ones with the last. A context manager."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = replies
        self.requests: list[bytes] = []
        self.left = threading.Semaphore(0)  # once for each connection that a client has ended
        self.open = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        started = threading.Event()
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(started),), name="http-server")
        self._thread.start()
        assert started.wait(SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._enough.set)
        self._thread.join(SECONDS)

    def was_left(self) -> bool:
        """Whether a client ends, or has ended, a connection; each is told once."""
        return self.left.acquire(timeout=SECONDS)

    async def _serve(self, started: threading.Event) -> None:
        self._loop, self._enough = asyncio.get_running_loop(), asyncio.Event()
        connections: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            with suppress(asyncio.CancelledError):
                await self._answer(reader, writer)

        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        self._port = server.sockets[0].getsockname()[1]
        started.set()
        await self._enough.wait()
        server.close()
        for task in connections:
            task.cancel()
        if connections:
            await asyncio.wait(connections)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while (request := await self._request(reader)) is not None:
                self.requests.append(request)
                reply = self._replies[min(len(self.requests), len(self._replies)) - 1]
                await self._send(reply, writer)
                if reply.end == "drop":
                    return
                if reply.end == "stall":
                    assert not await reader.read()
                    break
            self.left.release()
        except ConnectionError:
            self.left.release()
        finally:
            self.open -= 1
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _request(self, reader: asyncio.StreamReader) -> bytes | None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return None
        lines = head.decode("latin-1").lower().split("\r\n")
        length = next((int(line[15:]) for line in lines if line.startswith("content-length:")), 0)
        return await reader.readexactly(length)

    async def _send(self, reply: Reply, writer: asyncio.StreamWriter) -> None:
        head = [f"HTTP/1.1 {reply.status} Said", f"content-type: {reply.kind}", "transfer-encoding: chunked"]
        head += [f"{name}: {value}" for name, value in reply.headers]
        writer.write("\r\n".join([*head, "", ""]).encode())
        for piece in reply.pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            await asyncio.sleep(0)
        if reply.end == "whole":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
