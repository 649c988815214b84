"""News from PostgreSQL, and a server that is away, stands still or refuses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from support.loops import run
from support.postgres_servers import PostgresServer, need_postgres, running

pytest.importorskip("psycopg")

from relay.stores.postgres_steps import TERMS, begun, come, new_key, numbers, opened, program, record, until

from rxdelta.relay import postgres_lines as lines
from rxdelta.relay.postgres import PostgresStore
from rxdelta.relay.store import Topic

need_postgres()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """Tests leave it as it is, and have schemas of their own."""
    with running() as one:
        yield one


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """For one test, which may stop it."""
    with running() as one:
        yield one


# --- news -------------------------------------------------------------------------------------------------------------

PUBLISHES = """
import asyncio, sys
from rxdelta.relay.postgres import PostgresStore
from rxdelta.relay.store import LogKey, Record, Terms
async def main():
    store = PostgresStore(sys.argv[1], prefix="news")
    await store.open(Terms(30, 60, 5))
    key, at = LogKey("t", "s", sys.argv[2]), 0
    for line in sys.stdin:
        if line == "begin\\n":
            await store.begin(key)
        elif line == "append\\n":
            await store.append(key, at, Record(at + 1, 1, b"x"))
            at += 1
        elif line == "stop\\n":
            await store.stop(key, "x", b"")
        print("done", flush=True)
    await store.close()
asyncio.run(main())
"""


def test_news_of_another_process_come_and_only_those_that_were_asked_for(server: PostgresServer) -> None:
    key = new_key("s")

    async def main() -> None:
        other = program(PUBLISHES, server.url, key.epoch)
        assert other.stdin is not None
        assert other.stdout is not None
        try:
            async with opened(server.url, "news") as store:
                counts = dict.fromkeys(("begun", "written", "stopped", "elsewhere"), 0)

                def count(what: str) -> Any:
                    def changed() -> None:
                        counts[what] += 1

                    return changed

                topics = {
                    "begun": Topic("begun", "t", "s"),
                    "written": Topic("written", *key),
                    "stopped": Topic("stopped", *key),
                    "elsewhere": Topic("written", "t", "other", key.epoch),
                }
                leave = {what: store.follow(topic, count(what)) for what, topic in topics.items()}
                await until(lambda: all(counts.values()))  # each once, when its channel is listened to
                for what, how in (
                    ("begin", "begun"),
                    ("append", "written"),
                    ("append", "written"),
                    ("stop", "stopped"),
                ):
                    before = dict(counts)
                    other.stdin.write(f"{what}\n")
                    other.stdin.flush()
                    await until(lambda how=how, before=before: counts[how] > before[how])
                    assert {one for one in counts if counts[one] != before[one]} == {how}
                    assert other.stdout.readline() == "done\n"
                leave["written"]()
                leave["written"]()
                before = dict(counts)
                for what in ("append", "append"):
                    other.stdin.write(f"{what}\n")
                    other.stdin.flush()
                    await asyncio.to_thread(other.stdout.readline)
                woken = asyncio.Event()
                store.follow(topics["written"], woken.set)
                other.stdin.write("append\n")
                other.stdin.flush()
                await until(woken.is_set)
                assert counts["written"] == before["written"]
        finally:
            other.communicate(timeout=30)
        assert other.returncode == 0

    run(main)


def test_who_follows_is_woken_when_the_connection_that_listens_was_lost(server: PostgresServer) -> None:
    async def main() -> None:
        async with opened(server.url, "lost") as store:
            key = await begun(store)
            woken = asyncio.Event()
            store.follow(Topic("written", *key), woken.set)
            for _ in range(2):
                await until(woken.is_set)
                woken.clear()
                listening = (
                    "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' OR query = 'SELECT 1'"
                )
                await until(lambda listening=listening: len(server.ask(listening)) == 1)
                server.ask(f"SELECT pg_terminate_backend(pid) FROM ({listening}) one")
            await until(woken.is_set)
            woken.clear()
            await come(lambda: store.append(key, 0, record(1)))
            await until(woken.is_set)

    run(main)


def test_who_hears_nothing_looks_for_news(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lines, "_BEAT", 0.5)
    monkeypatch.setattr(lines, "_POLL", 0.02)

    async def nothing(self: Any, connection: Any, what: str, channels: set[str]) -> None:
        await connection.execute("SELECT 2")  # as a pooler does: it lets another connection listen

    heard = lines.News._say
    monkeypatch.setattr(lines.News, "_say", nothing)

    async def main() -> None:
        async with opened(server.url, "deaf") as store:
            key = await begun(store)
            wakes = 0

            def changed() -> None:
                nonlocal wakes
                wakes += 1

            store.follow(Topic("written", *key), changed)
            await until(lambda: wakes > 5)
            assert [one.levelno for one in caplog.records if "hears no notification" in one.message] == [
                logging.WARNING
            ]
            monkeypatch.setattr(lines.News, "_say", heard)
            for pid, _ in server.clients():
                server.ask("SELECT pg_terminate_backend(%s)", pid)
            await come(store.probe)

            async def is_quiet() -> bool:
                before = wakes
                await asyncio.sleep(0.3)
                return wakes == before

            async with asyncio.timeout(30):
                while not await is_quiet():
                    pass

    run(main)


# --- a server that is away --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_was_acknowledged_is_there_after_kill_9(own_server: PostgresServer) -> None:
    server = own_server

    async def main() -> None:
        async with opened(server.url) as store:
            keys = [await begun(store) for _ in range(20)]
            acknowledged = dict.fromkeys(keys, 0)
            is_over = False

            async def publish(key: Any) -> None:
                while not is_over:
                    number = acknowledged[key] + 1
                    answer = await come(partial(store.append, key, number - 1, record(number)))
                    assert answer.state == "written"
                    acknowledged[key] = number

            publishers = [asyncio.create_task(publish(key)) for key in keys]
            woken = asyncio.Event()
            store.follow(Topic("written", *keys[0]), woken.set)
            for _ in range(3):
                before = min(acknowledged.values())
                await until(lambda before=before: min(acknowledged.values()) > before + 20)
                await asyncio.to_thread(server.kill)
                held = dict(acknowledged)
                await asyncio.to_thread(server.start)
                for key in keys:
                    assert (await come(lambda key=key: numbers(store, key)))[: held[key]] == [
                        *range(1, held[key] + 1)
                    ]
                woken.clear()
                await until(woken.is_set)
            is_over = True
            await asyncio.gather(*publishers)
            for key in keys:
                assert await numbers(store, key) == [*range(1, acknowledged[key] + 1)]
        assert server.has_no_clients()

    run(main)


def test_each_connection_may_be_ended_while_it_is_busy(own_server: PostgresServer) -> None:
    server = own_server

    async def main() -> None:
        async with opened(server.url) as store:
            key = await begun(store)
            at, lost, ended, is_over = 0, 0, set[int](), False
            woken = asyncio.Event()

            async def publish() -> None:
                nonlocal at, lost
                while not is_over:
                    try:
                        assert (await store.append(key, at, record(at + 1))).state == "written"
                    except OSError:
                        lost += 1
                        continue
                    at += 1

            async def read() -> None:
                while not is_over:
                    await come(lambda: numbers(store, key))

            tasks = [asyncio.create_task(publish()), asyncio.create_task(read())]
            store.follow(Topic("written", *key), woken.set)
            while len(ended) < 15:
                await until(lambda: len(server.clients()) >= 3)
                for pid, _ in server.clients():
                    server.ask("SELECT pg_terminate_backend(%s)", pid)
                    ended.add(pid)
                before = at
                await until(lambda before=before: at > before)
            is_over = True
            await asyncio.gather(*tasks)
            assert lost > 0
            assert await come(lambda: numbers(store, key)) == [*range(1, at + 1)]
            woken.clear()
            await until(woken.is_set)
        assert server.has_no_clients()

    run(main)


def test_a_server_that_stands_still_is_noticed(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "SECONDS", 0.5)
    server = own_server

    async def main() -> None:
        async with opened(server.url) as store:
            keys = [await begun(store) for _ in range(9)]
            store.follow(Topic("written", *keys[0]), lambda: None)
            await numbers(store, keys[0])
            server.pause()
            try:
                for _ in range(2):  # on the connection that is there, and on none
                    calls = [store.append(key, 0, record(1)) for key in keys]
                    reads = [numbers(store, key) for key in keys]
                    errors = await asyncio.gather(*calls, *reads, return_exceptions=True)
                    assert {type(error) for error in errors} == {TimeoutError}
            finally:
                server.resume()
            for key in keys:
                assert (await come(lambda key=key: store.append(key, 0, record(1)))).state == "written"
        assert server.has_no_clients()

    run(main)


def test_closing_waits_for_no_server_that_stands_still(own_server: PostgresServer) -> None:
    server = own_server

    async def main() -> None:
        store = PostgresStore(server.url)
        await store.open(TERMS)
        key = await begun(store)
        store.follow(Topic("written", *key), lambda: None)
        await until(lambda: len(server.clients()) == 2)
        server.pause()
        try:
            call = asyncio.create_task(store.append(key, 0, record(1)))
            await asyncio.sleep(0.05)
            async with asyncio.timeout(lines.SECONDS - 1):
                await store.close()
            with pytest.raises(ConnectionError):
                await call
        finally:
            server.resume()
        assert server.has_no_clients()

    run(main)


def test_a_server_that_only_reads_or_is_full_of_clients_can_be_asked_again(
    own_server: PostgresServer,
) -> None:
    server = own_server

    async def main() -> None:
        async with opened(server.url) as store:
            key = await begun(store)
            server.ask("ALTER SYSTEM SET default_transaction_read_only = on")
            server.ask("SELECT pg_reload_conf()")

            async def refused() -> None:
                async with asyncio.timeout(30):
                    while True:
                        await store.append(key, None, None)
                        await asyncio.sleep(0.01)

            with pytest.raises(ConnectionError, match="read-only transaction"):
                await refused()
            assert await numbers(store, key) == []
            server.ask("ALTER SYSTEM RESET default_transaction_read_only")
            server.ask("SELECT pg_reload_conf()")
            assert (await come(lambda: store.append(key, 0, record(1)))).state == "written"
            server.ask("CREATE ROLE few LOGIN PASSWORD 'few' CONNECTION LIMIT 0")
            with pytest.raises(ConnectionError, match="too many connections"):
                await PostgresStore(server.url_of("few", "few")).open(TERMS)

    run(main)
