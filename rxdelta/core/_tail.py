"""The newest pieces of a block, which are folded when somebody looks.

An operator that follows a reply needs no snapshot after each delta. A tail keeps the deltas that only continue the newest
block. It folds them as one delta when somebody looks, or before another event comes.
"""

from __future__ import annotations

from contextlib import nullcontext
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rxdelta.core._events import TextDelta
from rxdelta.core._fold import Fold
from rxdelta.core._joined import JOINABLE, PIECE_FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from rxdelta.core._walk import Walk

__all__ = ["Tail"]

_MOST, _EACH = 1 << 12, 8
"""The characters that a tail keeps at most. Each piece counts some more, because short strings take memory too."""

_PIECES: dict[type, Callable[[Any], str]] = {kind: attrgetter(field) for kind, field in PIECE_FIELDS.items()}


class Tail:
    """Keeps deltas in front of a fold. The owner offers it each event, and settles it before each look at the fold.

    Errors come at the same events as without a tail: it keeps no delta that the block has no room for, and none that the
    fold would refuse or ignore. Events come from one thread at a time; with a lock, any thread may settle meanwhile.

    Args:
        step: Folds an event. The tail calls it for joined deltas, the owner for the events that the tail doesn't take.
        lane: Finds the fold, or the walk, of a delta's lane; `None` if it isn't known.
        lock: Held while the tail steps, so that several threads may settle. The owner's own steps don't need it.

    Example:
        >>> import rxdelta as rd
        >>> fold = rd.Fold()
        >>> tail = rd.core.Tail(fold.step, lambda _: fold)
        >>> for event in [rd.events.BlockStart(0, {"type": "text"}), *(rd.events.TextDelta(0, x) for x in "abcd")]:
        ...     tail.feed(event)
        >>> fold.snapshot.text
        'ab'
        >>> tail.settle()
        >>> fold.snapshot.text
        'abcd'
    """

    __slots__ = ("_kind", "_lane", "_last", "_lock", "_piece", "_pieces", "_room", "_step")

    def __init__(
        self,
        step: Callable[[Any], object],
        lane: Callable[[Any], Fold | Walk | None],
        lock: AbstractContextManager[object] = nullcontext(),  # noqa: B008
    ) -> None:
        self._step = step
        self._lane = lane
        self._lock = lock
        self._pieces: list[str] = []
        self._last: Any = None  # the delta that was followed last, if it is the newest event
        self._kind: Any = None  # its type
        self._piece: Any = None
        self._room = 0  # below 0: the event that wasn't kept is one more delta of the block

    def take(self, event: Any) -> bool:
        """Keep a delta that only continues the newest block, or return `False`. Then call `follow`, and step the event."""
        kind: type = event.__class__
        if kind is self._kind:
            last = self._last
            if (  # as `Joined.takes`, which would cost a call
                event.index == last.index and event.choice == last.choice and event.run_id == last.run_id
            ):
                piece = event.text if kind is TextDelta else self._piece(event)  # text comes most often
                self._room -= len(piece) + _EACH
                if self._room < 0:
                    return False
                self._pieces.append(piece)
                return True
        self._room = 0
        return False

    def follow(self, event: Any) -> None:
        """Settle before an event that wasn't taken; the owner steps it next."""
        if self._pieces:
            self.settle()
        if self._room >= 0:
            self._piece = _PIECES.get(event.__class__)
            if self._piece is None:
                self._kind = self._last = None
            else:
                self._kind, self._last = type(event), event
        else:  # looked up at a block's second delta: deltas of several blocks in turn cost no search
            lane = self._lane(event)
            walk = lane._walk if isinstance(lane, Fold) else lane
            block = None if walk is None else walk._grown_by(event)
            left = 0 if block is None else block._most - block._size - len(self._piece(event))
            self._room = max(0, min(_MOST, left))

    def feed(self, event: Any) -> None:
        """Take an event, or follow and step it."""
        if not self.take(event):
            self.follow(event)
            self._step(event)

    def settle(self) -> None:
        """Fold the kept deltas, so that the fold has all events."""
        pieces = self._pieces
        if not pieces:
            return
        with self._lock:
            count = len(pieces)
            if count:  # else another thread has settled meanwhile
                _, make = JOINABLE[self._kind]
                text, last = "".join(pieces[:count]), self._last
                self._step(make(last.index, text, choice=last.choice, run_id=last.run_id))
                del pieces[:count]  # after the step: a thread that finds no pieces reads a complete fold
