"""Where the calls with an id are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from rxdelta.core._tool_call import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rxdelta.core._blocks import Block

__all__ = ["CallIndex", "call_id_of"]

K = TypeVar("K")


class CallIndex(Generic[K]):
    """Finds the owners of the calls with an id without a search. An owner is, for example, a block's place."""

    def __init__(self) -> None:
        self._known: dict[str, dict[K, None]] = {}
        self._earlier: dict[str, dict[K, None]] = {}  # of earlier messages

    def of(self, call_id: str) -> Sequence[K]:
        return tuple(self._known.get(call_id) or self._earlier.get(call_id) or ())

    def kept(self, still_needed: Callable[[K], bool]) -> CallIndex[K]:
        """The index of another message, in which these owners are found if no call of that message has the id."""
        another = CallIndex[K]()
        for known in (self._earlier, self._known):
            for call_id, owners in known.items():
                if needed := {owner: None for owner in owners if still_needed(owner)}:
                    another._earlier[call_id] = needed
        return another

    def note(self, owner: K, before: str | None, now: str | None) -> None:
        """Record that the owner's call had the id `before` and has the id `now`; `None` is no id, or no call."""
        if before == now:
            return
        if before is not None:
            for all_known in (self._known, self._earlier):
                known = all_known.get(before, {})
                known.pop(owner, None)
                if not known:
                    all_known.pop(before, None)
        if now is not None:
            self._known.setdefault(now, {})[owner] = None


def call_id_of(block: Block) -> str | None:
    return block.call_id if isinstance(block, ToolCall) else None
