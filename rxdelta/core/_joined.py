"""Consecutive deltas of one block, joined to one delta."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rxdelta.core._events import (
    DataDelta,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    reasoning_delta,
    text_delta,
    tool_call_delta,
)

__all__ = ["JOINABLE", "PIECE_FIELDS", "Joined"]

JOINABLE: Mapping[type, tuple[str, Callable[..., Event]]] = {
    TextDelta: ("text", text_delta),
    ReasoningDelta: ("reasoning", reasoning_delta),
    ToolCallDelta: ("args", tool_call_delta),
    DataDelta: ("data", DataDelta),
}
"""The deltas that can be joined: the field with the piece, and the constructor."""

PIECE_FIELDS: Mapping[type, str] = {kind: field for kind, (field, _) in JOINABLE.items()}
"""The field of each kind of delta that holds the next piece of a block."""


class Joined:
    """Collects consecutive deltas of one block."""

    __slots__ = ("first", "pieces")

    def __init__(self, first: Any, piece: str) -> None:
        self.first = first
        self.pieces = [piece]

    def takes(self, delta: Any) -> bool:
        first = self.first
        return (
            type(first) is type(delta)
            and first.index == delta.index
            and first.choice == delta.choice
            and first.run_id == delta.run_id
        )

    def event(self) -> Event:
        first = self.first
        if len(self.pieces) == 1:
            whole: Event = first
            return whole
        _, make = JOINABLE[type(first)]
        return make(first.index, "".join(self.pieces), choice=first.choice, run_id=first.run_id)
