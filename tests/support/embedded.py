"""A folder with a server of its own, as tests use it and leave nothing behind."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rxdelta.relay._server._embedded import embedded

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]


def wait_for(what: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Its first true answer."""
    until = time.monotonic() + seconds
    while not (answer := what()):
        assert time.monotonic() < until, f"waited {seconds:g} seconds for {what}"
        time.sleep(0.005)
    return answer


class Folder:
    """A folder for a server."""

    def __init__(self, path: Path | None = None) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="rxdelta-", dir="/tmp"))
        self.path = path or self.root / "relay"

    def url(self, **options: object) -> str:
        query = "&".join(f"{name}={value}" for name, value in options.items())
        return f"valkey+embedded://{self.path}" + (f"?{query}" if query else "")

    def open(self, **options: object) -> str:
        """Start or join the server."""
        return asyncio.run(embedded(self.url(**options), 30))

    def client(self) -> Any:
        """A client of the server that runs, which a `with` closes."""
        valkey = pytest.importorskip("valkey")
        return valkey.Valkey(unix_socket_path=str(self.path / "valkey.sock"), socket_timeout=30)

    def ask(self, *command: object) -> Any:
        with self.client() as client:
            return client.execute_command(*command)

    @property
    def log(self) -> str:
        return (self.path / "log").read_text("utf-8")

    def server(self) -> int:
        """The server's process id."""
        return int(self.ask("INFO", "server")["process_id"])

    def keeper(self) -> int:
        """The keeper's process id, from the lines of `ps`."""
        lines = subprocess.run(
            ["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True
        ).stdout.splitlines()
        found = [line.split()[0] for line in lines if "_keeper.py" in line and f" {self.path} " in line]
        assert len(found) == 1, found
        return int(found[0])

    def kill_the_server(self) -> None:
        os.kill(self.server(), signal.SIGKILL)

    def starts(self) -> int:
        """How often a server of this folder was started and came up."""
        return self.log.count("Ready to accept connections")

    def is_kept(self) -> bool:
        """Whether there is a keeper."""
        return not _free(self.path)

    def is_free(self) -> bool:
        """Whether neither a keeper nor a server nor a child of it is left: each of them has a lock of the system."""
        return all(_free(path) for path in (self.path, self.path / "data") if path.exists())

    def end(self) -> None:
        """End the server, and see that all its processes have ended."""
        try:
            if self.path.is_dir():
                if not self.is_free():
                    with suppress(Exception), self.client() as client:
                        client.shutdown()
                wait_for(self.is_free)
        finally:
            shutil.rmtree(self.root, ignore_errors=True)


def _free(path: Path) -> bool:
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True


_WORKER = """
import asyncio, os, sys
from rxdelta.relay._server._embedded import embedded

print("up", flush=True)
sys.stdin.readline()
print(asyncio.run(embedded(sys.argv[1], 30)), flush=True)
{body}
"""


def worker(
    url: str, body: str = "", *, stdin: Any = subprocess.PIPE, **options: Any
) -> subprocess.Popen[str]:
    """A process that joins when it reads a line, prints the URL, and then does what `body` says."""
    return subprocess.Popen(
        [sys.executable, "-c", _WORKER.format(body=body), url],
        stdin=stdin,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def begin(process: subprocess.Popen[str]) -> None:
    """Have the worker join. It has imported what it needs already."""
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == "up\n"
    process.stdin.write("\n")
    process.stdin.flush()


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def finish(process: subprocess.Popen[str]) -> int:
    for stream in (process.stdin, process.stdout):
        if stream:
            stream.close()
    return process.wait()
