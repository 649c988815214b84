"""Other processes that use an SQLite store: `python sqlite_process.py ROLE FILE`. Each writes lines that its test waits for."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from zlib import crc32

from rxdelta.relay.sqlite import SqliteStore
from rxdelta.relay.store import LogKey, Record, Terms, Topic

__all__ = ["TERMS", "key", "start"]

TERMS = Terms(lease=30.0, keep=3600.0, patience=10.0)
ROOT = Path(__file__).parents[3]


def key(name: str, number: int = 0, tenant: str = "") -> LogKey:
    return LogKey(tenant, name, f"{crc32(name.encode()):08x}{number:08x}")


def start(role: str, path: Path) -> subprocess.Popen[str]:
    """Start one. It ends when its input is closed, or is killed."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path]))}
    return subprocess.Popen(
        [sys.executable, __file__, role, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def say(what: object) -> None:
    print(what, flush=True)


async def write(store: SqliteStore) -> None:
    """Write records, each in a log of eight, and say what has been acknowledged, until it is killed."""

    async def one(name: str) -> None:
        assert await store.begin(key(name)) is None
        number = 0
        while True:
            answer = await store.append(
                key(name), number, Record(number + 1, 1, b"%d" % (number + 1) * 100, size=7)
            )
            assert answer.state == "written"
            number += 1
            say(f"{name} {number}")

    await asyncio.gather(*(one(f"log-{n}") for n in range(8)))


async def answer(store: SqliteStore) -> None:
    """Follow a log, and tell its publisher to stop when it has two records."""
    news = asyncio.Event()
    store.follow(Topic("begun", "", "chat"), news.set)
    store.follow(Topic("written", *key("chat")), news.set)
    say("follows")
    while True:
        await news.wait()
        news.clear()
        page = await store.read("", "chat", None, 0, 1000)
        if page is not None and page.newest == 2:
            break
        say(f"read {page and page.newest}")
    assert await store.stop(key("chat"), "token", b"enough")
    say("stopped")
    await asyncio.to_thread(sys.stdin.read)


async def main(role: str, path: str) -> None:
    if role == "lock":
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        say("locked")
        sys.stdin.read()
        return
    store = SqliteStore(path)
    await store.open(TERMS)
    await {"write": write, "answer": answer}[role](store)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
