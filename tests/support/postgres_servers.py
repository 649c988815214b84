"""Real PostgreSQL servers for tests. The programs are the machine's: of a distribution, or those on the PATH.

Each server has a folder of its own, with its data, its log and its socket. `stop` ends it and `remove` also deletes the folder.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from support.needs import without

__all__ = ["PostgresServer", "has_postgres", "need_postgres", "running", "until"]

SECONDS = 30  # nothing takes as long; what hangs is found


def programs() -> Path | None:
    """The folder of `initdb` and `postgres`, of the newest version; `None` without any."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if found:
        return max(found, key=lambda path: int(path.parent.name))
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path is not None and shutil.which("postgres") else None


def need_postgres() -> None:
    """Skip a test, or a module, where the programs are missing."""
    if not has_postgres():
        pytest.skip(without("postgres", "PostgreSQL's initdb and postgres"), allow_module_level=True)


def has_postgres() -> bool:
    return os.name == "posix" and programs() is not None


class PostgresServer:
    """One server, with the superuser `boss` who needs no password on its socket, and needs one on TCP.

    Attributes:
        folder: Data, log and socket.
        port: Of TCP, on 127.0.0.1. The same after `restart`.
        password: Of `boss`.
    """

    password = "secret-of-boss"

    def __init__(self, **settings: str | int) -> None:
        """`settings` are those of `postgresql.conf`."""
        self.folder = Path(tempfile.mkdtemp(prefix="rxp-"))  # short: a socket's path has at most 107 bytes
        self.port = _free_port()
        self._settings = settings
        self._user = _unprivileged()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        try:
            self._make()
        except BaseException:
            self.remove()
            raise

    def _make(self) -> None:
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        secret = self.folder / "password"
        secret.write_text(self.password)
        secret.chmod(0o644)
        self._run(
            "initdb", "--no-sync", "--username=boss", f"--pwfile={secret}", "--encoding=UTF8", "--locale=C",
            "--auth-local=trust", "--auth-host=scram-sha-256", f"--pgdata={self.data}",
        )  # fmt: skip

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def socket_url(self) -> str:
        """Without a password."""
        return f"postgresql:///postgres?host={self.folder}&port={self.port}&user=boss"

    @property
    def url(self) -> str:
        return self.url_of("boss", self.password)

    def url_of(self, user: str, password: str) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/postgres"

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        path = self.folder / "log"
        return path.read_text("utf-8", "replace") if path.exists() else ""

    def start(self) -> PostgresServer:
        """Start the process and wait until it answers."""
        assert not self.runs
        folder = programs()
        assert folder is not None
        usual: dict[str, str | int] = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": str(self.folder),
            "dynamic_shared_memory_type": "mmap",  # in its folder: nothing stays behind a `kill -9`
            "shared_buffers": "32MB",
        } | self._settings
        words = [word for name, value in usual.items() for word in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [folder / "postgres", "-D", self.data, *words],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # a Ctrl-C of the tests is for the tests
                user=self._user,
            )
        # Its input ends with the process of the tests, however that ends: then the server does, too.
        end = 'read -r _; kill -CONT "$0"; kill -QUIT "$0"; while kill -0 "$0"; do sleep 0.05; done; rm -rf "$1"'
        guard = ["sh", "-c", end, str(self.pid), str(self.folder)]
        self._guard = subprocess.Popen(
            guard, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        until(self._answers, f"the server on port {self.port} doesn't start")
        return self

    def _answers(self) -> bool:
        assert self.runs, f"the server ended: {self.log[-2000:]}"
        import psycopg

        try:
            self.ask("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def ask(self, question: str, *values: object) -> list[Any]:
        """Ask as the superuser, on a connection for this question. Returns the rows, or nothing."""
        import psycopg

        with psycopg.connect(self.socket_url, autocommit=True, application_name="tests") as connection:
            cursor = connection.execute(question.encode(), values or None)
            return cursor.fetchall() if cursor.description is not None else []

    def value(self, question: str, *values: object) -> Any:
        return self.ask(question, *values)[0][0]

    def clients(self) -> list[tuple[int, str]]:
        """Process id and last statement of the applications' connections, without those of tests that ask."""
        mine = "backend_type = 'client backend' AND application_name <> 'tests'"
        return self.ask(f"SELECT pid, query FROM pg_stat_activity WHERE {mine} ORDER BY backend_start")

    def has_no_clients(self) -> bool:
        """Wait until nobody is connected. A server notices a little later that a client has closed its connection."""
        until(lambda: not self.clients(), f"still connected: {self.clients()}")
        return True

    def stop(self) -> None:
        """End it as a deployment does ("fast": whoever is connected is told), and wait."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """`kill -9` of all its processes, and wait."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        """Kill it, and start it again on the same port with the same files."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay, and nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, how: signal.Signals) -> None:
        """Send it to the server's process first: so it makes no more of the others, which are told then."""
        os.kill(self.pid, how)
        if how in (signal.SIGSTOP, signal.SIGKILL, signal.SIGCONT):
            for pid in self._children:
                with suppress(ProcessLookupError):
                    os.kill(pid, how)

    @property
    def _children(self) -> list[int]:
        found = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, check=True, text=True
        ).stdout
        pairs = [line.split() for line in found.splitlines()]
        return [int(pid) for pid, parent in pairs if int(parent) == self.pid]

    def _end(self, how: signal.Signals) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None
        if self._process is None:
            return
        if self.runs:
            children = self._children
            self._signal(signal.SIGCONT)
            os.kill(self.pid, how)
            for pid in children if how is signal.SIGKILL else ():
                with suppress(ProcessLookupError):
                    os.kill(pid, how)
            try:
                self._process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(SECONDS)
            for pid in children:  # a server that starts again waits for no shared memory of theirs
                until(lambda pid=pid: not _is_there(pid), f"process {pid} doesn't end")
        self._process = None

    def remove(self) -> None:
        """End it at once and delete its folder. A segment of shared memory that a killed one left goes, too."""
        self._end(signal.SIGQUIT)
        left = self.data / "postmaster.pid"
        if left.exists():
            with suppress(IndexError, OSError):
                segment = left.read_text().splitlines()[6].split()[1]
                subprocess.run(["ipcrm", "-m", segment], stderr=subprocess.DEVNULL, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *words: str) -> None:
        folder = programs()
        assert folder is not None
        done = subprocess.run(
            [folder / program, *words],
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            user=self._user,
            check=False,
        )
        assert done.returncode == 0, done.stdout.decode("utf-8", "replace")


@contextmanager
def running(**settings: str | int) -> Iterator[PostgresServer]:
    """A server for the length of a block."""
    server = PostgresServer(**settings)
    try:
        yield server.start()
    finally:
        server.remove()


def until(is_so: Any, otherwise: str) -> None:
    """Wait for a state of another process."""
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end, otherwise
        time.sleep(0.005)


def _is_there(pid: int) -> bool:
    """Whether a process runs. One that has ended and that nobody has asked about yet doesn't."""
    found = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], stdout=subprocess.PIPE, check=False, text=True
    ).stdout
    return bool(found.strip()) and not found.startswith("Z")


def _unprivileged() -> str | None:
    """Whom the programs run as: they refuse root."""
    if os.geteuid() != 0:
        return None
    names = {one.pw_name for one in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as line:
        port: int = line.getsockname()[1]
        return port
