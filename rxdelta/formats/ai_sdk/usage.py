"""Token counts in the AI SDK's form: totals, and the details that they include.

The totals of the provider may exclude them. They travel as `raw`, so that our decoder tells the same usage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from rxdelta.core import TokenUsage, is_mapping
from rxdelta.formats.usage import AI_SDK, completed, usage_of

__all__ = ["add_usage", "read_usage", "usage_figures", "written_usage"]


def usage_figures(usage: TokenUsage) -> dict[str, int]:
    """What is billed, which is what the SDK counts, and the provider's own totals."""
    own = {_OWN[name]: getattr(usage, name) for name in _OWN}
    return {**completed(usage).billed, **{name: count for name, count in own.items() if count is not None}}


_OWN = {"input_tokens": "own_input_tokens", "output_tokens": "own_output_tokens"}


def add_usage(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}


def written_usage(figures: Mapping[str, int]) -> dict[str, Any] | None:
    """The usage in the SDK's form, with the provider's own totals as `raw` if they differ.

    The SDK's totals include the details, which have other names in SDK 5 than later.
    """
    read, reasoning = figures.get("cache_read_tokens"), figures.get("output_reasoning_tokens")
    totals = _known(inputTokens=figures.get("input_tokens"), outputTokens=figures.get("output_tokens")) or {}
    own = _known(inputTokens=figures.get("own_input_tokens"), outputTokens=figures.get("own_output_tokens"))
    return _known(
        **totals,
        raw=None if own == totals else own,
        inputTokenDetails=_known(cacheReadTokens=read, cacheWriteTokens=figures.get("cache_write_tokens")),
        outputTokenDetails=_known(reasoningTokens=reasoning),
        cachedInputTokens=read,
        reasoningTokens=reasoning,
    )


def _known(**fields: Any) -> dict[str, Any] | None:
    return {name: value for name, value in fields.items() if value is not None} or None


def read_usage(found: Mapping[str, Any]) -> TokenUsage:
    """The usage of a message's metadata."""
    usage, own = usage_of(found, AI_SDK), found.get("raw")
    if not is_mapping(own) or own.keys().isdisjoint(("inputTokens", "outputTokens")):
        return usage
    totals = usage_of(own, AI_SDK)
    return attrs.evolve(
        usage,
        input_tokens=totals.input_tokens,
        output_tokens=totals.output_tokens,
        billed=usage.billed,
    )
