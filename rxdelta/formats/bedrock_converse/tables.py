"""The names of Bedrock's Converse API that more than one file here reads or writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rxdelta.formats.json_values import by_word
from rxdelta.formats.provider_errors import Broken

__all__ = ["BROKEN", "FORMAT", "MEDIA", "REASONS"]

FORMAT: Final = "bedrock-converse"

MEDIA: Mapping[str, str] = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
"""What each medium becomes."""

REASONS: Mapping[str, str] = by_word(
    {
        "stop": "end_turn stop_sequence",
        "pause": "pause_turn",
        "tool_use": "tool_use",
        "length": "max_tokens model_context_window_exceeded",
        "content_filter": "content_filtered guardrail_intervened refusal",
    }
)

BROKEN: Mapping[str, Broken] = {
    "malformed_model_output": Broken("the model's output could not be read", True),
    "malformed_tool_use": Broken("the model's tool call could not be read", True),
}
"""The reasons that say that the model or Bedrock failed.

https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_MessageStopEvent.html
"""
