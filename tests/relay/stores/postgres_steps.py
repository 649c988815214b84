"""What the tests of the PostgreSQL store share: logs, and processes that publish."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any

from rxdelta.relay.postgres import PostgresStore
from rxdelta.relay.store import LogKey, Record, Terms

__all__ = ["TERMS", "begun", "come", "new_key", "numbers", "opened", "program", "record", "until"]

TERMS = Terms(lease=30, keep=60, patience=5, counts=True)
SECONDS = 30


@asynccontextmanager
async def opened(where: Any, prefix: str = "rxdelta", terms: Terms = TERMS) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(where, prefix=prefix)
    try:
        await store.open(terms)
        yield store
    finally:
        await store.close()


def new_key(id: str = "", tenant: str = "t") -> LogKey:
    return LogKey(tenant, id or token_hex(6), token_hex(8))


async def begun(store: PostgresStore, id: str = "") -> LogKey:
    key = new_key(id)
    assert await store.begin(key) is None
    return key


def record(number: int, text: bytes = b"x", **more: Any) -> Record:
    return Record(number, 1, text, size=len(text), **more)


async def numbers(store: PostgresStore, key: LogKey) -> Sequence[int]:
    page = await store.read(key.tenant, key.id, key.epoch, 0, 1 << 20)
    assert page is not None
    return [one.number for one in page.records]


async def until(is_so: Any, otherwise: str = "it doesn't come") -> None:
    async with asyncio.timeout(SECONDS):
        while not is_so():
            await asyncio.sleep(0.005)
        return
    raise AssertionError(otherwise)


async def come(call: Any) -> Any:
    """The answer of a call that is made again while the server is away, as a relay does."""
    async with asyncio.timeout(SECONDS):
        while True:
            try:
                return await call()
            except OSError:
                await asyncio.sleep(0.05)


def program(text: str, *words: str) -> subprocess.Popen[str]:
    """Another process, which runs this text, and takes and gives lines."""
    return subprocess.Popen(
        [sys.executable, "-c", text, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
