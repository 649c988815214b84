"""Token counts in AG-UI's form: totals, and named parts that they include."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from rxdelta.core import TokenUsage, is_mapping
from rxdelta.formats.json_values import word
from rxdelta.formats.usage import AG_UI, completed, usage_of

__all__ = ["add_counts", "counts_of", "model_of", "total_usage"]

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


def total_usage(entries: Sequence[Mapping[str, Any]]) -> TokenUsage | None:
    """The usage that entries of the protocol have together: a single entry unchanged, several summed up."""
    if not entries:
        return None
    if len(entries) == 1:
        return usage_of(entries[0], AG_UI)
    names = {name for one in entries for name in one}
    total = usage_of({name: _sum(one.get(name) for one in entries) for name in names}, AG_UI)
    return attrs.evolve(total, raw={"usage": entries})


def _sum(counts: Iterable[Any]) -> int | None:
    known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool)]
    return sum(known) if known else None


def model_of(event: Mapping[str, Any]) -> str | None:
    """The model, if the whole run used one."""
    usage: Any = event.get("usage")
    listed: Any = usage if isinstance(usage, list) else ()  # pyright: ignore[reportUnknownVariableType]
    names = {word(one.get("model")) for one in listed if is_mapping(one)}
    return names.pop() if len(names) == 1 else None
