"""What something costs, told in lines of Python that it runs: the same on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["lines_run"]


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
