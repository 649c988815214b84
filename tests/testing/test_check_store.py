"""`check_store` with a store that is right, and what it says, takes and shows."""

from __future__ import annotations

import asyncio
import copy
import io
import pickle
import sys
from typing import Any

import pytest
from support.loops import run

import rxdelta as rd
from rxdelta.testing import LawResult, MemoryStore, StoreFault, StoreReport, check_store

PARTS = [
    "begin", "append", "bury", "read", "stop", "free", "names", "follow", "total", "probe", "expiry", "calls", "close", "reopen",
    "runs", "relays", "processes",
]  # fmt: skip


def in_memory() -> Any:
    place = MemoryStore().place
    return lambda: MemoryStore(place)


def test_the_store_in_memory_keeps_all_laws() -> None:
    report = check_store(in_memory(), runs=20)
    assert report.failed == ()
    assert list(dict.fromkeys(result.part for result in report.results)) == PARTS
    assert [result.part for result in report.results if result.left_out] == ["processes"]
    assert len({result.law for result in report.results}) == len(report.results)


@pytest.mark.soak
def test_the_store_in_memory_keeps_all_laws_in_a_hundred_runs() -> None:
    check_store(in_memory())


def test_only_parts_are_tried_that_are_asked_for() -> None:
    report = check_store(in_memory(), only=["free", "runs", "names"], skip=["names"], runs=1)
    assert list(dict.fromkeys(result.part for result in report.results)) == ["free", "runs"]


def test_a_report_is_a_table() -> None:
    report = check_store(in_memory(), only=["names", "processes"])
    first, second = str(report).splitlines()
    assert first.startswith("ok ")
    assert first.endswith(
        "s  names: they are those of a tenant's logs that have their name, in the order in which they began"
    )
    assert second.startswith("- ")
    assert second.endswith("(other processes can't call `make`: give it as module:function)")


def test_what_a_store_need_not_have_is_left_out() -> None:
    class WithoutTotal(MemoryStore):
        async def total(self) -> int:
            raise NotImplementedError

    place = MemoryStore().place
    report = check_store(lambda: WithoutTotal(place), only=["total"])
    assert {result.left_out for result in report.results} == {"the store has no `total`"}


def test_a_fault_has_all_laws_that_are_broken_and_the_calls_that_led_there() -> None:
    class Silent(MemoryStore):
        async def names(self, tenant: str) -> list[str]:
            return []

        async def free(self, key: Any) -> bool:
            return False

    place = MemoryStore().place
    with pytest.raises(AssertionError) as caught:
        check_store(lambda: Silent(place), only=["free", "names", "stop"])
    fault = caught.value
    assert isinstance(fault, StoreFault)
    assert isinstance(fault, rd.errors.RxDeltaError)
    assert {result.part for result in fault.report.failed} == {"free", "names"}
    text = str(fault)
    assert text.startswith("3 of 5 laws of a store don't hold:\n\nfree: it returns True also for")
    assert "\n  free: False and not True\n  the last calls:\n" in text
    assert ".begin(" in text
    assert ".free(" in text
    assert str(fault.report).count("FAILED") == 3
    again = pickle.loads(pickle.dumps(fault))
    assert (str(again), again.report) == (text, fault.report)


def test_a_run_that_fails_tells_how_to_play_it_again() -> None:
    class Forgetful(MemoryStore):
        async def append(self, key: Any, before: Any, record: Any) -> Any:
            answer = await super().append(key, before, record)
            if record is not None and record.number == 3:
                self.place.logs[key].records[-1:] = []
            return answer

    place = MemoryStore().place
    with pytest.raises(StoreFault, match=r"again: check_store\(…, only=\[\"runs\"\], runs=1, seed=7\)"):
        check_store(lambda: Forgetful(place), only=["runs"], runs=1, seed=7)


def test_bad_arguments_are_told() -> None:
    for wrong, field in (
        ({"make": 3}, "make"),
        ({"make": "nowhere"}, "make"),
        ({"make": "nowhere:at_all"}, "make"),
        ({"make": "json:at_all"}, "make"),
        ({"runs": -1}, "runs"),
        ({"runs": True}, "runs"),
        ({"seed": "x"}, "seed"),
        ({"only": ["bgin"]}, "only"),
        ({"only": "begin"}, "only"),
        ({"skip": ["x"]}, "skip"),
        ({"make": lambda: object()}, "make"),
    ):
        given: Any = {"make": in_memory(), **wrong}
        with pytest.raises(rd.InvalidValueError) as caught:
            check_store(**given)
        assert caught.value.field == field


def test_it_runs_a_loop_of_its_own() -> None:
    async def main() -> None:
        with pytest.raises(rd.InvalidValueError, match=r"asyncio\.to_thread"):
            check_store(in_memory(), only=["free"])
        report = await asyncio.to_thread(check_store, in_memory(), only=["free"])
        assert report.failed == ()
        await asyncio.get_running_loop().shutdown_default_executor()

    run(main)


def test_progress_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for out, is_shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", out)
        check_store(in_memory(), only=["free", "runs"], runs=2)
        assert ("\r\x1b[K1 of 2 laws tried; free: it takes no name" in out.getvalue()) is is_shown
        assert ("1 of 2 runs played" in out.getvalue()) is is_shown
    monkeypatch.setattr(sys, "stderr", None)
    check_store(in_memory(), only=["free"])


def test_results_are_values() -> None:
    result = LawResult("begin", "a law")
    assert result == copy.copy(result)
    assert StoreReport([result], 1).failed == ()
