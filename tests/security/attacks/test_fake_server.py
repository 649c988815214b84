"""Attacks on the server of a fake provider: what isn't a request, is two, or comes from elsewhere."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.attacks import SECONDS, STEERING, address, each, raw, request

from rxdelta.testing import FakeProvider, FakeServer

CHAT = "/openai-chat/v1/chat/completions"
BODY = b'{"model":"m"}'
CHUNKED = b"d\r\n" + BODY + b"\r\n0\r\n\r\n"
GOOD = request(path=CHAT, body=BODY)


def post(*headers: str, body: bytes = BODY, path: str = CHAT, host: str = "localhost") -> bytes:
    return request(*headers, path=path, body=body, host=host)


def sized(*headers: str, body: bytes = BODY) -> bytes:
    """A request whose headers alone say how long it is."""
    return post(*headers, body=body).replace(f"Content-Length: {len(body)}\r\n".encode(), b"", 1)


def chunks(body: bytes) -> bytes:
    return sized("Transfer-Encoding: chunked", body=body)


def looked(path: str, *headers: str, method: str = "GET") -> bytes:
    return request(*headers, path=path, method=method)


def with_body(head: bytes, body: bytes) -> bytes:
    """The request with a body, behind which the connection stays."""
    length = head.replace(b"Content-Length: 0", b"Content-Length: %d" % len(body), 1)
    return length.replace(b"Connection: close\r\n", b"") + body


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[FakeProvider, FakeServer]]:
    provider = FakeProvider("Hi", repeat=True)
    with provider.serve() as server:
        yield provider, server


def is_refused(served: tuple[FakeProvider, FakeServer], sent: bytes, status: int) -> None:
    """One answer with this status, then the connection ends. No reply is given, and the next client gets its own."""
    provider, server = served
    before = len(provider.requests)
    (answer,) = raw(server.url, sent)
    assert answer.status == status
    assert len(provider.requests) == before
    assert answer.header("access-control-allow-origin") is None
    (good,) = raw(server.url, GOOD)
    assert good.json["choices"][0]["message"]["content"] == "Hi"


REFUSED: dict[str, tuple[bytes, int]] = {
    # How long is it?
    "two lengths": (post("Content-Length: 20"), 400),
    "two lengths that are the same": (post("Content-Length: 13"), 400),
    "two lengths, the wrong one first": (sized("Content-Length: 2", "Content-Length: 13"), 400),
    "a list of lengths": (sized("Content-Length: 13, 13"), 400),
    "a length with a sign": (sized("Content-Length: +13"), 400),
    "a length in hexadecimal": (sized("Content-Length: 0xd"), 400),
    "a length with a point": (sized("Content-Length: 13.0"), 400),
    "a length with an underscore": (sized("Content-Length: 1_3"), 400),
    "a length in other digits": (sized("Content-Length: \xb9\xb3"), 400),
    "a length that is empty": (sized("Content-Length:"), 400),
    "a length of 2^63": (sized(f"Content-Length: {2**63}"), 413),
    "a length of 2^64 and 13": (sized(f"Content-Length: {2**64 + 13}"), 413),
    "two codings": (sized("Transfer-Encoding: chunked", "Transfer-Encoding: identity", body=CHUNKED), 400),
    "codings in a list": (sized("Transfer-Encoding: gzip, chunked", body=CHUNKED), 400),
    "a coding behind a tab in the name": (sized("Transfer-Encoding\t: chunked", body=CHUNKED), 400),
    "a coding that is nearly one": (sized("Transfer-Encoding: xchunked", body=CHUNKED), 400),
    "a coding in quotes": (sized('Transfer-Encoding: "chunked"', body=CHUNKED), 400),
    "a coding that goes on in the next line": (sized("Transfer-Encoding: chun\r\n ked", body=CHUNKED), 400),
    "a coding behind a vertical tab": (sized("Transfer-Encoding: \x0bchunked", body=CHUNKED), 400),
    "chunks and a length of nothing": (sized("Transfer-Encoding: chunked", "Content-Length: 0", body=CHUNKED), 400),
    # Chunks.
    "a chunk longer than its size": (chunks(b"2\r\n" + BODY + b"\r\n0\r\n\r\n"), 400),
    "words behind a chunk": (chunks(b"d\r\n" + BODY + b"words\r\n0\r\n\r\n"), 400),
    "a size with 0x": (chunks(b"0xd\r\n" + BODY + b"\r\n0\r\n\r\n"), 400),
    "a size with a sign": (chunks(b"+d\r\n" + BODY + b"\r\n0\r\n\r\n"), 400),
    "a size with an underscore": (chunks(b"0_d\r\n" + BODY + b"\r\n0\r\n\r\n"), 400),
    "a size that is empty": (chunks(b"\r\n" + BODY + b"\r\n0\r\n\r\n"), 400),
    "a size of 100 digits": (chunks(b"f" * 100 + b"\r\n"), 413),
    "a size of 40,000 digits": (chunks(b"f" * 40_000 + b"\r\n"), 413),
    "a size whose words never end": (chunks(b"d;" + b"a" * 70_000 + b"\r\n" + BODY + b"\r\n0\r\n\r\n"), 400),
    "a chunk behind 2^28 bytes": (chunks(b"d\r\n" + BODY + b"\r\nfffffff\r\n"), 413),
    # Which header is it?
    "two hosts": (post("Host: evil.example"), 400),
    "two origins": (post("Origin: http://localhost", "Origin: https://evil.example"), 400),
    "a header that goes on in the next line": (post("X: a\r\n b"), 400),
    "an origin that goes on in the next line": (post("Origin: http://localhost/\r\n X-Evil: 1"), 400),
    "a host that goes on in the next line": (post(host="localhost\r\n .evil.example"), 400),
    "a line without a colon hides the others": (post("X", "Origin: https://evil.example"), 400),
    "a space in front of a colon hides the others": (post("X : a", "Origin: https://evil.example"), 400),
    "a name that is empty": (post(": a", "Origin: https://evil.example"), 400),
    "the first header is a continuation": (post().replace(b"Host:", b" a\r\nHost:"), 400),
    "NUL in a header": (post("X: a\0b"), 400),
    "ESC in a header": (post("X: \x1b[2J"), 400),
    "CR alone ends a header": (post("X: a\rOrigin: https://evil.example"), 403),
    "CR alone in front of a space": (post("X: a\r b"), 400),
    "a header of 70,000 bytes": (post("X: " + "a" * 70_000), 431),
    "200 headers": (post(*(f"X{number}: a" for number in range(200))), 431),
    # Who asks?
    "a host of elsewhere": (post(host="evil.example"), 403),
    "a host that begins as here": (post(host="127.0.0.1.evil.example"), 403),
    "a host that ends as here": (post(host="evil-localhost"), 403),
    "a host with a name in front": (post(host="evil.example@localhost"), 403),
    "a host with a mark of a fragment": (post(host="localhost#.evil.example"), 403),
    "a host with a path": (post(host="localhost/.evil.example"), 403),
    "a host with a question": (post(host="localhost?.evil.example"), 403),
    "a host with a backslash": (post(host="localhost\\.evil.example"), 403),
    "a host that is all addresses": (post(host="0.0.0.0"), 403),
    "a host as one number": (post(host="2130706433"), 403),
    "a host that is empty": (post(host=""), 403),
    "a host with a full stop behind": (post(host="localhost."), 403),
    "a host with half a bracket": (post(host="[::1"), 403),
    "a host with a port that is none": (post(host="localhost:evil"), 403),
    "an origin of elsewhere": (post("Origin: https://evil.example"), 403),
    "an origin of a sandbox": (post("Origin: null"), 403),
    "an origin that is empty": (post("Origin:"), 403),
    "an origin with a name in front": (post("Origin: http://evil.example@localhost"), 403),
    "an origin with a backslash": (post("Origin: http://evil.example\\@localhost"), 403),
    "an origin with a mark of a fragment": (post("Origin: http://localhost#@evil.example"), 403),
    "two origins in one": (post("Origin: http://localhost https://evil.example"), 403),
    "an origin without a scheme": (post("Origin: localhost"), 403),
    "an origin of a file": (post("Origin: file://"), 403),
    "a page that looks at the models": (looked("/v1/models", "Origin: https://evil.example"), 403),
    "a page that asks what it may": (looked("/", "Origin: https://evil.example", method="OPTIONS"), 403),
    "another name that looks at the addresses": (looked("/").replace(b"localhost", b"evil.example"), 403),
    # Which method and version is it?
    "TRACE": (looked("/", "Cookie: secret", method="TRACE"), 501),
    "CONNECT": (looked("evil.example:443", method="CONNECT"), 501),
    "PUT": (request(path=CHAT, body=BODY, method="PUT"), 501),
    "DELETE": (looked(CHAT, method="DELETE"), 501),
    "post": (request(path=CHAT, body=BODY, method="post"), 501),
    "a method of a terminal's": (looked("/", method="\x1b[2J"), 501),
    "a method of Python's": (looked("/", method="__class__"), 501),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "HTTP/9.9": (b"GET / HTTP/9.9\r\n\r\n", 505),
    "HTTP/1.1.1": (b"GET / HTTP/1.1.1\r\n\r\n", 400),
    "HTTP/-1.1": (b"GET / HTTP/-1.1\r\n\r\n", 400),
    "a version of 5,000 digits": (b"GET / HTTP/" + b"1" * 5_000 + b".1\r\n\r\n", 400),
    "a version that is none": (b"GET / FTP/1.1\r\n\r\n", 400),
    "POST in HTTP/0.9": (b"POST /\r\n\r\n", 400),
    "one word": (b"HELLO\r\n\r\n", 400),
    "four words": (b"GET / HTTP/1.1 HTTP/1.1\r\n\r\n", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\n\r\n\r\n", 400),
    "a line of 70,000 bytes": (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
    # Where does it go?
    "a path with dots": (looked("/../../../../etc/passwd"), 404),
    "a path with encoded dots": (looked("/%2e%2e/%2e%2e/etc/passwd"), 404),
    "a path with a backslash": (looked("/..\\..\\etc\\passwd"), 404),
    "a path with NUL": (looked("/v1/none%00/v1"), 404),
    "a path that is no URL": (looked("http://[::1/none"), 404),
    "a path of a file": (looked("file:///etc/passwd"), 404),
    "a POST to a path that is no URL": (post(path="http://[::1/none"), 404),
    "a format that is none": (post(path="/__class__/v1/none"), 404),
    # What is in it?
    "JSON 100,000 deep": (post(body=b'{"a":' * 100_000), 400),
    "a number of 100,000 digits": (post(body=b'{"a":' + b"9" * 100_000 + b"}"), 400),
    "a BOM": (post(body=b"\xef\xbb\xbf" + BODY), 400),
    "UTF-16": (post(body=BODY.decode().encode("utf-16-le")), 400),
    "two values": (post(body=BODY + BODY), 400),
    "compressed twice": (post("Content-Encoding: gzip, gzip"), 415),
}  # fmt: skip


@each(REFUSED)
def test_one_answer_refuses_it(served: tuple[FakeProvider, FakeServer], row: tuple[bytes, int]) -> None:
    is_refused(served, *row)


READ: dict[str, tuple[bytes, list[int], int]] = {
    # What is sent, the statuses of the answers, and the number of requests that were read.
    "LF alone ends the lines": (post().replace(b"\r\n", b"\n"), [200], 1),
    "zeros in front of a length": (sized("Content-Length: 0000000000000000013"), [200], 1),
    "a chunk of words": (chunks(b"d;a=b;c\r\n" + BODY + b"\r\n0\r\n\r\n"), [200], 1),
    "chunks of a byte": (
        chunks(b"".join(b"1\r\n%c\r\n" % one for one in b'{"a":"%s"}' % (b"x" * 50_000)) + b"0\r\n\r\n"),
        [200],
        1,
    ),
    "a trailer that is a header": (chunks(CHUNKED[:-2] + b"Origin: https://evil.example\r\n\r\n"), [200], 1),
    "a whole URL of elsewhere as its path": (post(path=f"http://evil.example{CHAT}"), [200], 1),
    "a path that begins with two slashes": (post(path=f"//evil.example{CHAT}"), [200], 1),
    "a key of JSON twice": (post(body=b'{"stream":true,"stream":false}'), [200], 1),
    "keys of Python's": (post(body=b'{"__class__":1,"__proto__":{"stream":true}}'), [200], 1),
    "bytes behind its end": (post(body=BODY) + b"GET / HTTP/1.1\r\n\r\n", [200], 1),
    "a second request behind it": (GOOD.replace(b"Connection: close\r\n", b"") + GOOD, [200, 200], 2),
    "no request behind it": (GOOD.replace(b"Connection: close\r\n", b"") + b"\x00\xff\r\n\r\n", [200, 400], 1),
    "a request in the body of a GET": (with_body(looked("/"), GOOD), [200], 0),
    "a request in the body of a GET that finds nothing": (with_body(looked("/nowhere"), GOOD), [404], 0),
    "a request in the body of an OPTIONS": (with_body(looked("/", method="OPTIONS"), GOOD), [204], 0),
    "a request in the chunks of a GET": (
        with_body(looked("/"), b"%x\r\n%b\r\n0\r\n\r\n" % (len(GOOD), GOOD)).replace(
            b"Content-Length", b"Transfer-Encoding: chunked\r\nX"
        ),
        [200],
        0,
    ),
    "a request in a body that is refused": (post(body=GOOD, path="/v1/none"), [404], 0),
    "a WebSocket": (
        looked("/", "Upgrade: websocket", "Sec-WebSocket-Key: AAAA", "Sec-WebSocket-Version: 13"),
        [200],
        0,
    ),
    "HTTP/2 by an upgrade": (looked("/", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"), [200], 0),
    "HTTP/0.9": (b"GET /\r\n\r\n", [200], 0),
    "it expects something else": (post("Expect: 200-ok"), [200], 1),
    "it expects to go on, and was sent at once": (post("Expect: 100-continue"), [100, 200], 1),
    "of elsewhere, it expects to go on": (
        post("Expect: 100-continue", "Origin: https://evil.example"),
        [100, 403],
        0,
    ),
}  # fmt: skip


@each(READ)
def test_it_is_read_as_what_it_is_and_nothing_else(
    served: tuple[FakeProvider, FakeServer], row: tuple[bytes, list[int], int]
) -> None:
    provider, server = served
    sent, statuses, count = row
    before = len(provider.requests)
    answers = raw(server.url, sent)
    assert [answer.status for answer in answers] == statuses
    assert len(provider.requests) - before == count
    assert not any(answer.header("access-control-allow-origin") for answer in answers)


WANTED: dict[str, str] = {
    "a header of its own": "a\r\n X-Evil: 1",
    "a line end that is encoded": "a%0d%0aX-Evil: 1",
    "a control character": "a\x0bX-Evil: 1",
}


@each(WANTED)
def test_what_a_page_asks_to_send_becomes_no_header(
    served: tuple[FakeProvider, FakeServer], row: str
) -> None:
    origin = "Origin: http://localhost:5173"
    (answer,) = raw(
        served[1].url, looked("/", origin, f"Access-Control-Request-Headers: {row}", method="OPTIONS")
    )
    assert answer.header("x-evil") is None
    assert answer.status == (204 if "%" in row else 400)


STALLED: dict[str, bytes] = {
    "nothing": b"",
    "a letter": b"P",
    "half a line": b"POST /openai-chat/v1",
    "a line": b"POST / HTTP/1.1\r\n",
    "a line of HTTP/0.9": b"GET /\r\n",
    "half of the headers": GOOD.partition(b"Content")[0],
    "a header for ever": GOOD[:-17] + b"X: " + b"a" * 30_000,
    "no body": GOOD[: -len(BODY)],
    "half of the body": GOOD[:-5],
    "a body of 200 MB": sized("Content-Length: 200000000"),
    "half of a chunk": chunks(CHUNKED)[:-20],
    "no last chunk": chunks(CHUNKED)[:-5],
    "trailers for ever": chunks(CHUNKED)[:-2] + b"X: a\r\n" * 1_000,
    "it expects to go on, and doesn't": post("Expect: 100-continue")[: -len(BODY)],
    "half of TLS": b"\x16\x03\x01",
}


@each(STALLED)
def test_a_client_that_stops_holds_up_nobody_and_ends_with_the_server(row: bytes) -> None:
    before = {*threading.enumerate()}
    server = FakeProvider("Hi", repeat=True).serve()
    connections = [socket.create_connection(address(server.url), SECONDS) for _ in range(5)]
    try:
        for connection in connections:
            connection.sendall(row)
        (good,) = raw(server.url, GOOD)
        assert good.status == 200
    finally:
        server.close()
    assert {*threading.enumerate()} <= before
    for connection in connections:
        with connection:
            while True:  # what it says of a request to go on; then the end
                try:
                    if not connection.recv(1_000):
                        break
                except ConnectionResetError:
                    break


LEFT: dict[str, tuple[bytes, bool]] = {
    "in mid-request": (GOOD[:-5], False),
    "in mid-request, by a reset": (GOOD[:-5], True),
    "before the answer": (GOOD, False),
    "before the answer, by a reset": (GOOD, True),
    "before an answer of chunks": (post(body=b'{"stream":true}'), True),
    "before a refusal": (post(path="/v1/none", body=b"a" * 100_000), True),
    "behind a hundred requests": (GOOD.replace(b"Connection: close\r\n", b"") * 100, True),
}


@each(LEFT)
def test_a_client_that_leaves_takes_nobody_with_it(row: tuple[bytes, bool]) -> None:
    sent, resets = row
    before = {*threading.enumerate()}
    with FakeProvider("Hi", repeat=True).serve() as server:
        for _ in range(3):
            connection = socket.create_connection(address(server.url), SECONDS)
            connection.sendall(sent)
            if resets:  # closing sends a reset, because nothing lingers
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            connection.close()
        (good,) = raw(server.url, GOOD)
        assert good.status == 200
    assert {*threading.enumerate()} <= before


ELSEWHERE = {"another address of the loop": "127.0.0.2", "IPv6": "::1", "the machine's name": ""}


@each(ELSEWHERE)
def test_it_listens_at_one_address_only(served: tuple[FakeProvider, FakeServer], row: str) -> None:
    _, port = address(served[1].url)
    try:
        host = row or socket.gethostbyname(socket.gethostname())
    except OSError:
        pytest.skip("the machine's name has no address")
    if host == "127.0.0.1":
        pytest.skip("the machine's name is this address")
    with pytest.raises(OSError):
        socket.create_connection((host, port), SECONDS)


RECORDED: dict[str, dict[str, Any]] = {
    "a header behind a value": {"retry-after": "2\r\nSet-Cookie: owned=1"},
    "a body behind a value": {"retry-after": "2\r\n\r\n<script>owned</script>"},
    "LF alone": {"retry-after": "2\nSet-Cookie: owned=1"},
    "CR alone": {"retry-after": "2\rSet-Cookie: owned=1"},
    "NUL": {"retry-after": "2\0owned"},
    "a letter that no header has": {"retry-after": "2\u20acowned"},
    "half a pair": {"retry-after": "2\ud83downed"},
    "a header behind a name": {"retry-after\r\nSet-Cookie": "owned"},
    "another length": {"content-length": "1", "transfer-encoding": "owned"},
    "a cookie": {"set-cookie": "owned=1", "access-control-allow-origin": "owned"},
    "no text": {"retry-after": {"owned": 1}},
}


@each(RECORDED)
def test_a_recording_of_anybodys_adds_no_header(tmp_path: Path, row: dict[str, Any]) -> None:
    path = tmp_path / "recording.jsonl"
    error = {
        "type": "RateLimitError",
        "module": "openai",
        "message": "Slow down.",
        "status_code": 429,
        "headers": row,
    }
    lines = [{"rxdelta": "recording", "version": 1}, {"t": 0, "error": error}]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with FakeProvider.from_recording(path).serve() as server:
        (answer,) = raw(server.url, GOOD)
    assert answer.status == 429
    assert answer.json["error"]["message"] == "Slow down."
    assert "owned" not in str(answer)


LOGGED: dict[str, bytes] = {
    "ESC in the path": looked("/\x1b[2J\x1b]0;owned\x07"),
    "C1 in the path": looked("/\x9b2J"),
    "a backspace and DEL in the path": looked("/\x08\x08\x7f"),
    "NUL in the path": looked("/\0"),
    "CR in the path": b"GET /\ra HTTP/1.1\r\nConnection: close\r\n\r\n",
    "ESC in the method": looked("/", method="\x1b[2J"),
    "a line of the log in the path": looked("/\nGET/owned"),
    "a line of the log, encoded": looked("/%0aGET%20/owned%20200"),
    "ESC in the version": b"GET / HTTP/\x1b[2J\r\n\r\n",
}


@each(LOGGED)
def test_a_request_is_one_line_of_the_log_and_drives_no_terminal(
    served: tuple[FakeProvider, FakeServer], row: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "rxdelta.testing")
    answers = raw(served[1].url, row)
    assert len(caplog.messages) == len(answers) == 1
    for line in caplog.messages:
        assert not STEERING.search(line)
        assert "\n" not in line
