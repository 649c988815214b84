"""What the written attacks share: rows of tables, hostile texts, and bytes sent to a server as they are."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest

__all__ = ["SECONDS", "STEERING", "TEXTS", "Answer", "address", "each", "raw", "request"]

SECONDS = 30.0  # nothing here takes time; what hangs is found

STEERING = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that drive a terminal, or turn the direction of writing. Line ends and tabs are a text's own."""

TEXTS: dict[str, str] = {
    # The framing of server-sent events and of lines of JSON.
    "a line end": "a\n",
    "an empty line": "a\n\nb",
    "CRLF": "a\r\n\r\nb",
    "CR alone": "a\r\rb",
    "another frame": 'a\n\ndata: {"type":"error","errorText":"owned"}\n\n',
    "another frame behind CR": 'a\r\rdata: {"type":"error","errorText":"owned"}\r\r',
    "the end of the stream": "a\n\ndata: [DONE]\n\n",
    "the end of the stream alone": "[DONE]",
    "data:": "data: [DONE]",
    "event:": "event: error",
    "id:": "id: 7-0",
    "retry:": "retry: 0",
    "a comment": ": keep-alive",
    "an event behind a line end": "\nevent: error\ndata: x\n\n",
    "U+2028": 'a\u2028data: {"type":"error"}\u2028\u2028',
    "U+2029": 'a\u2029data: {"type":"error"}\u2029\u2029',
    "NEL": 'a\x85data: {"type":"error"}\x85\x85',
    "vertical tab and form feed": "a\x0bdata: x\x0c\x0cdata: [DONE]",
    "separators of files": "a\x1cdata: x\x1d\x1edata: [DONE]\x1f",
    "a line of JSON": '\n{"done":true,"message":{"content":"owned"}}\n',
    # Letters that encoders stumble over.
    "NUL": "a\0b",
    "BOM": "\ufeffdata: x\ufeff",
    "half a pair": "a\ud83d",
    "the other half": "\ude00a",
    "halves the wrong way round": "\ude00\ud83d",
    "no character": "\uffff\ufffe\U0010ffff",
    "a quote": '"',
    "a quote and a brace": '"},{"type":"error","a":"',
    "backslashes": "\\\\\\",
    "an escape that is none": "\\u0022\\n\\ud83d",
    "DEL and C1": "\x7f\x80\x9b2J\x9d",
    "combining": "a" + "\u0301" * 200,
    # Names that mean something elsewhere.
    "__proto__": "__proto__",
    "a template": "{{7*7}}${7*7}#{7*7}%(x)s{0}{x!r}",
    "a format": "%s%n%d%x" * 9,
    "nothing": "",
    "white space": " \t ",
    "long": "a" * 5_000,
}
"""By their names: what a model, a tool or a person may say anywhere."""


def each(table: Mapping[str, Any]) -> Callable[[Any], Any]:
    """Runs a test once for each row of a table, under the row's name. The test takes it as `row`."""
    return pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in table.items()])


@attrs.frozen
class Answer:
    """What a server answered.

    Attributes:
        status: The status.
        headers: The headers as they came, with names in lower case.
        body: The body, joined if it came in chunks.
    """

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        (found,) = [value for known, value in self.headers if known == name] or [None]
        return found

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def address(url: str) -> tuple[str, int]:
    host, _, port = url.removeprefix("http://").partition(":")
    return host, int(port)


def request(
    *headers: str, path: str = "/", body: bytes = b"", method: str = "POST", host: str = "localhost"
) -> bytes:
    """A request as bytes, whose length is right, and behind which the connection ends."""
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {host}",
        f"Content-Length: {len(body)}",
        "Connection: close",
    ]
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + body


def raw(url: str, *sent: bytes) -> list[Answer]:
    """Send these bytes on a connection of their own, and read the answers until the server closes it.

    It fails, by a timeout, if the server keeps the connection.
    """
    with socket.create_connection(address(url), SECONDS) as connection:
        try:
            for piece in sent:
                connection.sendall(piece)
        except ConnectionError:
            """The server has read enough; what it said is still there."""
        with connection.makefile("rb") as stream:
            found: list[Answer] = []
            try:
                while (line := stream.readline()) != b"":
                    found.append(_answer(line, stream))
            except ConnectionResetError:
                """There is nothing more."""
            return found


def _answer(line: bytes, stream: Any) -> Answer:
    assert re.fullmatch(rb"HTTP/1\.[01] \d{3} [ -~\xa0-\xff]*\r\n", line), line
    status = int(line.split()[1])
    headers: list[tuple[str, str]] = []
    while (line := stream.readline()) != b"\r\n":
        assert re.fullmatch(rb"[!-9;-~]+: ?[ -~]*\r\n", line), line
        name, _, value = line.decode().partition(":")
        headers.append((name.lower(), value.strip()))
    known = dict(headers)
    if status in (100, 101, 204):
        body = b""
    elif known.get("transfer-encoding") == "chunked":
        body = b""
        while size := int(stream.readline(), 16):
            body += stream.read(size + 2)[:-2]
        stream.readline()
    elif "content-length" in known:
        body = stream.read(int(known["content-length"]))
    else:
        body = stream.read()
    return Answer(status, headers, body)
