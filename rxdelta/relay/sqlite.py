"""A relay's store in an SQLite database: a file that several processes of one machine open."""

from __future__ import annotations

import asyncio
import errno
import os
import random
import re
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TypeVar, cast
from urllib.parse import unquote

from rxdelta.core import InvalidValueError, RxDeltaError, StreamInterrupted, quote
from rxdelta.relay.sqlite_tables import Tables
from rxdelta.relay.store import Answer, Followers, LogKey, Page, Record, Store, Terms, Topic
from rxdelta.runtime import from_thread

T = TypeVar("T")

_PREFIX = re.compile(r"(?!(?i:sqlite)(?:_|$))[a-zA-Z0-9._:-]{1,64}")
_OLDEST = (3, 15, 0)
_PATIENCE = 3.0
"""Seconds that a call waits for a database that another process has locked."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.004  # seconds between two attempts to get its lock
_SOONEST, _LATEST, _POLLS = 0.005, 0.05, 20
"""Seconds between two looks for the news of other processes, and how many there are within the time since the last news."""
_AT_ONCE = 500  # calls of one transaction
_WAL_BYTES = 4 << 20
"""So much is written beside the database before it is written into it."""
_CHECKPOINT_MILLISECONDS = 200
_MEMORY = (
    "is in this process's memory, which no other process can share: use Relay.open() without a URL for that"
)
_FORKED = (
    "this process was forked while its parent had the relay's SQLite database open, which SQLite can't stand: open the relay "
    "after the fork (with gunicorn in the application's lifespan, whatever --preload does)"
)
_CLOSED = "the relay's store was closed"

_opened: dict[str, tuple[int, int]] = {}  # which process has opened a file, and how often
_opened_lock = Lock()


def sqlite_store(url: str, prefix: str) -> SqliteStore:
    """The store of a URL as SQLAlchemy writes it: `sqlite:////absolute/path.db`, `sqlite:///relative.db`, `sqlite:///C:/x.db`.

    Raises:
        InvalidValueError: The URL isn't one of a file.
    """
    scheme, found, rest = url.partition("://")
    host, slash, rest = rest.partition("/")
    path, _, query = rest.partition("?")
    path = unquote(path)
    fault = ""
    if scheme != "sqlite" or not found:
        fault = "must be the URL of an SQLite database, for example sqlite:////absolute/path.db or sqlite:///relative.db"
    elif host:
        fault = "must have three slashes and a relative path, or four and an absolute one: sqlite:////absolute/path.db"
    elif query:
        fault = f"has an unknown {query.partition('=')[0]!r} behind the '?'"
    elif not slash or path in ("", ":memory:"):
        fault = _MEMORY
    if fault:
        shown = f"sqlite:///{path}" if slash and not host else "sqlite:…"  # without what may be a password
        raise InvalidValueError.of([("store", shown, fault)])
    return SqliteStore(path, prefix=prefix)


class SqliteStore(Store):
    """A relay's store in an SQLite database, for all processes of one machine: give one to `Relay.open`. It needs no server.

    Opening makes the file, readable by its owner only, and the tables in it: `rxdelta_logs` with a row for each
    publication, which an operator can read, `rxdelta_records` and `rxdelta_state`. The folder has to be there. Beside the
    file are two others while it is open, with `-wal` and `-shm` behind its name. It must be on a disk of this machine:
    SQLite can't share a file of a network's file system. Nobody may remove or replace it while a process has it open.
    The file can be an application's own database. If the application keeps it locked for seconds, the relay waits as if
    the store was away.

    Written events survive the end of each process, also by `kill -9`. When the machine loses its power, what was
    written in the last moments before can be lost, but never more than the end of each stream. Logs that have expired are
    removed by the next process that writes; their space in the file is used again, and the file doesn't get smaller.

    A store has one thread, which writes all that is to be written at a moment in one transaction. Other processes' news
    come by looking for them: every 5 to 50 milliseconds while something of this process waits for news, else not at all.

    A database that a process has open can't be used in a process that is forked from it. There a relay says so at once.

    Args:
        path: The file. It isn't touched before the relay is opened.
        prefix: What the names of the tables begin with. Relays with different ones know nothing of each other.

    Raises:
        InvalidValueError: The path isn't one of a file, or `prefix` isn't 1 to 64 of `a-z A-Z 0-9 . _ : -`, or begins
            with `sqlite_`, which SQLite has for itself.

    Example:
        >>> import asyncio, os, tempfile
        >>> from rxdelta.relay import LogKey, Record, SqliteStore, Terms
        >>> async def main():
        ...     with tempfile.TemporaryDirectory() as folder:
        ...         store = SqliteStore(os.path.join(folder, "relay.db"))
        ...         await store.open(Terms(lease=30.0, keep=3600.0, patience=10.0))
        ...         key = LogKey("", "reply-1", "0123456789abcdef")
        ...         await store.begin(key)
        ...         answer = await store.append(key, 0, Record(number=1, count=1, events=b"hello"))
        ...         page = await store.read("", "reply-1", None, 0, 1000)
        ...         await store.close()
        ...         return answer.state, page.records[0].events
        >>> asyncio.run(main())
        ('written', b'hello')
    """

    def __init__(self, path: str | os.PathLike[str], *, prefix: str = "rxdelta") -> None:
        given: object = os.fspath(path) if isinstance(path, (str, os.PathLike)) else path
        if not isinstance(given, str) or not given or "\0" in given:
            raise InvalidValueError.of([("path", path, "must be the path of a file")])
        if given == ":memory:":
            raise InvalidValueError.of([("path", path, _MEMORY)])
        if not (isinstance(prefix, str) and _PREFIX.fullmatch(prefix)):  # pyright: ignore[reportUnnecessaryIsInstance]
            wrong = "must be 1 to 64 of a-z A-Z 0-9 . _ : -, and not begin with sqlite_"
            raise InvalidValueError.of([("prefix", prefix, wrong)])
        self._path = os.path.abspath(given)
        self._prefix = prefix
        self._followers = Followers()
        self._worker: _Worker | None = None
        self._pid = 0

    def __repr__(self) -> str:
        return f"SqliteStore({self._path!r}, prefix={self._prefix!r})"

    async def open(self, terms: Terms) -> None:
        """See `Store.open`.

        Raises:
            InvalidValueError: The file is no database, can't be written, its folder isn't there, its file system
                can't share it, or its tables are of a later version of this library.
            StreamInterrupted: This process was forked from one that has the file open.
            OSError: It was locked for too long, or the disk is full.
        """
        if sqlite3.sqlite_version_info < _OLDEST:
            needed = ".".join(map(str, _OLDEST))
            raise InvalidValueError(
                f"SqliteStore needs SQLite {needed} or later; Python has {sqlite3.sqlite_version} here"
            )
        _enter(self._path)
        self._pid = os.getpid()
        worker = _Worker(self._path, self._prefix, terms, asyncio.get_running_loop(), self._followers)
        try:
            await worker.start()
        except BaseException:
            await worker.close()
            _leave(self._path)
            raise
        self._worker = worker

    async def close(self) -> None:
        """See `Store.close`. In a forked process it does nothing."""
        worker, self._worker = self._worker, None
        self._followers.clear()
        if worker is not None and self._pid == os.getpid():
            await worker.close()
            _leave(self._path)

    async def begin(self, key: LogKey) -> str | None:
        return await self._write(lambda tables: tables.begin_log(key))

    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        return await self._write(lambda tables: tables.append(key, before, record))

    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        return await self._write(lambda tables: tables.bury(key, sign, record))

    async def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        return await self._ask(lambda tables: tables.read(tenant, id, epoch, after, most))

    async def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        return await self._write(lambda tables: tables.stop(key, token, reason))

    async def free(self, key: LogKey) -> bool:
        return await self._write(lambda tables: tables.free(key))

    async def names(self, tenant: str) -> Sequence[str]:
        return await self._ask(lambda tables: tables.names(tenant))

    def follow(self, topic: Topic, changed: Callable[[], None]) -> Callable[[], None]:
        worker = self._working()
        leave = self._followers.add(topic, changed)
        worker.look()
        return leave

    async def total(self) -> int:
        return await self._ask(lambda tables: tables.total())

    async def probe(self) -> None:
        """See `Store.probe`. It writes the time into the database, so no name is taken for it."""
        await self._write(lambda tables: tables.probe())

    async def _write(self, step: Callable[[Tables], T]) -> T:
        return cast("T", await self._working().call(step, writes=True))

    async def _ask(self, step: Callable[[Tables], T]) -> T:
        return cast("T", await self._working().call(step, writes=False))

    def _working(self) -> _Worker:
        if self._worker is None:
            raise StreamInterrupted(_CLOSED)
        if self._pid != os.getpid():
            raise StreamInterrupted(_FORKED)
        return self._worker


def _enter(path: str) -> None:
    """Note that this process has a file open. SQLite's notes of a file's locks are wrong in a process that is forked then."""
    path = os.path.realpath(path)
    with _opened_lock:
        pid, count = _opened.get(path, (os.getpid(), 0))
        if pid != os.getpid():
            raise StreamInterrupted(_FORKED)
        _opened[path] = pid, count + 1


def _leave(path: str) -> None:
    path = os.path.realpath(path)
    with _opened_lock:
        pid, count = _opened.get(path, (0, 1))
        if count > 1:
            _opened[path] = pid, count - 1
        else:
            _opened.pop(path, None)


class _Call:
    """A call that somebody on the loop waits for."""

    __slots__ = ("answer", "step", "until", "writes")

    def __init__(
        self, step: Callable[[Tables], object], answer: asyncio.Future[object], *, writes: bool
    ) -> None:
        self.step = step
        self.answer = answer
        self.writes = writes
        self.until = time.monotonic() + _PATIENCE


class _Locked(Exception):
    """Another process has the database just now."""


class _Worker:
    """The thread that has the connection, which nothing else refers to: a process that is forked must not close it.

    Args:
        followers: The followers of each topic. They are called on the loop.
    """

    def __init__(
        self,
        path: str,
        prefix: str,
        terms: Terms,
        loop: asyncio.AbstractEventLoop,
        followers: Followers,
    ) -> None:
        self._path = path
        self._prefix = prefix
        self._terms = terms
        self._loop = loop
        self._followers = followers
        self._queue = SimpleQueue[_Call | None]()  # None only wakes the thread
        self._closing = False
        self._started: asyncio.Future[object] = loop.create_future()
        self._ended: asyncio.Future[object] = loop.create_future()
        # A daemon: a program that forgets to close the store must still end.
        self._thread = Thread(target=self._main, name="rxdelta-sqlite", daemon=True)
        # what follows is the thread's own
        self._writes = deque[_Call]()
        self._reads = deque[_Call]()
        self._seen: tuple[int, int] | None = None  # of `Tables.news`
        self._version: int | None = None  # SQLite's, which another connection's transaction changes
        self._news_at = 0.0
        self._looks = False
        self._checkpoint_at = _WAL_BYTES

    # on the loop

    async def start(self) -> None:
        """Open the database, or raise why that can't be done."""
        self._thread.start()
        await from_thread(self._started)

    async def close(self) -> None:
        """End the thread and close the connection. Calls that wait fail."""
        if self._thread.ident is None:
            return  # it couldn't be started
        self._closing = True
        self._queue.put(None)
        if not self._ended.done():
            await asyncio.shield(from_thread(self._ended))
        self._thread.join()

    def call(self, step: Callable[[Tables], object], *, writes: bool) -> asyncio.Future[object]:
        answer: asyncio.Future[object] = self._loop.create_future()
        self._queue.put(_Call(step, answer, writes=writes))
        if self._closing:  # the thread may have ended, and doesn't see it
            self._settle([(answer, None, StreamInterrupted(_CLOSED))])
        return from_thread(answer)

    def look(self) -> None:
        """Begin to look for news: a topic has a follower."""
        if not self._looks:
            self._looks = True
            self._queue.put(None)

    def _settle(self, answers: Iterable[tuple[asyncio.Future[object], object, Exception | None]]) -> None:
        for answer, result, error in answers:
            if answer.done():
                continue
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

    def _tell(self, topics: Iterable[Topic]) -> None:
        for topic in topics:
            self._followers.wake(topic)

    # in the thread

    def _main(self) -> None:
        connection: sqlite3.Connection | None = None
        try:
            connection, tables = self._opened()
            self._answer([(self._started, None, None)])
            self._work(connection, tables)
        except Exception as error:  # a loop that is closed, too
            self._answer([(self._started, None, error)])
        finally:
            self._closing = True
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
            closed = StreamInterrupted(_CLOSED)
            self._take(0)
            self._answer([(call.answer, None, closed) for call in (*self._writes, *self._reads)])
            self._answer([(self._ended, None, None)])

    def _answer(self, answers: Sequence[tuple[asyncio.Future[object], object, Exception | None]]) -> None:
        if answers:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._settle, answers)

    def _opened(self) -> tuple[sqlite3.Connection, Tables]:
        """Open the database, and make what isn't there."""
        until = time.monotonic() + _PATIENCE
        while True:
            connection: sqlite3.Connection | None = None
            try:
                _make_file(self._path)
                connection = sqlite3.connect(self._path, timeout=0, isolation_level=None)
                (mode,) = connection.execute("PRAGMA journal_mode = wal").fetchone()
                if mode != "wal":
                    raise InvalidValueError.of(
                        [("path", self._path, "is where SQLite can't share a file between processes")]
                    )
                connection.text_factory = _text
                # In WAL mode this loses nothing when a process dies; a sync for each commit would cost milliseconds.
                connection.execute("PRAGMA synchronous = normal")
                # See `_checkpoint`: SQLite's own can damage the database.
                connection.execute("PRAGMA wal_autocheckpoint = 0")
                tables = Tables(connection, self._prefix, self._terms)
                # Locked for writing at once: SQLite refuses to raise a reader's lock if another process has written.
                connection.execute("BEGIN IMMEDIATE")
                tables.make()
                connection.execute("COMMIT")
            except Exception as error:
                if connection is not None:
                    connection.close()
                failure = _failure(error, self._path, opening=True)
                if not isinstance(failure, _Locked):
                    raise failure from (None if failure is error else error)
                if self._closing or time.monotonic() > until:
                    raise self._too_long() from error
                time.sleep(_LONGEST_PAUSE)
            else:
                return connection, tables

    def _too_long(self) -> TimeoutError:
        return TimeoutError(
            errno.ETIMEDOUT, f"another process has locked it for {_PATIENCE:g} seconds", self._path
        )

    def _work(self, connection: sqlite3.Connection, tables: Tables) -> None:
        while not self._closing and not self._loop.is_closed():
            self._take(self._rest())
            if self._reads:
                self._read(connection, tables)
            wrote = bool(self._writes) and self._write(connection, tables)
            if self._followers:
                self._find_news(connection, tables, wrote=wrote)
            if wrote:
                self._checkpoint(connection)

    def _rest(self) -> float | None:
        """How long to wait for calls."""
        if self._writes or self._reads:
            return random.uniform(_SHORTEST_PAUSE, _LONGEST_PAUSE)  # noqa: S311
        if self._followers:
            return min(max((time.monotonic() - self._news_at) / _POLLS, _SOONEST), _LATEST)
        self._looks = False
        return 0 if self._followers else None  # a follower may have come just now

    def _take(self, seconds: float | None) -> None:
        """Take all calls that wait, or wait for one."""
        with suppress(Empty):
            call = self._queue.get(timeout=seconds) if seconds != 0 else self._queue.get_nowait()
            while True:
                if call is not None:
                    (self._writes if call.writes else self._reads).append(call)
                call = self._queue.get_nowait()

    def _read(self, connection: sqlite3.Connection, tables: Tables) -> None:
        reads, self._reads = self._reads, deque[_Call]()
        for call in reads:
            if call.answer.cancelled():
                continue
            try:
                result = self._transaction(connection, tables, "BEGIN", [call])[0]
            except _Locked as locked:
                if not self._is_late(call, locked):
                    self._reads.append(call)
            except Exception as error:
                self._answer([(call.answer, None, error)])
            else:
                self._answer([(call.answer, result, None)])

    def _write(self, connection: sqlite3.Connection, tables: Tables) -> bool:
        """Make the writing calls in one transaction. If one call fails, each gets a transaction of its own."""
        calls = [self._writes.popleft() for _ in range(min(len(self._writes), _AT_ONCE))]
        calls = [call for call in calls if not call.answer.cancelled()]
        wrote = False
        pieces = [calls] if calls else []
        while pieces:
            piece = pieces.pop(0)
            try:
                results = self._transaction(connection, tables, "BEGIN IMMEDIATE", piece)
            except _Locked as locked:
                waiting = [call for call in piece if not self._is_late(call, locked)]
                self._writes.extendleft(reversed([*waiting, *(call for each in pieces for call in each)]))
                break
            except Exception as error:
                if len(piece) == 1:
                    self._answer([(piece[0].answer, None, error)])
                else:
                    pieces = [[call] for call in piece]
            else:
                wrote = True
                self._answer([(call.answer, result, None) for call, result in zip(piece, results)])
        return wrote

    def _transaction(
        self, connection: sqlite3.Connection, tables: Tables, begin: str, calls: Sequence[_Call]
    ) -> list[object]:
        """Carry out calls in one transaction.

        Raises:
            _Locked: Later.
        """
        try:
            connection.execute(begin)
            tables.begin()
            results = [call.step(tables) for call in calls]
            if calls[0].writes:
                tables.finish(len(calls))
            connection.execute("COMMIT")
        except Exception as error:
            if connection.in_transaction:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
            failure = _failure(error, self._path)
            raise failure from (None if failure is error else error)
        return results

    def _is_late(self, call: _Call, locked: _Locked) -> bool:
        if time.monotonic() < call.until:
            return False
        late = self._too_long()
        late.__cause__ = locked.__cause__
        self._answer([(call.answer, None, late)])
        return True

    def _find_news(self, connection: sqlite3.Connection, tables: Tables, *, wrote: bool) -> None:
        """Wake the followers of the topics that have news. A failure is tried again."""
        try:
            # One number in shared memory, which changes when another connection commits: the tables are read only then.
            (version,) = connection.execute("PRAGMA data_version").fetchone()
            if version == self._version and not wrote and self._seen is not None:
                return
            if self._seen is None:
                self._seen = 0, 0
            topics, self._seen = tables.news(self._seen)
            self._version = version
        except sqlite3.Error:
            return
        topics = [topic for topic in topics if topic in self._followers]
        if topics:
            self._news_at = time.monotonic()
            self._loop.call_soon_threadsafe(self._tell, topics)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        """Write into the database what stands beside it, if that is much.

        SQLite would do so by itself, but up to 3.51.2 a transaction of another process in just that moment can damage
        the database. This way it keeps others from writing meanwhile.
        """
        try:
            size = os.stat(f"{self._path}-wal").st_size
        except OSError:
            return
        if size < self._checkpoint_at:
            if size < _WAL_BYTES:
                self._checkpoint_at = _WAL_BYTES
            return
        try:
            connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_MILLISECONDS}")
            try:
                connection.execute("PRAGMA wal_checkpoint(truncate)").fetchone()
            finally:
                connection.execute("PRAGMA busy_timeout = 0")
            size = os.stat(f"{self._path}-wal").st_size
        except (
            OSError,
            sqlite3.Error,
        ):  # a disk that is full, or somebody reads for long: written data are safe all the same
            pass
        self._checkpoint_at = size + _WAL_BYTES


def _text(stored: bytes) -> str:
    """A name that somebody else has written, and that isn't UTF-8, keeps nobody from reading the others."""
    return stored.decode("utf-8", "replace")


def _make_file(path: str) -> None:
    """Make the file if it isn't there. SQLite gives those beside it the same permissions."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        if os.path.isdir(path):
            raise InvalidValueError.of([("path", path, "is a folder")]) from None
        if not os.access(path, os.R_OK | os.W_OK):
            raise InvalidValueError.of(
                [("path", path, "can't be read and written by this process")]
            ) from None
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidValueError.of([("path", path, "is in a folder that isn't there")]) from None
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.EINVAL):
            raise
        raise InvalidValueError.of([("path", path, f"can't be made: {error.strerror}")]) from error


def _failure(error: Exception, path: str, *, opening: bool = False) -> Exception:
    """What a caller gets for an exception of SQLite: an `OSError` for what may pass."""
    if isinstance(error, (RxDeltaError, OSError)) or not isinstance(error, sqlite3.Error):
        return error
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        return _locked(error)
    if code == sqlite3.SQLITE_FULL:
        return OSError(errno.ENOSPC, "the disk with the relay's database is full", path)
    if code == sqlite3.SQLITE_IOERR or (code == sqlite3.SQLITE_CANTOPEN and not opening):
        return OSError(errno.EIO, f"the relay's database can't be used now: {error}", path)
    if opening:
        return InvalidValueError.of([("path", path, f"can't be used as a relay's SQLite database: {error}")])
    return StreamInterrupted(f"the relay's database {quote(path)} can't be used: {error}")


def _locked(error: Exception) -> _Locked:
    locked = _Locked()
    locked.__cause__ = error
    return locked
