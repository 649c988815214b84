"""The store in an SQLite database: what it keeps of what a `Store` promises, and what is SQLite's own."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from relay.stores.sqlite_process import TERMS, key, start

from rxdelta import InvalidValueError
from rxdelta.errors import StreamInterrupted
from rxdelta.relay import sqlite as _sqlite, sqlite_tables as _sqlite_tables
from rxdelta.relay.sqlite import SqliteStore, sqlite_store
from rxdelta.relay.store import LogKey, Record, Terms, Topic


@asynccontextmanager
async def opened(path: Path, terms: Terms = TERMS, **options: Any) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path, **options)
    await store.open(terms)
    try:
        yield store
    finally:
        await store.close()


def record(number: int, events: bytes = b"event", **fields: Any) -> Record:
    return Record(number, 1, events, **fields)


def asked(path: Path, question: str) -> Any:
    """What an operator sees who asks the database."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(question).fetchall()


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_800_000_000.0
        monkeypatch.setattr(_sqlite_tables, "time", self)

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "relay.db"


def test_what_has_expired_is_gone_and_removed_a_few_at_a_time(path: Path, clock: Clock) -> None:
    terms = Terms(lease=10.0, keep=60.0, patience=1.0)

    async def main() -> None:
        async with opened(path, terms) as store:
            live, ended, dead = key("live"), key("ended"), key("dead")
            for log in (live, ended, dead):
                await store.begin(log)
                for number in range(250):
                    await store.append(log, number, record(number + 1, size=1))
            await store.append(ended, 250, Record(251, 0, b"", b"end"))
            clock.now += 60
            await store.append(live, 250, None)
            assert await store.read("", "ended", None, 0, 1) is None
            assert await store.read("", "dead", None, 0, 1) is not None
            assert await store.begin(key("ended", 1)) is None  # its name is free
            clock.now += 10
            assert await store.read("", "dead", dead.epoch, 0, 1) is None
            assert (await store.append(dead, 250, record(251))).state == "gone"
            assert await store.total() == 250
            assert [*await store.names("")] == ["live", "ended"]
            for _ in range(8):
                await store.append(live, 250, None)
            assert asked(path, "SELECT count(*) FROM rxdelta_records") == [(250,)]
            assert await store.total() == 250
            clock.now -= 100_000  # what is gone doesn't come back
            assert [*await store.names("")] == ["live", "ended"]
            page = await store.read("", "live", None, 249, 1)
            assert page is not None
            assert page.age < 0

    asyncio.run(main())


def test_news_come_from_and_to_another_process(path: Path) -> None:
    async def main() -> None:
        async with opened(path) as store:
            stopped = asyncio.Event()
            store.follow(Topic("stopped", *key("chat")), stopped.set)
            with start("answer", path) as other:
                assert other.stdin is not None
                assert other.stdout is not None
                lines = other.stdout
                assert await asyncio.to_thread(lines.readline) == "follows\n"
                await store.begin(key("chat"))
                await store.append(key("chat"), 0, record(1))
                await store.append(key("chat"), 1, record(2))
                await stopped.wait()
                assert (await store.append(key("chat"), 2, None)).stop == b"enough"
                other.stdin.close()
                await asyncio.to_thread(other.wait)

    asyncio.run(main())


@pytest.mark.slow
def test_what_was_acknowledged_is_there_when_its_process_was_killed(path: Path) -> None:
    acknowledged = dict[str, int]()
    for _ in range(3):
        with start("write", path) as writer:
            assert writer.stdout is not None
            for _ in range(400):
                name, number = writer.stdout.readline().split()
                acknowledged[name] = int(number)
            writer.kill()
            for line in writer.stdout:
                if line.endswith("\n") and len(line.split()) == 2:
                    acknowledged[line.split()[0]] = int(line.split()[1])

        async def main() -> None:
            async with opened(path) as store:
                for name, number in acknowledged.items():
                    page = await store.read("", name, None, 0, 1 << 24)
                    assert page is not None
                    assert page.newest in (number, number + 1)
                    assert [one.number for one in page.records] == [*range(1, page.newest + 1)]
                    assert all(one.events == b"%d" % one.number * 100 for one in page.records)
                total = sum(size for (size,) in asked(path, "SELECT size FROM rxdelta_records"))
                assert await store.total() == total
                assert asked(path, "PRAGMA integrity_check") == [("ok",)]
                for name in acknowledged:
                    await store.free(key(name))
            path.unlink()

        asyncio.run(main())
        acknowledged.clear()


def test_a_call_that_fails_spoils_no_other(path: Path) -> None:
    async def main() -> None:
        async with opened(path) as store:
            names = [f"log-{n}" for n in range(20)]
            await asyncio.gather(*(store.begin(key(name)) for name in names))
            wrong = {7: record(1 << 70), 12: record(1, b"", size=1 << 70)}
            answers = await asyncio.gather(
                *(
                    store.append(key(name), 0, wrong.get(n, record(1, size=1)))
                    for n, name in enumerate(names)
                ),
                return_exceptions=True,
            )
            for n, answer in enumerate(answers):
                assert (
                    isinstance(answer, OverflowError)
                    if n in wrong
                    else getattr(answer, "state", 0) == "written"
                )
            assert await store.total() == 18

    asyncio.run(main())


def test_a_full_disk_may_pass(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connections = list[sqlite3.Connection]()

    class Connection(sqlite3.Connection):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options, check_same_thread=False)
            connections.append(self)

    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: connect(*args, **options, factory=Connection)
    )

    async def main() -> None:
        async with opened(path) as store:
            await store.begin(key("chat"))
            await store.begin(key("other"))
            connections[0].execute("PRAGMA max_page_count = 20").fetchone()
            large, small = await asyncio.gather(
                store.append(key("chat"), 0, record(1, bytes(1 << 20))),
                store.append(key("other"), 0, record(1)),
                return_exceptions=True,
            )
            assert isinstance(large, OSError)
            assert large.errno == errno.ENOSPC
            assert getattr(small, "state", small) == "written"
            connections[0].execute("PRAGMA max_page_count = 100000").fetchone()
            assert (await store.append(key("chat"), 0, record(1, bytes(1 << 20)))).state == "written"

    asyncio.run(main())
    connections.clear()


def test_a_locked_database_is_waited_for_but_not_for_long(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        async with opened(path) as store:
            await store.begin(key("chat"))
            with start("lock", path) as other:
                assert other.stdin is not None
                assert other.stdout is not None
                assert await asyncio.to_thread(other.stdout.readline) == "locked\n"
                waits = asyncio.ensure_future(store.append(key("chat"), 0, record(1)))
                assert await store.names("") == ["chat"]  # reading needs no lock
                assert not waits.done()
                monkeypatch.setattr(_sqlite, "_PATIENCE", 0.05)
                with pytest.raises(TimeoutError, match="locked"):
                    await store.append(key("chat"), None, None)
                monkeypatch.undo()
                other.stdin.close()
                other.wait()
            assert (await waits).state == "written"

    asyncio.run(main())


def test_what_waits_fails_when_the_store_closes(path: Path) -> None:
    async def main() -> None:
        async with opened(path) as store:
            with start("lock", path) as other:
                assert other.stdin is not None
                assert other.stdout is not None
                assert await asyncio.to_thread(other.stdout.readline) == "locked\n"
                waits = asyncio.ensure_future(store.begin(key("chat")))
                await store.names("")
                await store.close()
                with pytest.raises(StreamInterrupted, match="closed"):
                    await waits
                with pytest.raises(StreamInterrupted, match="closed"):
                    await store.names("")
                other.stdin.close()

    asyncio.run(main())


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files by /proc")
def test_nothing_is_left_when_it_has_closed(path: Path) -> None:
    async def main() -> None:
        async with opened(path) as store:
            store.follow(Topic("begun", "", "chat"), lambda: None)
            await store.begin(key("chat"))

    asyncio.run(main())
    gc.collect()
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        asyncio.run(main())
    gc.collect()
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == (threads, files)
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    assert _sqlite._opened == {}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_only_its_owner_can_read_the_file(path: Path) -> None:
    async def main() -> None:
        async with opened(path) as store:
            await store.begin(key("chat"))
            assert {one.stat().st_mode & 0o777 for one in path.parent.iterdir()} == {0o600}
            assert len([*path.parent.iterdir()]) == 3

    asyncio.run(main())


FORK = """
import asyncio, os, sys
from pathlib import Path
from rxdelta.errors import StreamInterrupted
from rxdelta.relay.sqlite import SqliteStore
from relay.stores.sqlite_process import TERMS, key
async def main():
    store = SqliteStore(sys.argv[1])
    await store.open(TERMS)
    await store.begin(key("chat"))
    if (child := os.fork()) == 0:
        status = 1
        async def use():
            for refused in (store.names(""), SqliteStore(sys.argv[1]).open(TERMS)):
                try:
                    await refused
                    return 2
                except StreamInterrupted as error:
                    assert "forked" in str(error), error
            await store.close()
            return 0
        try:
            coroutine = use()
            coroutine.send(None)
        except StopIteration as stop:
            status = stop.value
        finally:
            del store
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert await store.names("") == ["chat"]
    assert Path(sys.argv[1] + "-wal").exists()
    await store.close()
asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_process_that_was_forked_is_refused(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def opening(path: Path, **options: Any) -> None:
    async def main() -> None:
        async with opened(path, **options):
            pass

    asyncio.run(main())


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("hello " * 1000)
    for path, fault in (
        (text, "not a database"),
        (tmp_path, "is a folder"),
        (tmp_path / "none" / "relay.db", "a folder that isn't there"),
        (text / "relay.db", "a folder that isn't there"),
    ):
        with pytest.raises(InvalidValueError, match=fault):
            opening(path)
    assert text.read_text() == "hello " * 1000
    assert _sqlite._opened == {}


def test_tables_of_another_version_and_prefixes_that_differ_in_case_are_refused(path: Path) -> None:
    opening(path)
    opening(path, prefix="another:one")
    with pytest.raises(InvalidValueError, match="know no case"):
        opening(path, prefix="RxDelta")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE rxdelta_state SET form = 2")
        connection.commit()
    with pytest.raises(InvalidValueError, match="the form 2 of another version"):
        opening(path)
    opening(path, prefix="another:one")


def test_an_application_can_have_tables_in_the_file(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("PRAGMA user_version = 7; CREATE TABLE users (name TEXT)")

    async def main() -> None:
        async with opened(path, prefix="a") as store, opened(path, prefix="b") as other:
            await store.begin(key("chat"))
            assert await other.names("") == []

    asyncio.run(main())
    assert asked(path, "PRAGMA user_version") == [(7,)]
    assert asked(path, "SELECT stream_id FROM a_logs") == [("chat",)]


def test_what_is_written_reaches_the_database_before_it_is_much(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_sqlite, "_WAL_BYTES", 100_000)
    wal = path.with_name("relay.db-wal")

    async def main() -> None:
        async with opened(path) as store:
            await store.begin(key("chat"))
            sizes = set[int]()
            for number in range(60):
                await store.append(key("chat"), number, record(number + 1, bytes(20_000)))
                await store.names("")  # when that is answered, what came before it is done
                sizes.add(wal.stat().st_size)
            assert 0 in sizes
            assert max(sizes) < 200_000

    asyncio.run(main())
    assert path.stat().st_size > 1_200_000


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:////var/lib/app/relay.db", "/var/lib/app/relay.db"),
        ("sqlite:////a%20b/%23c+d.db?", "/a b/#c+d.db"),
        ("sqlite:///relay.db", os.path.join(os.getcwd(), "relay.db")),
        ("sqlite:///folder/relay.db", os.path.join(os.getcwd(), "folder", "relay.db")),
        ("sqlite:///C:/x.db", os.path.abspath("C:/x.db")),
    ],
)
def test_urls(url: str, path: str) -> None:
    if os.name == "nt" and url.startswith("sqlite:////"):
        path = os.path.abspath(path)
    assert repr(sqlite_store(url, "p")) == f"SqliteStore({path!r}, prefix='p')"


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("sqlite://", "no other process can share"),
        ("sqlite:///", "no other process can share"),
        ("sqlite:///:memory:", "no other process can share"),
        ("sqlite:///%3Amemory%3A", "no other process can share"),
        ("sqlite://relay.db", "three slashes"),
        ("sqlite://user@host/relay.db", "three slashes"),
        ("sqlite:///relay.db?timeout=5", "unknown 'timeout'"),
        ("sqlite:relay.db", "must be the URL"),
        ("postgresql:///relay", "must be the URL"),
    ],
)
def test_wrong_urls(url: str, fault: str) -> None:
    with pytest.raises(InvalidValueError, match=fault):
        sqlite_store(url, "p")


@pytest.mark.parametrize("path", ["", ":memory:", "a\0b", None, b"relay.db", 7])
def test_wrong_paths(path: Any) -> None:
    with pytest.raises(InvalidValueError, match="path"):
        SqliteStore(path)


@pytest.mark.parametrize("prefix", ["", "a b", 'a"b', "sqlite_x", "SQLite", "x" * 65, None])
def test_wrong_prefixes(prefix: Any) -> None:
    with pytest.raises(InvalidValueError, match="prefix"):
        SqliteStore("relay.db", prefix=prefix)


def test_a_log_needs_no_more_than_its_key(path: Path) -> None:
    """Two tenants' streams with one id are two, and any printable name is one."""

    async def main() -> None:
        async with opened(path) as store:
            keys = [LogKey("", "' \" ; ü 😀 %", "a" * 16), LogKey("t", "' \" ; ü 😀 %", "b" * 16)]
            assert [await store.begin(one) for one in keys] == [None, None]
            for one in keys:
                page = await store.read(one.tenant, one.id, None, 0, 1)
                assert page is not None
                assert page.epoch == one.epoch

    asyncio.run(main())
