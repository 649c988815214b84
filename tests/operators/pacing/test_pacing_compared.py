"""The comparison in docs/reference/pacing.md, measured: one stream, in virtual time, through our operators and Rx's own."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, operators as ops
from reactivex.testing import ReactiveTest, TestScheduler

import rxdelta as rd

BOOM = ValueError("boom")

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "pacing.md"
STEADY = range(1, 21)  # a value each tick, then silence, then two values and the end
LAST, END = 62, 63

OPERATORS: dict[str, Callable[[Observable[Any]], Observable[Any]]] = {
    "`throttle_latest(4)`": rd.throttle_latest(4),
    "`debounce_latest(4, 8)`": rd.debounce_latest(4, 8),
    "`conflate()`": rd.conflate(),
    "Rx `debounce(4)`": ops.debounce(4),
    "Rx `sample(4)`": ops.sample(4),
    "Rx `throttle_first(4)`": ops.throttle_first(4),
    "Rx `buffer_with_time(4)`": ops.buffer_with_time(4),
}


class Counting(TestScheduler):
    timers = 0

    def schedule_relative(self, *arguments: Any, **named: Any) -> Any:
        self.timers += 1
        return super().schedule_relative(*arguments, **named)


def measure(
    operator: Callable[[Observable[Any]], Observable[Any]], end: Any
) -> tuple[list[tuple[float, Any]], int]:
    scheduler = Counting()
    source = [ReactiveTest.on_next(time, time) for time in (*STEADY, LAST - 1, LAST)] + [end]
    cold = scheduler.create_cold_observable(source)
    results = scheduler.start(lambda: cold.pipe(operator), disposed=1000)
    emitted = [(one.time - 200, one.value.value) for one in results.messages if one.value.kind == "N"]
    assert [one.value.kind for one in results.messages[len(emitted) :]] == [end.value.kind]
    return emitted, scheduler.timers - len(source)


def row(name: str) -> str:
    operator = OPERATORS[name]
    emitted, timers = measure(operator, ReactiveTest.on_completed(END))
    failed, _ = measure(operator, ReactiveTest.on_error(END, BOOM))
    shown = [time for time, value in emitted if time <= STEADY[-1] + 4 and value != []]
    silence = max(after - before for before, after in pairwise([STEADY[0], *shown]))
    empty = sum(value == [] for _, value in emitted)
    resting = max(_newest(value) for time, value in emitted if time < LAST - 1 and value != [])
    cells = [shown[0] - STEADY[0], silence, f"{resting} of 20", _last(emitted), _last(failed), timers, empty]
    return (
        f"| {name} | "
        + " | ".join(f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in cells)
        + " |"
    )


def _newest(value: Any) -> int:
    return int(max(value) if isinstance(value, list) else value)


def _last(emitted: list[tuple[float, Any]]) -> str:
    late = [
        time - END for time, value in emitted if value == LAST or (isinstance(value, list) and LAST in value)
    ]
    if not late:
        return "**lost**"
    return "shown" if late[0] <= 0 else f"shown {late[0]:g} after the end"


@pytest.mark.parametrize("name", OPERATORS)
def test_the_table_says_what_is(name: str) -> None:
    assert row(name) in PAGE.read_text("utf-8").splitlines()


def test_every_row_of_the_table_is_measured() -> None:
    lines = PAGE.read_text("utf-8").splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("| operator | first shown after"))
    rows = lines[start + 2 : lines.index("", start)]
    assert [line.split(" | ")[0].removeprefix("| ") for line in rows] == list(OPERATORS)
