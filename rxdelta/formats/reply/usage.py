"""The numbers of tokens of several messages together."""

from __future__ import annotations

from collections.abc import Iterable

from rxdelta.core import TokenUsage
from rxdelta.formats.reply.writer import Counts
from rxdelta.formats.usage import completed

__all__ = ["billed", "most_of", "sum_of"]


def billed(usage: TokenUsage | None) -> Counts:
    """The counts that are billed: totals include their details."""
    return {} if usage is None else completed(usage).billed


def sum_of(all_counts: Iterable[Counts]) -> Counts:
    total: dict[str, int] = {}
    for counts in all_counts:
        for name, count in counts.items():
            total[name] = total.get(name, 0) + count
    return total


def most_of(all_counts: Iterable[Counts]) -> Counts:
    """The largest of each: the usage that each choice has is the whole request's."""
    most: dict[str, int] = {}
    for counts in all_counts:
        for name, count in counts.items():
            most[name] = max(most.get(name, 0), count)
    return most
