"""What the server of a fake provider makes of requests that aren't as they should be, and of pages in a browser."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
from typing import Any

import pytest

from rxdelta.testing import FakeProvider, FakeServer

SOON = 10.0  # seconds in which an answer comes
PATH = "/openai-chat/v1/chat/completions"
BODY = b'{"model":"m"}'


def talk(server: FakeServer, *sent: bytes) -> tuple[int, dict[str, str], Any]:
    """Send these bytes on a connection of their own. Return the status, the headers and the body of the answer."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), SOON) as connection:
        for data in sent:
            connection.sendall(data)
        with connection.makefile("rb") as answer:
            while (status := int(answer.readline().split()[1])) == 100:
                assert answer.readline() == b"\r\n"
            headers: dict[str, str] = {}
            while (line := answer.readline().strip()) != b"":
                name, _, value = line.decode().partition(": ")
                headers[name.lower()] = value
            if status == 204:
                return status, headers, None
            length = headers.get("content-length")
            body = answer.read() if length is None else answer.read(int(length))
            return status, headers, json.loads(body) if "json" in headers["content-type"] else body


def post(*headers: str, body: bytes = BODY, path: str = PATH, length: bool = True) -> bytes:
    sized = [f"Content-Length: {len(body)}"] if length else []
    return (
        "\r\n".join([f"POST {path} HTTP/1.1", "Host: localhost:1", *sized, *headers, "", ""]).encode() + body
    )


@pytest.mark.parametrize(
    ("sent", "status", "sentence"),
    [
        (post(body=b"{"), 400, "a request must be JSON"),
        (post(body=b'{"a": NaN}'), 400, "a request must be JSON"),
        (post(body=b"[" * 100_000), 400, "a request must be JSON"),
        (post(body=b"\xff"), 400, "a request must be JSON"),
        (post(body=b""), 400, "a request must be JSON"),
        (post(body=b"[1]"), 400, "a request must be a JSON object, not list"),
        (post("Content-Encoding: gzip", body=gzip.compress(BODY)), 415, "must not be compressed"),
        (post(length=False, body=b""), 411, "must have a content-length"),
        (post("Content-Length: many", length=False), 400, "the content-length must be a number"),
        (post("Content-Length: -1", length=False), 400, "the content-length must be a number"),
        (post(f"Content-Length: {10**15}", length=False), 413, "must not be longer than"),
        (post(f"Content-Length: {'9' * 5000}", length=False), 413, "must not be longer than"),
        (post("Transfer-Encoding: chunked"), 400, "must have a content-length, or"),
        (post("Transfer-Encoding: br", length=False), 400, "must have a content-length, or"),
        (post("Transfer-Encoding: chunked", length=False, body=b"zz\r\n"), 400, "hexadecimal"),
        (post("Transfer-Encoding: chunked", length=False, body=b"-1\r\n"), 400, "hexadecimal"),
        (post("Transfer-Encoding: chunked", length=False, body=b"fffffffff\r\n"), 413, "must not be longer"),
        (post(path="/v1/none"), 404, "serves nothing at '/v1/none'"),
        (post("Origin: https://evil.example"), 403, "answers pages of this machine only"),
        (post("Origin: null"), 403, "answers pages of this machine only"),
        (post().replace(b"localhost:1", b"evil.example:80"), 403, "must be asked as 127.0.0.1 or localhost"),
        (post().replace(b"localhost:1", b"127.0.0.1.evil.example"), 403, "must be asked as"),
        (post().replace(b"localhost:1", b"[::1"), 403, "must be asked as"),
    ],
)
def test_a_request_that_can_not_be_read_is_refused_in_words(sent: bytes, status: int, sentence: str) -> None:
    provider = FakeProvider("Hi")
    with provider.serve() as server:
        found, headers, body = talk(server, sent)
    assert found == status
    assert sentence in body["error"]["message"]
    assert headers["connection"] == "close"
    assert (provider.left, provider.requests) == (1, [])


def test_a_refusal_reaches_a_client_that_is_still_sending() -> None:
    with FakeProvider().serve() as server:
        status, _, body = talk(server, post(path="/v1/none", body=b" " * 8_000_000))
    assert status == 404
    assert "serves nothing" in body["error"]["message"]


def test_a_refusal_has_the_form_of_the_path_s_format() -> None:
    with FakeProvider().serve() as server:
        _, _, anthropic = talk(server, post(body=b"{", path="/v1/messages"))
        _, _, gemini = talk(server, post(body=b"{", path="/gemini/v1/models/m:generateContent"))
        _, _, ollama = talk(server, post(body=b"{", path="/api/chat"))
    assert anthropic["error"]["type"] == "invalid_request_error"
    assert gemini["error"]["status"] == "INVALID_ARGUMENT"
    assert isinstance(ollama["error"], str)


@pytest.mark.parametrize(
    "sent",
    [
        [post("Transfer-Encoding: chunked", length=False, body=b"7\r\n" + BODY[:7] + b"\r\n"),
         b"6;name=value\r\n" + BODY[7:] + b"\r\n0\r\nTrailer: x\r\n\r\n"],
        [post("Expect: 100-continue", body=b"").replace(b": 0", b": 13"), BODY],
        [post("Origin: http://localhost:5173")],
        [post().replace(b"localhost:1", b"127.0.0.1:99")],
        [post().replace(b"localhost:1", b"[::1]:99")],
        [post()[:20], post()[20:]],
    ],
    ids=["in chunks", "after 100", "of a page here", "by number", "by IPv6", "in halves"],
)  # fmt: skip
def test_a_request_may_be_sent_in_these_ways(sent: list[bytes]) -> None:
    provider = FakeProvider("Hi")
    with provider.serve() as server:
        status, _, body = talk(server, *sent)
    assert (status, provider.requests[0].body) == (200, {"model": "m"})
    assert body["choices"][0]["message"]["content"] == "Hi"


def test_a_client_of_http_1_0_reads_to_the_end_of_the_connection() -> None:
    streamed = b'{"stream":true}'
    with FakeProvider("Hi").serve() as server:
        status, headers, body = talk(server, post(body=streamed).replace(b"HTTP/1.1", b"HTTP/1.0"))
    assert status == 200
    assert "transfer-encoding" not in headers
    assert body.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize(
    "sent", [b"", b"POST", b"GET / HTTP/1.1\r\n", post()[:-3], b"\x16\x03\x01\x02\r\n\r\n"]
)
def test_half_a_request_takes_no_reply(sent: bytes) -> None:
    provider = FakeProvider("Hi")
    with provider.serve() as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        with socket.create_connection((host, int(port)), SOON) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1000):
                pass
    assert provider.left == 1


def test_a_page_of_this_machine_may_ask_from_its_own_port() -> None:
    asks = [
        f"OPTIONS {PATH} HTTP/1.1",
        "Host: 127.0.0.1",
        "Access-Control-Request-Method: POST",
        "Access-Control-Request-Headers: authorization,content-type",
    ]

    def asked_by(origin: str) -> tuple[int, dict[str, str]]:
        return talk(server, "\r\n".join([*asks, f"Origin: {origin}", "", ""]).encode())[:2]

    with FakeProvider("Hi").serve() as server:
        status, headers = asked_by("http://localhost:5173")
        assert (status, headers["access-control-allow-origin"]) == (204, "http://localhost:5173")
        assert headers["access-control-allow-headers"] == "authorization,content-type"
        assert "POST" in headers["access-control-allow-methods"]
        status, headers = asked_by("https://evil.example")
        assert status == 403
        assert "access-control-allow-origin" not in headers
        _, headers, _ = talk(server, post("Origin: http://127.0.0.1:5173"))
        assert headers["access-control-allow-origin"] == "http://127.0.0.1:5173"


# The program under test stays as it is.

PROGRAM = """
import json, os, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
request = urllib.request.Request(url, b"{}", {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})
with urllib.request.urlopen(request, timeout=10) as answer:
    print(json.load(answer)["choices"][0]["message"]["content"])
"""


@pytest.mark.parametrize("proxied", [False, True])
def test_a_program_in_another_process_finds_the_server_by_its_environment(proxied: bool) -> None:
    provider = FakeProvider("Hello world")
    dead = {"http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"} if proxied else {}
    with provider.serve() as server:
        environment = {**os.environ, **dead, **server.environment}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.stdout, done.stderr) == ("Hello world\n", "")
    assert provider.requests[0].headers["authorization"] == "Bearer fake"


@pytest.mark.parametrize(
    ("known", "then"),
    [(None, "127.0.0.1,localhost"), ("corp.example", "corp.example,127.0.0.1,localhost"), ("*", "*")],
)
def test_the_environment_adds_this_machine_to_what_has_no_proxy(
    known: str | None, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    if known is not None:
        monkeypatch.setenv("NO_PROXY", known)
    with FakeProvider().serve() as server:
        found = server.environment
    assert found["NO_PROXY"] == found["no_proxy"] == then
    assert found["ANTHROPIC_BASE_URL"] == f"{server.url}/anthropic-messages"
    assert found["GOOGLE_GEMINI_BASE_URL"] == f"{server.url}/gemini"
