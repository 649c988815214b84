"""The execution status of a tool call. It is a member of the call's metadata and never goes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.core._frozen import FrozenDict

__all__ = ["TERMINAL", "merge_call_metadata"]

_EXECUTION_ORDER = {"identified": 0, "executing": 1, "completed": 2, "failed": 2}
TERMINAL = frozenset(["completed", "failed"])
"""The statuses of a call whose execution has ended."""


def merge_call_metadata(mine: FrozenDict[Any], theirs: Mapping[str, Any]) -> FrozenDict[Any]:
    """The later value wins, but an execution status never goes back. Returns `mine` if nothing changes."""
    merged = {**mine, **theirs}
    if "execution_status" in theirs:
        merged["execution_status"] = _later_status(mine.get("execution_status"), theirs["execution_status"])
    return mine if merged == mine else FrozenDict(merged)


def _later_status(known: object, new: object) -> object:
    """The status that is further on: `identified` → `executing` → `completed` or `failed`."""
    if isinstance(known, str) and isinstance(new, str):
        forward = _EXECUTION_ORDER.get(new, 1) >= _EXECUTION_ORDER.get(known, 1)
        return new if forward and known not in TERMINAL else known
    return known if new is None else new
