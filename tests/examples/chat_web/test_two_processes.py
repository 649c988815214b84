"""The example as a person starts it with two workers: they share a port and two files, and one of them is killed."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from support.served_chat import ServedChat, ask, becomes, ended, question, reply_texts

import rxdelta as rd
from rxdelta.testing import FakeProvider

pytestmark = pytest.mark.slow

SERVER = Path(__file__).resolve().parents[3] / "examples" / "chat_web" / "server.py"
LOST = "interrupted: the server went away"
BEGUN = ["one ", "two ", rd.ToolCall(call_id="a", name="get_forecast", arguments={"city": "Lisbon"})]


class TwoProcesses(ServedChat):
    """`server.py --workers 2`, which asks what it takes for Anthropic."""

    @contextmanager
    def started(self, **environment: str) -> Iterator[None]:
        command = [sys.executable, str(SERVER), "--workers", "2", "--port", str(self.port)]
        folder = self.store.parent
        known = {name: value for name, value in os.environ.items() if name not in ("CHATS", "RELAY")}
        self._process = subprocess.Popen(
            command, cwd=folder, env=known | {"PACE": "0"} | environment, stdout=subprocess.DEVNULL
        )
        try:
            assert becomes(self.is_up)
            yield
        finally:
            self.end(signal.SIGTERM)

    def is_up(self) -> bool:
        with suppress(OSError):
            return len(self.pids()) == 2 and bool(self.get("/api/chat/none"))
        return False

    def pids(self) -> set[int]:
        """The processes that listen on the port, without the one that has started them."""
        assert self._process is not None
        listed = ["ps", "-o", "pid=", "--ppid", str(self._process.pid)]
        children = subprocess.run(listed, capture_output=True, text=True, check=False).stdout.split()
        listening = {inode for inode, _ in self._sockets("0A")}
        return {int(pid) for pid in children if listening & sockets_of(int(pid))}

    def pid_of(self, connection: http.client.HTTPConnection) -> int:
        """The process that serves a connection."""
        port = connection.sock.getsockname()[1]
        return next(pid for pid, theirs in self._connections() if port == theirs)

    def _connections(self) -> Iterator[tuple[int, int]]:
        """For each connection the process that serves it, and its client's port."""
        established = dict(self._sockets("01"))
        for pid in self.pids():
            for inode in sockets_of(pid) & established.keys():
                yield pid, established[inode]

    def _sockets(self, state: str) -> Iterator[tuple[str, int]]:
        """Inodes of the sockets on our port in this state, and the ports at their other ends."""
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            _, local, remote, its_state, *rest = line.split()
            if its_state == state and int(local.partition(":")[2], 16) == self.port:
                yield rest[5], int(remote.partition(":")[2], 16)


def sockets_of(pid: int) -> set[str]:
    found = set[str]()
    with suppress(OSError):
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                found |= set(re.findall(r"^socket:\[(\d+)\]$", os.readlink(one)))
    return found


@pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason="needs /proc, to see which process serves what"
)
def test_one_of_two_workers_is_killed_and_the_pages_show_what_became_of_the_reply(
    open_tab: Any, tmp_path: Path
) -> None:
    pytest.importorskip("anthropic")
    go_on = [threading.Event(), threading.Event()]

    def rest(number: int) -> Any:
        def answer(_: Any) -> str:
            go_on[number].wait()
            return "three four"

        return answer

    provider = FakeProvider(BEGUN, rest(0), BEGUN, rest(1), "five")
    served = TwoProcesses(tmp_path)
    try:
        with provider.serve() as model, served.started(**model.environment):
            pages = [open_tab(f"{served.address}{path}#chat") for path in ("/", "/plain")]

            for number, how in enumerate(("done", LOST)):
                text = f"Question {number}?"
                with begun(served, text) as publisher:
                    (other,) = served.pids() - {publisher}
                    for page in pages:
                        page.wait_for_selector(f"main:has(section.user:has-text('{text}'))")
                        page.wait_for_selector("section:last-of-type .text >> text=two")
                        page.reload()
                        page.wait_for_selector("section:last-of-type .text >> text=two")
                    os.kill(other if how == "done" else publisher, signal.SIGKILL)
                    if how == "done":
                        go_on[number].set()
                    for page in pages:
                        ended(page, "" if how == "done" else how)
                assert becomes(served.is_up)  # uvicorn starts another worker
            whole = ["one two", "three four", "one two"]
            assert [one.ended for one in served.kept("chat")] == ["done", LOST]
            for page in pages:
                assert reply_texts(page) == whole
            go_on[1].set()

            ask(pages[1], "And now?")
            for page in pages:
                page.wait_for_selector("section:last-of-type .text >> text=five")
                ended(page)
                assert reply_texts(page) == [*whole, "five"]
    finally:
        for one in go_on:
            one.set()
    assert {path.name.partition("-wal")[0].partition("-shm")[0] for path in tmp_path.iterdir()} == {
        "chats.sqlite",
        "chats-relay.sqlite",
    }


@contextmanager
def begun(served: TwoProcesses, text: str) -> Iterator[int]:
    """Ask, and stay until the block ends. Gives the process that runs the reply."""
    with closing(http.client.HTTPConnection("127.0.0.1", served.port)) as client:
        body = json.dumps({"message": question(text)})
        client.request("POST", "/api/chat/chat", body, {"content-type": "application/json"})
        assert client.getresponse().status == 200
        yield served.pid_of(client)
