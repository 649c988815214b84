"""Token counts in the form of chat completions: totals, and the details that they include."""

from __future__ import annotations

from typing import Any

from rxdelta.formats.reply import Counts

__all__ = ["written_usage"]


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
