"""The execution status of a tool call. It is a member of the call's metadata and never goes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.core._frozen import FrozenDict
from rxdelta.core._literals import ExecutionStatus, words

__all__ = ["TERMINAL", "merge_call_metadata"]

TERMINAL = frozenset(["completed", "failed"])
"""The statuses of a call whose execution has ended."""

_RANKS = {word: rank for rank, word in enumerate(words(ExecutionStatus))}
_UNKNOWN = _RANKS["executing"]


def merge_call_metadata(mine: FrozenDict[Any], theirs: Mapping[str, Any]) -> FrozenDict[Any]:
    """The later value wins, but an execution status never goes back. Returns `mine` if nothing changes."""
    if "execution_status" in theirs:
        status = _later_status(mine.get("execution_status"), theirs["execution_status"])
        theirs = {**theirs, "execution_status": status}
    merged = FrozenDict(mine, **theirs)  # one copy
    return mine if merged == mine else merged


def _later_status(known: object, new: object) -> object:
    """The status that is further on. An unknown word ranks with `executing`."""
    if isinstance(known, str) and isinstance(new, str):
        forward = _RANKS.get(new, _UNKNOWN) >= _RANKS.get(known, _UNKNOWN)
        return new if forward and known not in TERMINAL else known
    return known if new is None else new
