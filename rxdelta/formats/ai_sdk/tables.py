"""The words of the AI SDK, and ours for the same: reasons, fields, token counts, and the application's own data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from rxdelta.core import FinishReason, TokenUsage, is_mapping, thaw
from rxdelta.core.events import Custom
from rxdelta.formats.ai_sdk.marks import AGAIN, DATA, OWN_DATA, marks_of
from rxdelta.formats.decoding import kept
from rxdelta.formats.endings import Broken
from rxdelta.formats.front_ends import OwnNames
from rxdelta.formats.notes import ANTHROPIC, GOOGLE
from rxdelta.formats.usage import AI_SDK, completed, usage_of

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
"""The chunks with which a stream may begin, and the fields that distinguish them from those of other protocols."""


def recognises(chunk: Mapping[str, Any]) -> bool:
    """Whether a stream of this format may begin with this chunk."""
    kind = chunk.get("type")
    if not isinstance(kind, str):
        return False
    return kind.startswith(DATA) or (kind in _FIRST and all(name in chunk for name in _FIRST[kind]))


# Usage.


def usage_figures(usage: TokenUsage) -> dict[str, int]:
    """The billed counts, which the SDK counts too, and the provider's own totals."""
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


# The application's own data (`Custom`), as `data-…` parts.

_names: Final = OwnNames(kind.removeprefix(DATA) for kind in OWN_DATA)


def is_data(kind: str) -> bool:
    """Whether this is the type of the application's data."""
    return kind.startswith(DATA) and kind not in OWN_DATA


def write_data(event: Custom) -> dict[str, Any]:
    """The chunk of an event."""
    known = {"id": event.id, "transient": event.transient or None}
    return {
        "type": DATA + _names.write(event.name),
        **{name: value for name, value in known.items() if value is not None},
        "data": thaw(event.data),
    }


def is_repeated(found: Mapping[str, Any]) -> bool:
    """Whether these data have come before, and the client alone needs them again."""
    return marks_of(found).get(AGAIN) is True


def read_data(found: Mapping[str, Any]) -> Custom | None:
    """The event of a chunk; `None` if its type has no name, or if it has something else than data."""
    name = _names.read(found["type"].removeprefix(DATA))
    if not name or ("data" not in found and not _FIELDS.issuperset(found)):
        return None
    own_id, data = found.get("id"), kept({"": found.get("data")})[""]
    return Custom(name, data, own_id if isinstance(own_id, str) else None, found.get("transient") is True)


_FIELDS = frozenset(["type", "id", "transient", "providerMetadata"])
