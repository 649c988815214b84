"""A relay's store in a PostgreSQL database."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from rxdelta.core import InvalidValueError, StreamInterrupted
from rxdelta.relay.postgres_tables import FORM, FORM_QUERY, ddl, step
from rxdelta.relay.store import Answer, LogKey, Page, Record, Store, Terms, Topic

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

    from rxdelta.relay.postgres_lines import Function


_PREFIX = re.compile(r"[a-zA-Z0-9._:-]{1,63}")
_OPEN_SECONDS = 30.0  # several processes may make the tables, one after the other
_LONGEST = 3e9  # seconds: a hundred years
_SWEEP_SECONDS, _SWEPT, _SWEEP_PAUSE = 5.0, 1000, 0.02


class PostgresStore(Store):
    """A relay's store in a PostgreSQL database (13 or later): give one to `Relay.open`. It needs the extra `rxdelta[postgres]`.

    Opening makes all that is missing: a schema with two tables, `streams` (a row for each publication, which an
    operator can read) and `records`, and some functions. Several processes may do so at once. A role that may not
    create them needs that somebody has run `ddl` before. The tables of an earlier version of this library are brought
    up to date; those of a later one are refused.

    Events are in the database for good when a publisher continues, if the server has `synchronous_commit` on, as it has
    by default. A stream that has expired is deleted within about five seconds by any process that has the store open.

    A process has three connections, however many streams it has: one writes, one reads, one listens. An attempt to connect takes
    at most 5 seconds, and a round trip too, or half a lease, if that is less. psycopg works on the event loop that Python has by
    default, but on Windows: there it needs a `SelectorEventLoop`.

    Args:
        where: One of these:

            - An address as libpq takes it, such as `"postgresql://user:password@host/database"`, with its further settings
              (`?sslmode=verify-full`, several hosts with `target_session_attrs=read-write`), or `""` for what the
              environment says (`PGHOST`, ...).
            - A `psycopg_pool.AsyncConnectionPool` of yours, which is open. A connection is borrowed for calls, and given back as
              it was. One that listens is taken for as long as the relay is open, so the pool needs a `max_size` of 2 or more.
            - A function that returns a new `psycopg.AsyncConnection`, or a coroutine function: it is called for each
              connection, so it can give a password that changes. The relay closes what it returns.

            A pooler such as PgBouncer in transaction mode lets nobody listen. The relay notices that, logs a warning, and looks
            for news every half a second: better give it a way around the pooler.
        prefix: The name of the schema. Relays with different ones know nothing of each other.

    Raises:
        ImportError: psycopg isn't installed.
        InvalidValueError: `where` is nothing of that, or `prefix` has another character than `a-z A-Z 0-9 . _ : -` or more
            than 63.

    Example:
        >>> from rxdelta.relay import PostgresStore
        >>> store = PostgresStore("postgresql://app@db.example.com/app", prefix="replies")
        >>> store
        PostgresStore(prefix='replies')
    """

    def __init__(
        self,
        where: str
        | AsyncConnectionPool[Any]
        | Callable[[], AsyncConnection[Any] | Awaitable[AsyncConnection[Any]]],
        *,
        prefix: str = "rxdelta",
    ) -> None:
        try:
            from rxdelta.relay import postgres_lines as lines
        except ImportError as error:
            if (error.name or "").partition(".")[0] not in {"psycopg", ""}:
                raise
            raise ImportError(
                "PostgresStore needs psycopg and libpq: pip install 'rxdelta[postgres]'"
            ) from error
        self._prefix = _checked(prefix)
        self._lines = lines
        self._source = lines.Source(where, prefix)
        self._writes = lines.Lane(self._source)
        self._reads = lines.Lane(self._source)
        self._news = lines.News(self._source, self._beat)
        self._functions = _functions(lines.Function)
        self._lease = self._keep = 0.0
        self._sweeping: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"PostgresStore(prefix={self._prefix!r})"  # an address may have a password

    @staticmethod
    def ddl(prefix: str = "rxdelta", *, role: str | None = None) -> str:
        """The SQL that opening runs on a database that has nothing yet, for a role that may create a schema.

        Args:
            prefix: The name of the schema.
            role: A role that gets the rights that a relay needs.

        Returns:
            Statements for `psql` or a migration. Run them once: they make the tables.

        Raises:
            InvalidValueError: The prefix isn't one.

        Example:
            >>> from rxdelta.relay import PostgresStore
            >>> print(PostgresStore.ddl(role="app").splitlines()[0])
            CREATE SCHEMA IF NOT EXISTS "rxdelta";
        """
        return ddl(_checked(prefix), role)

    async def open(self, terms: Terms) -> None:
        self._lease, self._keep = min(terms.lease, _LONGEST), min(terms.keep, _LONGEST)
        lines = self._lines
        # A publisher whose connection goes silent has time for a sign on another one, before its lease is over.
        self._writes.seconds = self._reads.seconds = min(lines.SECONDS, terms.lease / 2)
        try:
            connection = await self._source.take()
            is_sound = False
            try:
                await lines.within(
                    _OPEN_SECONDS, self._prepare(connection), lambda: lines.hang_up(connection)
                )
                is_sound = True
            finally:
                await self._source.give(connection, is_sound=is_sound)
        except Exception as error:
            raise lines.failure(error, self._prefix) from error
        self._sweeping = asyncio.get_running_loop().create_task(self._sweep())

    async def _prepare(self, connection: AsyncConnection[Any]) -> None:
        """Make the tables, or bring them up to date."""
        from psycopg import errors

        found = await self._form(connection)
        if found != FORM:
            try:
                async with connection.transaction():
                    await connection.execute("SET LOCAL statement_timeout = '30s'")
                    await connection.execute(
                        "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"rxdelta:{self._prefix}"]
                    )
                    found = await self._form(connection)  # somebody else may have made them meanwhile
                    if found == 0:
                        exists = await connection.execute(
                            "SELECT FROM pg_namespace WHERE nspname = %s", [self._prefix]
                        )
                        if (
                            await exists.fetchone() is None
                        ):  # even IF NOT EXISTS needs the right to create one
                            await connection.execute(f'CREATE SCHEMA "{self._prefix}"'.encode())
                    for number in range(found, FORM):
                        await connection.execute(step(self._prefix, number + 1).encode())
            except errors.InsufficientPrivilege as error:
                raise StreamInterrupted(
                    f"the PostgreSQL schema {self._prefix!r} lacks what the relay needs, and this role may not make it "
                    f"({error.diag.message_primary}): somebody who may has to run PostgresStore.ddl({self._prefix!r}, role=...)"
                ) from error

    async def _form(self, connection: AsyncConnection[Any]) -> int:
        """The form of the tables; 0 without any.

        Raises:
            StreamInterrupted: It is newer than this version of the library.
        """
        # A scan, and no to_regclass: that may still know from before that there is no such schema.
        is_there = await connection.execute(
            "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
            "WHERE n.nspname = %s AND c.relname = 'form')",
            [self._prefix],
        )
        if not cast("tuple[bool]", await is_there.fetchone())[0]:
            return 0
        newest = await connection.execute(FORM_QUERY.replace("{schema}", self._prefix).encode())
        form = cast("tuple[int | None]", await newest.fetchone())[0] or 0
        if form > FORM:
            raise StreamInterrupted(
                f"the PostgreSQL schema {self._prefix!r} has form {form}, and this version of rxdelta knows form {FORM}: update it"
            )
        return form

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.wait([self._sweeping])
        await self._news.close()
        await self._writes.close()
        await self._reads.close()

    async def begin(self, key: LogKey) -> str | None:
        values = (*key, self._lease, self._keep, *self._news.place("begun", key.tenant, key.id, ""))
        (epoch,) = await self._write("begin", values)
        return cast("str | None", epoch)

    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        written = _SIGN if record is None else record
        state, stop, is_named = await self._write(
            "append",
            (
                *key,
                -1 if before is None else before,
                *(
                    written.number,
                    written.count,
                    written.events,
                    written.end is not None,
                    written.end or b"",
                    written.dead,
                    written.size,
                ),
                *(self._lease, self._keep),
                *self._news.place("written", *key),
            ),
            len(written.events) + len(written.end or b""),
        )
        return Answer(state, stop, is_named)

    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        values = (
            *(*key, -1 if sign is None else sign),
            *(record.number, record.count, record.end or b"", record.dead, record.size),
            *(self._lease, self._keep, *self._news.place("written", *key)),
        )
        return bool((await self._write("bury", values))[0])

    async def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        values = (tenant, id, epoch or "", after, most)
        found, newest, has_ended, sign, age, lease, *columns = await self._reads.ask(
            self._functions["read"], values, most
        )
        if found is None:
            return None
        records = [] if columns[0] is None else [Record(*row) for row in zip(*columns, strict=True)]
        return Page(found, records, newest, has_ended, sign, age, lease)

    async def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        values = (*key, token, reason, *self._news.place("stopped", *key))
        return bool((await self._write("stop", values))[0])

    async def free(self, key: LogKey) -> bool:
        return bool((await self._write("free", (*key, self._lease)))[0])

    async def names(self, tenant: str) -> Sequence[str]:
        return cast("list[str]", (await self._reads.ask(self._functions["names"], (tenant,)))[0])

    def follow(self, topic: Topic, changed: Callable[[], None]) -> Callable[[], None]:
        return self._news.follow(topic, changed)

    async def total(self) -> int:
        return int((await self._reads.ask(self._functions["total"]))[0])

    async def probe(self) -> None:
        await self._write("probe", ())

    def _write(self, name: str, values: tuple[Any, ...], size: int = 0) -> Awaitable[Sequence[Any]]:
        return self._writes.ask(self._functions[name], values, size)

    async def _beat(self, channel: str, news: str) -> None:
        await self._write("beat", (channel, news))

    async def _sweep(self) -> None:
        """Delete what has expired, a little at a time. Whichever process comes first does it."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            with suppress(OSError, StreamInterrupted):
                while not (await self._write("sweep", (_SWEPT,)))[0]:
                    await asyncio.sleep(_SWEEP_PAUSE)


_SIGN = Record(-1, 0)


def _checked(prefix: str) -> str:
    if not isinstance(prefix, str) or _PREFIX.fullmatch(prefix) is None:
        allowed = "1 to 63 of these: a-z A-Z 0-9 . _ : -"
        raise InvalidValueError.of([("prefix", repr(prefix), "is no name of a schema here", allowed)])
    return prefix


def _functions(function: type[Function]) -> dict[str, Function]:
    name, terms, news = ("text",) * 3, ("float8",) * 2, ("text",) * 2
    record = ("int8", "int4", "bytea!", "bool", "bytea!", "int4", "int8")
    page = "a.epoch, a.newest, a.has_ended, a.sign, a.age, a.lease, a.numbers, a.counts, a.events, a.ends, a.deads, a.sizes"
    known = [
        function("begin", (*name, *terms, *news)),
        function("append", (*name, "int8", *record, *terms, *news), "a.state, a.stop, a.is_named"),
        function("bury", (*name, "int8", "int8", "int4", "bytea!", "int4", "int8", *terms, *news)),
        function("read", ("text", "text", "text", "int8", "int8"), page),
        function("stop", (*name, "text", "bytea!", *news)),
        function("free", (*name, "float8")),
        function("names", ("text",)),
        function("total", is_shared=True),
        function("probe", is_shared=True),
        function("sweep", ("int4",)),
        function("beat", ("text", "text")),
    ]
    return {one.name: one for one in known}
