"""Values of a provider's JSON: the empty ones, words, and immutable copies of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.core import DEFAULT_LIMITS, check_members, freeze

__all__ = ["NOTHING", "by_word", "kept", "others", "remember", "word"]

NOTHING: tuple[object, ...] = (None, "", [], {})
"""The values that mean nothing."""


def word(value: object) -> str | None:
    """The string, or `None` for an empty one and for all other types."""
    return value if isinstance(value, str) and value else None


def by_word(words: Mapping[str, str]) -> dict[str, str]:
    """The table from each provider's word to ours. In `words`, each of ours has the provider's, with spaces between.

    Example:
        >>> by_word({"stop": "stop eos", "length": "max_tokens"})
        {'stop': 'stop', 'eos': 'stop', 'max_tokens': 'length'}
    """
    return {theirs: ours for ours, found in words.items() for theirs in found.split()}


def kept(source: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of an object, whose values are immutable."""
    return {name: freeze(value, lenient=True) for name, value in source.items()}


def others(source: Mapping[str, Any], read: frozenset[str]) -> dict[str, Any]:
    """A copy of the fields that are neither read nor empty."""
    if read.issuperset(source):
        return {}
    return kept({name: value for name, value in source.items() if name not in read and value not in NOTHING})


def remember(known: dict[str, Any], found: Mapping[str, Any]) -> None:
    """Update the known fields with those that are not empty. The fields of an object within are updated likewise.

    Raises:
        LimitExceededError: There are more than `Limits.members`, of the fields or within one.
    """
    for name, value in found.items():
        before = known.get(name)
        if value in NOTHING or value == before:
            continue
        now = freeze(value, lenient=True)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            now = {**before, **now}  # pyright: ignore[reportUnknownVariableType]
            check_members(now, DEFAULT_LIMITS, "an object in the metadata")  # pyright: ignore[reportUnknownArgumentType]
        if now is not None:
            known[name] = now
    check_members(known, DEFAULT_LIMITS, "the metadata")
