"""Streams as marble diagrams, in virtual time.

A column is a tick: `a` a value, `|` completion, `#` an error, `-` and a blank nothing. What stands in parentheses
happens at the tick of the opening one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactivex.testing import ReactiveTest, TestScheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reactivex import Observable
    from reactivex.testing.recorded import Recorded

__all__ = ["BOOM", "SUBSCRIBED", "marbles", "run"]

SUBSCRIBED = 200
BOOM = ValueError("boom")


def marbles(
    diagram: str,
    values: Mapping[str, Any] | None = None,
    *,
    start: float = SUBSCRIBED,
    error: Exception = BOOM,
) -> list[Recorded[Any]]:
    """The diagram's notifications, the first column being at `start`."""
    records: list[Recorded[Any]] = []
    group: int | None = None
    for column, mark in enumerate(diagram):
        time = start + (column if group is None else group)
        if mark == "(":
            group = column
        elif mark == ")":
            group = None
        elif mark == "|":
            records.append(ReactiveTest.on_completed(time))
        elif mark == "#":
            records.append(ReactiveTest.on_error(time, error))
        elif mark not in "- ":
            records.append(ReactiveTest.on_next(time, mark if values is None else values[mark]))
    return records


def run(
    source: list[Recorded[Any]],
    operator: Callable[[Observable[Any]], Observable[Any]],
    *,
    disposed: float = 10_000,
) -> tuple[list[Recorded[Any]], list[Any]]:
    """What the operator emits for a source (times count from its subscription), and the subscriptions to that."""
    scheduler = TestScheduler()
    cold = scheduler.create_cold_observable(source)
    results = scheduler.start(lambda: cold.pipe(operator), disposed=disposed)
    return results.messages, cold.subscriptions
