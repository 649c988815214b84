"""A line to a server that a test can break."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["Line"]

_AT_ONCE = struct.pack("ii", 1, 0)  # SO_LINGER: the peer gets a reset, not an orderly end


class Line:
    """A proxy of bytes on this machine.

    Attributes:
        port: Where it listens.
        is_down: Whether it refuses new connections, too.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.is_down = False
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    @classmethod
    @contextmanager
    def to(cls, target: int) -> Iterator[Line]:
        line = cls(target)
        threading.Thread(target=line._accept, daemon=True).start()
        try:
            yield line
        finally:
            line._listening.close()
            line.cut()

    def cut(self) -> int:
        """Reset all connections. Returns how many there were."""
        with self._lock:
            cut, self._open = self._open, set()
        for one in cut:
            with suppress(OSError):
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        return len(cut) // 2

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                try:
                    if self.is_down:
                        raise ConnectionError
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    near.close()
                    continue
                with self._lock:
                    self._open |= {near, far}
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with self._lock:
            self._open -= {source, sink}
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
