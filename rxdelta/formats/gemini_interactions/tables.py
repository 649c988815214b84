"""The names of Google's Interactions, and access to the fields of its chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rxdelta.formats.decoding import Fields, Json
from rxdelta.formats.endings import Broken

FORMAT = "gemini-interactions"
READ = Fields(FORMAT)


def type_of(step: Json, path: str) -> str:
    """The type of a step, which has to be there."""
    kind = step.get("type")
    if not isinstance(kind, str) or not kind:
        raise READ.fail(f"{path}.type", "the type of a step", kind)
    return kind


MEDIA: Mapping[str, str] = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
"""The contents that are media, and the type of the block for each."""


def default_tool_name(kind: str) -> str:
    """The name of one of the provider's own tools, from the type of its call's step, which has no name itself.

    Example:
        >>> default_tool_name("google_search_call")
        'google_search'
    """
    return kind.removesuffix("_call")


REASONS: Mapping[str, str] = {
    "completed": "stop",
    "requires_action": "tool_use",
    "incomplete": "length",
    "budget_exceeded": "length",
    "requires_continuation": "pause",  # with the `continuation_token` of the metadata
}

CANCELLED: Final = "cancelled"
"""The status of an interaction that the client has stopped."""

BROKEN: Mapping[str, Broken] = {"failed": Broken("the interaction failed", True)}
"""The status that says that the provider failed. An error of the interaction's own wins.

https://ai.google.dev/api/interactions-api#Resource:Interaction
"""

ENDED = frozenset([*REASONS, CANCELLED, *BROKEN])
"""The statuses of an interaction that is over."""
