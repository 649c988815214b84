"""Where the calls with an id are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from rxdelta.core._tool_call import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rxdelta.core._blocks import Block

__all__ = ["CallIndex", "call_id_of"]

K = TypeVar("K")


class CallIndex(Generic[K]):
    """Finds the owners of the calls with an id without a search. An owner is, for example, a block's place."""

    def __init__(self) -> None:
        self._known: dict[str, dict[K, None]] = {}

    def of(self, call_id: str) -> Iterable[K]:
        return self._known.get(call_id, ())

    def note(self, owner: K, before: str | None, now: str | None) -> None:
        """Record that the owner's call had the id `before` and has the id `now`; `None` is no id, or no call."""
        if before is not None and before != now:
            known = self._known.get(before, {})
            known.pop(owner, None)
            if not known:
                self._known.pop(before, None)
        if now is not None:
            self._known.setdefault(now, {})[owner] = None


def call_id_of(block: Block) -> str | None:
    return block.call_id if isinstance(block, ToolCall) else None
