"""What tests with marble lines share. A frame is a second in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactivex.scheduler import VirtualTimeScheduler

from rxdelta.testing import marbles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reactivex import Observable

__all__ = ["DAY", "line_of", "through", "whole"]

DAY = 86_400
"""When `marbles` leaves what never ends."""

_KINDS = {"N": ("next", "value"), "E": ("error", "exception"), "C": ("completed", None)}


def whole(line: str) -> list[tuple[float, float]]:
    """From when to when a source is read that is read once and never left before its end."""
    ends = [at for at, kind, _ in marbles.parse(line, values=str, frame=1) if kind != "next"]
    return [(0, ends[0] if ends else DAY)]


def through(
    line: str | Iterable[marbles.Record],
    *operators: Callable[[Observable[Any]], Observable[Any]],
    values: marbles.Values = str,
    error: Exception | None = None,
    until: float | None = None,
) -> tuple[list[marbles.Record], list[tuple[float, float | None]]]:
    """What comes of a line through operators, and from when to when its source was read."""
    time = VirtualTimeScheduler()
    source = marbles.cold(line, time, values=values, frame=1, error=error)
    return marbles.records(source.pipe(*operators), time, until=until), source.subscriptions


def line_of(
    messages: Sequence[Any], *, values: marbles.Values = str, start: float = 0, error: Exception | None = None
) -> str:
    """The messages of an observer of a `TestScheduler`; the line begins at `start`."""
    records: list[Any] = []
    for time, one in ((message.time, message.value) for message in messages):
        kind, value = _KINDS[one.kind]
        records.append((time - start, kind, value and getattr(one, value)))
    return marbles.draw(records, values=values, frame=1, error=error)
