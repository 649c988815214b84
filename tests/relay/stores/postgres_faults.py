"""Runs on a PostgreSQL server that fails, or the line to it, at a random moment. See `relay.stores.runs`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import psycopg
from relay.stores import server_runs
from relay.stores.runs import LEASE, STREAM, play_out
from relay.stores.server_runs import ServerRun
from relay.stores.workers import Nursery
from support.cutting_proxy import CuttingProxy
from support.postgres_servers import PostgresServer

__all__ = ["KINDS", "PostgresRun", "playing"]

Play = Callable[[int, Nursery], Awaitable[None]]


class PostgresRun(ServerRun):
    """A run in a schema of its own, behind a proxy. All processes find that there are no tables, and make them."""

    @property
    def schema(self) -> str:
        return f"run_{self.seed}"

    def options(self) -> dict[str, Any]:
        return super().options() | {"prefix": self.schema}

    def url(self, *, directly: bool = False) -> str:
        port = self.server.port if directly else self.proxy.port
        return f"postgresql://boss:{self.server.password}@127.0.0.1:{port}/postgres"

    @asynccontextmanager
    async def session(self, *statements: str) -> AsyncIterator[None]:
        """Somebody else's session that has carried out these statements in a transaction, which ends with the block."""
        connection = await self._connect(autocommit=False)
        try:
            for statement in statements:
                await connection.execute(statement.encode())
            self.note(f"done: {statements}")
            yield
        finally:
            await connection.close()
            self.note("the session has ended")

    async def do(self, *statements: str) -> None:
        connection = await self._connect(autocommit=True)
        try:
            for statement in statements:
                await connection.execute(statement.encode())
                self.note(f"done: {statement}")
        finally:
            await connection.close()

    async def _connect(self, *, autocommit: bool) -> psycopg.AsyncConnection[Any]:
        where = self.server.socket_url
        return await psycopg.AsyncConnection.connect(
            where, autocommit=autocommit, application_name="tests", options="-c statement_timeout=0"
        )


async def stop_the_server_in_order(run: PostgresRun) -> None:
    """As an update of the server does: its clients are told."""
    await run.somewhen()
    run.note("the server is stopped")
    await asyncio.to_thread(run.server.stop)
    await asyncio.sleep(run.chance.choice((0, 0.3, LEASE * 1.3)))
    await asyncio.to_thread(run.server.start)
    run.note("it is back")


async def end_all_sessions(run: PostgresRun) -> None:
    for _ in range(run.chance.choice((1, 3))):
        await run.somewhen(0.5)
        await run.do(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND application_name <> 'tests'"
        )


async def cancel_all_statements(run: PostgresRun) -> None:
    for _ in range(20):
        await run.somewhen(0.1)
        await run.do("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name <> 'tests'")


async def lock_the_tables(run: PostgresRun) -> None:
    """Longer than a call of the store waits, or not so long."""
    await run.somewhen()
    tables = ", ".join(f'"{run.schema}".{name}' for name in run.chance.choice((["streams"], ["records"])))
    mode = run.chance.choice(("ACCESS EXCLUSIVE", "SHARE ROW EXCLUSIVE"))
    async with run.session(f"LOCK TABLE {tables} IN {mode} MODE"):
        await asyncio.sleep(run.chance.choice((0.5, 2.0, 2.5)))


async def lock_the_row_and_kill(run: PostgresRun) -> None:
    await run.somewhen(0.6)
    async with run.session(f'SELECT FROM "{run.schema}".streams FOR UPDATE'):
        await run.somewhen(0.3)
        await run.kill_publisher()
        await run.somewhen(3)


async def read_in_one_transaction_for_long(run: PostgresRun) -> None:
    """VACUUM can remove nothing meanwhile."""
    await run.somewhen(0.3)
    snapshot = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    async with run.session(snapshot, f'SELECT count(*) FROM "{run.schema}".streams'):
        await run.do(f'VACUUM "{run.schema}".streams')
        await run.somewhen(2)


async def rewrite_the_tables(run: PostgresRun) -> None:
    for _ in range(run.chance.choice((1, 3))):
        await run.somewhen(0.5)
        tables = f'"{run.schema}".streams, "{run.schema}".records'
        how = run.chance.choice((f"VACUUM FULL {tables}", f'REINDEX SCHEMA "{run.schema}"'))
        await run.do(how)


async def limit_statements(run: PostgresRun) -> None:
    await run.somewhen(0.6)
    limit = run.chance.choice((1, 5, 50))
    try:
        await run.do(f"ALTER SYSTEM SET statement_timeout = {limit}", "SELECT pg_reload_conf()")
        await asyncio.sleep(run.chance.choice((0.3, LEASE * 1.3)))
    finally:
        await run.do("ALTER SYSTEM RESET statement_timeout", "SELECT pg_reload_conf()")


async def refuse_to_write(run: PostgresRun) -> None:
    """As a server that became a standby does."""
    await run.somewhen(0.6)
    setting = "default_transaction_read_only"
    try:
        await run.do(f"ALTER SYSTEM SET {setting} = on", "SELECT pg_reload_conf()")
        await asyncio.sleep(run.chance.choice((0.3, LEASE * 1.3)))
    finally:
        await run.do(f"ALTER SYSTEM RESET {setting}", "SELECT pg_reload_conf()")


KINDS: list[Callable[[Any], Awaitable[None]]] = [
    *server_runs.KINDS,
    stop_the_server_in_order,
    end_all_sessions,
    cancel_all_statements,
    lock_the_tables,
    lock_the_row_and_kill,
    read_in_one_transaction_for_long,
    rewrite_the_tables,
    limit_statements,
    refuse_to_write,
]


@contextmanager
def playing(at_once: int) -> Iterator[Play]:
    """What plays a run and checks it, so many at once: each has one of so many servers for itself."""
    servers = [PostgresServer() for _ in range(at_once)]

    async def play(seed: int, nursery: Nursery) -> None:
        server = servers.pop()
        try:
            if not server.runs:
                await asyncio.to_thread(server.start)
            await _play(seed, nursery, server)
        except BaseException:
            await asyncio.to_thread(server.remove)  # nobody knows what it is like
            servers.append(await asyncio.to_thread(PostgresServer))
            raise
        servers.append(server)

    try:
        yield play
    finally:
        for server in servers:
            server.remove()


async def _play(seed: int, nursery: Nursery, server: PostgresServer) -> None:
    kind = KINDS[seed % len(KINDS)]
    chance = Random(seed)
    with tempfile.TemporaryDirectory(prefix="rxf-") as folder:
        async with CuttingProxy(server.port) as proxy:
            proxy.marker = STREAM.encode()
            run = PostgresRun(
                seed=seed, nursery=nursery, folder=Path(folder), chance=chance, server=server, proxy=proxy
            )
            server_runs.prepare(run, kind)
            await play_out(run, kind)
