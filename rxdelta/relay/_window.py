"""Deltas that wait for their neighbours before they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import JOINABLE, Joined

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rxdelta.core import Event

__all__ = ["Window"]

_MOST, _EACH = 1 << 16, 64
"""The characters that a window holds at most. Each piece counts some more, because short strings take memory too."""


class Window:
    """What one publication holds back. Its owner's lock guards it.

    As in `compact_deltas`, the first delta is due at once and opens a window; those within it are due when it closes, which
    opens the next one. Any other event flushes the window and follows at once.

    Args:
        start: Starts a timer. At its end what it is given is called, under the lock, and returns the events that are due.
    """

    def __init__(self, start: Callable[[Callable[[], Sequence[Event]]], object]) -> None:
        self._start = start
        self._is_open = False
        self._held: list[Joined] = []
        self._size = 0

    def take(self, event: Any) -> Sequence[Event]:
        """Take the next event, and return those that are due."""
        kind: type = event.__class__
        known = JOINABLE.get(kind)
        if known is None or event.more:  # what a newer version has added can't be joined
            return (*self.empty(), event)
        if not self._is_open:
            self._open()
            return (event,)
        piece = getattr(event, known[0])
        if self._held and self._held[-1].takes(event):
            self._held[-1].pieces.append(piece)
        else:
            self._held.append(Joined(event, piece))
        self._size += len(piece) + _EACH
        return self.empty() if self._size > _MOST else ()

    def empty(self) -> Sequence[Event]:
        """Return all that is held."""
        if not self._held:
            return ()
        held, self._held, self._size = self._held, [], 0
        return [joined.event() for joined in held]

    def _close(self) -> Sequence[Event]:
        self._is_open = False
        if self._held:
            self._open()
        return self.empty()

    def _open(self) -> None:
        self._is_open = True
        self._start(self._close)
