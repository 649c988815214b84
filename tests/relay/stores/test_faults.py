"""Real processes over SQLite and PostgreSQL that are killed, stopped, locked out and cut off at random moments."""

from __future__ import annotations

import pytest
from relay.stores import sqlite_faults
from relay.stores.runs import play_at_once
from support.postgres_servers import need_postgres

SQLITE_AT_ONCE, POSTGRES_AT_ONCE = 8, 4


def play_sqlite(seeds: range) -> None:
    """Play these runs. An error names its run: `play_sqlite(range(7, 8))` plays that again."""
    play_at_once(seeds, sqlite_faults.play, SQLITE_AT_ONCE)


def play_postgres(seeds: range) -> None:
    """The same on PostgreSQL."""
    pytest.importorskip("psycopg")
    need_postgres()
    from relay.stores import postgres_faults

    with postgres_faults.playing(POSTGRES_AT_ONCE) as play:
        play_at_once(seeds, play, POSTGRES_AT_ONCE)


@pytest.mark.slow
def test_whatever_fails_on_sqlite_each_reader_has_what_was_acknowledged_or_learns_what_is_missing() -> None:
    play_sqlite(range(0, 20, 2))  # half of the kinds


@pytest.mark.slow
def test_whatever_fails_on_postgresql_each_reader_has_what_was_acknowledged_or_learns_what_is_missing() -> (
    None
):
    play_postgres(range(0, 27, 3))  # a third of the kinds


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(1000, 1500, 50))
def test_whatever_fails_on_sqlite_five_hundred_times(first: int) -> None:
    play_sqlite(range(first, first + 50))


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("first", range(1000, 1500, 50))
def test_whatever_fails_on_postgresql_five_hundred_times(first: int) -> None:
    play_postgres(range(first, first + 50))
