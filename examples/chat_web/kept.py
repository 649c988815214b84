"""What the server keeps: of each exchange the question, the reply's events as they come, and how the reply ended."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
from pathlib import Path
from typing import Any

import attrs
import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd

DONE = "done"
LOST = "interrupted: the server went away"

PATH = Path(os.environ.get("CHATS", "chats.sqlite")).resolve()

store = sqlite3.connect(PATH, isolation_level=None)
store.executescript("""
    PRAGMA journal_mode = WAL;  -- with this a killed server loses nothing that it has written,
    PRAGMA synchronous = NORMAL;  -- and needn't wait for the disk at every piece
    CREATE TABLE IF NOT EXISTS exchanges (id TEXT PRIMARY KEY, chat TEXT, question TEXT, run INTEGER, ended TEXT);
    CREATE TABLE IF NOT EXISTS events (exchange TEXT, run INTEGER, event TEXT);
    CREATE INDEX IF NOT EXISTS by_chat ON exchanges (chat);
    CREATE INDEX IF NOT EXISTS by_exchange ON events (exchange);
    CREATE UNIQUE INDEX IF NOT EXISTS one_comes ON exchanges (chat) WHERE ended IS NULL;
    CREATE TABLE IF NOT EXISTS name (name TEXT);
    INSERT INTO name SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT * FROM name);
""")
((NAME,),) = store.execute("SELECT * FROM name")
"""Of this store. Others on the same relay, also an earlier one in this file, have other streams."""


@attrs.frozen
class Exchange:
    """A question, as the page sent it, and the reply. `ended` says how that ended; it is `None` while it comes.

    A reply is one run, and one more each time that its calls were answered. Runs are numbered through a chat.
    """

    id: str
    chat: str
    question: Any
    run: int
    ended: str | None

    @property
    def stream(self) -> str:
        """The name of the newest run's stream in the relay."""
        return stream(self.chat, self.run)

    def messages(self, before: int | None = None) -> list[rd.Snapshot]:
        """The reply's messages, with what they have so far; or with what they had before a run."""
        rows = store.execute(
            "SELECT event FROM events WHERE exchange = ? AND run < ? ORDER BY rowid",
            [self.id, before or self.run + 1],
        )
        events = [rd.events.from_dict(json.loads(row)) for (row,) in rows]
        if events and self.ended not in (None, DONE):
            events.append(rd.events.MessageInterrupted(self.ended))
        found: list[rd.Snapshot] = []
        whole = ops.flat_map(lambda message: message.pipe(rd.scan_deltas(), ops.last()))
        rx.from_iterable(events).pipe(rd.group_by_message(), whole).subscribe(found.append)
        return found


def stream(chat: str, run: int) -> str:
    return f"{chat}/{run}"


def exchanges(chat: str) -> list[Exchange]:
    rows = store.execute("SELECT * FROM exchanges WHERE chat = ? ORDER BY rowid", [chat])
    return [
        Exchange(reply, chat, json.loads(question), run, ended) for reply, _, question, run, ended in rows
    ]


def last(chat: str) -> Exchange | None:
    return next(reversed(exchanges(chat)), None)


def next_stream(chat: str) -> str:
    """The stream that the chat's next run will have: who waits for it needs to know nothing else."""
    ((run,),) = store.execute("SELECT coalesce(max(run), 0) FROM exchanges WHERE chat = ?", [chat])
    return stream(chat, run + 1)


def conversation(chat: str) -> list[rd.Message]:
    """The chat as a model gets it."""
    said: list[rd.Message] = []
    for exchange in exchanges(chat):
        said += rd.from_ai_sdk([exchange.question])
        said += [message.to_message() for message in exchange.messages()]
    return said


# Several workers write here. Each of these is one statement, which asks whether what it builds on still holds.


def begin(chat: str, question: Any) -> Exchange | None:
    """Keep a question; its reply begins. `None` if one is still coming: the index `one_comes` has room for one a chat."""
    reply = secrets.token_hex(8)
    done = store.execute(
        "INSERT OR IGNORE INTO exchanges"
        " SELECT ?, ?, ?, coalesce(max(run), 0) + 1, NULL FROM exchanges WHERE chat = ?",
        [reply, chat, json.dumps(question), chat],
    )
    return last(chat) if done.rowcount else None


def go_on(asked: Exchange) -> Exchange | None:
    """A reply whose calls were answered goes on. `None` if it does already, has broken off, or isn't the last: so no answer
    counts twice.
    """
    done = store.execute(
        "UPDATE OR IGNORE exchanges SET ended = NULL, run = run + 1 WHERE id = ? AND ended = ?"
        " AND run = ? AND run = (SELECT max(run) FROM exchanges WHERE chat = ?)",
        [asked.id, DONE, asked.run, asked.chat],
    )
    return last(asked.chat) if done.rowcount else None


def add(coming: Exchange, event: rd.Event) -> None:
    """Keep an event, unless the run has ended: its worker may have been taken for dead."""
    store.execute(
        "INSERT INTO events SELECT id, run, ? FROM exchanges WHERE id = ? AND run = ? AND ended IS NULL",
        [json.dumps(event.to_dict()), coming.id, coming.run],
    )


def end(coming: Exchange, ended: str) -> None:
    """Keep how a run ended. The first who says so counts."""
    store.execute(
        "UPDATE exchanges SET ended = ? WHERE id = ? AND run = ? AND ended IS NULL",
        [ended, coming.id, coming.run],
    )
