"""A proxy before a server, on the test's own loop: it cuts, delays and loses what it is told to, and can end TLS."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self

__all__ = ["CuttingProxy", "Fate", "certificate"]

Fate = Literal["pass", "cut before", "cut after", "delay", "late"]
"""What becomes of a request: it is passed on; the connection is cut before it arrives; it arrives, and the connection is
cut instead of its answer; it is passed on later; it is, but only if its client is still there then."""

_PIECE = 1 << 14


class CuttingProxy:
    """Pass bytes on, between clients and a server on this machine. An `async with` block.

    Attributes:
        port: Where it listens, on 127.0.0.1.
        fates: Of the next requests that contain `marker`, in their order. Then it is `chance` that says.
        marker: So that only what a test means is hit, and no handshake.
        delay: Seconds, for the fates `"delay"` and `"late"`.
        is_down: Whether it refuses new connections.
        is_hole: Whether nothing is passed on, in either direction. Connections stay, and new ones can be made.
        requests: How many requests with `marker` have come.
        rate: Bytes a second that the line carries in each direction, for all connections together.
    """

    def __init__(
        self, target: int, *, tls: ssl.SSLContext | None = None, chance: Callable[[], Fate] = lambda: "pass"
    ) -> None:
        self.fates: deque[Fate] = deque()
        self.chance = chance
        self.marker = b"EVALSHA"
        self.delay = 0.05
        self.is_down = False
        self.requests = 0
        self.rate: float | None = None
        self._free = {
            "up": 0.0,
            "down": 0.0,
        }  # the loop's time at which a direction has passed on what it has
        self._target = target
        self._tls = tls
        self._flows = asyncio.Event()
        self._flows.set()
        self._pairs: set[_Pair] = set()
        self._silent: set[_Pair] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_hole(self) -> bool:
        return not self._flows.is_set()

    @is_hole.setter
    def is_hole(self, whether: bool) -> None:
        (self._flows.clear if whether else self._flows.set)()

    async def __aenter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(
            socket.SOL_SOCKET, socket.SO_RCVBUF, _PIECE
        )  # what `rate` holds up waits at its sender
        self._server = await asyncio.start_server(self._accept, sock=listener, limit=_PIECE, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.cut()
        for pair in self._silent:
            pair.cut()
        while self._tasks:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)

    @property
    def connections(self) -> int:
        return len(self._pairs)

    def cut(self) -> int:
        """Reset all connections. Returns how many there were."""
        pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            pair.cut()
        return len(pairs)

    def silence(self) -> int:
        """Pass nothing on any more for the connections that there are, as if a router had forgotten them; new ones work.

        Returns how many there were.
        """
        pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            pair.is_silent = True
        self._silent |= pairs
        return len(pairs)

    async def _pass_on(self, pair: _Pair, direction: str, to: asyncio.StreamWriter, data: bytes) -> None:
        """Write these bytes as fast as the line carries them; none, if it has gone silent."""
        for begin in range(0, len(data), _PIECE):
            piece = data[begin : begin + _PIECE]
            if self.rate is not None:
                now = asyncio.get_running_loop().time()
                self._free[direction] = max(self._free[direction], now) + len(piece) / self.rate
                await asyncio.sleep(self._free[direction] - now)
            if not pair.is_silent:
                to.write(piece)
                await to.drain()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.is_down:
            writer.transport.abort()
            return
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        pair = _Pair(writer, far_writer)
        self._pairs.add(pair)
        for pump in (self._requests(pair, reader), self._answers(pair, far_reader)):
            task = asyncio.create_task(pump)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _requests(self, pair: _Pair, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 20):
                await self._flows.wait()
                fate = self._fate(data)
                if fate == "cut before":
                    break
                if fate in ("delay", "late"):
                    await asyncio.sleep(self.delay)
                if fate == "late" and reader.at_eof():
                    break
                pair.loses_answer = fate == "cut after"
                await self._pass_on(pair, "up", pair.far, data)
        self._end(pair)

    async def _answers(self, pair: _Pair, reader: asyncio.StreamReader) -> None:
        with suppress(OSError):
            while (data := await reader.read(1 << 20)) and not pair.loses_answer:
                await self._flows.wait()
                await self._pass_on(pair, "down", pair.near, data)
        self._end(pair)

    def _fate(self, data: bytes) -> Fate:
        if self.marker not in data:
            return "pass"
        self.requests += 1
        return self.fates.popleft() if self.fates else self.chance()

    def _end(self, pair: _Pair) -> None:
        self._pairs.discard(pair)
        pair.cut()


class _Pair:
    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.near, self.far = near, far
        self.loses_answer = False
        self.is_silent = False

    def cut(self) -> None:
        self.near.transport.abort()
        self.far.transport.abort()


def certificate(folder: Path, name: str = "127.0.0.1") -> tuple[Path, ssl.SSLContext]:
    """A certificate that this machine has signed itself, as a file, and the server's side of it. Needs `openssl`."""
    kind = "IP" if name[0].isdigit() else "DNS"
    file, key = folder / f"{name}.pem", folder / f"{name}.key"
    made = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN={name} -addext subjectAltName={kind}:{name}"
    subprocess.run([*made.split(), "-keyout", key, "-out", file], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file, key)
    return file, context
