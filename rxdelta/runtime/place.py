"""Where a subscription belongs, as the context carries it: to a session, a log, and the bounds of a pipeline.

One variable has all three, because a shared source sets it for each reader at each value.

**Bounds** are how the limits and the choice of a pipeline reach its operators. Each operator's subscription has a
`Bounds`, whose parent is that of the operator behind it. The subscriber's scheduler carries it up the pipeline beside the
session, and the context does during the subscription, see `session`. It knows three facts:

- The limits for all in front: those of the nearest `with_limits` behind, and those that the reader was given.
- The limits for all behind: those of a `with_limits` in front. It hands them to its parents, up to the next `with_limits`.
  Behind several of them, which were merged, the smaller of each bound holds: no branch loosens another's.
- Which of several alternative replies is read: that of the nearest `only_choice` in front.

An operator asks when its first value comes. All that was subscribed for that value has reported by then.

**The log** is what a pipeline's events are written into. A program may die between an event and the effect that the event
announces, and the program that goes on with the stream then believes the log. So an effect that must not be repeated, such
as the call of a tool, waits until the log has the event.

An operator finds the log of its events as it finds its reader: by the subscriber's scheduler, whose session has it, or
else by the context of the subscription. A pump has the context of its own subscription, so a generator that reads events
by an `async for` and yields them finds the log of the events that it yields.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

import attrs

from rxdelta.core import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from rxdelta.runtime.reader import Journal, Session

Place: TypeAlias = "tuple[Session | None, Journal | None, Bounds | None]"

current_place: ContextVar[Place] = ContextVar("rxdelta", default=(None, None, None))


class Bounds:
    """The limits and the choice of one subscription of an operator."""

    __slots__ = ("_choices", "_given", "_held", "_in_front", "_is_chosen", "_parent", "is_open")

    def __init__(
        self, parent: Bounds | None = None, *, held: Limits | None = None, given: Limits | None = None
    ) -> None:
        if parent is not None:
            held, given = held or parent._held, given or parent._given
        self._parent = parent
        self._held: Limits | None = held  # of a `with_limits` behind
        self._given: Limits | None = given  # to the reader
        self._in_front: Limits | None = None  # of each `with_limits` in front
        self._choices: frozenset[int] = frozenset()  # that the operators in front let through
        self._is_chosen = False  # by this operator
        self.is_open = False  # while the source is being subscribed

    @property
    def limits(self) -> Limits:
        return self._held or self._in_front or self._given or DEFAULT_LIMITS

    @property
    def choice(self) -> int:
        """The choice that is read: the first reply, unless those in front let another one through, and only that."""
        return next(iter(self._choices)) if len(self._choices) == 1 else 0

    def apart(self) -> Bounds:
        """The bounds of a pipeline that is subscribed by something of ours, whose operators report nothing here."""
        return Bounds(held=self._held, given=self._given)

    def tell_limits(self, limits: Limits) -> None:
        """Let the limits hold here and behind, up to where another `with_limits` holds."""
        place: Bounds | None = self
        while place is not None and place._held is None:
            place._in_front = limits if place._in_front is None else _smaller(place._in_front, limits)
            place = place._parent

    def choose(self, choice: int) -> None:
        """Let the operators behind read this choice, whatever those in front let through."""
        self._is_chosen, self._choices = True, frozenset((choice,))
        self._tell_choices(self._choices)

    def follow(self, source: Bounds) -> None:
        """Take what holds at a hot stream that is read here: it was subscribed before, by another."""
        known = source._held or source._in_front
        if known is not None:
            self.tell_limits(known)
        place: Bounds | None = self
        while place is not None and place._given is None:
            place._given = source._given
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


def current_journal() -> Journal | None:
    return current_place.get()[1]


@contextmanager
def journaling(journal: Journal | None) -> Generator[None]:
    """Make what is subscribed or started in this block belong to the log, or to none."""
    session, _, bounds = current_place.get()
    token = current_place.set((session, journal, bounds))
    try:
        yield
    finally:
        current_place.reset(token)
