"""The ends of replies that have no finish reason, or one that says that the provider failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.core import Event, TokenUsage
from rxdelta.core.events import MessageFinish, ProviderEvent, UsageUpdate
from rxdelta.formats.notes import FINISH_REASON_ASSUMED
from rxdelta.formats.provider_errors import Broken, broken_off

__all__ = ["assumed_finish", "broken_events"]


def assumed_finish(
    usage: TokenUsage | None, metadata: Mapping[str, Any], *, asked: bool, choice: int = 0
) -> MessageFinish:
    """The finish of a message whose provider gave no reason.

    Args:
        usage: The usage, if it is known.
        metadata: What the message has beyond its fields.
        asked: Whether the message has calls for the client.
        choice: The choice.

    Example:
        >>> assumed_finish(None, {}, asked=True).to_dict()
        {'event': 'message-finish', 'reason': 'tool_use', 'metadata': {'finish_reason_assumed': True}}
    """
    reason = "tool_use" if asked else "stop"
    return MessageFinish(reason, None, usage, {**metadata, FINISH_REASON_ASSUMED: True}, choice=choice)


def broken_events(
    provider: str,
    word: str,
    broken: Broken,
    usage: TokenUsage | None = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    choice: int = 0,
) -> list[Event]:
    """The events in place of the finish, if the finish reason says that the provider failed.

    Args:
        provider: The provider's name.
        word: The finish reason.
        broken: What it means.
        usage: The usage, unless it has been emitted.
        metadata: What the message has beyond its fields. No error has a place for it, so that it is passed on.
        choice: The choice.

    Example:
        >>> [event.event for event in broken_events("google", "OTHER", Broken("unknown", True), metadata={"a": 1})]
        ['provider', 'error']
    """
    found: list[Event] = [] if usage is None else [UsageUpdate(usage, choice=choice)]
    if metadata:
        found.append(ProviderEvent(provider, word, metadata))
    return [*found, broken_off(word, broken, choice)]
