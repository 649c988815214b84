"""Token counts in AG-UI's form: totals, and named parts of them.

Some providers count tokens of a cache or of reasoning in addition to a total, others as a part of it. The names in the
provider's usage object tell which.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from rxdelta.core import TokenUsage, is_mapping

__all__ = ["add_counts", "counts_of"]

_INPUT, _OUTPUT = "input_tokens", "output_tokens"
_READ, _WRITTEN, _THOUGHT = "cached_input_tokens", "cache_write_input_tokens", "reasoning_tokens"
_MOST: Final = 2**53 - 1
"""The largest count that survives JSON in every language."""


class _Named(NamedTuple):
    """A count in a provider's usage object."""

    path: tuple[str, ...]
    part: str | None  # AG-UI's name for it
    total: str  # the total that it belongs to
    beside: bool  # whether that total doesn't include it
    where: str = ""  # a name that must be in the object too, because other providers use `path` differently


_COUNTS: Final = (
    _Named(("cache_read_input_tokens",), _READ, _INPUT, True, "input_tokens"),
    _Named(("cache_creation_input_tokens",), _WRITTEN, _INPUT, True, "input_tokens"),
    _Named(("cacheReadInputTokens",), _READ, _INPUT, True, "inputTokens"),
    _Named(("cacheWriteInputTokens",), _WRITTEN, _INPUT, True, "inputTokens"),
    _Named(("output_tokens_details", "thinking_tokens"), _THOUGHT, _OUTPUT, False),
    _Named(("output_tokens_details", "reasoning_tokens"), _THOUGHT, _OUTPUT, False),
    _Named(("input_tokens_details", "cached_tokens"), _READ, _INPUT, False),
    _Named(("input_tokens_details", "cache_write_tokens"), _WRITTEN, _INPUT, False),
    _Named(("completion_tokens_details", "reasoning_tokens"), _THOUGHT, _OUTPUT, False),
    _Named(("prompt_tokens_details", "cached_tokens"), _READ, _INPUT, False),
    _Named(("prompt_tokens_details", "cache_write_tokens"), _WRITTEN, _INPUT, False),
    _Named(("output_token_details", "reasoning"), _THOUGHT, _OUTPUT, False),
    _Named(("input_token_details", "cache_read"), _READ, _INPUT, False),
    _Named(("input_token_details", "cache_creation"), _WRITTEN, _INPUT, False),
    _Named(("tokens", "reasoning_tokens"), _THOUGHT, _OUTPUT, False),
    _Named(("cachedContentTokenCount",), _READ, _INPUT, False),
    _Named(("thoughtsTokenCount",), _THOUGHT, _OUTPUT, True, "promptTokenCount"),
    _Named(("toolUsePromptTokenCount",), None, _INPUT, True, "promptTokenCount"),
    _Named(("total_cached_tokens",), _READ, _INPUT, False),
    _Named(("total_thought_tokens",), _THOUGHT, _OUTPUT, True, "total_output_tokens"),
    _Named(("total_tool_use_tokens",), None, _INPUT, True, "total_input_tokens"),
)


def counts_of(usage: TokenUsage) -> dict[str, int]:
    """The known counts of a usage, under the names of `ag_ui.core.TokenUsage`."""
    totals = {_INPUT: usage.input_tokens, _OUTPUT: usage.output_tokens}
    counts = {name: count for name, count in totals.items() if count is not None}
    for named in _COUNTS:
        found = _at(usage.raw, named.path)
        if found is None or named.part in counts or (named.where and named.where not in usage.raw):
            continue
        if named.beside and named.total in counts:
            counts[named.total] += found
        if named.part is not None:
            counts[named.part] = found
    if _INPUT in counts and _OUTPUT in counts:
        counts["total_tokens"] = counts[_INPUT] + counts[_OUTPUT]
    return {name: count for name, count in counts.items() if count <= _MOST}


def add_counts(known: dict[str, int], more: dict[str, int]) -> None:
    """Add to `known`. A count that was never reported stays unknown."""
    for name, count in more.items():
        known[name] = min(known.get(name, 0) + count, _MOST)


def _at(raw: Any, path: tuple[str, ...]) -> int | None:
    for name in path:
        if not is_mapping(raw):
            return None
        raw = raw.get(name)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0 else None
