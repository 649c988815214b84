"""The words that a field may have: the types of annotations, and at run time what constructors accept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

__all__ = [
    "CALL_TYPES",
    "ENDED",
    "FINISH_REASONS",
    "MESSAGE_ROLES",
    "SNAPSHOT_ROLES",
    "SNAPSHOT_STATUSES",
    "CallStatus",
    "CallType",
    "ExecutionStatus",
    "FinishReason",
    "MessageRole",
    "MessageStatus",
    "SnapshotRole",
    "SnapshotStatus",
    "finish_reason",
    "words",
]

MessageRole: TypeAlias = Literal["assistant", "user", "system", "tool"]
"""Who speaks in a message."""

SnapshotRole: TypeAlias = Literal["unknown", "assistant"]
"""The role of a reply so far. A small delta needn't say it."""

MessageStatus: TypeAlias = Literal["complete", "length", "interrupted"]
"""How a message ended: whole, cut by the token limit, or stopped by its consumer."""

SnapshotStatus: TypeAlias = Literal["incomplete", "complete", "length", "interrupted"]
"""The same of a reply so far, which is `incomplete` until it ends."""

FinishReason: TypeAlias = Literal["stop", "length", "tool_use", "content_filter", "pause"]
"""Why the provider ended a message. After `pause` the message is complete, and can be sent back to be continued."""

CallType: TypeAlias = Literal["tool_call", "invalid_tool_call", "server_tool_call"]
"""A call for the client, a call that must not be run, or a call that the provider runs."""

CallStatus: TypeAlias = Literal["incomplete", "complete"]
"""Whether a call's arguments are parsed."""

ExecutionStatus: TypeAlias = Literal["identified", "awaiting_approval", "executing", "completed", "failed"]
"""How far the execution of a call is, in this order; the last two are terminal."""


def words(literal: object) -> tuple[str, ...]:
    """The words of one of these types, in their order."""
    return get_args(literal)


MESSAGE_ROLES = words(MessageRole)
SNAPSHOT_ROLES = words(SnapshotRole)
ENDED = words(MessageStatus)
SNAPSHOT_STATUSES = words(SnapshotStatus)
FINISH_REASONS = words(FinishReason)
CALL_TYPES = frozenset(words(CallType))

_CUT: Mapping[str, FinishReason] = {"length": "length", "content_filter": "content_filter"}


def finish_reason(reason: str | None, *, asked: bool) -> FinishReason:
    """Our word for a reason: whether the model has asked for calls decides, unless the reply was cut.

    Args:
        reason: The word of a `MessageFinish`.
        asked: Whether the message has calls that the provider doesn't run.
    """
    return _CUT.get(reason or "") or ("tool_use" if asked else "pause" if reason == "pause" else "stop")


def both_finish_reasons(
    reason: str | None, provider_reason: str | None, *, asked: bool
) -> tuple[FinishReason, str | None]:
    """Our word for a reason, and the provider's. A word that ours overrules is the provider's, if it gave no other."""
    ours = finish_reason(reason, asked=asked)
    return ours, reason if provider_reason is None and reason != ours else provider_reason
