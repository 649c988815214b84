"""How the limits and the choice of a pipeline reach its operators.

Each operator's subscription has a `Bounds`, whose parent is that of the operator behind it. The subscriber's scheduler
carries it up the pipeline beside the session, and the context does during the subscription, see `session`. Three things
are known by it:

- What holds for all in front: the limits of the nearest `with_limits` behind, and those of the door.
- What holds for all behind: the limits of a `with_limits` in front. It tells its parents, up to the next `with_limits`.
  Behind several of them, which were merged, the smaller of each bound holds: no branch loosens another's.
- Which of several alternative replies is read: that of the nearest `only_choice` in front.

An operator asks when its first value comes. All that was subscribed for that value has told by then.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import attrs

from rxdelta.core import DEFAULT_LIMITS, Limits
from rxdelta.runtime.place import current_place

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["Bounds", "bounds_here", "within"]


class Bounds:
    """The limits and the choice of one subscription of an operator."""

    __slots__ = ("_choices", "_door", "_held", "_is_chosen", "_parent", "_told", "is_open")

    def __init__(
        self, parent: Bounds | None = None, *, held: Limits | None = None, door: Limits | None = None
    ) -> None:
        if parent is not None:
            held, door = held or parent._held, door or parent._door
        self._parent = parent
        self._held: Limits | None = held  # by one that stands behind
        self._door: Limits | None = door
        self._told: Limits | None = None  # by those that stand in front
        self._choices: frozenset[int] = frozenset()  # that those in front let through
        self._is_chosen = False  # by this operator
        self.is_open = False  # while the source is being subscribed

    @property
    def limits(self) -> Limits:
        return self._held or self._told or self._door or DEFAULT_LIMITS

    @property
    def choice(self) -> int:
        """The choice that is read: the first reply, unless those in front let another one through, and only that."""
        return next(iter(self._choices)) if len(self._choices) == 1 else 0

    def apart(self) -> Bounds:
        """The bounds of a pipeline that is subscribed by something of ours, whose operators tell us nothing."""
        return Bounds(held=self._held, door=self._door)

    def tell_limits(self, limits: Limits) -> None:
        """Let the limits hold here and behind, up to where another `with_limits` holds."""
        place: Bounds | None = self
        while place is not None and place._held is None:
            place._told = limits if place._told is None else _smaller(place._told, limits)
            place = place._parent

    def choose(self, choice: int) -> None:
        """Let the operators behind read this choice, whatever those in front let through."""
        self._is_chosen, self._choices = True, frozenset((choice,))
        self._tell_choices(self._choices)

    def follow(self, source: Bounds) -> None:
        """Take what holds at a hot stream that is read here: it was subscribed before, by another."""
        known = source._held or source._told
        if known is not None:
            self.tell_limits(known)
        place: Bounds | None = self
        while place is not None and place._door is None:
            place._door = source._door
            place = place._parent
        if source._choices:
            self.read(source._choices)

    def read(self, choices: frozenset[int]) -> None:
        """Let the operators from here on read a choice of a stream that has these only."""
        self._choices |= choices
        self._tell_choices(choices)

    def _tell_choices(self, choices: frozenset[int]) -> None:
        place = self._parent
        while place is not None and not place._is_chosen:
            place._choices |= choices
            place = place._parent


def _smaller(one: Limits, other: Limits) -> Limits:
    names = [field.name for field in attrs.fields(Limits)]
    return Limits(**{name: min(getattr(one, name), getattr(other, name)) for name in names})


def bounds_here() -> Bounds | None:
    """The bounds that the context's subscription has.

    The context of a task outlives the subscription. A later subscription in that context belongs to another pipeline.
    """
    bounds = current_place.get()[2]
    return bounds if bounds is None or bounds.is_open else bounds.apart()


@contextmanager
def within(bounds: Bounds | None) -> Generator[None]:
    """Make all that is subscribed in this block belong to the pipeline."""
    session, journal, _ = current_place.get()
    token = current_place.set((session, journal, bounds))
    was_open = bounds is not None and bounds.is_open
    if bounds is not None:
        bounds.is_open = True
    try:
        yield
    finally:
        if bounds is not None:
            bounds.is_open = was_open
        current_place.reset(token)
