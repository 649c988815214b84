"""What something costs, counted and not timed: the same on every machine, however busy."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import rxdelta as rd

__all__ = ["blocks_shown", "lines_run", "snapshots_made", "work_done"]

PACKAGE = str(Path(rd.__file__).parent)


def lines_run(act: Callable[[], Any], *, ours: bool = False) -> int:
    """How many lines of Python `act` runs through; `ours` counts only those of the package's own files."""
    count = 0

    def trace(frame: FrameType, what: str, _arg: Any) -> Any:
        nonlocal count
        if ours and what == "call" and not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        count += what == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def work_done(act: Callable[[], Any]) -> int:
    """How many lines of the package `act` runs through, and one more for each 8 bytes that a function takes at once.

    A line may copy a tuple, a dict or a text of any length, which lines don't tell: memory does. The first 256 bytes
    are free, because counting takes some itself. 8 bytes cost about a twentieth of a line. They count for more so that a
    hundred of a thing show what a thousand would cost. What C only reads isn't seen: `x in a_list`, `a == b`.
    """
    count = held = 0
    traced, reset = tracemalloc.get_traced_memory, tracemalloc.reset_peak

    def weigh() -> None:
        nonlocal count, held
        now, peak = traced()
        if peak - held > 256:
            count += (peak - held - 256) // 8
        held = now
        reset()

    def enter(frame: FrameType, _what: str, _arg: Any) -> Any:
        if not frame.f_code.co_filename.startswith((PACKAGE, "<")):
            return None
        weigh()
        return within

    def within(_frame: FrameType, what: str, _arg: Any) -> Any:
        nonlocal count
        if what == "line":
            count += 1
        elif what == "return":
            weigh()
        return within

    before = sys.gettrace()
    gc.disable()
    tracemalloc.start(1)
    sys.settrace(enter)
    try:
        act()
    finally:
        sys.settrace(before)
        tracemalloc.stop()
        gc.enable()
    return count


def blocks_shown(act: Callable[[], Any]) -> int:
    """How many blocks are in the snapshots that functions return meanwhile.

    A snapshot is made by copying as many references as it has blocks, which is no line of Python.
    """
    return sum(len(snapshot.blocks) for snapshot in _returned(act))


def snapshots_made(act: Callable[[], Any]) -> int:
    """How many different snapshots functions return meanwhile."""
    return len({id(snapshot) for snapshot in _returned(act)})


def _returned(act: Callable[[], Any]) -> list[rd.Snapshot]:
    """The snapshots that functions return meanwhile, each as often as one does."""
    found = list[rd.Snapshot]()

    def profile(_frame: FrameType, what: str, returned: Any) -> None:
        if what == "return" and isinstance(returned, rd.Snapshot):
            found.append(returned)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(before)
    return found
