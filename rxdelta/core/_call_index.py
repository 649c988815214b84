"""Where the calls of an id are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from rxdelta.core._tool_call import ToolCall

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rxdelta.core._blocks import Block

__all__ = ["CallIndex", "call_id_of"]

K = TypeVar("K")


class CallIndex(Generic[K]):
    """What holds the calls of an id, so that their news needn't look at all there is."""

    def __init__(self) -> None:
        self._known: dict[str, dict[K, None]] = {}

    def of(self, call_id: str) -> Iterable[K]:
        return self._known.get(call_id, ())

    def note(self, what: K, before: str | None, now: str | None) -> None:
        """The call that it holds had one id, and has another; `None` is none, or no call."""
        if before is not None and before != now:
            known = self._known.get(before, {})
            known.pop(what, None)
            if not known:
                self._known.pop(before, None)
        if now is not None:
            self._known.setdefault(now, {})[what] = None


def call_id_of(block: Block) -> str | None:
    return block.call_id if isinstance(block, ToolCall) else None
