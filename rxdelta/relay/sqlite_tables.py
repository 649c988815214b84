"""The tables of a relay's store in an SQLite database, and what each call does with them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from rxdelta.core import InvalidValueError
from rxdelta.relay.store import Answer, LogKey, Page, Record, Terms, Topic

if TYPE_CHECKING:
    import sqlite3


_FORM = 1
"""Of the tables. Another one gets the next number."""
_SWEPT_LOGS, _SWEPT_RECORDS, _SWEPT_BYTES = 20, 200, 1 << 20
"""What one transaction removes at most of logs that have expired, so that nobody waits for it."""
_GONE = Answer("gone")

_TABLES = """
CREATE TABLE {state} (
  form INTEGER NOT NULL,      -- of these tables
  changes INTEGER NOT NULL,   -- how many transactions had news
  bytes INTEGER NOT NULL,     -- of all logs
  probed REAL NOT NULL        -- when somebody last tried whether the database can be written
);
INSERT INTO {state} VALUES (1, 0, 0, 0);
CREATE TABLE {logs} (
  number INTEGER PRIMARY KEY AUTOINCREMENT,  -- in the order in which they began
  tenant TEXT NOT NULL,
  stream_id TEXT NOT NULL,
  epoch TEXT NOT NULL,
  has_name INTEGER NOT NULL,           -- 0: another log may have the stream's id
  name_until REAL NOT NULL,            -- when it loses its name. All times are unix seconds.
  expires REAL NOT NULL,               -- when it is gone. 0: it is gone, and being removed
  begun REAL NOT NULL,
  ended REAL,                          -- NULL: it is live
  dead INTEGER NOT NULL DEFAULT 0,     -- of its end
  signed REAL NOT NULL,                -- when its publisher gave its last sign
  sign INTEGER NOT NULL DEFAULT 1,     -- how many signs there were
  lease REAL NOT NULL,                 -- seconds for which a sign counts
  newest INTEGER NOT NULL DEFAULT 0,   -- the number of its last record
  newest_count INTEGER NOT NULL DEFAULT 0,
  bytes INTEGER NOT NULL DEFAULT 0,
  stop_token TEXT,                     -- whose call told its publisher to stop
  stop_reason BLOB,
  change INTEGER NOT NULL,             -- the last one of this log, as {state}.changes counts them
  written_change INTEGER NOT NULL DEFAULT 0,
  stopped_change INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX {logs_by_epoch} ON {logs} (epoch);
CREATE UNIQUE INDEX {logs_by_name} ON {logs} (tenant, stream_id) WHERE has_name;
CREATE INDEX {logs_by_number} ON {logs} (tenant, number) WHERE has_name;
CREATE INDEX {logs_by_expiry} ON {logs} (expires);
CREATE INDEX {logs_by_change} ON {logs} (change);
CREATE TABLE {records} (
  log INTEGER NOT NULL,                -- {logs}.number
  number INTEGER NOT NULL,             -- of its last event
  count INTEGER NOT NULL,              -- of its events
  events BLOB NOT NULL,
  "end" BLOB,
  dead INTEGER NOT NULL,
  size INTEGER NOT NULL,               -- what it counts of {logs}.bytes
  PRIMARY KEY (log, number)
) WITHOUT ROWID;
"""
_NAMES = (
    "state", "logs", "records", "logs_by_epoch", "logs_by_name", "logs_by_number", "logs_by_expiry", "logs_by_change",
)  # fmt: skip
_LOG = "SELECT number, epoch, ended, dead, signed, sign, lease, newest, newest_count, stop_token, stop_reason, has_name, name_until FROM {logs} "
_BY_EPOCH = _LOG + "WHERE epoch = ? AND tenant = ? AND stream_id = ? AND expires > ?"
_BY_NAME = _LOG + "WHERE has_name AND tenant = ? AND stream_id = ? AND name_until > ? AND expires > ?"


class _Log(NamedTuple):
    number: int
    epoch: str
    ended: float | None
    dead: int
    signed: float
    sign: int
    lease: float
    newest: int
    newest_count: int
    stop_token: str | None
    stop_reason: bytes | None
    has_name: int
    name_until: float


class Tables:
    """The tables. Used in the thread of their connection, and each call within a transaction.

    Args:
        connection: Without transactions of Python's.
        prefix: What the names of the tables begin with.
    """

    def __init__(self, connection: sqlite3.Connection, prefix: str, terms: Terms) -> None:
        self._run = connection.execute
        self._connection = connection
        self._prefix = prefix
        self._terms = terms
        self._names = {name: f'"{prefix}_{name}"' for name in _NAMES}
        self._statements: dict[str, str] = {}
        self._now = 0.0
        self._changes: int | None = None
        self._bytes = 0

    def make(self) -> None:
        """Make the tables if they aren't there, within a transaction that writes.

        Raises:
            InvalidValueError: They are of a later version of the library, or of a prefix that SQLite can't tell from this one.
        """
        state = f"{self._prefix}_state"
        same = "SELECT name FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"
        found = self._run(same, [state]).fetchone()
        if found is None:
            for statement in _TABLES.format(**self._names).split(";\n"):
                self._run(statement)
            return
        if found[0] != state:
            wrong = f"is used in this file as {found[0].removesuffix('_state')!r}, and SQLite's names know no case"
            raise InvalidValueError.of([("prefix", self._prefix, wrong)])
        (form,) = self._one("SELECT form FROM {state}") or "?"
        if form != _FORM:
            wrong = f"has tables in the form {form} of another version of rxdelta; this version has the form {_FORM}"
            raise InvalidValueError.of([("prefix", self._prefix, wrong)])

    def begin(self) -> None:
        """A transaction begins."""
        self._now = time.time()
        self._changes = None
        self._bytes = 0

    def finish(self, calls: int) -> None:
        """A transaction of so many calls that write is about to end: remove some of what has expired, and write what they share."""
        self._sweep(calls)
        if self._changes is not None or self._bytes:
            counted = [self._changes is not None, self._bytes]
            self._do("UPDATE {state} SET changes = changes + ?, bytes = bytes + ?", *counted)

    # what writes

    def begin_log(self, key: LogKey) -> str | None:
        log = self._by_key(key)
        if log is not None and log.ended is None:
            self._sign(log)
            return None
        holder = self._by_name(key.tenant, key.id)
        if holder is not None:
            return holder.epoch
        if log is not None:
            return log.epoch
        until = self._now + self._terms.lease + self._terms.keep
        self._do(
            "UPDATE {logs} SET has_name = 0 WHERE has_name AND tenant = ? AND stream_id = ?",
            key.tenant,
            key.id,
        )
        # One that has expired may not have been removed.
        self._do(
            "UPDATE {logs} SET epoch = '' || number WHERE epoch = ? AND expires <= ?", key.epoch, self._now
        )
        self._do(
            "INSERT INTO {logs} (tenant, stream_id, epoch, has_name, name_until, expires, begun, signed, lease, change)"
            " VALUES (?, ?, ?, 1, ?, ?, ?, ?, ?, ?)",
            *key, until, until, self._now, self._now, self._terms.lease, self._change(),
        )  # fmt: skip
        return None

    def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        log = self._by_key(key)
        if log is None:
            return _GONE
        if record is None:
            state = self._state_of_sign(log, before)
        elif log.newest == before and log.ended is None:
            self._write(log, record)
            return self._answer("written", log)
        else:
            # The end of one is written once, so it needn't be compared with that of a live log's last record.
            is_last = (log.newest, log.newest_count, log.dead) == (record.number, record.count, 0)
            is_written = is_last and self._end_of(log) == record.end
            state = "written" if is_written else "lost" if log.ended is None else "ended"
        if state == "written" and log.ended is None:
            self._sign(log)
        return self._answer(state, log)

    def _state_of_sign(self, log: _Log, before: int | None) -> Any:
        if log.ended is not None and (log.dead or before is not None):
            return "ended"
        return "written" if before is None or before == log.newest else "lost"

    def _answer(self, state: Any, log: _Log) -> Answer:
        return Answer(state, stop=log.stop_reason, is_named=self._is_named(log))

    def _is_named(self, log: _Log) -> bool:
        return bool(log.has_name) and log.name_until > self._now

    def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        log = self._by_key(key)
        if log is None:
            return False
        if log.ended is not None:
            last = log.newest, log.newest_count, log.dead
            return last == (record.number, record.count, record.dead) and self._end_of(log) == record.end
        if (sign is not None and sign != log.sign) or record.number <= log.newest:
            return False
        self._write(log, record)
        return True

    def _write(self, log: _Log, record: Record) -> None:
        values = record.number, record.count, record.events, record.end, record.dead, record.size
        self._do("INSERT INTO {records} VALUES (?, ?, ?, ?, ?, ?, ?)", log.number, *values)
        self._bytes += record.size
        now, lease, keep = self._now, self._terms.lease, self._terms.keep
        if record.end is None:
            ended, name_until = None, now + lease + keep
            expires = name_until
        else:
            # For a lease a reader may not know that it has ended.
            ended, name_until = now, now + keep
            expires = now + max(keep, lease) if self._is_named(log) else now + lease
        change = self._change()
        self._do(
            "UPDATE {logs} SET newest = ?, newest_count = ?, bytes = bytes + ?, ended = ?, dead = ?, signed = ?,"
            " sign = sign + 1, lease = ?, name_until = ?, expires = ?, change = ?, written_change = ? WHERE number = ?",
            record.number, record.count, record.size, ended, record.dead, now,
            log.lease if record.dead else lease, name_until, expires, change, change, log.number,
        )  # fmt: skip

    def _sign(self, log: _Log) -> None:
        now, lease = self._now, self._terms.lease
        until = now + lease + self._terms.keep
        self._do(
            "UPDATE {logs} SET signed = ?, sign = sign + 1, lease = ?, name_until = ?, expires = ? WHERE number = ?",
            now, lease, until, until, log.number,
        )  # fmt: skip

    def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        log = self._by_key(key)
        if log is None:
            return False
        if log.stop_token is None and log.ended is None:
            change = self._change()
            self._do(
                "UPDATE {logs} SET stop_token = ?, stop_reason = ?, change = ?, stopped_change = ? WHERE number = ?",
                token, reason, change, change, log.number,
            )  # fmt: skip
            return True
        return log.stop_token == token

    def free(self, key: LogKey) -> bool:
        log = self._by_key(key)
        if log is not None and log.has_name:
            kept = self._now + log.lease
            self._do("UPDATE {logs} SET has_name = 0, expires = ? WHERE number = ?", kept, log.number)
        return True

    def probe(self) -> None:
        self._do("UPDATE {state} SET probed = ?", self._now)

    # what reads

    def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        log = self._by_name(tenant, id) if epoch is None else self._by(tenant, id, epoch)
        if log is None:
            return None
        records, size = list[Record](), 0
        if after < log.newest:
            found = self._do(
                'SELECT number, count, events, "end", dead, size FROM {records} WHERE log = ? AND number > ? ORDER BY number',
                log.number, after,
            )  # fmt: skip
            for number, count, events, end, dead, counts in found:
                size += len(events) + len(end or b"")
                if records and size > most:
                    break
                records.append(Record(number, count, events, end, dead, counts))
            found.close()
        age = self._now - log.signed
        return Page(log.epoch, records, log.newest, log.ended is not None, log.sign, age, log.lease)

    def names(self, tenant: str) -> list[str]:
        ordered = "SELECT stream_id FROM {logs} WHERE has_name AND tenant = ? AND name_until > ? AND expires > ? ORDER BY number"
        return [stream_id for (stream_id,) in self._do(ordered, tenant, self._now, self._now).fetchall()]

    def total(self) -> int:
        counted = "SELECT bytes - (SELECT coalesce(sum(bytes), 0) FROM {logs} WHERE expires > 0 AND expires <= ?) FROM {state}"
        (total,) = self._one(counted, self._now)
        return int(total)

    def news(self, seen: tuple[int, int]) -> tuple[list[Topic], tuple[int, int]]:
        """The news behind what was seen, and what has been seen with that."""
        topics, (change, number) = list[Topic](), seen
        changed = "SELECT number, change, written_change, stopped_change, tenant, stream_id, epoch FROM {logs} WHERE change > ?"
        for log, last, written, stopped, tenant, stream_id, epoch in self._do(changed, change).fetchall():
            if not all(type(value) is int for value in (last, written, stopped)):
                continue  # written by somebody else: the others have their news
            if log > seen[1]:
                topics.append(Topic("begun", tenant, stream_id))
            if written > seen[0]:
                topics.append(Topic("written", tenant, stream_id, epoch))
            if stopped > seen[0]:
                topics.append(Topic("stopped", tenant, stream_id, epoch))
            change, number = max(change, last), max(number, log)
        return topics, (change, number)

    # both

    def _by_key(self, key: LogKey) -> _Log | None:
        return self._by(key.tenant, key.id, key.epoch)

    def _by(self, tenant: str, id: str, epoch: str) -> _Log | None:
        found = self._one(_BY_EPOCH, epoch, tenant, id, self._now)
        return None if found is None else _Log(*found)

    def _by_name(self, tenant: str, id: str) -> _Log | None:
        found = self._one(_BY_NAME, tenant, id, self._now, self._now)
        return None if found is None else _Log(*found)

    def _end_of(self, log: _Log) -> bytes | None:
        """The end that the last record has."""
        if log.ended is None:
            return None
        found = self._one('SELECT "end" FROM {records} WHERE log = ? AND number = ?', log.number, log.newest)
        return None if found is None else found[0]

    def _change(self) -> int:
        """The number of this transaction among those with news."""
        if self._changes is None:
            (changes,) = self._one("SELECT changes FROM {state}")
            self._changes = int(changes) + 1
        return self._changes

    def _sweep(self, calls: int) -> None:
        """Remove some of what has expired, more than so many calls can have added. A log is gone as a whole first, or a clock that goes back would show the rest."""
        expired = "SELECT number, expires, bytes FROM {logs} WHERE expires <= ? ORDER BY expires LIMIT ?"
        left = _SWEPT_RECORDS + 2 * calls
        for number, expires, size in self._do(expired, self._now, _SWEPT_LOGS + 4 * calls).fetchall():
            if expires:
                gone = "UPDATE {logs} SET has_name = 0, expires = 0, bytes = 0, epoch = '' || number WHERE number = ?"
                self._do(gone, number)
                self._bytes -= size
            elif left > 0:
                left -= self._remove(number, left)

    def _remove(self, number: int, most: int) -> int:
        """Remove a log, or so many of its records. Returns how many."""
        few = "SELECT number, length(events) FROM {records} WHERE log = ? ORDER BY number LIMIT ?"
        removed, size, upto = 0, 0, 0
        rows = self._do(few, number, most).fetchall()
        for upto, length in rows:  # noqa: B007
            removed += 1
            size += length
            if size > _SWEPT_BYTES:
                break
        self._do("DELETE FROM {records} WHERE log = ? AND number <= ?", number, upto)
        if removed == len(rows) < most:
            self._do("DELETE FROM {logs} WHERE number = ?", number)
        return most if size > _SWEPT_BYTES else removed

    def _one(self, statement: str, *values: Any) -> Any:
        found = self._do(statement, *values)
        row = found.fetchone()
        found.close()
        return row

    def _do(self, statement: str, *values: Any) -> sqlite3.Cursor:
        named = self._statements.get(statement)
        if named is None:
            named = self._statements[statement] = statement.format(**self._names)
        return self._run(named, values)
