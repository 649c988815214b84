"""The words of the AI SDK, and ours for the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rxdelta.core import FinishReason
from rxdelta.formats.provider_errors import Broken
from rxdelta.formats.signatures import ANTHROPIC, GOOGLE

__all__ = [
    "BROKEN",
    "CUT_OFF",
    "FINISH_REASONS",
    "MEDIA_TYPES",
    "PAUSE",
    "SIGNERS",
    "TOOL_FAILED",
    "TO_FINISH_REASON",
]

PAUSE: Final = "pause"
"""The reason for which the SDK has no word: the metadata have ours, and `finish` has the SDK's `other`."""

TO_FINISH_REASON: Final[Mapping[FinishReason, str]] = {
    "stop": "stop",
    "length": "length",
    "tool_use": "tool-calls",
    "content_filter": "content-filter",
    "pause": PAUSE,
}
"""Our reason for the end of a message → the SDK's."""

FINISH_REASONS: Final[Mapping[str, FinishReason]] = {
    theirs: ours for ours, theirs in TO_FINISH_REASON.items()
}
"""The SDK's reason → ours."""

BROKEN: Final[Mapping[str, Broken]] = {"error": Broken("the model stopped because of an error", True)}
"""The reason that says that the provider failed.

https://ai-sdk.dev/docs/reference/ai-sdk-core/stream-text
"""

MEDIA_TYPES: Final[Mapping[str, str]] = {
    "image": "image/png",
    "image_url": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "file": "application/octet-stream",
    "file_url": "application/octet-stream",
}
"""The types of blocks that are files → the media type of one that names none."""

SIGNERS: Final[Mapping[str, str]] = {
    "anthropic": ANTHROPIC,
    "bedrock": ANTHROPIC,
    "google": GOOGLE,
    "vertex": GOOGLE,
}
"""The SDK's names of providers, in `providerMetadata` → the vendors that sign there."""

CUT_OFF: Final = "The message ended before the call did."
"""The error of a call that was cut off."""

TOOL_FAILED: Final = "The tool failed."
"""The error of a tool that failed without saying why."""
