"""`examples/chat_web`, served with a model that says what a test wants."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest

import rxdelta as rd
from rxdelta.relay import Relay
from support.browser import needed
from support.round_robin import RoundRobin

__all__ = [
    "Kept",
    "ServedChat",
    "Workers",
    "answer",
    "ask",
    "becomes",
    "called",
    "ended",
    "question",
    "reply_texts",
    "said",
    "words",
]

PROGRAM = Path(__file__).parents[1] / "examples" / "chat_web" / "scripted.py"


class ServedChat:
    """A server of the example on a port of its own. It can be stopped, killed, and begun again.

    Args:
        folder: Where its store is. Several servers may share it.
        relay: The URL of the relay's store; without it, that's a file in the folder.

    Attributes:
        relay: The URL of the relay's store.
    """

    def __init__(self, folder: Path, relay: str | None = None) -> None:
        for package in ("starlette", "uvicorn"):
            pytest.importorskip(package)
        needed("npm", "node", "chromium")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.store = folder / "chats.sqlite"
        self.relay = relay or f"sqlite:///{folder / 'chats-relay.sqlite'}"
        self._environment = {"CHATS": str(self.store)} | ({} if relay is None else {"RELAY": relay})
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
        left_out = ("ANTHROPIC_API_KEY", "RELAY")
        environment = {name: value for name, value in os.environ.items() if name not in left_out}
        environment |= self._environment
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

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    @property
    def runs(self) -> bool:
        return self._process is not None

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.address + path) as response:
            return json.load(response)

    def post(self, path: str, body: Any) -> Any:
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(
            self.address + path, json.dumps(body).encode(), headers, method="POST"
        )
        with urllib.request.urlopen(request) as response:
            answer = response.read()
            is_json = response.headers["content-type"] == "application/json"
            return json.loads(answer) if is_json else answer

    def say(self, chat: str, message: Any) -> int:
        """Say something as a page does. Returns the status, when the reply has come."""
        try:
            self.post(f"/api/chat/{chat}", {"message": message})
        except urllib.error.HTTPError as error:
            error.close()
            return error.code
        return 200

    def script(self, *messages: list[Any]) -> None:
        """What the model says from now on; nothing of it yet."""
        self.post("/test/script", {"messages": messages})

    def tell(self, chunks: int | None) -> None:
        """Let the model say so many chunks more; `None`: all."""
        self.post("/test/tell", {"chunks": chunks})

    def requests_open(self) -> int:
        """How many requests to the model are open: this server runs so many replies."""
        return self.get("/test")["requests_open"]  # type: ignore[no-any-return]

    def no_request_is_open(self) -> bool:
        """Whether the model's requests end; how soon is the machine's business."""
        return becomes(lambda: self.requests_open() == 0)

    def has_booked(self, city: str) -> bool:
        """Whether the tool is called for this city; how soon is the machine's business."""
        return becomes(lambda: city in self.get("/test")["booked"])

    def kept(self, chat: str) -> list[Kept]:
        """What the server keeps of a chat, read behind its back."""
        with closing(sqlite3.connect(self.store)) as store:
            rows = store.execute(
                "SELECT id, question, ended FROM exchanges WHERE chat = ?", [chat]
            ).fetchall()
            return [Kept.read(store, *row) for row in rows]


@attrs.frozen
class Workers:
    """Two servers of the example with one store and one relay, and a proxy that gives each request to the next of them."""

    servers: tuple[ServedChat, ServedChat]
    proxy: RoundRobin

    @classmethod
    @contextmanager
    def running(cls, folder: Path, relay: str | None = None) -> Iterator[Workers]:
        first, second = ServedChat(folder, relay), ServedChat(folder, relay)
        with ExitStack() as stack:
            for server in (first, second):
                stack.callback(server.end, signal.SIGKILL)
                server.begin()
            proxy = stack.enter_context(RoundRobin.to(first.port, second.port))
            yield cls((first, second), proxy)

    @property
    def address(self) -> str:
        return self.proxy.address

    @contextmanager
    def only(self, server: ServedChat) -> Iterator[None]:
        """Meanwhile this worker gets all requests."""
        self.proxy.only = server.port
        yield
        self.proxy.only = None

    def script(self, *messages: list[Any]) -> None:
        """What the model says from now on, at whichever worker; nothing of it yet."""
        for server in self.servers:
            server.script(*messages)

    def reader(self, path: str) -> ServedChat:
        """The worker that got the last request for a path that ends so."""
        port = self.proxy.last(path)
        return next(server for server in self.servers if server.port == port)

    def kept(self, chat: str) -> list[Kept]:
        return self.servers[0].kept(chat)

    def logged(self, chat: str, run: int = 1) -> str:
        """The text that the relay's log has of a run whose worker has died."""
        with closing(sqlite3.connect(self.servers[0].store)) as store:
            ((name,),) = store.execute("SELECT name FROM name").fetchall()

        async def read() -> str:
            async with Relay.open(self.servers[0].relay, prefix=f"chat-{name}") as relay:
                with pytest.raises(rd.StreamInterrupted) as caught:
                    await rd.for_each(relay.watch(f"{chat}/{run}"), lambda _: None)
            return "" if caught.value.snapshot is None else caught.value.snapshot.text

        with ThreadPoolExecutor(1) as thread:  # Playwright runs a loop in this one
            return thread.submit(asyncio.run, read()).result()


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


def question(text: str) -> Any:
    """What the page says when a person has asked something."""
    return {"id": "q", "role": "user", "parts": [{"type": "text", "text": text}]}


def answer(approved: bool = True, call: str = "call", **changed: Any) -> Any:
    """What the page says when a person has decided whether a room is booked."""
    approval = {"id": call, "approved": approved}
    part = {"type": "tool-book_room", "toolCallId": call, "input": {"city": "Lisbon", "nights": 2}}
    part |= {"state": "approval-responded", "approval": approval}
    return {"id": "reply", "role": "assistant", "parts": [part | changed]}


def words(random: Random, count: int, name: str = "w") -> list[str]:
    """Words in which nothing is markdown, each with a number of its own, so that one that is lost or doubled shows."""
    return [f"{name}{n}{random.choice(['', ',', '.', ';'])} " for n in range(count)]


def reply_texts(page: Any) -> list[str]:
    """The replies that a page shows, each with its words and no others."""
    return [" ".join(text.split()) for text in page.locator(".assistant .text").all_text_contents()]


def ask(page: Any, text: str) -> None:
    """Ask in a page. The server has answered then, and the page has gone on from what it showed before."""
    asked = page.locator("section.user").count()
    page.fill("#question", text)
    with page.expect_response(lambda response: response.request.method == "POST"):
        page.click("#send")
    page.locator("section.user").nth(asked).wait_for()


def ended(page: Any, how: str = "") -> None:
    """Wait until the page says that the last reply has ended, and how."""
    page.wait_for_selector("#send:visible")
    page.wait_for_selector("section.assistant:last-of-type", state="attached")
    if how:
        page.wait_for_selector(f"section.assistant:last-of-type .end >> text={how}")
    else:
        page.wait_for_selector("section.assistant:last-of-type .end", state="hidden")


def becomes(condition: Callable[[], Any]) -> bool:
    """Whether this becomes true; how soon is the machine's business."""
    for _ in range(600):
        if condition():
            return True
        time.sleep(0.05)
    return False
