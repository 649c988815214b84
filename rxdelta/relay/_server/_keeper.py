"""The keeper of a folder's server: a program of its own, which starts the server, and ends it when nobody uses it.

It is run with five arguments: the folder; the server's program; the seconds that nobody must have used it; `always` or
`everysec`; the number of an open file, which is the folder with the keeper's lock. It goes to the background at once.

The server outlives a keeper that is killed; the next keeper takes it over. If the server dies, the keeper ends, too: who
still uses the folder starts both again.

This file is run by its path and imports nothing but the standard library. So it is up in some ten milliseconds, and
takes little memory.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, NoReturn

DATA, LOG, SOCKET = "data", "log", "valkey.sock"
LOG_BYTES = 1 << 20
_SYNC_SECONDS = 1.0
_SOCKET_SECONDS = 5.0  # a server makes its socket at once, before it reads its files
_PAUSE_MS = 5000  # longer than the two commands behind it take

_SETTINGS = {
    "port": "0",
    "unixsocket": SOCKET,  # relative to the folder: such a path can't be too long
    "unixsocketperm": "700",
    "save": "",
    "appendonly": "yes",
    "appenddirname": DATA,
    "aof-load-truncated": "yes",  # killed in the middle of a write: what was acknowledged stands before it
    "aof-use-rdb-preamble": "no",  # commands are read by every version of the server, also by an older one
    "auto-aof-rewrite-percentage": "100",
    "auto-aof-rewrite-min-size": "32mb",
    "set-proc-title": "no",
}


class Refused(Exception):
    """The server answered with an error."""


class Server:
    """The server of the folder, seen through one connection."""

    def __init__(self, connection: socket.socket, process: subprocess.Popen[bytes] | None) -> None:
        self._connection = connection
        self._answers: IO[bytes] = connection.makefile("rb")
        self._process = process  # None if an earlier keeper started it

    def ask(self, command: str) -> str:
        """The answer to a command. There is no limit: a server that is stopped may go on.

        Raises:
            EOFError: The server is gone.
            Refused: With the server's words.
        """
        try:
            self._connection.sendall(f"{command}\r\n".encode())
            line = self._answers.readline()
            text = self._answers.read(int(line[1:]) + 2) if line.startswith(b"$") else line
        except OSError:
            text = b""
        if not text.endswith(b"\r\n"):
            raise EOFError("it has ended")
        if text.startswith(b"-"):
            raise Refused(text.decode().strip())
        return text.decode()

    def uses(self) -> tuple[int, int]:
        """How many others are connected, and how many ever were."""
        lines = self.ask("INFO clients stats").split("\r\n")
        values = dict(line.split(":", 1) for line in lines if ":" in line)
        return int(values["connected_clients"]) - 1, int(values["total_connections_received"])

    def wait(self, seconds: float) -> None:
        """Wait, or raise EOFError as soon as the server is gone."""
        if select.select([self._connection], [], [], seconds)[0]:
            raise EOFError("it has ended")

    def end(self) -> None:
        """Have it write what it has, and end. Returns when it has ended, or raises Refused."""
        with suppress(OSError):
            self._connection.sendall(b"SHUTDOWN\r\n")
            while line := self._answers.readline():  # of a command before that was broken off, then of this
                if line.startswith(b"-"):
                    raise Refused(line.decode().strip())
        self.reap()

    def reap(self) -> None:
        self._connection.close()
        if self._process is not None:
            self._process.wait()


def main(program: str, idle: float, appendfsync: str, folder: int) -> None:
    """Keep the server of the folder until nobody uses it."""
    os.set_inheritable(folder, False)
    os.fchdir(folder)
    os.umask(0o077)
    signal.signal(signal.SIGTERM, _told_to_end)
    try:
        server = _server(program, appendfsync)
    except (OSError, EOFError) as error:
        _say(f"the server can't be started: {error}")
        sys.exit(1)
    try:
        _keep(server, idle)
    except EOFError:
        _say("the server has ended; who uses it next starts it again")
        server.reap()
    except SystemExit:
        _say("told to end")
        server.end()
    finally:
        # Otherwise a process that was forked from the starter while it had the lock would go on holding it.
        fcntl.flock(folder, fcntl.LOCK_UN)


def _server(program: str, appendfsync: str) -> Server:
    """Start the server, or take over the one that runs. Returns when it has read its files."""
    os.makedirs(DATA, exist_ok=True)
    process, started = None, 0.0
    # The server inherits the lock of the folder with its data: no two write there, whatever becomes of their keepers.
    data = os.open(DATA, os.O_RDONLY)
    try:
        while True:
            if process is None and _locked(data):
                process, started = _started(program, appendfsync, data), time.monotonic()
            if process is not None and process.poll() is not None:
                raise EOFError(f"it ended at once, with exit code {process.returncode}")
            with suppress(OSError, EOFError):
                server = Server(_connection(), process)
                while not _has_loaded(server):
                    time.sleep(0.02)
                return server
            # Somebody has removed it before we could connect, and nobody could reach this server any more.
            if process is not None and time.monotonic() - started > _SOCKET_SECONDS:
                raise EOFError("its socket isn't there")
            time.sleep(0.005)
    except BaseException:
        if process is not None:
            process.kill()
            process.wait()
        raise
    finally:
        os.close(data)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _started(program: str, appendfsync: str, data: int) -> subprocess.Popen[bytes]:
    for left in (
        *Path().glob("temp-*"),
        *Path(DATA).glob("temp-*"),
    ):  # by a server that was killed in a rewrite
        left.unlink()
    # With the server's own `everysec`, it answers before it has written while the disk is busy with the sync of the
    # second before: killed then, it loses what it has acknowledged. With `no` it writes first, and we sync.
    settings = _SETTINGS | {"appendfsync": "always" if appendfsync == "always" else "no"}
    options = [word for name, value in settings.items() for word in (f"--{name}", value)]
    return subprocess.Popen([program, *options], stdin=subprocess.DEVNULL, pass_fds=[data])  # noqa: S603 - no shell


def _connection() -> socket.socket:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(SOCKET)
    except OSError:
        connection.close()
        raise
    return connection


def _has_loaded(server: Server) -> bool:
    try:
        server.ask("PING")
    except Refused as refusal:
        return "LOADING" not in str(
            refusal
        )  # without room for its file it refuses a PING, and is there all the same
    return True


def _keep(server: Server, idle: float) -> None:
    """Return when nobody has used the server for `idle` seconds, or its socket is gone, and it has ended."""
    server.ask("CLIENT UNPAUSE")  # an earlier keeper may have been killed before it could
    used, seen, sizes = time.monotonic(), server.uses(), dict[Path, int]()
    while True:
        server.wait(min(_SYNC_SECONDS, idle / 4))
        sizes = _sync(sizes)
        _bound_the_log()
        if not os.path.exists(SOCKET):
            _say("the socket was removed: the server ends, so that the next one can be reached")
            server.end()
            return
        now = server.uses()
        if now[0] or now != seen:
            used, seen = time.monotonic(), now
        elif time.monotonic() - used >= idle:
            # A worker counts on the server only when a command has been answered that is held up here. So whoever has
            # its answer is seen below, and who comes later gets none, and starts the next server.
            server.ask(f"CLIENT PAUSE {_PAUSE_MS} WRITE")
            with suppress(Refused):
                if server.uses() == seen:
                    _say(f"nobody has used the server for {idle:g} seconds")
                    server.end()
                    return
            server.ask("CLIENT UNPAUSE")
            used = time.monotonic()


def _sync(before: dict[Path, int]) -> dict[Path, int]:
    """Have the disk keep what was written since the last time."""
    sizes: dict[Path, int] = {}
    for path in Path(DATA).glob("*.incr.aof"):
        with suppress(FileNotFoundError), path.open("rb") as file:  # gone: a rewrite has replaced it
            sizes[path] = os.fstat(file.fileno()).st_size
            if sizes[path] != before.get(path):
                os.fsync(file.fileno())
    return sizes


def _bound_the_log() -> None:
    with suppress(FileNotFoundError):
        if os.stat(LOG).st_size > LOG_BYTES:
            shutil.copyfile(LOG, f"{LOG}.old")
            os.truncate(LOG, 0)  # who has it open writes at its end


def _say(text: str) -> None:
    print(
        f"{os.getpid()}:K {time.strftime('%d %b %Y %H:%M:%S')} * rxdelta: {text}", file=sys.stderr, flush=True
    )


def _told_to_end(_signal: int, _frame: object) -> NoReturn:
    sys.exit(0)


if __name__ == "__main__":
    if os.fork():  # who started this waits for the parent only, and has no child left
        os._exit(0)
    main(sys.argv[2], float(sys.argv[3]), sys.argv[4], int(sys.argv[5]))
