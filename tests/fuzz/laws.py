"""The laws that hold for every input from outside, whatever it is."""

from __future__ import annotations

import json
import logging
import math
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import process_time
from typing import Any

from support.cost import work_done

import rxdelta as rd

__all__ = [
    "LawBroken",
    "check",
    "does_not_grow",
    "in_proportion",
    "none_on_a_thread",
    "nothing_dear",
    "or_refused",
    "survives",
    "written",
]

PACKAGE_FILES = str(Path(rd.__file__).parent)
SECONDS, A_BYTE = 0.2, 50e-6
"""CPU time that any input may take, and what each of its bytes adds: about fifty times what one costs."""
TRIES = 3
MOST_MEMORY, MEMORY_A_BYTE = 4 << 20, 2_000
SMALL, LARGE = 50, 400
FREE = 20_000
SLACK = 2.5
"""How much more work than in proportion a large input may be. Work that is quadratic is eight times as much as it should be."""


class LawBroken(AssertionError):
    """An input after which a law doesn't hold. Of `found` the first word names the law."""


def check(holds: object, law: str, *found: object) -> None:
    """Raise a `LawBroken` that names the law, and what was found instead."""
    if not holds:
        shown = " | ".join(repr(one)[:400] for one in found)
        raise LawBroken(f"{law}: {shown}" if found else law)


def or_refused(act: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What `act` returns, or the error of rxdelta that it raises. Any other error is a find."""
    try:
        return act(*arguments, **options)
    except rd.RxDeltaError as error:
        return error


def written(value: Any) -> str:
    """JSON, which tells 1 from True, and in which a NaN equals itself."""
    return json.dumps(value, sort_keys=True)


def survives(value: Any, read: Callable[[Any], Any], law: str) -> None:
    """What was accepted is written as JSON, and read again as the same value."""
    stored = written(value.to_dict())
    again = or_refused(read, json.loads(stored))
    check(not isinstance(again, rd.RxDeltaError), f"{law} is read again", again, stored)
    check(written(again.to_dict()) == stored, f"{law} survives JSON", again.to_dict(), stored)
    # An unknown event keeps all fields, when it is read: its run then stands in its payload, too.
    of_a_run = isinstance(value, rd.events.ProviderEvent) and value.run_id is not None
    check(again == value or "NaN" in stored or of_a_run, f"{law} is the same again", again, value)


@contextmanager
def none_on_a_thread() -> Iterator[None]:
    """Raise what escapes on another thread. What is logged meanwhile isn't shown: nearly every input is refused."""
    failed: list[Any] = []
    before, threading.excepthook = threading.excepthook, failed.append
    logging.disable()
    try:
        yield
    finally:
        threading.excepthook = before
        logging.disable(logging.NOTSET)
    if failed:
        raise failed[0].exc_value


def in_proportion(read: Callable[[bytes], object], data: bytes) -> None:
    """Reading takes time in proportion to the input. A machine may pause once or twice, not three times."""
    bound, took = SECONDS + A_BYTE * len(data), math.inf
    for _ in range(TRIES):
        took = min(took, _time_of(read, data))
        if took <= bound:
            return
    raise LawBroken(f"time: {len(data):,} bytes take {took:.2f} s of CPU")


def does_not_grow(read: Callable[[bytes], int | None], grown: Callable[[int], bytes]) -> None:
    """Eight times as much of one thing is about eight times the work, which is counted and not timed.

    A reader may return how much it has told. Where that grows faster than the input, as the usage of a stream does, which is
    told to each of its choices, the work may grow with it.
    """
    small, large = grown(SMALL), grown(LARGE)
    if not small or len(large) < 4 * len(small):
        return  # it couldn't be grown
    told: list[int] = []
    few, many = (work_done(lambda data=data: told.append(read(data) or 0)) for data in (small, large))
    growth = max(len(large) / len(small), told[1] / max(told[0], 1))
    check(
        many <= SLACK * growth * few + FREE,
        "growth",
        f"{SMALL} of one thing are {few:,} steps, and {LARGE} are {many:,}",
    )


def nothing_dear(read: Callable[[bytes], object], data: bytes) -> None:
    """Reading takes memory in proportion to the input."""
    tracemalloc.start(1)
    try:
        read(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    check(peak <= MOST_MEMORY + MEMORY_A_BYTE * len(data), "memory", f"{len(data):,} bytes take {peak:,}")


def _time_of(read: Callable[[bytes], object], data: bytes) -> float:
    began = process_time()
    read(data)
    return process_time() - began
