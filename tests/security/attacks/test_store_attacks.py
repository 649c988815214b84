"""Written attacks on a relay's stores. A row: a name, what somebody does to the store or asks of it, and what must hold."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import sqlite3
import traceback
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import reactivex as rx
from reactivex.subject import Subject
from support.loops import run, turns
from support.postgres_servers import PostgresServer, has_postgres, running

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events

REPLY: list[rd.Event] = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "text", "text": ""}),
    *(ev.TextDelta(0, f"t{number} ") for number in range(5)),
    ev.BlockFinish(0),
    ev.MessageFinish("stop"),
]
WHOLE = "t0 t1 t2 t3 t4 "
STORED: list[Any] = [
    {"event": "message-start", "id": "m", "role": "ai"},
    {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}},
    [0, 0, "t0 "], "t1 ", "t2 ", "t3 ", "t4 ",
    {"event": "content-block-finish", "index": 0},
    {"event": "message-finish", "reason": "stop"},
]  # fmt: skip
SECONDS = 20
SECRET = "hunter2-and-more"
OPTIONS: dict[str, Any] = {"lease": 0.5, "patience": 1}


def reply() -> rx.Observable[rd.Event]:
    return rx.from_iterable(REPLY)


async def read(relay: Relay, stream_id: str) -> str:
    """The text that a reader gets; or the kind of error of ours with which the reading ends."""
    got = list[rd.Event]()
    try:
        await asyncio.wait_for(rd.for_each(relay.watch(stream_id), got.append), SECONDS)
    except rd.RxDeltaError as error:
        traceback.format_exception(error)
        return type(error).__name__
    return "".join(event.text for event in got if isinstance(event, ev.TextDelta))


async def asked(question: Awaitable[Any]) -> Any:
    """An answer, or an error of ours."""
    try:
        return await asyncio.wait_for(question, SECONDS)
    except rd.RxDeltaError as error:
        return error


# Rows that somebody else has written.


def with_events(said: object) -> tuple[str, object]:
    return "events", said if isinstance(said, (bytes, str, int)) else json.dumps(said).encode()


def with_end(said: object) -> tuple[str, object]:
    return '"end"', said if isinstance(said, (bytes, str, int)) or said is None else json.dumps(said).encode()


def with_error(error: object, text: object = "x", fields: object = None) -> tuple[str, object]:
    return with_end({"error": error, "text": text, "fields": {} if fields is None else fields})


UNREADABLE, ANY = "StreamUnreadableError", ""
RECORDS: dict[str, tuple[tuple[str, object], str]] = {  # a column and its value, and what a reader gets
    "no bytes": (with_events(b""), UNREADABLE),
    "no JSON": (with_events(b"\xff\xfe"), UNREADABLE),
    "an object": (with_events({}), UNREADABLE),
    "null": (with_events(None), UNREADABLE),
    "no numbers": (with_events(b"[" + b",".join([b"NaN"] * 9) + b"]"), UNREADABLE),
    "too deep": (with_events(b"[" * 100_000), UNREADABLE),
    "too deep, and closed": (with_events(b"[" * 100_000 + b"]" * 100_000), UNREADABLE),
    "too many digits": (with_events(b"[" + b"9" * 10_000 + b"]"), UNREADABLE),
    "a piece of nothing": (with_events(["x"] * 9), UNREADABLE),
    "an unknown kind of delta": (with_events([[9, 0, "a"]] * 9), UNREADABLE),
    "a kind that is a list": (with_events([[[], 0, "a"]] * 9), UNREADABLE),
    "an index beyond all limits": (with_events([[0, 2**80, "a"]] * 9), UNREADABLE),
    "a piece that is a number": (with_events([[0, 0, 5]] * 9), UNREADABLE),
    "a piece that is null": (with_events([[0, 0, None]] * 9), UNREADABLE),
    "a delta of four": (with_events([[0, 0, "a", 1]] * 9), UNREADABLE),
    "numbers for events": (with_events([5] * 9), UNREADABLE),
    "fewer events than it says": (with_events(STORED[:3]), UNREADABLE),
    "more events than it says": (with_events([*STORED, "x"]), UNREADABLE),
    "MessagePack that is cut off": (with_events(b"\xdd\xff\xff\xff\xff"), UNREADABLE),
    "MessagePack of nothing": (with_events(b"\x99" + b"\xc0" * 9), UNREADABLE),
    "encrypted": (with_events(b"\xc1abc"), UNREADABLE),
    "events of another protocol": (with_events([{"event": "evil"}] * 9), ANY),
    "one event again and again": (with_events([STORED[0]] * 9), ANY),
    "half a character": (with_events(b'[[0,0,"\\ud800"],"a","b","c","d","e","f","g","h"]'), ANY),
    "an end of null": (with_end(b"null"), UNREADABLE),
    "an end that is a list": (with_end([]), UNREADABLE),
    "an end that is cut off": (with_end(b"{"), UNREADABLE),
    "an end of a list": (with_error([]), UNREADABLE),
    "an end with a list of fields": (with_error("StreamInterrupted", fields=[1]), UNREADABLE),
    "an end that is too deep": (with_end(b'{"error":' + b"[" * 100_000), UNREADABLE),
    "an end that is encrypted": (with_end(b"\xc1x"), UNREADABLE),
    "an end by a class of Python": (with_error("SystemExit"), "StreamInterrupted"),
    "an end by an object": (with_error("object"), "StreamInterrupted"),
    "an end without the error's fields": (with_error("ProviderError"), "StreamInterrupted"),
    "an end with another class": (with_error("StreamInterrupted", fields={"__class__": "x", "__dict__": 1, "__notes__": 5}), "StreamInterrupted"),
    "an end with another cause": (with_error("StreamInterrupted", fields={"__cause__": 4, "__traceback__": "x", "args": 3, "snapshot": 5}), "StreamInterrupted"),
    "no end at all": (with_end(None), UNREADABLE),
    "no events": (("count", 0), UNREADABLE),
    "fewer than no events": (("count", -5), UNREADABLE),
    "events without number": (("count", 2**31 - 1), UNREADABLE),
    "the number 0": (("number", 0), UNREADABLE),
    "a number below 0": (("number", -9), UNREADABLE),
    "the greatest number": (("number", 2**63 - 1), UNREADABLE),
    "a number behind a gap": (("number", 100), UNREADABLE),
    "a number that its events don't fit behind": (("number", 1), UNREADABLE),
    "died before its first event": (("dead", 2), "EmptyStreamError"),
    "an unknown death": (("dead", 99), WHOLE),
    "a size below 0": (("size", -(10**9)), WHOLE),
}  # fmt: skip
TYPELESS: dict[str, tuple[tuple[str, object], str]] = {  # SQLite's columns take everything
    "events that are text": (with_events("abc"), UNREADABLE),
    "events that are a number": (with_events(5), UNREADABLE),
    "an end that is text": (with_end("abc"), UNREADABLE),
    "an end that is a number": (with_end(7), UNREADABLE),
    "a count of letters": (("count", "abc"), UNREADABLE),
    "a count of bytes": (("count", b"\0"), UNREADABLE),
    "a count with a half": (("count", 9.5), UNREADABLE),
    "a number of letters": (("number", "abc"), UNREADABLE),
    "a number with a half": (("number", 9.5), UNREADABLE),
    "a death of letters": (("dead", "x"), WHOLE),
    "a size of letters": (("size", "x"), WHOLE),
}
SQLITE_LOGS: dict[str, tuple[str, str]] = {
    "newest below 0": ("newest = -1", ANY),
    "newest of letters": ("newest = 'abc'", UNREADABLE),
    "newest of bytes": ("newest = x'00'", UNREADABLE),
    "newest beyond the last": ("newest = 9223372036854775807", ANY),
    "newest before the last": ("newest = 3", ANY),
    "an epoch of letters": ("epoch = 'zz'", UNREADABLE),
    "an epoch of nothing": ("epoch = ''", UNREADABLE),
    "an epoch with a line break": ("epoch = 'a' || char(10) || 'data: x'", UNREADABLE),
    "an epoch with NUL": ("epoch = 'a' || char(0) || 'b'", UNREADABLE),
    "an epoch of bytes": ("epoch = x'00'", UNREADABLE),
    "an epoch that isn't UTF-8": ("epoch = cast(x'ff' as text)", UNREADABLE),
    "a sign of letters": ("signed = 'x', ended = NULL", UNREADABLE),
    "a sign in the future": ("signed = 9e99, ended = NULL", WHOLE),
    "a sign beyond all times": ("signed = 9e999, ended = NULL", WHOLE),
    "a sign before all times": ("signed = -9e999, ended = NULL", WHOLE),
    "a lease of letters": ("lease = 'x', ended = NULL", UNREADABLE),
    "a lease of bytes": ("lease = x'00', ended = NULL", UNREADABLE),
    "a lease for ever": ("lease = 9e999, ended = NULL", UNREADABLE),
    "a lease of less than nothing": ("lease = -5, ended = NULL", UNREADABLE),
    "a sign's number of letters": ("sign = 'x', ended = NULL, signed = 0", ANY),
    "ended in letters": ("ended = 'x'", WHOLE),
    "as if it lived": ("ended = NULL, signed = 0", WHOLE),
    "expires in letters": ("expires = 'x'", WHOLE),
    "expired before all times": ("expires = -1", "EmptyStreamError"),
    "a stop of junk": ("stop_token = 'x', stop_reason = x'ff', ended = NULL", WHOLE),
    "a stop of text": ("stop_token = 'x', stop_reason = 'abc'", WHOLE),
    "a change of letters": ("change = 'x'", WHOLE),
    "a change below 0": ("change = -5", WHOLE),
    "bytes of letters": ("bytes = 'x'", WHOLE),
    "bytes below 0": ("bytes = -1", WHOLE),
    "a name with a line break": ("stream_id = stream_id || char(10)", "EmptyStreamError"),
    "a name that isn't UTF-8": ("stream_id = cast(x'ff' as text)", "EmptyStreamError"),
    "a name of bytes": ("stream_id = x'ff'", "EmptyStreamError"),
}
SQLITE = [*RECORDS, *TYPELESS, *SQLITE_LOGS]


def poison(path: Path, name: str) -> None:
    with closing(sqlite3.connect(path)) as hostile:
        if name in SQLITE_LOGS:
            hostile.execute(f"UPDATE rxdelta_logs SET {SQLITE_LOGS[name][0]} WHERE stream_id = ?", [name])
        else:
            (column, value), _ = (RECORDS | TYPELESS)[name]
            which = "log = (SELECT number FROM rxdelta_logs WHERE stream_id = ?)"
            hostile.execute(f"UPDATE rxdelta_records SET {column} = ? WHERE {which}", [value, name])
        hostile.commit()


async def published(relay: Relay, *names: str) -> None:
    await asyncio.gather(*(relay.start(name, reply()) for name in names))
    assert await asyncio.gather(*(read(relay, name) for name in names)) == [WHOLE] * len(names)


async def use(relay: Relay, name: str) -> str:
    """What a reader of a poisoned stream gets. All other questions about it have an answer, or an error of ours."""
    got = await read(relay, name)
    for question in (relay.is_live(name), relay.cancel(name), relay.delete(name)):
        answer = await asked(question)
        assert isinstance(answer, (bool, rd.RxDeltaError))
    return got


async def still_works(relay: Relay, other: Relay) -> None:
    """All other streams, also those that begin now, in another process."""
    assert await read(relay, "sound") == WHOLE
    names = await relay.streams()
    assert all(isinstance(name, str) and name.isprintable() for name in names)
    source = Subject[rd.Event]()
    reading = asyncio.create_task(read(relay, "live"))
    publishing = asyncio.create_task(rd.for_each(source.pipe(other.publish("live")), lambda _: None))
    while not source.observers:
        await asyncio.sleep(0.001)
    for event in REPLY:
        source.on_next(event)
    source.on_completed()
    await publishing
    assert await reading == WHOLE
    assert await other.delete("live")


@pytest.fixture(scope="module")
def used_sqlite(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What readers get, by the row that somebody has written: all are in one file."""
    path = tmp_path_factory.mktemp("poisoned") / "relay.db"
    url = f"sqlite:///{path}"

    async def main() -> dict[str, str]:
        async with Relay.open(url, **OPTIONS) as relay:
            await published(relay, "sound", *SQLITE)
        for name in SQLITE:
            poison(path, name)
        async with Relay.open(url, **OPTIONS) as relay, Relay.open(url, **OPTIONS) as other:
            await still_works(relay, other)
            used = dict(
                zip(SQLITE, await asyncio.gather(*(use(relay, name) for name in SQLITE)), strict=True)
            )
            await still_works(relay, other)
            return used

    return run(main)


@pytest.mark.parametrize("name", SQLITE)
def test_a_row_that_somebody_has_written_into_sqlite(name: str, used_sqlite: dict[str, str]) -> None:
    wanted = {**RECORDS, **TYPELESS, **SQLITE_LOGS}[name][1]
    assert wanted in (ANY, used_sqlite[name])


FILES: dict[str, str] = {  # what damages the whole file
    "no state": "DELETE FROM rxdelta_state",
    "two states": "INSERT INTO rxdelta_state VALUES (1, 0, 0, 0)",
    "another form": "UPDATE rxdelta_state SET form = 'x'",
    "changes of letters": "UPDATE rxdelta_state SET changes = 'x'",
    "all changes there are": "UPDATE rxdelta_state SET changes = 9223372036854775807",
    "bytes of letters": "UPDATE rxdelta_state SET bytes = 'x'",
    "no records": "DELETE FROM rxdelta_records",
    "no logs": "DELETE FROM rxdelta_logs",
    "no table of records": "DROP TABLE rxdelta_records",
    "no table of logs": "DROP TABLE rxdelta_logs",
    "no table of state": "DROP TABLE rxdelta_state",
    "a trigger": "CREATE TRIGGER t BEFORE INSERT ON rxdelta_records BEGIN SELECT raise(abort, 'no'); END",
    "a trigger that deletes": "CREATE TRIGGER t AFTER INSERT ON rxdelta_records BEGIN DELETE FROM rxdelta_records; END",
    "a column more": "ALTER TABLE rxdelta_records ADD COLUMN more",
    "a column less": "ALTER TABLE rxdelta_logs RENAME COLUMN lease TO other",
    "a view": "ALTER TABLE rxdelta_records RENAME TO x; CREATE VIEW rxdelta_records AS SELECT * FROM x",
}


@pytest.fixture(scope="module")
def sound_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "relay.db"

    async def main() -> None:
        async with Relay.open(f"sqlite:///{path}", **OPTIONS) as relay:
            await published(relay, "chat")

    run(main)
    return path


@pytest.fixture
def path(sound_file: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(sound_file, tmp_path / "relay.db"))


async def try_all(url: str, **options: Any) -> Any:
    """Open a relay, and use it; the error of ours with which it can't be opened."""
    try:
        async with Relay.open(url, **OPTIONS, **options) as relay:
            got = await read(relay, "chat")
            for question in (
                relay.start("new", reply()),
                relay.streams(),
                relay.is_live("chat"),
                relay.delete("chat"),
            ):
                await asked(question)
            await read(relay, "new")
            return got
    except (rd.RxDeltaError, OSError) as error:
        return error


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_somebody_has_damaged(name: str, path: Path) -> None:
    with closing(sqlite3.connect(path)) as hostile:
        hostile.executescript(FILES[name])

    async def main() -> None:
        got = await try_all(f"sqlite:///{path}")
        assert isinstance(got, (str, rd.RxDeltaError))

    run(main)


def _bit(at: int) -> Callable[[bytes], bytes]:
    return lambda file: file[:at] + bytes([file[at] ^ 0x41]) + file[at + 1 :]


BYTES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "text": lambda _: b"not a database" * 1000,
    "cut off in the head": lambda file: file[:50],
    "cut off in a page": lambda file: file[: len(file) // 2 + 7],
    "zeros behind the head": lambda file: file[:100] + bytes(len(file) - 100),
    "its pages turned around": lambda file: file[:4096] + file[:4095:-1],
    **{f"a byte changed at {at}": _bit(at) for at in (0, 16, 18, 28, 44, 60, 100, 103, 105, 4096, 4099)},
}


@pytest.mark.parametrize("name", BYTES)
def test_bytes_that_are_no_database_any_more(name: str, path: Path) -> None:
    path.write_bytes(BYTES[name](path.read_bytes()))

    async def main() -> None:
        got = await try_all(f"sqlite:///{path}")
        assert isinstance(got, (str, rd.RxDeltaError, OSError))

    run(main)


# Where the file is.


def _symlink(path: Path) -> Path:
    link = path.with_name("link.db")
    link.symlink_to(path)
    return link


def _loop(path: Path) -> Path:
    link = path.with_name("loop.db")
    link.symlink_to(link)
    return link


def _nowhere(path: Path) -> Path:
    link = path.with_name("nowhere.db")
    link.symlink_to("/nonexistent/folder/x.db")
    return link


def _pipe(path: Path) -> Path:
    os.mkfifo(path.with_name("pipe.db"))
    return path.with_name("pipe.db")


PLACES: dict[str, tuple[Callable[[Path], Path], bool]] = {  # and whether it works
    "a link to the file": (_symlink, True),
    "a link to itself": (_loop, False),
    "a link to nowhere": (_nowhere, False),
    "a folder": (lambda path: path.parent, False),
    "below a file": (lambda path: path / "x.db", False),
    "a device": (lambda _: Path("/dev/null"), False),
    "a pipe": (_pipe, False),
    "a name that is too long": (lambda path: path.with_name("x" * 300), False),
    "a name with a quote": (lambda path: path.rename(path.with_name("a'b\"c;--.db")), True),
    "a name with a line break": (lambda path: path.rename(path.with_name("a\nb.db")), True),
    "a name as SQLite's own": (lambda path: path.rename(path.with_name("file:x.db?mode=memory")), True),
    "a name of percents": (lambda path: path.rename(path.with_name("%2e%2e%00.db")), True),
    "no name but a dot": (lambda path: path.parent / ".", False),
}


@pytest.mark.skipif(os.name != "posix", reason="the places are those of posix")
@pytest.mark.parametrize("name", PLACES)
def test_a_place_that_is_no_usual_one(name: str, path: Path) -> None:
    place, works = PLACES[name]
    url = f"sqlite:///{quote(str(place(path)))}"

    async def main() -> None:
        got = await try_all(url)
        assert got == WHOLE if works else isinstance(got, (rd.RxDeltaError, OSError))

    run(main)


def test_a_file_that_is_replaced_while_it_is_open_harms_nobody(path: Path) -> None:
    async def main() -> None:
        async with Relay.open(f"sqlite:///{path}", **OPTIONS) as relay:
            path.unlink()
            path.write_bytes(b"another file")
            assert await read(relay, "chat") in (WHOLE, UNREADABLE)
            await asked(relay.start("new", reply()))
            await read(relay, "new")

    run(main)
    assert path.read_bytes() == b"another file"


# Who has keys: what is moved, cut or changed is told, and nothing of it is shown.


def sealed(path: Path) -> dict[str, Any]:
    fernet = pytest.importorskip("cryptography.fernet")
    key = fernet.Fernet(fernet.Fernet.generate_key())
    del path
    return {"encrypt": key.encrypt, "decrypt": key.decrypt}


FROM = "(SELECT number FROM rxdelta_logs WHERE stream_id = 'chat')"
TO = "(SELECT number FROM rxdelta_logs WHERE stream_id = 'other')"
MOVES: dict[str, str] = {
    "another stream's events": f"UPDATE rxdelta_records SET events = (SELECT events FROM rxdelta_records WHERE log = {FROM}) WHERE log = {TO}",
    "another stream's record": f"DELETE FROM rxdelta_records WHERE log = {TO}; UPDATE rxdelta_records SET log = {TO} WHERE log = {FROM}",
    "another stream's name": "UPDATE rxdelta_logs SET has_name = 0 WHERE stream_id = 'other'; UPDATE rxdelta_logs SET stream_id = 'other' WHERE stream_id = 'chat'",
    "another tenant's name": "UPDATE rxdelta_logs SET has_name = 0 WHERE stream_id = 'other'; UPDATE rxdelta_logs SET stream_id = 'other', tenant = '' WHERE tenant = 'ann'",
    "another stream's epoch": f"UPDATE rxdelta_logs SET epoch = 'x' WHERE number = {FROM}; UPDATE rxdelta_logs SET epoch = '0123456789abcdef' WHERE number = {TO}",
    "its end for its events": f'UPDATE rxdelta_records SET events = "end" WHERE log = {TO}',
    "its events for its end": f'UPDATE rxdelta_records SET "end" = events WHERE log = {TO}',
    "cut off": f"UPDATE rxdelta_records SET events = substr(events, 1, length(events) - 1) WHERE log = {TO}",
    "cut off in front": f"UPDATE rxdelta_records SET events = substr(events, 2) WHERE log = {TO}",
    "only the mark": f"UPDATE rxdelta_records SET events = x'c1' WHERE log = {TO}",
    "a bit": f"UPDATE rxdelta_records SET events = substr(events, 1, 30) || x'41' || substr(events, 32) WHERE log = {TO}",
    "twice": f"UPDATE rxdelta_records SET events = events || events WHERE log = {TO}",
    "not encrypted": f"UPDATE rxdelta_records SET events = '{json.dumps(STORED)}' WHERE log = {TO}",
    "not encrypted bytes": f"UPDATE rxdelta_records SET events = x'{json.dumps(STORED).encode().hex()}' WHERE log = {TO}",
    "another number": f"UPDATE rxdelta_records SET number = 10, count = 10 WHERE log = {TO}",
    "fewer events": f"UPDATE rxdelta_records SET count = 8 WHERE log = {TO}",
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_what_is_sealed_for_one_place_is_read_at_no_other(name: str, tmp_path: Path) -> None:
    path = tmp_path / "relay.db"
    keys = sealed(path)
    private = [*REPLY[:2], ev.TextDelta(0, SECRET), *REPLY[-2:]]

    async def main() -> None:
        async with Relay.open(f"sqlite:///{path}", **OPTIONS, **keys) as relay:
            await published(relay, "other")
            for owner in (relay, relay.scope("ann")):
                await owner.start("chat", rx.from_iterable(private))
                assert await read(owner, "chat") == SECRET
        assert SECRET.encode() not in path.read_bytes()
        with closing(sqlite3.connect(path)) as hostile:
            if name != "another tenant's name":
                hostile.execute("DELETE FROM rxdelta_logs WHERE tenant = 'ann'")
            hostile.commit()
            hostile.executescript(MOVES[name])
        async with Relay.open(f"sqlite:///{path}", **OPTIONS, **keys) as relay:
            assert await read(relay, "other") == UNREADABLE

    run(main)


# PostgreSQL.

POSTGRES_STREAMS: dict[str, tuple[str, str]] = {
    "newest below 0": ("newest = -1", ANY),
    "newest beyond the last": ("newest = 9223372036854775807", ANY),
    "an epoch of letters": ("epoch = 'zz'", UNREADABLE),
    "an epoch with a line break": ("epoch = E'a\\ndata: x'", UNREADABLE),
    "a lease that is no number": ("lease = 'NaN', ended = NULL", UNREADABLE),
    "a lease for ever": ("lease = 'Infinity', ended = NULL", UNREADABLE),
    "a lease of less than nothing": ("lease = -5, ended = NULL", UNREADABLE),
    "a sign in the future": ("signed = now() + interval '1000 years', ended = NULL", WHOLE),
    "a sign beyond all times": ("signed = 'infinity', ended = NULL", ANY),
    "a sign before all times": ("signed = '-infinity', ended = NULL", ANY),
    "ended before all times": ("ended = '-infinity'", WHOLE),
    "expires never": ("expires = 'infinity'", WHOLE),
    "expired long ago": ("expires = '-infinity'", "EmptyStreamError"),
    "bytes beyond all numbers": ("bytes = 9223372036854775807", WHOLE),
    "a stop of junk": ("stop_token = 'x', stop_reason = '\\xff', ended = NULL", WHOLE),
    "a name with a line break": ("stream = stream || E'\\n'", "EmptyStreamError"),
    "a name of nothing": ("stream = ''", "EmptyStreamError"),
}
POSTGRES = [*RECORDS, *POSTGRES_STREAMS]


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg")
    if not has_postgres():
        pytest.skip("needs PostgreSQL's programs")
    with running() as server:
        yield server


@pytest.fixture(scope="module")
def used_postgres(postgres: PostgresServer) -> dict[str, str]:
    def hit(name: str) -> None:
        if name in POSTGRES_STREAMS:
            postgres.ask(f"UPDATE bad.streams SET {POSTGRES_STREAMS[name][0]} WHERE stream = %s", name)
        else:
            (column, value), _ = RECORDS[name]
            which = "log = (SELECT log FROM bad.streams WHERE stream = %s)"
            postgres.ask(f"UPDATE bad.records SET {column} = %s WHERE {which}", value, name)

    async def main() -> dict[str, str]:
        async with Relay.open(postgres.url, prefix="bad", **OPTIONS) as relay:
            await published(relay, "sound", *POSTGRES)
        for name in POSTGRES:
            hit(name)
        opened = (Relay.open(postgres.url, prefix="bad", **OPTIONS) for _ in range(2))
        async with next(opened) as relay, next(opened) as other:
            await still_works(relay, other)
            used = dict(
                zip(POSTGRES, await asyncio.gather(*(use(relay, name) for name in POSTGRES)), strict=True)
            )
            await still_works(relay, other)
            return used

    return run(main)


@pytest.mark.parametrize("name", POSTGRES)
def test_a_row_that_somebody_has_written_into_postgresql(name: str, used_postgres: dict[str, str]) -> None:
    wanted = {**RECORDS, **POSTGRES_STREAMS}[name][1]
    assert wanted in (ANY, used_postgres[name])


def test_forged_and_endless_notifications_cost_nobody_a_stream(postgres: PostgresServer) -> None:
    async def main() -> None:
        opened = (Relay.open(postgres.url, prefix="flood", **OPTIONS) for _ in range(2))
        async with next(opened) as relay, next(opened) as other:
            reading = asyncio.create_task(read(relay, "live"))
            source = Subject[rd.Event]()
            publishing = asyncio.create_task(rd.for_each(source.pipe(other.publish("live")), lambda _: None))
            while not source.observers:
                await asyncio.sleep(0.001)
            await relay.is_live("live")
            channels = set[str]()
            while not channels:  # a connection's newest statement is its LISTEN once it waits
                heard = [query for _, query in postgres.clients() if "LISTEN" in query]
                channels = {word.strip('";') for query in heard for word in query.split() if word != "LISTEN"}
                await asyncio.sleep(0.01)
            for channel in (*channels, "flood", "rxdelta"):
                for payload in ("", "x", "\u2028" * 1000, "begun", "'; DROP SCHEMA flood; --", "x" * 7900):
                    many = "SELECT pg_notify(%s, %s) FROM generate_series(1, 50)"
                    await asyncio.to_thread(postgres.ask, many, channel, payload)
            for event in REPLY:
                source.on_next(event)
            source.on_completed()
            await publishing
            assert await reading == WHOLE

    run(main)


# Names, as keys, statements, globs and paths.

NAMES = [
    "'; DROP TABLE rxdelta_logs; --", "' OR '1'='1", "\\'; --", "$1", "%s", "{}", "{state}", "{0.__class__}", "?", ":name", "@name",
    "chat'||'", "CHAT", "chat%", "ch_t", "c*", "[c]hat", "..", "../chat", "/etc/passwd", "chat/", "/chat", "a/b", "a:b", "a::b",
    "\u00e9", "e\u0301", "\u212b", "\u00c5", "A\u030a", "\ufb01", "fi", "\uff43hat", "\u0441hat", "\u1e9e", "ss", "\u0130", "i\u0307",
    "\U0001f600", "-1", "0", "NULL", "null", "None", "true", "NaN", "x" * 256,
]  # fmt: skip


@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"])
def test_each_name_is_one_stream_of_one_tenant(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = {"memory": None, "sqlite": f"sqlite:///{tmp_path / 'relay.db'}"}.get(store)
    if store == "postgres":
        url = request.getfixturevalue("postgres").url

    async def main() -> None:
        async with Relay.open(url, prefix="names", **OPTIONS) as relay:
            tenants = {None: relay, **{name: relay.scope(name) for name in NAMES[::4]}}
            said: dict[tuple[str | None, str], str] = {}
            for tenant, owner in tenants.items():
                for name in NAMES[::3] if tenant else NAMES:
                    said[tenant, name] = f"{tenant} {name}"
            await asyncio.gather(
                *(
                    tenants[tenant].start(name, rx.of(*REPLY[:2], ev.TextDelta(0, text), *REPLY[-2:]))
                    for (tenant, name), text in said.items()
                )
            )
            texts = await asyncio.gather(*(read(tenants[tenant], name) for tenant, name in said))
            assert texts == [*said.values()]
            for tenant, owner in tenants.items():
                assert {*await owner.streams()} == {name for whose, name in said if whose == tenant}
            assert await relay.delete(NAMES[0])
            assert len(await relay.streams()) == len(NAMES) - 1
            assert len(await tenants[NAMES[0]].streams()) == len(NAMES[::3])

    run(main)


# Ids that a browser sends to go on behind an event.

EPOCH = "0123456789abcdef"
IDS: list[Any] = [
    "", "0", "-1", "NaN", "Infinity", f"{EPOCH}", f"{EPOCH}-", f"{EPOCH}-0", f"{EPOCH}--1", f"{EPOCH}-01", f"{EPOCH}-1.5", f"{EPOCH}-1e3",
    f"{EPOCH}-NaN", f"{EPOCH}-{2**63}", f"{EPOCH}-{'9' * 5000}", f"{EPOCH}-1\n", f"{EPOCH}-1 ", f" {EPOCH}-1", f"{EPOCH.upper()}-1",
    f"{EPOCH}-\u0661", f"{EPOCH}-\uff11", f"{EPOCH}-1\0", f"{EPOCH}-1' OR 1=1 --", "../1", f"{'g' * 16}-1", f"{EPOCH}-999999999999999999",
    "x" * 100_000, None.__class__, 5, b"x", [f"{EPOCH}-1"],
]  # fmt: skip


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_an_id_that_nobody_has_given(store: str, path: Path) -> None:
    async def main() -> None:
        async with Relay.open(None if store == "memory" else f"sqlite:///{path}", **OPTIONS) as relay:
            await published(relay, "sound", "another")
            entries = [entry async for entry in rd.iterate(relay.entries("sound"))]
            [foreign] = [
                entry async for entry in rd.iterate(relay.entries("another").pipe(rx.operators.take(1)))
            ]
            real, _, last = entries[-1].id.partition("-")
            beyond = [f"{real}-{int(last) + 1}", f"{real}-{10**17}", foreign.id]
            for given in (*IDS, *beyond):
                for name in ("after", "split_at"):
                    with pytest.raises(rd.InvalidValueError):
                        await asyncio.wait_for(
                            rd.for_each(relay.entries("sound", **{name: given}), lambda _: None), SECONDS
                        )
            behind = [entry async for entry in rd.iterate(relay.entries("sound", after=entries[2].id))]
            assert behind == entries[3:]

    run(main)


# URLs with what nobody may see.

URLS = [
    f"sqlite://ann:{SECRET}@host/x.db", f"sqlite:///x.db?key={SECRET}", f"sqlite+pysqlcipher://:{SECRET}@/x.db",
    f"postgresql://ann:{SECRET}@127.0.0.1:nine/x", f"postgresql://ann:{SECRET}@127.0.0.1:1/x?sslmode={SECRET}",
    f"postgresql://ann:{SECRET}@127.0.0.1:1/x", f"postgresql://ann:{SECRET}@[::1/x", f"postgresql://ann:{SECRET}/@127.0.0.1:1/x",
    f"postgresql://ann:%{SECRET}@127.0.0.1:1/x", f"postgresql://ann:{SECRET}@127.0.0.1:1/x?password={SECRET}&unknown={SECRET}",
    f"postgresql://ann:{SECRET}\0@127.0.0.1:1/x", f"postgresql://ann:{SECRET}@127.0.0.1\n:1/x", f"postgres:ann:{SECRET}@x",
    f"postgresql://ann:{SECRET}@127.0.0.1:1/x#{SECRET}", f"valkey://ann:{SECRET}@127.0.0.1\n:1/0", f"valkey://ann:{SECRET}\t@127.0.0.1:1",
    f"mysql://ann:{SECRET}@h/x", f"POSTGRESQL://ann:{SECRET}@127.0.0.1:1/x", f" postgresql://ann:{SECRET}@127.0.0.1:1/x",
    f"{SECRET}", f"{SECRET}:x", f"//{SECRET}", f"javascript:{SECRET}", f"file://{SECRET}",
]  # fmt: skip


@pytest.mark.parametrize("url", URLS)
def test_a_url_is_told_without_its_secrets(
    url: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    pytest.importorskip("psycopg")
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        with pytest.raises(rd.RxDeltaError) as caught:
            async with Relay.open(url, patience=0.1):
                pass
        shown = traceback.TracebackException.from_exception(caught.value)
        assert SECRET not in "".join(shown.format())
        assert SECRET not in json.dumps(vars(caught.value), default=repr)

    with suppress(OSError):
        os.chdir(tmp_path)
    run(main)
    assert SECRET not in caplog.text
    assert not [*tmp_path.iterdir()]


def test_a_server_that_refuses_is_told_without_the_user(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        for user, more in (
            (SECRET, ""),
            ("boss", f"?sslmode={SECRET}"),
            ("boss", f"?options=-c%20{SECRET}%3D1"),
        ):
            with pytest.raises(rd.RxDeltaError) as caught:
                async with Relay.open(postgres.url_of(user, SECRET) + more, patience=0.1):
                    pass
            shown = traceback.TracebackException.from_exception(caught.value)
            assert SECRET not in "".join(shown.format())

    run(main)
    assert SECRET not in caplog.text


# Races.


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_publishers_stops_and_deletes_of_one_name_at_once(store: str, path: Path) -> None:
    async def main() -> None:
        async with Relay.open(None if store == "memory" else f"sqlite:///{path}", **OPTIONS) as relay:
            for round_ in range(5):
                name = f"race {round_}"
                sources = [Subject[rd.Event]() for _ in range(5)]
                published = [
                    asked(rd.for_each(one.pipe(relay.publish(name)), lambda _: None)) for one in sources
                ]
                readers = [read(relay, name) for _ in range(3)]
                stops = [asked(relay.cancel(name)) for _ in range(3)] + [
                    asked(relay.delete(name)) for _ in range(3)
                ]
                tasks = [asyncio.ensure_future(one) for one in (*published, *readers, *stops)]
                await turns(5 * round_)
                for source in sources:
                    for event in REPLY:
                        source.on_next(event)
                    source.on_completed()
                ends = await asyncio.gather(*tasks)
                assert sum(end is None for end in ends[: len(published)]) <= 5
                for end in ends[: len(published)]:
                    assert end is None or isinstance(end, rd.RxDeltaError)
                for end in ends[-len(stops) :]:
                    assert isinstance(end, (bool, rd.RxDeltaError))
            for name in await relay.streams():
                assert await relay.delete(name) in (True, False)

    run(main)


def test_a_reader_that_never_reads_holds_up_nobody(path: Path) -> None:
    async def main() -> None:
        async with Relay.open(f"sqlite:///{path}", **OPTIONS) as relay:
            many = [*REPLY[:2], *[ev.TextDelta(0, "x")] * 5_000, *REPLY[-2:]]
            await relay.start("live", rx.from_iterable(many))
            stuck = rd.iterate(relay.watch("live"), maxsize=1)
            await anext(stuck)
            assert await read(relay, "live") == "x" * 5_000
            assert await relay.delete("live")
            await published(relay, "live")
            await stuck.aclose()

    run(main)
