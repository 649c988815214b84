"""Attacks on the gateway of the examples: who asks, what is asked, and who leaves."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.attacks import SECONDS, STEERING, address, each, raw, request

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

import uvicorn

PATH = Path(__file__).resolve().parents[3] / "examples" / "gateway.py"
CHAT, RESPONSES, MESSAGES, OLLAMA = "/v1/chat/completions", "/v1/responses", "/v1/messages", "/api/chat"
COUNT = "/v1/messages/count_tokens"
QUESTION = [{"role": "user", "content": "Lisbon or Oslo?"}]
ASKED: dict[str, Any] = {"messages": QUESTION, "max_tokens": 9}
FOR_EVER = object()


class Model:
    """A model that says what a test wants, in Anthropic's words."""

    def __init__(self) -> None:
        self.says: list[Any] = []
        self.asked: list[Any] = []
        self.begun, self.left = threading.Event(), threading.Event()

    async def ask(self, asked: Any) -> AsyncIterator[Any]:
        self.asked.append(asked)
        self.begun.set()
        try:
            for chunk in self.says:
                if chunk is FOR_EVER:
                    await asyncio.Event().wait()
                yield chunk
        finally:
            self.left.set()


def said(*pieces: str, kind: str = "text") -> list[Any]:
    head = {"id": "msg_1", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 1}}
    block = {"type": kind, kind: ""}
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": f"{kind}_delta", kind: piece}}
        for piece in pieces
    ]
    return [
        {"type": "message_start", "message": head},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Any, str]]:
    """The example's module, and where it is served."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GATEWAY_KEY", "MODEL", "REFUSED"):
            patch.delenv(name, raising=False)
        spec = importlib.util.spec_from_file_location("gateway_under_attack", PATH)
        assert spec is not None
        assert spec.loader is not None
        gateway: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(gateway)
    server = uvicorn.Server(uvicorn.Config(gateway.app, port=0, log_level="critical", ws="none"))
    serving = threading.Thread(target=server.run, name="gateway")
    serving.start()
    while not server.started:
        assert serving.is_alive()
    yield gateway, f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    serving.join(SECONDS)


@pytest.fixture
def model(served: tuple[Any, str], monkeypatch: pytest.MonkeyPatch) -> Model:
    gateway, _ = served
    gateway.entries.clear()
    one = Model()
    one.says = said("Hello")
    monkeypatch.setattr(gateway, "ask", one.ask)
    return one


def ask(path: str, body: Any, *headers: str, host: str = "127.0.0.1") -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request("Content-Type: application/json", *headers, path=path, body=data, host=host)


def look(path: str, *headers: str, method: str = "GET", host: str = "127.0.0.1") -> bytes:
    return request(*headers, path=path, method=method, host=host)


REFUSED: dict[str, tuple[bytes, int]] = {
    # Who asks?
    "another name looks at the page": (look("/", host="evil.example"), 400),
    "another name looks at the models": (look("/v1/models", host="evil.example"), 400),
    "another name looks at Ollama's models": (look("/api/tags", host="evil.example:80"), 400),
    "another name asks": (ask(CHAT, ASKED, host="evil.example"), 400),
    "another name that begins as here": (look("/", host="127.0.0.1.evil.example"), 400),
    "another name that ends as here": (look("/", host="evil-localhost"), 400),
    "another name with a name in front": (look("/", host="evil@localhost"), 400),
    "no name": (look("/", host=""), 400),
    "a page of elsewhere": (ask(CHAT, ASKED, "Origin: https://evil.example"), 403),
    "a page of a sandbox": (ask(CHAT, ASKED, "Origin: null"), 403),
    "a page that posts a form": (ask(MESSAGES, ASKED, "Origin: https://evil.example", "Content-Type: text/plain"), 403),
    "a page that asks for the count": (ask(COUNT, ASKED, "Origin: https://evil.example"), 403),
    "a page that asks what it may": (look(CHAT, "Origin: https://evil.example", "Access-Control-Request-Method: POST", method="OPTIONS"), 405),
    # Which method?
    "GET": (look(CHAT), 405),
    "HEAD": (look(CHAT, method="HEAD"), 405),
    "TRACE": (look(CHAT, "Cookie: secret", method="TRACE"), 405),
    "PUT": (request(path=CHAT, body=b"{}", method="PUT", host="127.0.0.1"), 405),
    "DELETE": (look("/", method="DELETE"), 405),
    # What is asked?
    "no message": (ask(CHAT, {"messages": []}), 400),
    "no message, and tools": (ask(CHAT, {"messages": [], "tools": [{"type": "function", "function": {"name": "get_forecast", "parameters": {}}}]}), 400),
    "no input": (ask(RESPONSES, {"input": []}), 400),
    "no message of Anthropic's": (ask(MESSAGES, {"messages": [], "max_tokens": 9}), 400),
    "no message of Ollama's": (ask(OLLAMA, {"messages": []}), 400),
    "JSON 100,000 deep": (ask(CHAT, b'{"messages":' + b"[" * 100_000), 400),
    "JSON 900 deep": (ask(CHAT, b'{"messages":' + b'[{"a":' * 400 + b"1" + b"}]" * 400 + b"}"), 400),
    "JSON 100,000 deep, to count": (ask(COUNT, b'{"messages":' + b"[" * 100_000), 400),
    "a number of 100,000 digits": (ask(MESSAGES, b'{"messages":[],"max_tokens":' + b"9" * 100_000 + b"}"), 400),
    "a model that is deep": (ask(CHAT, b'{"messages":[{"role":"user","content":"x"}],"model":' + b"[" * 900 + b"]" * 900 + b"}"), 400),
    "a model that is an object": (ask(MESSAGES, {**ASKED, "model": {"$ne": None}}), 400),
    "a model that is an error": (ask(MESSAGES, {**ASKED, "model": ["error"]}), 400),
    "a role of control characters": (ask(CHAT, {"messages": [{"role": "\x1b[2J\r\n", "content": "x"}]}), 400),
    "a file of the machine's": (ask(CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]}]}), 400),
    "a file of somebody else's": (ask(RESPONSES, {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "file-1"}]}]}), 400),
    "a response of somebody else's": (ask(RESPONSES, {"input": "x", "previous_response_id": "resp_1"}), 400),
    "a conversation of somebody else's": (ask(RESPONSES, {"input": "x", "conversation": "conv_1"}), 400),
    "a prompt of somebody else's": (ask(RESPONSES, {"input": "x", "prompt": {"id": "pmpt_1"}}), 400),
    "UTF-16": (ask(CHAT, json.dumps(ASKED).encode("utf-16-le")[:-1]), 400),
    "compressed": (ask(CHAT, b"\x1f\x8b\x08\x00", "Content-Encoding: gzip"), 400),
    "nothing": (ask(CHAT, b""), 400),
    # How long is it? The server's own answers.
    "two lengths": (ask(CHAT, ASKED, "Content-Length: 1"), 400),
    "a length with a sign": (ask(CHAT, ASKED).replace(b"Content-Length: ", b"Content-Length: +"), 400),
    "a path of another route": (look("/v1/../v1/models/..%2f"), 404),
}  # fmt: skip


@each(REFUSED)
def test_it_is_refused_and_no_model_is_asked(
    served: tuple[Any, str], model: Model, row: tuple[bytes, int]
) -> None:
    sent, status = row
    (answer, *rest) = raw(served[1], sent)
    assert answer.status == status or (rest == [] and answer.status == 400 and "length" in str(sent))
    assert model.asked == []
    assert not [name for name, _ in answer.headers if name.startswith("access-control")]
    assert not STEERING.search(answer.body.decode())
    (good,) = raw(served[1], ask(CHAT, ASKED))
    assert good.json["choices"][0]["message"]["content"] == "Hello"


def test_a_request_that_never_ends_is_cut_off(
    served: tuple[Any, str], model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway, url = served
    monkeypatch.setattr(gateway, "LONGEST", 1_000)
    (answer,) = raw(url, ask(CHAT, b" " * 100_000))
    assert (answer.status, model.asked) == (413, [])


READ: dict[str, tuple[str, Any]] = {
    "a key of JSON twice": (CHAT, b'{"messages":[{"role":"user","content":"x"}],"stream":true,"stream":false}'),
    "keys of Python's": (CHAT, {**ASKED, "__class__": 1, "self": 2, "__proto__": {"stream": True}}),
    "a limit that is no number": (CHAT, b'{"messages":[{"role":"user","content":"x"}],"max_tokens":NaN}'),
    "a limit below nothing": (MESSAGES, {**ASKED, "max_tokens": -(2**70)}),
    "a name of a tool that steers": (CHAT, {**ASKED, "tools": [{"type": "function", "function": {"name": "\x1b[2J", "parameters": {}}}]}),
    "usage of its own": (CHAT, {**ASKED, "usage": {"prompt_tokens": 0}, "stream_options": {"include_usage": "yes"}}),
    "half a pair": (CHAT, b'{"messages":[{"role":"user","content":"\\ud83d"}],"model":"\\ud83d"}'),
    "options that are a text": (OLLAMA, {**ASKED, "options": "num_predict", "stream": False}),
    "another content type": (CHAT, ASKED),
}  # fmt: skip


@each(READ)
def test_it_is_asked_and_billed_as_the_model_says(
    served: tuple[Any, str], model: Model, row: tuple[str, Any]
) -> None:
    gateway, url = served
    (answer,) = raw(url, ask(*row).replace(b"application/json", b"text/plain"))
    assert answer.status == 200
    assert b"Hello" in answer.body
    (entry,) = gateway.entries
    assert (entry.tokens_in, entry.tokens_out, entry.ended) == (1, 7, "completed")


NAMES = {
    "ESC": "\x1b[2J\x1b]0;owned\x07", "C1": "\x9b2J", "a line of the log": "m\n127.0.0.1 openai-chat owned", "CR": "m\rowned",
    "the direction": "\u202egnp", "a format": "%s %d %n", "half a pair": "\ud83d", "markup": "<script>owned</script>", "long": "m" * 100_000,
}  # fmt: skip


@each(NAMES)
def test_a_models_name_is_one_line_of_the_log_and_a_text_of_the_page(
    served: tuple[Any, str], model: Model, row: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "gateway")
    (answer,) = raw(served[1], ask(MESSAGES, {**ASKED, "model": row}))
    assert answer.status == 200
    (line,) = [one.getMessage() for one in caplog.records if one.name == "gateway"]
    assert not STEERING.search(line)
    assert "\n" not in line
    assert len(line) < 500
    (page,) = raw(served[1], look("/"))
    assert b"<script" not in page.body
    assert len(page.body) < 10_000


KEY = "sk-0123456789abcdefghij"
SPLIT: dict[str, list[str]] = {
    "whole": [f"It is {KEY}."],
    "letter by letter": [*f"It is {KEY}."],
    "behind its first letter": ["It is s", f"{KEY[1:]}."],
    "behind its mark": ["It is sk-", f"{KEY[3:]}."],
    "in front of its last letter": [f"It is {KEY[:-1]}", f"{KEY[-1]}."],
    "at the end": ["It is ", KEY],
    "at the beginning": [KEY, "."],
    "twice": [f"{KEY} {KEY[:9]}", f"{KEY[9:]}"],
    "in a link": [f"https://x.example/?key={KEY}&x=1"],
    "in JSON": [json.dumps({"api_key": KEY})],
    "in code": [f"`{KEY}`"],
    "in a header": [f"Authorization: Bearer {KEY}"],
}


@each(SPLIT)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("kind", ["text", "thinking"])
def test_a_key_that_the_model_says_is_hidden_however_it_comes(
    served: tuple[Any, str], model: Model, row: list[str], stream: bool, kind: str
) -> None:
    model.says = said(*row, kind=kind)
    for path in (RESPONSES, CHAT, MESSAGES, OLLAMA):
        (answer,) = raw(served[1], ask(path, {**ASKED, "input": "x", "stream": stream}))
        assert answer.status == 200
        assert KEY[3:12] not in answer.body.decode()


LEFT: dict[str, tuple[Any, list[Any], bytes]] = {
    # What is asked, what the model says, and what the client reads before it leaves.
    "before the first event, of a stream": ({"stream": True}, [FOR_EVER], b""),
    "before the first event, of a whole reply": ({"stream": False}, [FOR_EVER], b""),
    "behind the first event, of a whole reply": ({"stream": False}, [*said("Hel")[:3], FOR_EVER], b""),
    "behind the status": ({"stream": True}, [*said("Hel")[:1], FOR_EVER], b"HTTP/1.1 200"),
    "amid the text": ({"stream": True}, [*said("Hel")[:3], FOR_EVER], b"Hel"),
    "in front of the end": ({"stream": True}, [*said("Hel")[:-1], FOR_EVER], b"Hel"),
}  # fmt: skip


@each(LEFT)
@pytest.mark.parametrize("resets", [False, True], ids=["closes", "resets"])
def test_a_client_that_leaves_ends_the_providers_request(
    served: tuple[Any, str], model: Model, row: tuple[Any, list[Any], bytes], resets: bool
) -> None:
    more, model.says, read = row
    connection = socket.create_connection(address(served[1]), SECONDS)
    with connection:
        connection.sendall(ask(MESSAGES, {**ASKED, **more}))
        assert model.begun.wait(SECONDS)
        seen = b""
        while read not in seen:
            seen += connection.recv(65536)
        assert not model.left.is_set()
        if resets:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert model.left.wait(SECONDS)


UNSENT: dict[str, bytes] = {
    "nothing": b"",
    "half of a line": b"POST /v1",
    "half of the headers": ask(CHAT, ASKED)[:60],
    "no body": ask(CHAT, ASKED).partition(b"\r\n\r\n")[0] + b"\r\n\r\n",
    "half of the body": ask(CHAT, ASKED)[:-9],
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@each(UNSENT)
def test_a_client_that_stops_amid_its_request_costs_nothing(
    served: tuple[Any, str], model: Model, row: bytes
) -> None:
    with socket.create_connection(address(served[1]), SECONDS) as connection:
        connection.sendall(row)
        (good,) = raw(served[1], ask(CHAT, ASKED))
        assert good.status == 200
    assert len(model.asked) == 1
