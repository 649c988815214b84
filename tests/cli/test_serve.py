"""`rxdelta serve`: a recording as its provider would give it, to any client, until a signal."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.clients import ask

import rxdelta as rd
from rxdelta.cli import main
from rxdelta.testing import FakeProvider

SECONDS = 60  # nothing here takes time; what hangs is found


@contextmanager
def serving(*arguments: str) -> Iterator[Any]:
    """The command, and its first line."""
    program = [sys.executable, "-m", "rxdelta", "serve", *arguments]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have made us ignore it
    process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url, process.stderr.read() if process.stderr else ""
        yield process, url
    finally:
        process.kill()
        process.communicate()


def post(url: str, body: Any) -> Any:
    with urllib.request.urlopen(url, json.dumps(body).encode()) as answer:
        return answer.read()


def message(data: bytes) -> rd.Message:
    with rd.stream([data]) as reply:
        return reply.result()


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    path = tmp_path / "recorded.jsonl"
    chunks = FakeProvider("High water").chunks("anthropic-messages")
    lines = [
        {"rxdelta": "recording", "version": 1},
        *({"t": 0.01, "chunk": one} for one in chunks),
        {"t": 0.02, "end": True},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_openais_own_clients_get_the_replies_again_and_again(recorded: str) -> None:
    openai = pytest.importorskip("openai")
    with serving(recorded, "--sample", "tides", "--as", "openai-chat", "--speed", "0") as (process, url):
        assert url.endswith("/v1")
        with openai.OpenAI(base_url=url, api_key="any", max_retries=0) as client:
            request = {"model": "any", "messages": [{"role": "user", "content": "When?"}]}
            texts = [
                "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
                for stream in (client.chat.completions.create(**request, stream=True) for _ in range(3))
            ]
            assert texts[::2] == ["High water"] * 2
            assert "tide tables" in texts[1]
            assert client.responses.create(model="any", input="When?").output[1].type == "message"
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
        out, err = process.communicate()
    assert out == ""
    assert err.count("POST /v1/chat/completions 200\n") == 3
    assert f"export OPENAI_BASE_URL={url}\n" in err
    assert err.endswith("rxdelta: stopped\n")


def test_openais_client_in_node_and_a_web_page_get_them(recorded: str) -> None:
    with serving(recorded, "--as", "openai-chat") as (process, url):
        request = {"model": "any", "messages": [{"role": "user", "content": "When?"}]}
        (told,) = ask("openai.mjs", [{"url": url, "request": request}])
        assert told["error"] is None
        assert told["completion"]["choices"][0]["message"]["content"] == "High water"
        asks = urllib.request.Request(
            f"{url}/chat/completions", method="OPTIONS", headers={"Origin": "http://localhost:5173"}
        )
        with urllib.request.urlopen(asks) as answer:
            assert answer.headers["access-control-allow-origin"] == "http://localhost:5173"
        process.send_signal(signal.SIGTERM)
        assert process.wait(SECONDS) == 143


def test_the_engine_of_use_chat_asks_it_as_its_own_back_end() -> None:
    """A front end of the AI SDK, without its application's server."""
    with serving("--sample", "tides", "--as", "ai-sdk", "--speed", "0") as (_, url):
        (told,) = ask("ai_sdk.mjs", [{"url": f"{url}/api/chat"}])
        assert (told["error"], told["finishReason"]) == (None, "tool-calls")
        parts = {part["type"]: part for part in told["message"]["parts"]}
        assert parts["text"]["text"] == "Let me check the tide tables of both ports."
        assert parts["tool-tide_table"]["input"] == {"port": "Plymouth", "date": "2026-11-28"}


def test_without_a_format_each_has_a_url_of_its_own(recorded: str) -> None:
    with serving(recorded) as (_, url), urllib.request.urlopen(url) as answer:
        urls = json.load(answer)["fake_provider"]
        assert urls["ollama"] == f"{url}/ollama"
        assert message(post(f"{urls['ollama']}/api/chat", {"model": "any"})).text == "High water"
        asked = {"model": "any", "stream": True, "messages": []}
        assert message(post(f"{urls['anthropic-messages']}/v1/messages", asked)).text == "High water"


def test_a_port_that_is_taken_is_said(recorded: str, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert main(["serve", recorded, "--port", port]) == 1
    assert f"cannot listen at port {port}" in capsys.readouterr().err


def test_a_file_that_is_no_reply_is_refused_before_anything_is_served(
    recorded: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "words").write_text("plain words\n")
    assert main(["serve", recorded, str(tmp_path / "words")]) == 2
    assert main(["serve", str(tmp_path / "nothing")]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "words is no known stream" in said.err


def test_a_reader_of_the_url_that_has_gone_ends_it(recorded: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        program = [sys.executable, "-m", "rxdelta", "serve", recorded]
        assert subprocess.run(program, stdout=gone, timeout=SECONDS).returncode == 141
