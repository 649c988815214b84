"""The PostgreSQL store's connections: one for what writes, one for what reads, one that hears news.

All calls that wait at one moment for the same function go in one statement, which is one round trip and one transaction.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeGuard

import attrs
import psycopg
from psycopg import conninfo, rows

from rxdelta.core import InvalidValueError, StreamInterrupted

if TYPE_CHECKING:
    Connection = psycopg.AsyncConnection[Any]


_log = logging.getLogger("rxdelta")

SECONDS = 5.0
"""What one attempt to connect takes at most, and one round trip."""
_A_SECOND = 1 << 20  # bytes, at least: a large call has more time
_MOST_CALLS, _MOST_BYTES = 500, 4 << 20  # of one statement, unless it is a single call
_CHANNELS = 64
_BEAT = 10.0  # seconds between two tries whether news is heard
_PAUSE, _LONGEST_PAUSE = 0.1, 2.0
_POLL = 0.5  # seconds between two wake-ups where no news is heard
_OWN = {  # what a connection to an address has, unless that says otherwise
    "application_name": "rxdelta",
    "connect_timeout": "4",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
}
_LATE = {"55P03", "57014"}  # a lock, a statement
_MISSING = {"3F000", "42P01", "42883", "42703"}
_PASSING = ("08", "25006", "40", "53", "57", "58", "55P03", "26000", "42P05", "0A000", "XX")
"""The beginnings of the states in which a server can't do now what it did before, and will do later."""
_MIXED = {"26000", "42P05"}  # a statement isn't there any more, or there already
_FORGOTTEN = {"25006", "0A000", "57P01", "57P02", "57P03", "57P05", *_MIXED}
"""The states behind which another connection is needed: to a server that isn't a standby, without old statements."""
_OF_ONE = {"40001", "40P01", "55P03", "57014"}
"""The states that one call of several may have caused, beside all that are not passing."""


def failure(error: BaseException, schema: str) -> Exception:
    """What a caller of the store gets for what psycopg, or the caller's function, raised."""
    state = getattr(error, "sqlstate", None)
    diagnosis = getattr(getattr(error, "diag", None), "message_primary", None)
    text = diagnosis or str(error) or type(error).__name__
    made: Exception
    if isinstance(error, StreamInterrupted):
        made = StreamInterrupted(str(error))
    elif state in _LATE or (isinstance(error, TimeoutError) and state is None):
        made = TimeoutError(f"the PostgreSQL server didn't answer in time: {text}")
    elif isinstance(error, OSError) or _is_passing(error):
        made = ConnectionError(f"the PostgreSQL server can't be used: {text}")
    elif state in _MISSING:
        made = StreamInterrupted(f"the PostgreSQL schema {schema!r} lacks what the relay needs: {text}")
    elif isinstance(error, psycopg.Error):
        made = StreamInterrupted(f"PostgreSQL refused a call of the relay in the schema {schema!r}: {text}")
    else:
        made = StreamInterrupted(f"a call of the relay to PostgreSQL failed: {type(error).__name__}")
    made.__cause__ = error if isinstance(error, Exception) else None
    return made


def _is_passing(error: BaseException) -> bool:
    if not isinstance(error, psycopg.Error):
        return False
    state = error.sqlstate
    if state is None:
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return state.startswith(_PASSING)


async def within(seconds: float, work: Awaitable[Any], hang_up: Callable[[], None]) -> Any:
    """Await work on a connection, which is never cancelled: if it takes too long, or the caller is cancelled, the connection ends.

    psycopg asks the server to cancel the call, and waits for its answer: a server that is away gives none.

    Raises:
        TimeoutError: It took too long.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait([task], timeout=seconds)
    except asyncio.CancelledError:
        hang_up()
        await asyncio.wait([task])
        task.exception()
        raise
    if not done:
        hang_up()
        await asyncio.wait([task])
        task.exception()
        raise TimeoutError(f"no answer for {seconds:g} seconds")
    return task.result()


def hang_up(connection: Connection) -> None:
    """End the connection below psycopg, so that what waits for an answer fails."""
    with (
        suppress(OSError, psycopg.Error),
        socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as line,
    ):
        line.shutdown(socket.SHUT_RDWR)


class Source:
    """Where connections come from.

    Attributes:
        schema: For messages.
        prepares: Whether statements are prepared, as psycopg takes it: false if something between here and the server mixes
            them up.

    Args:
        where: An address, a pool, or a function that makes connections.
        schema: The name of the schema.
    """

    def __init__(self, where: Any, schema: str) -> None:
        self.schema = schema
        self._pool: Any = None
        self._make: Callable[[], Any]
        self._lent = set[int]()
        self.prepares: bool | None = None
        if isinstance(where, str):
            self._make = _address(where)
        elif hasattr(where, "getconn") and hasattr(where, "putconn"):
            if not inspect.iscoroutinefunction(where.getconn):
                raise InvalidValueError.of([("where", type(where).__name__, "is no AsyncConnectionPool", "")])
            self._pool = where
            self._make = lambda: where.getconn(timeout=SECONDS + 1)  # the limit is ours
        elif callable(where):
            self._make = where
        else:
            allowed = "an address, an AsyncConnectionPool, or a function that returns an AsyncConnection"
            raise InvalidValueError.of([("where", type(where).__name__, "is no way to PostgreSQL", allowed)])

    @property
    def keeps(self) -> bool:
        """Whether a connection stays when nothing is asked. Those of a pool are given back."""
        return self._pool is None

    async def take(self) -> Connection:
        """A connection that nobody else has. Each statement on it is a transaction of its own.

        Raises:
            StreamInterrupted: The caller's function returned something else.
        """
        connection: Any = None
        try:
            async with asyncio.timeout(SECONDS):
                made = self._make()
                connection = await made if inspect.isawaitable(made) else made
            if not _is_connection(connection):
                found = type(connection).__name__
                raise StreamInterrupted(
                    f"the function for PostgreSQL's connections returned a {found}, no AsyncConnection"
                )
            if not connection.autocommit:
                await connection.set_autocommit(True)
                self._lent.add(id(connection))
        except BaseException as error:
            if _is_connection(connection):
                await self.give(connection, is_sound=False)
            if isinstance(error, TimeoutError) and connection is None:
                raise TimeoutError(f"no connection for {SECONDS:g} seconds") from error
            raise
        return connection

    async def give(self, connection: Connection, *, is_sound: bool) -> None:
        """Let go of a connection; a pool gets its own back as it was, and makes another for one that isn't sound."""
        had = id(connection) in self._lent
        self._lent.discard(id(connection))
        if self._pool is None or not is_sound:
            await connection.close()
        elif had and not connection.closed:
            await connection.set_autocommit(False)
        if self._pool is not None:
            await self._pool.putconn(connection)


def _is_connection(made: Any) -> TypeGuard[Connection]:
    return isinstance(made, psycopg.AsyncConnection)


def _address(where: str) -> Callable[[], Any]:
    try:
        known = conninfo.conninfo_to_dict(where)
    except (psycopg.Error, UnicodeError):  # whose text may quote a part of a password
        fix = "postgresql://user:password@host/database; percent-encode what is special in a password"
        raise InvalidValueError.of(
            [("where", "(not shown)", "is no address that libpq can read", fix)]
        ) from None
    _, has_scheme, rest = where.partition("://")
    if re.search(
        r"[\x00-\x1f\x7f]" if has_scheme else "\0", where
    ):  # libpq reads up to a NUL: options behind it are lost
        raise InvalidValueError.of(
            [("where", "(not shown)", "has a line break or another control character")]
        )
    authority, _, path = rest.partition("?")[0].partition("/")
    if has_scheme and (
        authority.count("@") > 1 or "@" in path
    ):  # a message of libpq would quote a part of the password
        fix = "percent-encode the / and @ of a password as %2F and %40"
        raise InvalidValueError.of([("where", "(not shown)", "is ambiguous", fix)])
    more: dict[str, Any] = {name: value for name, value in _OWN.items() if known.get(name) is None}

    private = [
        str(value) for name, value in known.items() if name not in ("host", "hostaddr", "port", "dbname")
    ]

    async def make() -> Any:
        try:
            return await psycopg.AsyncConnection.connect(
                where, autocommit=True, client_encoding="utf8", **more
            )
        except psycopg.Error as error:
            failed = error
        text = str(failed)
        for value in private:  # libpq and the server quote what they refuse: a user, an option
            text = text.replace(f'"{value}"', '"…"')
        # Not inside of `except`: there the first one would be its context.
        raise failed if text == str(failed) else type(failed)(text)

    return make


@attrs.frozen
class Function:
    """A statement that makes some calls of a function of the schema.

    Attributes:
        name: The function's.
        types: Those of its parameters. A type that ends with `!` goes as binary data.
        results: The columns of its answer.
        is_shared: It takes nothing, and one call is the answer to all.
    """

    name: str
    types: tuple[str, ...] = ()
    results: str = "a.a"
    is_shared: bool = False

    def statement(self, schema: str) -> str:
        if self.is_shared:
            return f'SELECT 1, "{schema}".{self.name}()'
        arrays = ", ".join(
            f"%{'b' if type_[-1] == '!' else 't'}::{type_.rstrip('!')}[]" for type_ in self.types
        )
        names = ", ".join(f"c{place}" for place in range(len(self.types)))
        call = f'"{schema}".{self.name}({", ".join(f"t.c{place}" for place in range(len(self.types)))})'
        return f"SELECT t.n, {self.results} FROM unnest({arrays}) WITH ORDINALITY t({names}, n) CROSS JOIN LATERAL {call} a"  # noqa: S608 - the prefix is checked

    async def run(
        self, connection: Connection, source: Source, calls: Sequence[_Call]
    ) -> dict[int, Sequence[Any]]:
        """The answers, by the calls' places."""
        columns = [list(column) for column in zip(*(call.values for call in calls), strict=True)]
        async with connection.cursor(binary=True, row_factory=rows.tuple_row) as cursor:
            await cursor.execute(self.statement(source.schema).encode(), columns, prepare=source.prepares)
            found = await cursor.fetchall()
        if self.is_shared:
            return dict.fromkeys(range(len(calls)), found[0][1:])
        return {row[0] - 1: row[1:] for row in found}


@attrs.define(eq=False)
class _Call:
    function: Function
    values: tuple[Any, ...]
    size: int
    answer: asyncio.Future[Sequence[Any]]


class Lane:
    """One connection, on which one statement is under way at a time. Calls that come meanwhile go with the next.

    Attributes:
        seconds: What a round trip takes at most: so much is lost when a connection goes silent unnoticed.
    """

    def __init__(self, source: Source) -> None:
        self.seconds = SECONDS
        self._source = source
        self._waiting = deque[_Call]()
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def ask(
        self, function: Function, values: tuple[Any, ...] = (), size: int = 0
    ) -> asyncio.Future[Sequence[Any]]:
        """Call a function. A call is a step of its own: that another one fails doesn't change it.

        Args:
            function: Which.
            values: Its arguments. Calls are made in their order, so that two processes lock what they share in one order.
            size: About how many bytes go to the server or come back.
        """
        loop = asyncio.get_running_loop()
        call = _Call(function, values, size, loop.create_future())
        if self._is_closed:
            call.answer.set_exception(ConnectionError("the PostgreSQL store is closed"))
            return call.answer
        self._waiting.append(call)
        if self._task is None:
            self._task = loop.create_task(self._run())
        return call.answer

    async def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for call in self._waiting:
            if not call.answer.done():
                call.answer.set_exception(ConnectionError("the PostgreSQL store is closed"))
        self._waiting.clear()
        await self._let_go(is_sound=True)

    async def _run(self) -> None:
        calls: list[_Call] = []
        try:
            while self._waiting:
                calls = self._piece()
                if calls:
                    await self._answer(calls)
            if not self._source.keeps:
                await self._let_go(is_sound=True)
        finally:
            self._task = None
            for call in calls:
                if not call.answer.done():
                    call.answer.set_exception(ConnectionError("the PostgreSQL store is closed"))
            if self._waiting and not self._is_closed:  # asked while the connection was given back
                self._task = asyncio.get_running_loop().create_task(self._run())

    def _piece(self) -> list[_Call]:
        """The next calls of one function, without those whose callers have left."""
        piece, others, size = list[_Call](), list[_Call](), 0
        while self._waiting and len(piece) < _MOST_CALLS and (size < _MOST_BYTES or not piece):
            call = self._waiting.popleft()
            if call.answer.done():
                continue
            if piece and call.function is not piece[0].function:
                others.append(call)
            else:
                piece.append(call)
                size += call.size
        self._waiting.extendleft(reversed(others))
        # In one order in all processes: two that lock the same rows in two orders would deadlock.
        piece.sort(key=lambda call: call.values[:3])
        return piece

    async def _answer(self, calls: Sequence[_Call]) -> None:
        """Make the calls; each by itself, if they fail together because of one of them."""
        error = await self._try(calls)
        if error is None:
            return
        if len(calls) > 1 and not self._is_of_all(error):
            for call in calls:
                await self._answer([call])
            return
        known = failure(error, self._source.schema)
        waiting = [*self._waiting] if isinstance(known, OSError) and self._is_of_all(error) else []
        for call in (*calls, *waiting):  # those that wait would learn the same later
            if not call.answer.done():
                call.answer.set_exception(failure(error, self._source.schema))

    def _is_of_all(self, error: BaseException) -> bool:
        state = getattr(error, "sqlstate", None)
        return not isinstance(error, psycopg.Error) or (_is_passing(error) and state not in _OF_ONE)

    async def _try(self, calls: Sequence[_Call]) -> BaseException | None:
        try:
            connection = await self._connected()
            seconds = self.seconds + sum(call.size for call in calls) / _A_SECOND
            work = calls[0].function.run(connection, self._source, calls)
            answers = await within(seconds, work, lambda: hang_up(connection))
        except asyncio.CancelledError:
            await self._let_go(is_sound=False)
            raise
        except Exception as error:
            state = getattr(error, "sqlstate", None)
            # A pooler mixes up prepared statements of its clients: continue without them.
            if state in _MIXED:
                self._source.prepares = False
            is_sound = isinstance(error, psycopg.Error) and state is not None and state not in _FORGOTTEN
            await self._let_go(is_sound=is_sound, keeps=is_sound)
            return error
        for place, call in enumerate(calls):
            if not call.answer.done():
                call.answer.set_result(answers[place])
        return None

    async def _connected(self) -> Connection:
        if self._connection is not None and (self._connection.closed or self._connection.broken):
            await self._let_go(is_sound=False)
        if self._connection is None:
            self._connection = await self._source.take()
        return self._connection

    async def _let_go(self, *, is_sound: bool, keeps: bool = False) -> None:
        connection = self._connection
        if connection is not None and not keeps:
            self._connection = None
            with suppress(psycopg.Error):
                await self._source.give(connection, is_sound=is_sound)


class News:
    """The connection that hears the notifications of all processes, and the followers of these.

    Topics are spread over some channels, of which a process listens to those that it needs: so it isn't woken for every stream
    of a site. News can be missed while a channel isn't listened to, or there is no connection: followers are woken once
    then.

    Args:
        source: Where the connection comes from.
        beat: Notifies a channel, on another connection. If its notification doesn't come back, nothing is heard here: a
            pooler such as PgBouncer in transaction mode lends another connection for each transaction. Followers are
            woken again and again then.
    """

    def __init__(self, source: Source, beat: Callable[[str, str], Awaitable[object]]) -> None:
        self._source = source
        self._beat = beat
        self._front = f"rxdelta_{blake2b(source.schema.encode(), digest_size=8).hexdigest()}_"
        self._own = self._front + token_hex(8)
        self._followers: dict[str, dict[str, dict[object, Callable[[], None]]]] = {}
        self._stirs = asyncio.Event()
        self._heard = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._has_warned = False

    def place(self, *topic: str) -> tuple[str, str]:
        """The channel of a topic, and the topic's word there."""
        digest = blake2b("\0".join(topic).encode(), digest_size=12)
        return f"{self._front}{digest.digest()[0] % _CHANNELS}", digest.hexdigest()

    def follow(self, topic: Sequence[str], changed: Callable[[], None]) -> Callable[[], None]:
        channel, news = self.place(*topic)
        token = object()
        self._followers.setdefault(channel, {}).setdefault(news, {})[token] = changed
        self._stirs.set()
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

        def leave() -> None:
            followers = self._followers.get(channel, {})
            if token in followers.get(news, ()):
                del followers[news][token]
                if not followers[news]:
                    del followers[news]
                if not followers:
                    del self._followers[channel]

        return leave

    async def close(self) -> None:
        self._followers.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        loop, pause = asyncio.get_running_loop(), _PAUSE
        while True:
            begin = loop.time()
            try:
                connection = await self._source.take()
                connection.add_notify_handler(self._take)
                try:
                    await self._hear(connection)
                finally:
                    connection.remove_notify_handler(self._take)
                    is_sound = await self._fall_silent(connection)
                    with suppress(psycopg.Error):
                        await self._source.give(connection, is_sound=is_sound)
            except Exception as error:
                _log.debug("the relay hears no news of PostgreSQL: %s", failure(error, self._source.schema))
            pause = _PAUSE if loop.time() - begin > _LONGEST_PAUSE else min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def _hear(self, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        listened, wanted = set[str](), {self._own, *self._followers}
        beat_at, is_first, polls = loop.time(), True, False
        test: asyncio.Task[bool] | None = None
        try:
            while True:
                self._stirs.clear()
                if new := wanted - listened:
                    await self._say(connection, "LISTEN", new)
                    listened |= new
                    # News before LISTEN was missed.
                    for channel in new:
                        self._wake(channel)
                if test is not None and test.done():
                    is_heard, test = test.result(), None
                    if not is_heard and not is_first:
                        raise ConnectionError("a notification didn't come")
                    polls, is_first = not is_heard, is_heard
                    if polls:
                        self._warn()
                if loop.time() >= beat_at and test is None:
                    beat_at = loop.time() + _BEAT
                    if old := listened - wanted:
                        await self._say(connection, "UNLISTEN", old)
                        listened -= old
                    # A dead line fails here, and isn't taken for a pooler that swallows notifications.
                    await within(SECONDS, connection.execute("SELECT 1"), lambda: hang_up(connection))
                    test = loop.create_task(self._hears())
                    test.add_done_callback(lambda _: self._stirs.set())
                await self._rest(connection, _POLL if polls else beat_at - loop.time())
                if polls:
                    for channel in [*self._followers]:
                        self._wake(channel)
                wanted = {self._own, *self._followers}
        finally:
            if test is not None:
                test.cancel()

    async def _fall_silent(self, connection: Connection) -> bool:
        """End the listening, and return whether a pool can lend the connection to others. Any other one is closed."""
        if self._source.keeps or connection.closed:
            return False
        try:
            await within(_PAUSE * 5, connection.execute("UNLISTEN *"), lambda: hang_up(connection))
        except Exception:
            return False
        return True

    async def _say(self, connection: Connection, what: str, channels: set[str]) -> None:
        text = "; ".join(f"{what} {channel}" for channel in sorted(channels))
        await within(SECONDS, connection.execute(text.encode()), lambda: hang_up(connection))

    async def _rest(self, connection: Connection, seconds: float) -> None:
        """Wait until something comes, or somebody follows something new, and give out what has come."""
        loop, line = asyncio.get_running_loop(), connection.fileno()
        loop.add_reader(line, self._stirs.set)
        try:
            async with asyncio.timeout(max(seconds, 0)):
                await self._stirs.wait()
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(line)
        connection.pgconn.consume_input()
        while (come := connection.pgconn.notifies()) is not None:
            self._give(come.relname.decode(), come.extra.decode())

    def _take(self, notify: psycopg.Notify) -> None:
        self._give(notify.channel, notify.payload)

    def _give(self, channel: str, news: str) -> None:
        if channel == self._own:
            self._heard.set()
            return
        for changed in [*self._followers.get(channel, {}).get(news, {}).values()]:
            changed()

    def _wake(self, channel: str) -> None:
        """Wake all followers there: they may have missed news."""
        for followers in [*self._followers.get(channel, {}).values()]:
            for changed in [*followers.values()]:
                changed()

    async def _hears(self) -> bool:
        """Whether a notification of another connection comes. True if none could be sent."""
        self._heard.clear()
        try:
            await self._beat(self._own, "")
        except Exception:
            return True
        try:
            async with asyncio.timeout(_BEAT / 5):
                await self._heard.wait()
        except TimeoutError:
            return False
        return True

    def _warn(self) -> None:
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "the relay hears no notification of PostgreSQL, as behind a pooler in transaction mode; "
                "it looks for news every %g seconds",
                _POLL,
            )
