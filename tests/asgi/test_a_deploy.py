"""Workers in processes of their own, of which one gets SIGTERM while replies run: what their readers get."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from relay.promises import promised
from support.clients import ask
from support.valkey_servers import ValkeyServer

pytestmark = pytest.mark.slow

httpx = pytest.importorskip("httpx")
pytest.importorskip("starlette")
for package in ("redis", "msgspec"):
    pytest.importorskip(package)

SECONDS = 60  # nothing takes as long; what hangs is found
COMMANDS: dict[str, list[str]] = {
    "uvicorn": ["uvicorn", "asgi.worker_app:app", "--port"],
    "uvicorn-workers": ["uvicorn", "asgi.worker_app:app", "--workers", "2", "--port"],
    "hypercorn": ["hypercorn", "asgi.worker_app:app", "--workers", "0", "--config", "CONFIG", "--bind"],
    "hypercorn-serve": ["asgi.worker_app"],
}
ALL = pytest.mark.parametrize("server", COMMANDS)


def until(holds: Callable[[], object]) -> None:
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end, "it doesn't come"
        time.sleep(0.01)


def joined(frames: list[Any]) -> list[Any]:
    """The frames with neighbouring texts as one: how many deltas a reader gets depends on when it reads."""
    result: list[Any] = []
    for frame in frames:
        if "delta" in frame and result and result[-1] == frame | {"delta": result[-1].get("delta")}:
            result[-1] = frame | {"delta": result[-1]["delta"] + frame["delta"]}
        else:
            result.append(frame)
    return result


class Reading(threading.Thread):
    """A client that reads a reply, as far as it gets it, or comes back to it behind what it has."""

    def __init__(self, url: str, **headers: str) -> None:
        super().__init__(daemon=True)
        self.body = ""
        self.ended: str | None = None  # "whole" or "broken off"
        self._url = url
        self._headers = headers
        self.start()

    def run(self) -> None:
        try:
            with httpx.stream("GET", self._url, headers=self._headers, timeout=SECONDS) as response:
                assert response.status_code == 200
                for piece in response.iter_text():
                    self.body += piece
        except (httpx.RemoteProtocolError, httpx.ReadError):
            self.ended = "broken off"
        else:
            self.ended = "whole"

    def shows(self, *words: str) -> None:
        until(lambda: self.words == [*words])

    def ends(self) -> str:
        self.join(SECONDS)
        assert self.ended is not None
        return self.ended

    @property
    def frames(self) -> list[Any]:
        found = re.findall("^data: (.*)\n(?:id|\n)", self.body, re.MULTILINE)
        return joined([one if one == "[DONE]" else json.loads(one) for one in found])

    @property
    def words(self) -> list[str]:
        return "".join(
            one["delta"] for one in self.frames if one != "[DONE]" and one["type"] == "text-delta"
        ).split()

    @property
    def kinds(self) -> list[str]:
        return [one if one == "[DONE]" else one["type"] for one in self.frames]

    @property
    def last_id(self) -> str:
        return re.findall("^id: (.+)$", self.body, re.MULTILINE)[-1]


class Worker:
    """A process with the application."""

    def __init__(self, server: str, folder: Path, environment: dict[str, str]) -> None:
        pytest.importorskip(server.partition("-")[0])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        config = folder / "hypercorn.toml"
        config.write_text("shutdown_timeout = 120\n")
        where = f"127.0.0.1:{port}" if "--bind" in COMMANDS[server] else str(port)
        command = [part.replace("CONFIG", str(config)) for part in COMMANDS[server]]
        self.log = folder / f"{port}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *command, where],
                env={**os.environ, **environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        until(self._answers)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return httpx.get(f"{self.address}/ready", timeout=SECONDS).status_code == 200
        except httpx.TransportError:
            return False

    def start(self, name: str) -> None:
        assert httpx.post(f"{self.address}/start/{name}", timeout=SECONDS).json() is True

    def read(self, name: str, **headers: str) -> Reading:
        return Reading(f"{self.address}/read/{name}", **headers)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def takes_nothing(self) -> bool:
        try:
            httpx.get(f"{self.address}/ready", timeout=1)
        except httpx.TransportError:
            return True
        return False

    def ended(self) -> str:
        self.process.wait(SECONDS)
        return self.log.read_text()

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


class Deploy:
    """Two workers at one relay, and how far their replies are."""

    def __init__(self, stack: ExitStack, folder: Path, url: str) -> None:
        self._stack = stack
        self._folder = folder
        self.words = folder / "words"
        self.words.write_text("")
        self._environment = {"RELAY": url, "WORDS": str(self.words)}

    def worker(self, server: str, drain: float) -> Worker:
        worker = Worker(server, self._folder, {**self._environment, "DRAIN": str(drain)})
        self._stack.callback(worker.kill)
        return worker

    def say(self, *words: str) -> None:
        fresh = self.words.with_suffix(".new")
        fresh.write_text(self.words.read_text() + " ".join(["", *words]))
        fresh.rename(self.words)


@pytest.fixture
def deploy(tmp_path: Path, valkey: ValkeyServer) -> Iterator[Deploy]:
    with ExitStack() as stack:
        yield Deploy(stack, tmp_path, valkey.url)


@ALL
def test_a_reply_that_only_its_reader_has_is_interrupted_at_once(deploy: Deploy, server: str) -> None:
    worker = deploy.worker(server, drain=100)
    deploy.say("one", "two")
    reading = Reading(f"{worker.address}/direct")
    until(lambda: "two" in reading.body)
    worker.stop()
    assert reading.ends() == "whole"
    assert reading.frames[-2:] == [{"type": "abort", "reason": "the server is stopping"}, "[DONE]"]
    assert "Traceback" not in worker.ended()


@promised("A worker that gets `SIGTERM`")
@ALL
def test_a_reply_goes_on_while_its_worker_drains_and_its_readers_read_on_elsewhere(
    deploy: Deploy, server: str
) -> None:
    name = f"goes-on-{server}"
    old, new = deploy.worker(server, drain=100), deploy.worker("uvicorn", drain=1)
    deploy.say("one", "two")
    old.start(name)
    source, page = old.read(name, accept="text/event-stream"), old.read(name)
    elsewhere = new.read(name)
    for reading in (source, page, elsewhere):
        reading.shows("one", "two")
    old.stop()
    assert page.ends() == "broken off"
    assert source.ends() == "whole"
    for reading in (source, page):
        assert reading.kinds[-1] == "text-delta", "nobody says that the reply ends"
    deploy.say("three")
    elsewhere.shows("one", "two", "three")
    back = new.read(name, **{"last-event-id": page.last_id})
    source_back = new.read(name, accept="text/event-stream", **{"last-event-id": source.last_id})
    for reading in (back, source_back):
        reading.shows("three")
    until(old.takes_nothing)
    assert old.process.poll() is None
    deploy.say("four", "end")
    for reading in (elsewhere, back, source_back):
        assert reading.ends() == "whole"
        assert reading.kinds[-2:] == ["finish", "[DONE]"]
    for first, rest in ((page, back), (source, source_back)):
        assert joined(first.frames + rest.frames) == elsewhere.frames
    assert elsewhere.words == ["one", "two", "three", "four"]
    log = old.ended()
    assert "drained\n" in log
    assert "Traceback" not in log


@promised("A worker that gets `SIGTERM`")
@ALL
def test_a_reply_that_is_longer_than_the_drain_is_interrupted_for_all_readers(
    deploy: Deploy, server: str
) -> None:
    name = f"too-long-{server}"
    old, new = deploy.worker(server, drain=0.5), deploy.worker("uvicorn", drain=1)
    deploy.say("one", "two")
    old.start(name)
    page, elsewhere = old.read(name), new.read(name)
    for reading in (page, elsewhere):
        reading.shows("one", "two")
    old.stop()
    assert page.ends() == "broken off"
    back = new.read(name, **{"last-event-id": page.last_id})
    for reading in (elsewhere, back):
        assert reading.ends() == "whole"
        assert reading.frames[-2:] == [{"type": "abort", "reason": "the server is stopping"}, "[DONE]"]
    assert joined(page.frames + back.frames) == elsewhere.frames
    log = old.ended()
    assert f"drained {name}\n" in log
    assert "Traceback" not in log
    late = new.read(name)
    late.ends()
    assert late.words == ["one", "two"]
    assert late.kinds[-2:] == ["abort", "[DONE]"]


def test_a_page_with_use_chat_shows_the_whole_reply_through_a_deploy(deploy: Deploy) -> None:
    old, new = deploy.worker("uvicorn", drain=100), deploy.worker("uvicorn", drain=1)
    deploy.say("one", "two")
    case = {"workers": [old.address, new.address], "pid": old.process.pid, "words": str(deploy.words)}
    (told,) = ask("deploy.mjs", [case])
    assert told["shown"] == "one two "
    assert told["errors"] == ["TypeError"]
    assert [one["role"] for one in told["messages"]] == ["user", "assistant"]
    texts = [part.get("text", "") for part in told["messages"][1]["parts"]]
    assert "".join(texts) == "one two three "
    assert told["asked"] == ["POST /api/chat at 0: 200", "GET /api/chat/c1/stream at 1: 200"]
    assert "drained\n" in old.ended()
