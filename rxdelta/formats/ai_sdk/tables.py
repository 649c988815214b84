"""The words of the AI SDK, and ours for the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rxdelta.core import FinishReason
from rxdelta.formats.ai_sdk.marks import DATA
from rxdelta.formats.provider_errors import Broken
from rxdelta.formats.signatures import ANTHROPIC, GOOGLE

__all__ = [
    "BROKEN",
    "CUT_OFF",
    "FINISH_REASONS",
    "MEDIA_TYPES",
    "PAUSE",
    "REQUIRED",
    "SIGNERS",
    "TOOL_FAILED",
    "TO_FINISH_REASON",
    "recognises",
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

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "text-delta": ("delta",),
    "reasoning-delta": ("delta",),
    "file": ("url",),
    "reasoning-file": ("url",),
    "source-url": ("url",),
    "tool-input-start": ("toolCallId",),
    "tool-input-delta": ("toolCallId", "inputTextDelta"),
    "tool-input-available": ("toolCallId", "input"),
    "tool-input-error": ("toolCallId", "errorText"),
    "tool-output-available": ("toolCallId",),
    "tool-output-error": ("toolCallId", "errorText"),
    "tool-output-denied": ("toolCallId",),
    "tool-approval-request": ("toolCallId", "approvalId"),
}
"""The fields without which a chunk would bring nothing, or something else. The SDK's schema requires them.

Not `output`, which is left out if a tool returns nothing; nor the ids of texts, which nothing is lost without.
https://github.com/vercel/ai/blob/main/packages/ai/src/ui-message-stream/ui-message-chunks.ts
"""

CUT_OFF: Final = "The message ended before the call did."
"""The error of a call that was cut off."""

TOOL_FAILED: Final = "The tool failed."
"""The error of a tool that failed without saying why."""

_FIRST: Mapping[str, tuple[str, ...]] = {
    "start": (),
    "start-step": (),
    "message-metadata": ("messageMetadata",),
    "text-start": ("id",),
    "reasoning-start": ("id",),
    "tool-input-start": REQUIRED["tool-input-start"],
    "tool-input-available": REQUIRED["tool-input-available"],
}
"""The chunks with which a stream may begin, and the fields that tell them from those of other protocols."""


def recognises(chunk: Mapping[str, Any]) -> bool:
    """Whether a stream of this format may begin with this chunk."""
    kind = chunk.get("type")
    if not isinstance(kind, str):
        return False
    return kind.startswith(DATA) or (kind in _FIRST and all(name in chunk for name in _FIRST[kind]))
