"""A small HTTP server on this machine: connections that are seen to end, and that all end with the server."""

from __future__ import annotations

import json
import logging
import os
import re
import selectors
import socket
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from threading import Lock, Thread, current_thread
from time import monotonic
from typing import Any, Final, cast

from rxdelta.core import InvalidJson, parse_json, visible

_LOG: Final = logging.getLogger("rxdelta.testing")
HOST: Final = "127.0.0.1"
_HERE: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://(?:127\.0\.0\.1|localhost|\[::1\])(?::[0-9]*)?", re.ASCII | re.IGNORECASE
)
"""The origins of this machine, by whose names pages and clients may ask."""
_ONCE: Final = ("host", "origin", "content-length", "transfer-encoding")
"""Headers of which two readers could take two different ones, if a request had several."""
_CONTROL: Final = re.compile(r"[\0-\x08\n-\x1f\x7f]")
_MAX_BODY: Final = 1 << 28  # bytes
_MAX_LINE: Final = 1 << 16
_SIZE: Final = re.compile(b"[0-9A-Fa-f]+")
_LONGEST_WAIT: Final = 3600.0  # seconds that a selector is asked to wait at once
_UNTIL_GIVEN_UP: Final = 5.0  # seconds in which threads end that don't run a user's function


class ClientGone(ConnectionError):
    """The client has closed the connection, or the server is being closed."""


class Refused(Exception):
    """A request that isn't read.

    Attributes:
        status: The HTTP status of the answer.
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class Server(ThreadingTCPServer):
    """Listens at a port of this machine, with a thread for each connection.

    Args:
        port: The port; 0 for any.
        handler: Reads the requests of a connection.

    Attributes:
        failures: What went wrong within the handlers, which isn't the network's fault.
        is_closing: Whether the server is being closed.
    """

    allow_reuse_address = os.name != "nt"  # which there lets two servers have one port
    daemon_threads = True
    request_queue_size = 128
    timeout = 0

    def __init__(self, port: int, handler: type[Connection]) -> None:
        self.failures: list[BaseException] = []
        self.is_closing = False
        self._lock = Lock()
        self._open: dict[Thread, socket.socket] = {}
        super().__init__((HOST, port), handler)
        self.socket.settimeout(1.0)  # a client that is gone by now must not hold up the others
        self.closing, self._close = socket.socketpair()
        self._thread = Thread(target=self._listen, name="rxdelta-fake-provider", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self.socket, selectors.EVENT_READ)
            selector.register(self.closing, selectors.EVENT_READ)
            while not self.is_closing:
                selector.select()
                if not self.is_closing:
                    self.handle_request()

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = Thread(
            target=self.process_request_thread,
            args=(request, client_address),
            name="rxdelta-fake-provider-connection",
            daemon=True,
        )
        with self._lock:
            self._open[thread] = request
        thread.start()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                del self._open[current_thread()]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the errors of the network: a client may go away at any time."""

    def close(self) -> None:
        """End all connections at once, and their threads."""
        with self._lock:
            if self.is_closing:
                return
            self.is_closing = True
        self._close.send(b"\0")  # ends the pauses, too
        self._thread.join()
        self.server_close()
        with self._lock:
            left = {**self._open}
        for connection in left.values():
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        until = monotonic() + _UNTIL_GIVEN_UP
        for thread in left:
            if thread is not current_thread():
                thread.join(max(0.0, until - monotonic()))
        self.closing.close()
        self._close.close()


class Connection(BaseHTTPRequestHandler):
    """Reads the requests of one client. Subclasses answer in `do_POST` and so on."""

    path = ""  # until a line of a request is read; a line that is none is answered, and so logged, too
    default_request_version = "HTTP/1.0"  # of such a line; an answer to an older client has no status
    protocol_version = "HTTP/1.1"
    server_version = "rxdelta"
    sys_version = ""
    disable_nagle_algorithm = True

    @property
    def listener(self) -> Server:
        return cast("Server", self.server)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:  # noqa: ARG002  # the base class's names
        """Log that a request is answered: its method, its path and the status."""
        _LOG.info("%s %d", visible(f"{self.command} {self.path}", lines=False), code)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing else."""

    # The request.

    def check_sender(self) -> None:
        """Refuse a web page of another machine, also one that has made its own name point here.

        Raises:
            Refused: It is one; or the headers could be read in two ways.
        """
        self._check_headers()
        host, origin = self.headers.get("host"), self.headers.get("origin")
        if host is not None and not _HERE.fullmatch(f"http://{host}"):
            raise Refused(403, f"a fake provider must be asked as {HOST} or localhost, and not as {host!r}")
        if origin is not None and not _HERE.fullmatch(origin):
            advice = "; serve the page, for a file has no origin" if origin == "null" else ""
            raise Refused(
                403, f"a fake provider answers pages of this machine only, and not of {origin!r}{advice}"
            )

    def _check_headers(self) -> None:
        if self.headers.defects or any(map(_CONTROL.search, self.headers.values())):
            raise Refused(400, "each header of a request must be on one line: a name, a colon and a value")
        for name in _ONCE:
            if len(self.headers.get_all(name, ())) > 1:
                raise Refused(400, f"a request must not have two headers {name!r}")
        # Only the body of a POST is read. The bytes behind another request's head must not be taken for a request.
        if self.command != "POST" and (
            "content-length" in self.headers or "transfer-encoding" in self.headers
        ):
            self.close_connection = True

    def read_object(self) -> dict[str, Any]:
        """The JSON object that was sent.

        Raises:
            Refused: It is none, or too long, or sent in another way than servers read.
            ClientGone: It wasn't sent to its end.
        """
        coding = self.headers.get("content-encoding", "identity").strip().casefold()
        if coding != "identity":
            raise Refused(415, f"a request to a fake provider must not be compressed, and was by {coding!r}")
        data = self._read_body()
        try:
            found = parse_json(data.decode())
        except (InvalidJson, UnicodeDecodeError) as error:
            raise Refused(400, f"a request must be JSON: {error}") from None
        if not isinstance(found, dict):
            raise Refused(400, f"a request must be a JSON object, not {type(found).__name__}")
        return found  # pyright: ignore[reportUnknownVariableType]

    def _read_body(self) -> bytes:
        coding, length = self.headers.get("transfer-encoding"), self.headers.get("content-length")
        if coding is not None:
            if coding.strip().casefold() != "chunked" or length is not None:
                raise Refused(400, "a request must have a content-length, or be sent in chunks")
            return self._read_chunks()
        if length is None:
            raise Refused(411, "a request must have a content-length, or be sent in chunks")
        if not (length.isascii() and length.isdigit()):
            raise Refused(400, f"the content-length must be a number, not {length!r}")
        return self._read(int(length[:20]), 0)

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while True:
            size = self._read_line().partition(b";")[0].strip()
            if not _SIZE.fullmatch(size):
                raise Refused(400, "the size of a chunk must be a hexadecimal number")
            length = int(size, 16)
            if length == 0:
                break
            body += self._read(length, len(body))
            if self._read_line().strip(b"\r\n"):
                raise Refused(400, "a chunk must be as long as its size says")
        while self._read_line().strip():
            """A trailer, which says nothing here."""
        return bytes(body)

    def _read_line(self) -> bytes:
        line = self.rfile.readline(_MAX_LINE)
        if len(line) == _MAX_LINE:
            raise Refused(400, "a line between chunks is too long")
        if not line.endswith(b"\n"):
            raise ClientGone
        return line

    def _read(self, length: int, before: int) -> bytes:
        if not 0 <= length <= _MAX_BODY - before:
            raise Refused(413, f"a request must not be longer than {_MAX_BODY} bytes")
        data = self.rfile.read(length)
        if len(data) < length:
            raise ClientGone
        return data

    # The answer.

    def end_headers(self) -> None:
        origins: list[str] = self.headers.get_all("origin", []) if hasattr(self, "headers") else []
        if len(origins) == 1 and _HERE.fullmatch(origins[0]):
            self.send_header("Access-Control-Allow-Origin", origins[0])
            self.send_header("Access-Control-Expose-Headers", "*")
            self.send_header("Vary", "Origin")
        super().end_headers()

    def answer(self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        """Answer with a JSON object."""
        data = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def refuse(self, status: int, body: Mapping[str, Any]) -> None:
        """Answer a request that may not have been read to its end, and close the connection."""
        self.close_connection = True
        self.answer(status, body)
        self.connection.settimeout(0.1)
        with suppress(OSError):  # the rest must be read, or the client wouldn't get the answer
            self.connection.shutdown(socket.SHUT_WR)
            while self.connection.recv(_MAX_LINE):
                """Which nobody needs."""

    def begin(self, headers: Mapping[str, str]) -> None:
        """Begin an answer of chunks."""
        self._is_chunked = self.request_version >= "HTTP/1.1"
        self.close_connection |= not self._is_chunked  # by which an older client knows the end
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        if self._is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def send(self, data: bytes) -> None:
        """Send a piece, which isn't empty."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if self._is_chunked else data)

    def end(self) -> None:
        """The answer is whole."""
        if self._is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close the connection without saying that the answer is whole."""
        self.close_connection = True

    def wait(self, seconds: float) -> None:
        """Wait, and watch the client meanwhile. With 0 seconds, only look for the client.

        Raises:
            ClientGone: It has gone away, or the server is being closed.
        """
        until = monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.listener.closing, selectors.EVENT_READ)
            selector.register(self.connection, selectors.EVENT_READ)
            while True:
                left = until - monotonic()
                ready = [key.fileobj for key, _ in selector.select(max(0.0, min(left, _LONGEST_WAIT)))]
                if self.listener.closing in ready or self.listener.is_closing:
                    raise ClientGone
                if self.connection in ready:
                    if not self.connection.recv(1, socket.MSG_PEEK):
                        raise ClientGone
                    selector.unregister(self.connection)  # it has sent another request
                if left <= 0:
                    return
