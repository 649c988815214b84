"""How often events have broken the rules of the protocol: a mapping from the rules' names to counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.core._errors import InvalidValueError
from rxdelta.core._frozen import EMPTY, FrozenDict, is_mapping

__all__ = ["add_violations", "to_violations"]

_NAMES = frozenset(
    [
        "block_not_finished",
        "delta_after_finish",
        "delta_before_start",
        "delta_type_mismatch",
        "duplicate_block_finish",
        "duplicate_block_start",
        "duplicate_message_finish",
        "duplicate_message_start",
        "event_after_message_finish",
        "finish_without_start",
        "missing_message_start",
        "unknown_delta_type",
    ]
)
"""The rules whose violation leaves the stream readable. So counts stay small, however many events are wrong."""

_MOST = 2**53  # what JSON's readers tell exactly


def to_violations(value: Mapping[str, Any] | None) -> FrozenDict[int]:
    """The counts as a frozen mapping; they may be untrusted input.

    Raises:
        InvalidValueError: They aren't counts by the names of rules.
    """
    if value is None:
        return EMPTY
    if isinstance(value, FrozenDict) and not value:
        return value
    if not is_mapping(value) or not all(_is_count(name, count) for name, count in value.items()):
        raise InvalidValueError.of([("violations", value, "must be counts from 1 by the names of rules")])
    return FrozenDict(sorted(value.items()))


def _is_count(name: object, count: object) -> bool:
    is_number = isinstance(count, int) and not isinstance(count, bool) and 1 <= count < _MOST
    return is_number and isinstance(name, str) and name in _NAMES


def add_violations(mine: FrozenDict[int], theirs: Mapping[str, int]) -> FrozenDict[int]:
    """Both counts together, up to the most that a count may be; the same object if there are no more."""
    if not theirs:
        return mine
    names = sorted({*mine, *theirs})
    return FrozenDict({name: min(mine.get(name, 0) + theirs.get(name, 0), _MOST - 1) for name in names})
