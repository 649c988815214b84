"""The words that a field may have: the types of annotations, and at run time what constructors accept.

The execution status of a tool call. It is a member of the call's metadata and never goes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

from rxdelta.core.json_values import FrozenDict

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
    # Some providers say `stop` beside a call, and `tool_use` without one would keep an agent's loop going for ever.
    return _CUT.get(reason or "") or ("tool_use" if asked else "pause" if reason == "pause" else "stop")


def both_finish_reasons(
    reason: str | None, provider_reason: str | None, *, asked: bool
) -> tuple[FinishReason, str | None]:
    """Our word for a reason, and the provider's. A word that ours overrules is the provider's, if it gave no other."""
    ours = finish_reason(reason, asked=asked)
    return ours, reason if provider_reason is None and reason != ours else provider_reason


TERMINAL = frozenset(["completed", "failed"])
"""The statuses of a call whose execution has ended."""

_RANKS = {word: rank for rank, word in enumerate(words(ExecutionStatus))}
_UNKNOWN = _RANKS["executing"]


def merge_call_metadata(mine: FrozenDict[Any], theirs: Mapping[str, Any]) -> FrozenDict[Any]:
    """The later value wins, but an execution status never goes back. Returns `mine` if nothing changes."""
    if "execution_status" in theirs:
        status = _later_status(mine.get("execution_status"), theirs["execution_status"])
        theirs = {**theirs, "execution_status": status}
    merged = FrozenDict(mine, **theirs)  # one copy
    return mine if merged == mine else merged


def _later_status(known: object, new: object) -> object:
    """The status that is further on. An unknown word ranks with `executing`."""
    if isinstance(known, str) and isinstance(new, str):
        forward = _RANKS.get(new, _UNKNOWN) >= _RANKS.get(known, _UNKNOWN)
        return new if forward and known not in TERMINAL else known
    return known if new is None else new
