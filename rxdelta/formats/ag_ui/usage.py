"""Token counts as AG-UI wants them: totals and named parts of them, so that providers' figures add up.

Some providers count what came from a cache, or what was thought, beside a smaller total; others within it.
Which it is can be read off the names in the provider's own usage object.
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
    """Where a usage object has a count, which part of which total that is, and whether the total lacks it."""

    path: tuple[str, ...]
    part: str | None
    total: str
    beside: bool
    where: str = ""  # only in an object with this name too, because others use the first one differently


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
    """What is known of a usage, under the names of `ag_ui.core.TokenUsage`."""
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
    """Sum into `known`; a count that nobody reported stays unknown."""
    for name, count in more.items():
        known[name] = min(known.get(name, 0) + count, _MOST)


def _at(raw: Any, path: tuple[str, ...]) -> int | None:
    for name in path:
        if not is_mapping(raw):
            return None
        raw = raw.get(name)
    return raw if isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0 else None
