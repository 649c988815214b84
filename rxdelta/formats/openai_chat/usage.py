"""Token counts in the form of chat completions: totals, and the details that they include."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rxdelta.core import TokenUsage
from rxdelta.formats.usage import completed

__all__ = ["billed", "most_of", "sum_of", "written_usage"]

Counts = Mapping[str, int]


def billed(usage: TokenUsage | None) -> Counts:
    """The counts that are billed. OpenAI's totals are such counts."""
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


def written_usage(counts: Counts) -> dict[str, Any] | None:
    """The counts as OpenAI's object, in which a total that isn't known is 0; `None` if neither is known."""
    if counts.keys().isdisjoint(("input_tokens", "output_tokens")):
        return None
    given, generated = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    usage: dict[str, Any] = {
        "prompt_tokens": given,
        "completion_tokens": generated,
        "total_tokens": given + generated,
    }
    for field, names in _DETAILS.items():
        details = {theirs: counts[ours] for theirs, ours in names.items() if ours in counts}
        if details:
            usage[field] = details
    return usage


_DETAILS = {
    "prompt_tokens_details": {
        "cached_tokens": "cache_read_tokens",
        "cache_write_tokens": "cache_write_tokens",
        "audio_tokens": "input_audio_tokens",
    },
    "completion_tokens_details": {
        "reasoning_tokens": "output_reasoning_tokens",
        "audio_tokens": "output_audio_tokens",
    },
}
