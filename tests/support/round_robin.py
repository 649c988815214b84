"""A proxy that gives each request to the next of several servers, as in front of an application with several workers."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

__all__ = ["RoundRobin"]


class RoundRobin:
    """A proxy on this machine. A server that takes no connection is left out; one that dies takes its responses along.

    Attributes:
        address: Where it listens.
        served: For each request its path, and the port of the server that got it.
        only: The port of the server that gets all requests, while it is set.
    """

    def __init__(self, ports: Sequence[int]) -> None:
        self._ports = [*ports]
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.served: list[tuple[str, int]] = []
        self.only: int | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    @classmethod
    @contextmanager
    def to(cls, *ports: int) -> Iterator[RoundRobin]:
        proxy = cls(ports)
        threading.Thread(target=proxy._accept, daemon=True).start()
        try:
            yield proxy
        finally:
            proxy._listening.close()
            with proxy._lock:
                left, proxy._open = proxy._open, set()
            for one in left:
                _close(one)

    def last(self, path: str) -> int:
        """The port of the server that got the last request for a path that ends so."""
        return next(port for served, port in reversed(self.served) if served.endswith(path))

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                with self._lock:
                    self._open.add(near)
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        far = None
        with suppress(OSError):
            request = b""
            while b"\r\n\r\n" not in request:
                if not (data := near.recv(65536)):
                    break
                request += data
            else:
                far = self._next(request.split(maxsplit=2)[1].decode())
                # So that the next request is a connection of its own, which goes to the next server.
                far.sendall(
                    re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", request, count=1).replace(
                        b"\r\n", b"\r\nConnection: close\r\n", 1
                    )
                )
                threading.Thread(target=self._pump, args=(near, far), daemon=True).start()
                self._pump(far, near)
        self._forget(near)

    def _next(self, path: str) -> socket.socket:
        for _ in self._ports:
            with self._lock:
                port = self._ports.pop(0)
                self._ports.append(port)
            if self.only not in (None, port):
                continue
            with suppress(OSError):
                far = socket.create_connection(("127.0.0.1", port))
                with self._lock:
                    self._open.add(far)
                    self.served.append((path, port))
                return far
        raise ConnectionError("no server takes the request")

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for one in (source, sink):
            self._forget(one)

    def _forget(self, one: socket.socket) -> None:
        with self._lock:
            self._open.discard(one)
        _close(one)


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
