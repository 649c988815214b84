"""How small the front is; `tests/support/front.py` measures it."""

from __future__ import annotations

import json

import pytest
from support.front import BEFORE, Front, counted, front, gone, home, table

BEFORE_IT_WAS_SMALL: Front = json.loads(BEFORE.read_text("utf-8"))


def test_each_name_that_went_is_elsewhere_or_was_replaced() -> None:
    assert [name for name, place in gone(BEFORE_IT_WAS_SMALL).items() if not place] == []


@pytest.mark.parametrize(
    ("name", "place"),
    [("stream", "rd"), ("lift", "rd.building"), ("thaw", "rd.core"), ("usage_updates", None)],
)
def test_a_name_is_found_in_its_home(name: str, place: str | None) -> None:
    assert home(name) == place


def test_the_table_has_each_name_that_stood_on_rd() -> None:
    rows = table(BEFORE_IT_WAS_SMALL).splitlines()
    assert [
        name for name in BEFORE_IT_WAS_SMALL["parameters"] if not any(f"`{name}`" in row for row in rows)
    ] == []


def test_parameters_are_measured_wherever_the_name_stands() -> None:
    measured = front(["lift_machine", "reasoning_deltas"])["parameters"]
    assert measured["lift_machine"][:2] == ["name", "begin"]
    assert "reasoning_deltas" not in measured
    assert "ProviderError" not in measured


def test_the_front_has_few_parameters() -> None:
    now = front(BEFORE_IT_WAS_SMALL["names"])
    known = {name: now["parameters"].get(name, []) for name in BEFORE_IT_WAS_SMALL["parameters"]}
    names, parameters = counted({"names": now["names"], "parameters": known})  # what is new may have its own
    assert names <= 105
    assert parameters <= 335
