"""What tests of a relay compare: events by what they fold to, and the objects that are left of a relay."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import rxdelta as rd
from rxdelta.core import DEFAULT_LIMITS, EventsSoFar

__all__ = ["OPENED", "folded", "is_transient", "left_behind", "now", "number_of", "relay_objects"]

T = TypeVar("T")
ev = rd.events

OPENED = {"Relay": 1, "Publications": 1, "Memory": 1, "Tally": 1, "Reports": 1}
"""The relay's own objects, of one that is open in memory."""


def now(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that has nothing to wait for."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("it waits")


def number_of(entry_id: str) -> int:
    return int(entry_id.rpartition("-")[2])


def is_transient(event: rd.Event) -> bool:
    return isinstance(event, ev.Custom) and event.transient


def folded(events: Sequence[rd.Event]) -> Any:
    """The shortest list of events that folds to the same. Of a run without a message only the newest data count."""
    found: dict[object, rd.Event] = {}
    for place, event in enumerate(so_far(events).so_far()):
        named = isinstance(event, ev.Custom) and event.id is not None
        found[(event.run_id, event.name, event.id, place_of_message(found)) if named else place] = event
    return list(found.values())


def so_far(events: Sequence[rd.Event]) -> EventsSoFar:
    folds = EventsSoFar(DEFAULT_LIMITS, whole=True)
    for event in events:
        if not is_transient(event):
            folds.take(event)
    return folds


def place_of_message(found: dict[object, rd.Event]) -> int:
    return sum(isinstance(event, (ev.MessageStart, ev.AttemptReset)) for event in found.values())


def relay_objects() -> list[Any]:
    """The relay's objects that are alive."""
    gc.collect()
    return [one for one in gc.get_objects() if str(type(one).__module__).startswith("rxdelta.relay")]


def left_behind(before: Sequence[Any]) -> Counter[str]:
    """How many there are of each type, without those of other tests that were there before."""
    known = {id(one) for one in before}
    return Counter(type(one).__name__ for one in relay_objects() if id(one) not in known)
