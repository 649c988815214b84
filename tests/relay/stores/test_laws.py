"""The check of stores, with each of ours: all laws, and runs in which calls and processes are lost."""

from __future__ import annotations

import pytest
from relay.promises import promised

from rxdelta.testing import MemoryStore, check_store

KINDS = ("sqlite", "valkey", "postgres")
MAKE = "relay.stores.places:at_the_url"


@promised("A store keeps all laws")
@pytest.mark.parametrize("url", KINDS, indirect=True)
def test_a_store_of_ours_keeps_all_laws(url: str) -> None:
    assert url
    report = check_store(MAKE, runs=10)
    assert [result for result in report.results if result.left_out] == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("url", KINDS, indirect=True)
def test_it_keeps_them_in_a_thousand_runs(url: str, seed: int) -> None:
    assert url
    check_store(MAKE, runs=100, seed=seed)


@pytest.mark.soak
def test_the_one_in_memory_keeps_them_in_a_thousand_runs() -> None:
    place = MemoryStore().place
    check_store(lambda: MemoryStore(place), runs=1000)
