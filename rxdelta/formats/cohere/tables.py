"""The names of Cohere's chat API that more than one file here reads or writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rxdelta.formats.provider_errors import Broken

__all__ = ["BLOCK_TYPES", "BROKEN", "CONTENT_TYPES", "FORMAT", "PLAN", "REASONS"]

FORMAT: Final = "cohere"

PLAN: Final = "tool_plan"
"""The field of the plan for the calls. The reasoning that it becomes has this as its provider type."""

BLOCK_TYPES: Mapping[str, str] = {"text": "text", "thinking": "reasoning"}
"""What each type of content becomes. A content's text is in the field that has the type's name."""

CONTENT_TYPES: Mapping[str, str] = {block: content for content, block in BLOCK_TYPES.items()}

REASONS: Mapping[str, str] = {
    "COMPLETE": "stop",
    "STOP_SEQUENCE": "stop",
    "TOOL_CALL": "tool_use",
    "MAX_TOKENS": "length",
    "ERROR_LIMIT": "length",
    "ERROR_TOXIC": "content_filter",
}

BROKEN: Mapping[str, Broken] = {
    "ERROR": Broken("the generation failed", True),
    "TIMEOUT": Broken("the generation timed out", True),
}
"""The reasons that say that Cohere failed. The message of an error that has its own wins.

https://docs.cohere.com/reference/chat-stream
"""
