"""What the server keeps: of each exchange the question, the reply's events as they come, and how the reply ended."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from typing import Any

import attrs
import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd

DONE = "done"
LOST = "interrupted: the server went away"

store = sqlite3.connect(os.environ.get("CHATS", "chats.sqlite"), isolation_level=None)
store.executescript("""
    PRAGMA journal_mode = WAL;  -- with this a killed server loses nothing that it has written,
    PRAGMA synchronous = NORMAL;  -- and needn't wait for the disk at every piece
    CREATE TABLE IF NOT EXISTS exchanges (id TEXT PRIMARY KEY, chat TEXT, question TEXT, ended TEXT);
    CREATE TABLE IF NOT EXISTS events (exchange TEXT, event TEXT);
    CREATE INDEX IF NOT EXISTS by_chat ON exchanges (chat);
    CREATE INDEX IF NOT EXISTS by_exchange ON events (exchange);
""")


@attrs.frozen
class Exchange:
    """A question, as the page sent it, and the reply. `ended` says how that ended; it is `None` while it comes."""

    id: str
    question: Any
    ended: str | None

    def messages(self) -> list[rd.Snapshot]:
        """The reply's messages, with what they have so far."""
        rows = store.execute("SELECT event FROM events WHERE exchange = ? ORDER BY rowid", [self.id])
        events = [rd.events.from_dict(json.loads(row)) for (row,) in rows]
        if events and self.ended not in (None, DONE):
            events.append(rd.events.MessageInterrupted(self.ended))
        found: list[rd.Snapshot] = []
        whole = ops.flat_map(lambda message: message.pipe(rd.scan_deltas(), ops.last()))
        rx.from_iterable(events).pipe(rd.group_by_message(), whole).subscribe(found.append)
        return found


def exchanges(chat: str) -> list[Exchange]:
    rows = store.execute("SELECT id, question, ended FROM exchanges WHERE chat = ? ORDER BY rowid", [chat])
    return [Exchange(reply, json.loads(question), ended) for reply, question, ended in rows]


def last(chat: str) -> Exchange | None:
    return next(reversed(exchanges(chat)), None)


def conversation(chat: str) -> list[rd.Message]:
    """The chat as a model gets it."""
    said: list[rd.Message] = []
    for exchange in exchanges(chat):
        said += rd.from_ai_sdk([exchange.question])
        said += [message.to_message() for message in exchange.messages()]
    return said


def begin(chat: str, question: Any) -> str:
    """Keep a question. Returns the id of its reply."""
    reply = secrets.token_hex(8)
    store.execute("INSERT INTO exchanges VALUES (?, ?, ?, NULL)", [reply, chat, json.dumps(question)])
    return reply


def go_on(reply: str) -> bool:
    """A reply whose calls were answered goes on. `False` if it does already, or has broken off: so no answer counts twice."""
    done = store.execute("UPDATE exchanges SET ended = NULL WHERE id = ? AND ended = ?", [reply, DONE])
    return done.rowcount == 1


def add(reply: str, event: rd.Event) -> None:
    store.execute("INSERT INTO events VALUES (?, ?)", [reply, json.dumps(event.to_dict())])


def end(reply: str, ended: str) -> None:
    store.execute("UPDATE exchanges SET ended = ? WHERE id = ?", [ended, reply])


def end_lost() -> None:
    """When the server starts: what hasn't ended was lost with the last one."""
    store.execute("UPDATE exchanges SET ended = ? WHERE ended IS NULL", [LOST])
