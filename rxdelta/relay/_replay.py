"""What a late reader gets of the entries that were there before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import JOINABLE, Joined

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rxdelta.core import Event

__all__ = ["joined"]


def joined(events: Sequence[Event], split_at: int | None = None) -> Iterator[tuple[int, Event]]:
    """A log from its start, shorter, that folds to the same reply: neighbouring deltas of a block are one delta.

    Args:
        events: The events from the first on.
        split_at: A number that no joined delta spans.

    Returns:
        The events, each with the number of its last.
    """
    held: Any = None
    last = 0
    for number, event in enumerate(events, 1):
        known = JOINABLE.get(type(event))
        if held is not None and (last == split_at or known is None or not held.takes(event)):
            yield last, held.event()
            held = None
        if known is None:
            yield number, event
            continue
        piece = getattr(event, known[0])
        if held is None:
            held = Joined(event, piece)
        else:
            held.pieces.append(piece)
        last = number
    if held is not None:
        yield last, held.event()
