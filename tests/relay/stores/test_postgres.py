"""What is PostgreSQL's own in its store: each call, the tables and the connections."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from support.loops import run
from support.postgres_servers import PostgresServer, need_postgres, running

pytest.importorskip("psycopg")

import psycopg
from relay.stores.postgres_steps import TERMS, begun, come, new_key, numbers, opened, program, record, until

from rxdelta.core import InvalidValueError, StreamInterrupted
from rxdelta.relay.postgres import PostgresStore
from rxdelta.relay.store import Record, Terms, Topic

need_postgres()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Tests leave it as it is, and have schemas of their own."""
    with running() as one:
        yield one


# --- each call --------------------------------------------------------------------------------------------------------


def test_each_log_is_kept_as_long_as_it_is_said(server: PostgresServer) -> None:
    async def main() -> None:
        async with opened(server.url, "terms", Terms(lease=1000, keep=5000, patience=5)) as store:
            live, ended, freed, both, buried = [await begun(store, name) for name in "abcde"]
            for key in (live, ended, both):
                await store.append(key, 0, record(1))
            await store.free(freed)
            await store.free(both)
            for key in (ended, both):
                await store.append(key, 1, Record(2, 0, end=b""))
            await store.bury(buried, None, Record(1, 0, end=b"", dead=1))
            kept = server.ask(
                'SELECT stream, round(extract(epoch FROM expires - clock_timestamp()) / 100) FROM "terms".streams ORDER BY 1'
            )
            assert kept == [("a", 60), ("b", 50), ("c", 10), ("d", 10), ("e", 50)]

    run(main)


def test_logs_that_expired_are_not_there_and_are_deleted_a_little_at_a_time(server: PostgresServer) -> None:
    async def main() -> None:
        async with opened(server.url, "expire") as store:
            kept, ended, silent = [await begun(store, name) for name in ("kept", "ended", "silent")]
            await store.append(kept, 0, record(1))
            for number in range(1, 26):
                await store.append(ended, number - 1, record(number))
            await store.append(ended, 25, Record(26, 0, end=b""))
            assert await store.names("t") == ["kept", "ended", "silent"]
            server.ask(
                "UPDATE expire.streams SET expires = clock_timestamp(), look_at = clock_timestamp() WHERE stream <> 'kept'"
            )
            server.ask("UPDATE expire.streams SET look_at = clock_timestamp() WHERE stream = 'kept'")
            assert await store.names("t") == ["kept"]
            assert await store.read(*ended, 0, 1) is None
            for told in (record(1), None):
                assert (await store.append(silent, 0, told)).state == "gone"
            assert not await store.stop(silent, "x", b"")
            assert not await store.bury(silent, None, Record(1, 0, end=b"", dead=1))
            assert await store.free(silent)
            assert await store.total() == 1
            await begun(store, "silent")  # another one has the name
            sweeps = 1
            while not (await store._write("sweep", (10,)))[0]:
                sweeps += 1
                assert await store.read(*ended, 0, 1) is None
            assert sweeps >= 3
            assert await store.names("t") == ["kept", "silent"]
            assert server.value("SELECT count(*) FROM expire.streams") == 2
            assert server.value("SELECT count(*) FROM expire.records") == 1
            assert server.value("SELECT count(*) FROM expire.streams WHERE look_at < clock_timestamp()") == 0
            assert await store.begin(ended) is None

    run(main)


def test_what_has_expired_is_deleted_by_itself(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rxdelta.relay import postgres as _postgres

    monkeypatch.setattr(_postgres, "_SWEEP_SECONDS", 0.05)

    async def main() -> None:
        async with opened(server.url, "sweep", Terms(lease=0.1, keep=0, patience=5)) as store:
            for _ in range(3):
                await begun(store)
            await until(lambda: server.value('SELECT count(*) FROM "sweep".streams') == 0)

    run(main)


# --- connections ------------------------------------------------------------------------------------------------------


def test_many_calls_at_once_take_three_connections_and_few_statements(server: PostgresServer) -> None:
    async def main() -> None:
        async with opened(server.url, "many") as store:
            keys = await asyncio.gather(*(begun(store) for _ in range(200)))
            woken = asyncio.Event()
            store.follow(Topic("written", *keys[0]), woken.set)
            before = _transactions(server)
            for number in range(1, 6):
                answers = await asyncio.gather(
                    *(store.append(key, number - 1, record(number)) for key in keys)
                )
                assert {answer.state for answer in answers} == {"written"}
            assert _transactions(server) - before < 100  # of 1,000 appends
            pages = await asyncio.gather(*(numbers(store, key) for key in keys))
            assert pages == [[1, 2, 3, 4, 5]] * 200
            await asyncio.wait_for(woken.wait(), 30)
            assert len(server.clients()) == 3
        assert server.has_no_clients()

    run(main)


def _transactions(server: PostgresServer) -> int:
    # Each statement that writes takes one id.
    return int(server.value("SELECT pg_current_xact_id()::text::bigint"))


def test_a_call_that_fails_leaves_its_neighbours_alone(server: PostgresServer) -> None:
    async def main() -> None:
        async with opened(server.url, "fails") as store:
            keys = [await begun(store) for _ in range(5)]
            calls = [store.append(key, 0, record(1)) for key in keys]
            wrong = store.append(
                keys[0]._replace(id="nul\0"), 0, record(1)
            )  # no id has this, and PostgreSQL refuses it
            *answers, refused = await asyncio.gather(*calls, wrong, return_exceptions=True)
            assert [answer.state for answer in answers] == ["written"] * 5
            assert isinstance(refused, StreamInterrupted)

    run(main)


def test_a_row_that_somebody_locks_holds_up_nobody_else_for_long(server: PostgresServer) -> None:
    async def main() -> None:
        async with opened(server.url, "locked") as store:
            keys = [await begun(store) for _ in range(5)]
            async with await psycopg.AsyncConnection.connect(server.url) as other:
                await other.execute(
                    'SELECT FROM "locked".streams WHERE epoch = %s FOR UPDATE', [keys[2].epoch]
                )
                calls = [store.append(key, 0, record(1)) for key in keys]
                answers = await asyncio.gather(*calls, return_exceptions=True)
                assert isinstance(answers.pop(2), TimeoutError)
                assert [answer.state for answer in answers] == ["written"] * 4
            assert (await store.append(keys[2], 0, record(1))).state == "written"

    run(main)


def test_a_callers_pool_gets_its_connections_back_as_they_were(server: PostgresServer) -> None:
    psycopg_pool = pytest.importorskip("psycopg_pool")

    async def main() -> None:
        async with psycopg_pool.AsyncConnectionPool(server.url, min_size=1, max_size=3, open=False) as pool:
            async with opened(pool, "pool") as store:
                key = await begun(store)
                woken = asyncio.Event()
                store.follow(Topic("written", *key), woken.set)
                await until(woken.is_set)
                woken.clear()
                await store.append(key, 0, record(1))
                await until(woken.is_set)
                assert await numbers(store, key) == [1]
                await until(lambda: pool.get_stats()["pool_available"] == pool.get_stats()["pool_size"] - 1)
                async with pool.connection() as mine:
                    assert not mine.autocommit
                    assert mine.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
                    assert await (await mine.execute("SELECT pg_listening_channels()")).fetchall() == []
                    limit = await (await mine.execute("SHOW lock_timeout")).fetchone()
                    assert limit == ("0",)
            assert pool.get_stats().get("returns_bad", 0) == 0
            async with pool.connection() as mine, pool.connection() as other:  # it is still open
                for one in (mine, other):
                    assert await (await one.execute("SELECT pg_listening_channels()")).fetchall() == []
        assert server.has_no_clients()

    run(main)


def test_a_function_gives_each_connection_the_password_of_the_day(server: PostgresServer) -> None:
    server.ask("CREATE ROLE rotating LOGIN PASSWORD 'monday'")
    server.ask("GRANT CREATE ON DATABASE postgres TO rotating")
    password = "monday"

    async def connect() -> Any:
        return await psycopg.AsyncConnection.connect(server.url_of("rotating", password))

    async def main() -> None:
        nonlocal password
        async with opened(connect, "rotates") as store:
            key = await begun(store)
            for number, password in enumerate(("tuesday", "wednesday"), 1):
                server.ask(f"ALTER ROLE rotating PASSWORD '{password}'")
                for pid, _ in server.clients():
                    server.ask("SELECT pg_terminate_backend(%s)", pid)
                answer = await come(lambda number=number: store.append(key, number - 1, record(number)))
                assert answer.state == "written"
            password = "unknown"
            for pid, _ in server.clients():
                server.ask("SELECT pg_terminate_backend(%s)", pid)
            for _ in range(2):  # the first notices that the connection is lost
                with pytest.raises(ConnectionError) as caught:
                    await store.append(key, 2, record(3))
            assert "authentication failed" in str(caught.value)
            assert "unknown" not in str(caught.value)
            password = "wednesday"
            assert (await store.append(key, 2, record(3))).state == "written"
        assert server.has_no_clients()

    run(main)


def test_what_is_no_way_to_postgresql_is_refused(server: PostgresServer) -> None:
    for where in (
        17,
        "postgresql://u:p@ss/w@host/db",
        "postgresql://u:pa:ss/word@host",
        "nonsense secretword",
        "postgresql://u:secretword@host/db\0?sslmode=verify-full",
        "postgresql://u:secretword@host\n/db",
        "password=secretword\0 sslmode=verify-full",
    ):
        with pytest.raises(InvalidValueError) as caught:
            PostgresStore(where)  # type: ignore[arg-type]
        assert not any(part in str(caught.value) for part in ("p@ss", "pa:ss", "/word@", "secretword"))
    for prefix in ("", "a b", 'a"b', "x" * 64, "ä"):
        with pytest.raises(InvalidValueError):
            PostgresStore(server.url, prefix=prefix)
    assert "secret-of-boss" not in repr(PostgresStore(server.url))

    async def main() -> None:
        store = PostgresStore(lambda: "no connection")  # type: ignore[arg-type, return-value]
        with pytest.raises(StreamInterrupted, match="a str, no AsyncConnection"):
            await store.open(TERMS)
        nobody = PostgresStore("postgresql://u:hidden@127.0.0.1:1/db")
        with pytest.raises(ConnectionError) as caught:
            await nobody.open(TERMS)
        assert "hidden" not in str(caught.value)
        async with opened(server.url, "x" * 63) as long, opened(server.url, "A.b:c-d_1") as odd:
            assert await begun(long, "s")
            assert await begun(odd, "s")

    run(main)


WITHOUT = """
import sys
sys.modules["psycopg"] = None
from rxdelta.relay.postgres import PostgresStore
PostgresStore.ddl()
try:
    PostgresStore("")
except ImportError as error:
    print(error)
"""


def test_without_psycopg_it_says_what_is_to_be_installed() -> None:
    told, _ = program(WITHOUT).communicate(timeout=60)
    assert told == "PostgresStore needs psycopg and libpq: pip install 'rxdelta[postgres]'\n"


# --- tables -----------------------------------------------------------------------------------------------------------

OPENS = """
import asyncio, sys
from rxdelta.relay.postgres import PostgresStore
from rxdelta.relay.store import LogKey, Terms
async def main():
    for line in sys.stdin:
        store = PostgresStore(sys.argv[1], prefix=line.strip())
        await store.open(Terms(30, 60, 5))
        print(await store.begin(LogKey("", "s", sys.argv[2])), flush=True)
        await store.close()
asyncio.run(main())
"""


@pytest.mark.slow
def test_eight_processes_make_the_tables_at_once(server: PostgresServer) -> None:
    epochs = [f"{at:016x}" for at in range(8)]
    processes = [program(OPENS, server.url, epoch) for epoch in epochs]
    try:
        for round_ in range(5):  # from the second on they run when they are asked
            for one in processes:
                assert one.stdin is not None
                one.stdin.write(f"crowd{round_}\n")
                one.stdin.flush()
            answers = [one.stdout.readline().strip() for one in processes if one.stdout is not None]
            assert sorted(answer != "None" for answer in answers) == [False] + [True] * 7
            assert set(answers) == {"None", epochs[answers.index("None")]}
            assert server.value(f"SELECT count(*) FROM crowd{round_}.form") == 1
    finally:
        for one in processes:
            one.communicate(timeout=60)
    assert [one.returncode for one in processes] == [0] * 8


def test_a_role_that_may_create_nothing_uses_what_somebody_has_made(server: PostgresServer) -> None:
    server.ask("CREATE ROLE \"the app\" LOGIN PASSWORD 'app'")

    async def main() -> None:
        url = server.url_of("the%20app", "app")
        with pytest.raises(StreamInterrupted, match=r"PostgresStore\.ddl\('by-hand', role=\.\.\.\)"):
            await PostgresStore(url, prefix="by-hand").open(TERMS)
        server.ask(PostgresStore.ddl("by-hand", role="the app"))
        async with opened(url, "by-hand") as store:
            key = await begun(store)
            await store.append(key, 0, Record(1, 1, b"x", end=b"end"))
            assert await numbers(store, key) == [1]
            await store.stop(key, "x", b"")
            await store.free(key)
            await store.probe()
            await store._write("sweep", (10,))
            assert await store.total() == 0
            server.ask('REVOKE INSERT ON "by-hand".streams FROM "the app"')
            with pytest.raises(StreamInterrupted, match="permission denied"):
                await store.begin(new_key())
            server.ask('DROP SCHEMA "by-hand" CASCADE')
            with pytest.raises(StreamInterrupted, match="lacks what the relay needs"):
                await store.begin(new_key())
        assert server.has_no_clients()

    run(main)


def test_tables_of_a_later_version_are_refused_and_older_ones_brought_up_to_date(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rxdelta.relay import postgres as _postgres, postgres_tables as _postgres_tables

    async def main() -> None:
        async with opened(server.url, "forms") as store:
            key = await begun(store)
            await store.append(key, 0, record(1))
        steps = (*_postgres_tables._STEPS, 'ALTER TABLE "{schema}".streams ADD COLUMN more int;')
        with monkeypatch.context() as patch:
            patch.setattr(_postgres_tables, "_STEPS", steps)
            patch.setattr(_postgres, "FORM", 2)
            async with opened(server.url, "forms") as later, opened(server.url, "forms"):
                assert await numbers(later, key) == [1]
        assert server.ask("SELECT number FROM forms.form ORDER BY 1") == [(1,), (2,)]
        assert server.value("SELECT count(more) FROM forms.streams") == 0
        with pytest.raises(StreamInterrupted, match="has form 2, and this version of rxdelta knows form 1"):
            await PostgresStore(server.url, prefix="forms").open(TERMS)
        assert server.has_no_clients()

    run(main)


def test_appends_leave_no_work_for_vacuum(server: PostgresServer) -> None:
    async def main() -> None:
        async with opened(server.url, "hot") as store:
            keys = await asyncio.gather(*(begun(store) for _ in range(60)))
            for number in range(1, 11):
                await asyncio.gather(*(store.append(key, number - 1, record(number)) for key in keys))
        updates = "SELECT {} FROM pg_stat_user_tables WHERE schemaname = 'hot' AND relname = 'streams'"
        await until(lambda: server.value(updates.format("n_tup_upd")) == 600)
        assert (
            server.value(updates.format("n_tup_upd - n_tup_hot_upd")) < 20
        )  # an index has a new entry for each of these
        assert server.value("SELECT pg_relation_size('hot.streams')") <= 8 * 8192

    run(main)
