"""What something costs, told in lines of Python that it runs: the same on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import rxdelta as rd

__all__ = ["blocks_shown", "lines_run"]


def lines_run(act: Callable[[], Any]) -> int:
    """How many lines of Python `act` runs through."""
    count = 0

    def trace(_frame: FrameType, what: str, _arg: Any) -> Any:
        nonlocal count
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
    count = 0

    def profile(_frame: FrameType, what: str, returned: Any) -> None:
        nonlocal count
        if what == "return" and isinstance(returned, rd.Snapshot):
            count += len(returned.blocks)

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count
