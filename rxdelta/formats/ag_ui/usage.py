"""Token counts in AG-UI's form: totals, and named parts that they include."""

from __future__ import annotations

from typing import Final

from rxdelta.core import TokenUsage
from rxdelta.formats.usage import completed

__all__ = ["add_counts", "counts_of"]

_NAMES: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
    "output_reasoning_tokens": "reasoning_tokens",
}
"""What is billed, and AG-UI's names for it."""

_MOST: Final = 2**53 - 1
"""The largest count that survives JSON in every language."""


def counts_of(usage: TokenUsage) -> dict[str, int]:
    """The known counts of a usage, under the names of `ag_ui.core.TokenUsage`."""
    billed = completed(usage).billed
    counts = {theirs: billed[ours] for ours, theirs in _NAMES.items() if ours in billed}
    if "input_tokens" in counts and "output_tokens" in counts:
        counts["total_tokens"] = counts["input_tokens"] + counts["output_tokens"]
    return {name: count for name, count in counts.items() if count <= _MOST}


def add_counts(known: dict[str, int], more: dict[str, int]) -> None:
    """Add to `known`. A count that was never reported stays unknown."""
    for name, count in more.items():
        known[name] = min(known.get(name, 0) + count, _MOST)
