"""What something costs, told in lines of Python that it runs: the same on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import rxdelta as rd

__all__ = ["blocks_shown", "lines_run", "snapshots_made"]

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
