"""The names of Bedrock's Converse API that more than one file here reads or writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rxdelta.formats.json_values import by_word

__all__ = ["FORMAT", "MEDIA", "REASONS"]

FORMAT: Final = "bedrock-converse"

MEDIA: Mapping[str, str] = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
"""What each medium becomes."""

REASONS: Mapping[str, str] = by_word(
    {
        "stop": "end_turn stop_sequence pause_turn malformed_model_output malformed_tool_use",
        "tool_use": "tool_use",
        "length": "max_tokens model_context_window_exceeded",
        "content_filter": "content_filtered guardrail_intervened refusal",
    }
)
