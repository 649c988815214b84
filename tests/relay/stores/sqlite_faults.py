"""Runs on an SQLite database that others lock, copy and fill at a random moment. See `relay.stores.runs`."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import attrs
from relay.stores import runs, sqlite_tweaks
from relay.stores.runs import Run, play_out
from relay.stores.workers import Job, Nursery

__all__ = ["KINDS", "SqliteRun", "play"]

A_DAY = 86_400.0


@attrs.define(kw_only=True)
class SqliteRun(Run):
    """A run on one file.

    Attributes:
        keep: Of all relays.
        before: What all processes do first.
    """

    keep: float = 3600.0
    before: list[tuple[str, str]] = attrs.Factory(list)

    @property
    def path(self) -> Path:
        return self.folder / "relay.db"

    @property
    def flag(self) -> Path:
        """The file that a tweak looks at."""
        return self.folder / "flag"

    def url(self, *, directly: bool = False) -> str:
        return f"sqlite:///{self.path}"

    def options(self) -> dict[str, Any]:
        return super().options() | {"keep": self.keep}

    def job(self, does: str, count: int = 0, **more: Any) -> Job:
        return super().job(does, count, before=self.before, **more)

    def connect(self, seconds: float = 10.0) -> sqlite3.Connection:
        """Another connection, of this process: no relay of it has the file open while processes fail."""
        return sqlite3.connect(self.path, timeout=seconds, isolation_level=None, check_same_thread=False)

    async def check_store(self) -> None:
        assert [*self.folder.glob("relay.db-*")] == [], "the last one who closes leaves only the database"
        connection = self.connect()
        try:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        finally:
            connection.close()

    @asynccontextmanager
    async def connected(self, *statements: str) -> AsyncIterator[sqlite3.Connection]:
        """Another connection, on which statements have been carried out."""
        connection = self.connect()
        try:
            for statement in statements:
                await asyncio.to_thread(connection.execute, statement)
            self.note(f"done: {statements}")
            yield connection
        finally:
            connection.close()
            self.note("closed")


async def hold_the_lock(run: SqliteRun) -> None:
    """Somebody else writes for long, perhaps longer than a call of the store waits."""
    for _ in range(run.chance.choice((1, 1, 2))):
        await run.somewhen()
        async with run.connected("BEGIN IMMEDIATE"):
            await asyncio.sleep(run.chance.uniform(0.5, 4.0))


async def hold_the_lock_and_kill(run: SqliteRun) -> None:
    await run.somewhen()
    async with run.connected("BEGIN IMMEDIATE"):
        await run.somewhen(0.5)
        await run.kill_publisher()
        await run.somewhen(3)


async def hold_it_for_too_long(run: SqliteRun) -> None:
    await run.somewhen()
    async with run.connected("BEGIN IMMEDIATE"):
        await asyncio.sleep(run.chance.choice((4.5, 6.0)))


async def hold_a_snapshot(run: SqliteRun) -> None:
    """Somebody else reads for long, so that what stands beside the database can't be written into it."""
    await run.somewhen(0.3)
    async with run.connected("BEGIN", "SELECT count(*) FROM rxdelta_records"):
        await run.somewhen(3)


async def copy_the_database(run: SqliteRun) -> None:
    for number in range(run.chance.choice((1, 3))):
        await run.somewhen(0.5)
        copied = sqlite3.connect(run.folder / f"copy-{number}.db", check_same_thread=False)
        try:
            async with run.connected() as connection:
                pages = run.chance.choice((-1, 5))
                await asyncio.to_thread(connection.backup, copied, pages=pages, sleep=0.001)
            assert copied.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        finally:
            copied.close()


async def vacuum_the_database(run: SqliteRun) -> None:
    for _ in range(run.chance.choice((1, 3))):
        await run.somewhen(0.5)
        async with run.connected("VACUUM"):
            pass


async def checkpoint_the_database(run: SqliteRun) -> None:
    for _ in range(run.chance.choice((1, 3))):
        await run.somewhen(0.5)
        how = run.chance.choice(("passive", "full", "restart", "truncate"))
        async with run.connected(f"PRAGMA wal_checkpoint({how})"):
            pass


async def fill_the_database(run: SqliteRun) -> None:
    await run.somewhen(0.6)
    run.flag.touch()
    run.note("the disk is full")
    await asyncio.sleep(run.chance.choice((0.3, 1.0, runs.LEASE * 1.5)))
    run.flag.unlink()
    run.note("there is room")


async def refuse_larger_files(run: SqliteRun) -> None:
    """The system lets the publisher's process write no further into any file."""
    await run.somewhen(0.6)
    size = os.stat(f"{run.path}-wal").st_size
    if not run.publisher.runs:
        return
    _, hard = resource.prlimit(run.publisher.pid, resource.RLIMIT_FSIZE)
    limit = max(size - run.chance.choice((0, 3000)), 40_000)
    run.note(f"no file is larger than {limit}")
    resource.prlimit(run.publisher.pid, resource.RLIMIT_FSIZE, (limit, hard))
    await asyncio.sleep(run.chance.choice((0.3, 1.0, runs.LEASE * 1.5)))
    if run.publisher.runs:
        resource.prlimit(run.publisher.pid, resource.RLIMIT_FSIZE, (hard, hard))
    run.note("files can be larger")


async def kill_all(run: SqliteRun) -> None:
    """No process is left that would tidy up what stands beside the database."""
    await run.somewhen(0.6)
    await run.kill_publisher()
    while run.readers:
        run.leave_reader()
    await run.somewhen(2 * runs.LEASE)
    left = {path.name for path in run.folder.glob("relay.db*")}
    assert left == {"relay.db", "relay.db-wal", "relay.db-shm"}
    for _ in range(run.chance.choice((1, 2))):
        run.read()


async def shift_the_clock(run: SqliteRun) -> None:
    """It jumps by a day, and perhaps back; the late reader's doesn't. What is lost then is what isn't kept for so long."""
    await run.somewhen(0.6)
    shift = run.chance.choice((A_DAY, -A_DAY))
    run.loses = run.keep < A_DAY
    turned = run.flag.with_suffix(".new")
    for seconds in (shift, 0.0)[: run.chance.choice((1, 2))]:
        turned.write_text(str(seconds))
        turned.replace(run.flag)
        run.note(f"the clock is wrong by {seconds} s, and streams are kept for {run.keep} s")
        await run.somewhen()


KINDS: list[Callable[[Any], Awaitable[None]]] = [
    *runs.KINDS,
    hold_the_lock,
    hold_the_lock_and_kill,
    hold_it_for_too_long,
    hold_a_snapshot,
    copy_the_database,
    vacuum_the_database,
    checkpoint_the_database,
    fill_the_database,
    refuse_larger_files,
    kill_all,
    shift_the_clock,
]


def prepare(run: SqliteRun, kind: Callable[[Any], Awaitable[None]]) -> None:
    """What a kind needs before the processes start."""
    runs.prepare(run, kind)
    if kind is hold_it_for_too_long:
        run.patience = 0.8
    elif kind in (hold_a_snapshot, copy_the_database, vacuum_the_database, checkpoint_the_database):
        # For a few of the times that the store moves what stands beside the database.
        run.publishes["width"] = run.chance.choice((0, 100_000))
        run.restless = (0, 0.01)  # who comes back reads the whole log
    elif kind is fill_the_database:
        run.publishes["width"] = 2000
        run.before = [(f"{sqlite_tweaks.__name__}:{sqlite_tweaks.stop_growing.__name__}", str(run.flag))]
    elif kind is shift_the_clock:
        run.keep = run.chance.choice((3600.0, 2 * A_DAY))
        run.stays = run.keep > A_DAY  # nobody is dead because a clock has jumped
        run.before = [(f"{sqlite_tweaks.__name__}:{sqlite_tweaks.shift_the_clock.__name__}", str(run.flag))]


async def play(seed: int, nursery: Nursery) -> None:
    """Play one run and check it. An error names the seed."""
    kind = KINDS[seed % len(KINDS)]
    with tempfile.TemporaryDirectory(prefix="rxf-") as folder:
        run = SqliteRun(seed=seed, nursery=nursery, folder=Path(folder), chance=Random(seed))
        prepare(run, kind)
        await play_out(run, kind)
