"""What a test changes in a process that opens an SQLite store, while a file is there."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rxdelta.relay import sqlite_tables as _sqlite_tables

__all__ = ["shift_the_clock", "stop_growing"]

_NO_BOUND = 1 << 30


def stop_growing(file: str) -> None:
    """Let the database grow no more while the file is there: for SQLite the disk is full then."""
    flag = Path(file)

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
            if sql.startswith("BEGIN"):
                super().execute(f"PRAGMA max_page_count = {1 if flag.exists() else _NO_BOUND}")
            return super().execute(sql, *values)

    connect = sqlite3.connect
    sqlite3.connect = lambda *given, **named: connect(*given, **named, factory=Connection)  # type: ignore[assignment]


def shift_the_clock(file: str) -> None:
    """Let the store's clock be wrong by the seconds that the file says."""
    flag = Path(file)

    def shifted() -> float:
        return time.time() + (float(flag.read_text()) if flag.exists() else 0.0)

    _sqlite_tables.time = SimpleNamespace(time=shifted)  # type: ignore[assignment]
