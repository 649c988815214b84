"""`examples/chat_web`, served with a model that says what a test wants."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest

import rxdelta as rd
from support.browser import needed

__all__ = ["Kept", "ServedChat", "called", "ended", "reply_texts", "said", "words"]

PROGRAM = Path(__file__).parents[1] / "examples" / "chat_web" / "scripted.py"


class ServedChat:
    """A server of the example on a port of its own, with a store of its own. It can be stopped, killed, and begun again."""

    def __init__(self, folder: Path) -> None:
        for package in ("starlette", "uvicorn"):
            pytest.importorskip(package)
        needed("npm", "node", "chromium")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.store = folder / "chats.sqlite"
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    @contextmanager
    def running(cls, folder: Path) -> Iterator[ServedChat]:
        served = cls(folder)
        served.begin()
        try:
            yield served
        finally:
            served.end(signal.SIGKILL)

    def begin(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "ANTHROPIC_API_KEY"}
        environment["CHATS"] = str(self.store)
        self._process = subprocess.Popen([sys.executable, str(PROGRAM), str(self.port)], env=environment)
        while True:
            if self._process.poll() is not None:
                raise RuntimeError("the example has ended")
            try:
                self.get("/test")
                return
            except OSError:
                time.sleep(0.05)

    def end(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(30)
            self._process = None

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.address + path) as response:
            return json.load(response)

    def post(self, path: str, body: Any) -> Any:
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request) as response:
            return json.load(response)

    def script(self, *messages: list[Any]) -> None:
        """What the model says from now on; nothing of it yet."""
        self.post("/test/script", {"messages": messages})

    def tell(self, chunks: int | None) -> None:
        """Let the model say so many chunks more; `None`: all."""
        self.post("/test/tell", {"chunks": chunks})

    def no_request_is_open(self) -> bool:
        """Whether the model's requests end; how soon is the machine's business."""
        return _becomes(lambda: self.get("/test")["requests_open"] == 0)

    def has_booked(self, city: str) -> bool:
        """Whether the tool is called for this city; how soon is the machine's business."""
        return _becomes(lambda: city in self.get("/test")["booked"])

    def kept(self, chat: str) -> list[Kept]:
        """What the server keeps of a chat, read behind its back."""
        with closing(sqlite3.connect(self.store)) as store:
            rows = store.execute(
                "SELECT id, question, ended FROM exchanges WHERE chat = ?", [chat]
            ).fetchall()
            return [Kept.read(store, *row) for row in rows]


@attrs.frozen
class Kept:
    """An exchange: the question's text, the reply's text, and how it ended."""

    question: str
    reply: str
    ended: str | None

    @classmethod
    def read(cls, store: sqlite3.Connection, id: str, question: str, ended: str | None) -> Kept:
        rows = store.execute("SELECT event FROM events WHERE exchange = ? ORDER BY rowid", [id])
        folds: list[rd.Fold] = [rd.Fold()]
        for event in (rd.events.from_dict(json.loads(row)) for (row,) in rows):
            if isinstance(event, rd.events.MessageStart):
                folds.append(rd.Fold())
            folds[-1].step(event)
        text = "".join(fold.snapshot.text for fold in folds if fold.snapshot is not None)
        return cls(json.loads(question)["parts"][-1]["text"], text, ended)


def said(*texts: str) -> list[Any]:
    """An Anthropic message that says these texts, a chunk each."""
    start = {"id": "m", "role": "assistant", "model": "scripted", "content": [], "usage": {}}
    deltas = [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        for text in texts
    ]
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *deltas,
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def called(tool: str, arguments: dict[str, Any], id: str = "call", index: int = 0) -> list[Any]:
    """An Anthropic message that calls a tool."""
    text, call = said(), {"type": "tool_use", "id": id, "name": tool, "input": arguments}
    text[1] |= {"content_block": call, "index": index}
    text[2]["index"] = index
    text[-2]["delta"]["stop_reason"] = "tool_use"
    return text


def words(random: Random, count: int, name: str = "w") -> list[str]:
    """Words in which nothing is markdown, each with a number of its own, so that one that is lost or doubled shows."""
    return [f"{name}{n}{random.choice(['', ',', '.', ';'])} " for n in range(count)]


def reply_texts(page: Any) -> list[str]:
    """The replies that a page shows, each with its words and no others."""
    return [" ".join(text.split()) for text in page.locator(".assistant .text").all_text_contents()]


def ended(page: Any, how: str = "") -> None:
    """Wait until the page says that the last reply has ended, and how."""
    page.wait_for_selector("#send:visible")
    if how:
        page.wait_for_selector(f"section:last-of-type .end >> text={how}")
    else:
        page.wait_for_selector("section:last-of-type .end", state="hidden")


def _becomes(condition: Any) -> bool:
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.05)
    return False
