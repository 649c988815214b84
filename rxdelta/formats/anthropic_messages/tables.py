"""The names of Anthropic's Messages API that more than one file here reads or writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["FORMAT", "REASONS", "RESULT_SUFFIX", "SERVER_CALLS"]

FORMAT: Final = "anthropic-messages"

SERVER_CALLS = ("server_tool_use", "mcp_tool_use")
"""The types of the calls that Anthropic runs."""

RESULT_SUFFIX: Final = "_tool_result"
"""The end of the type of every result of a call that Anthropic runs."""

REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "pause",
    "compaction": "pause",  # the client asked to be shown the summary before the model goes on
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
