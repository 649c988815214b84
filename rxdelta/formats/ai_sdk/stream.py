"""The UI message stream: its steps, and what the parts of all steps share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.formats.ai_sdk.calls import CallIds
from rxdelta.formats.ai_sdk.marks import CUSTOM_KIND, WHOLE_BLOCK, marked
from rxdelta.formats.ai_sdk.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rxdelta.core import TokenUsage, Walk
    from rxdelta.core.events import MessageFinish, MessageStart
    from rxdelta.formats.ai_sdk.parts import Part

__all__ = ["Step", "Stream", "add_usage", "usage_figures"]


class Stream:
    """What the parts of one stream share.

    Args:
        sdk_version: The client's major version.
        walk: Follows the messages.

    Attributes:
        walk: As given.
        can_reset: Whether the client knows `reset-step`.
        has_citations: Whether it knows the citations of a text.
        calls: The calls of the stream by their ids.
        sources: The sources that the client has.
    """

    def __init__(self, sdk_version: int, walk: Walk) -> None:
        self.walk = walk
        self.can_reset = self.has_citations = self._has_custom = sdk_version >= 7
        self.calls = CallIds(self)
        self.sources = Sources(self.new_id)
        self._count = 0

    def new_id(self) -> str:
        self._count += 1
        return str(self._count)

    def whole_block(self, marks: dict[str, Any]) -> dict[str, Any]:
        """The frame of a block that no chunk of the protocol fits."""
        if self._has_custom:
            return {"type": "custom", "kind": CUSTOM_KIND, **marked(marks)}
        return {"type": WHOLE_BLOCK, "id": self.new_id(), "data": marks}


class Step:
    """One message of the conversation.

    Attributes:
        open: Whether the client is in the step.
        parts: What the client has in it, in the order in which the parts began.
        sources: The keys of the sources that were sent in it.
        status: How the message ended; `None` until then.
        reason: Why it ended.
    """

    def __init__(self, *, open: bool = False) -> None:
        self.open = open
        self.parts: dict[Part, None] = {}
        self.sources: list[str] = []
        self.model: str | None = None
        self.usage: dict[str, int] = {}
        self.status: str | None = None
        self.reason: str | None = None

    def start(self, event: MessageStart) -> None:
        """Read the message's start, which may come in several events."""
        self.model = self.model or event.model
        if event.usage is not None and not self.usage:
            self.usage = usage_figures(event.usage)

    def finish(self, event: MessageFinish) -> None:
        self.model = self.model or event.model
        if event.usage is not None:
            self.usage = usage_figures(event.usage)


def usage_figures(usage: TokenUsage) -> dict[str, int]:
    known = {"inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens}
    return {name: count for name, count in known.items() if count is not None}


def add_usage(first: Mapping[str, int], second: Mapping[str, int]) -> dict[str, int]:
    return {name: first.get(name, 0) + second.get(name, 0) for name in {**first, **second}}
