"""The events of a conversation so far, for a late subscriber."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from rxdelta.core._events import AttemptReset, Event, MessageInterrupted, MessageStart, ToolUpdate
from rxdelta.core._fold import Fold
from rxdelta.core._limits import ByChoice, Limits
from rxdelta.core._snapshot import Snapshot, is_over
from rxdelta.core._to_events import to_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["EventsSoFar"]


class EventsSoFar:
    """Keeps a conversation as folds, and gives the shortest list of events that leads to the present state.

    An `AttemptReset` belongs to the current message while one of its choices is open, and clears these choices. When
    all choices are over, it belongs to the next message, whose first attempt has failed; the current message stays.

    Args:
        limits: Bounds on what is kept.
        whole: Whether to keep the earlier messages of the conversation too, not only the newest.
        choice: The choice that an interruption before any other event belongs to.

    Raises:
        LimitExceededError, ProtocolError: From `take`, as from a fold.
    """

    def __init__(self, limits: Limits, *, whole: bool = False, choice: int = 0) -> None:
        self._limits = limits
        self._whole = whole
        self._first = choice
        self._before: list[list[_Choice]] = []  # earlier messages, finished or cut off
        self._now: dict[int, _Choice] = ByChoice(limits)
        self._resets: list[Event] = []  # of the current message, or of the next one

    def take(self, value: Event) -> None:
        event, number = value, getattr(value, "choice", None)
        if number is not None:
            self._step(number, event)
        elif isinstance(event, AttemptReset):
            self._reset(event)
        elif isinstance(event, ToolUpdate):
            for choice in chain(*self._before, self._now.values()):
                choice.fold.step(event)
        else:
            if isinstance(event, MessageInterrupted) and not self._now:
                self._begin(self._first)
            for choice in self._now.values():
                choice.fold.step(event)

    def _step(self, number: int, event: Event) -> None:
        known, cut = self._now.get(number), None
        if known is not None and known.fold.begins_another(event):
            cut = None if is_over(known.fold.snapshot) else event
            self._follow(known)
            known = None
        if known is None:
            known = self._begin(number)
            known.cut = cut
        known.fold.step(event)
        known.began = True

    def _reset(self, event: AttemptReset) -> None:
        if self.is_over():
            self._follow(*self._now.values())
        self._resets.append(event)
        for choice in self._now.values():
            choice.fold.step(event)
            choice.began = False

    def _begin(self, number: int) -> _Choice:
        choice = _Choice(Fold(choice=number, limits=self._limits))
        self._now[number] = choice
        if not self._whole:
            self._before.clear()
        for reset in self._resets:
            choice.fold.step(reset)
        return choice

    def _follow(self, *known: _Choice) -> None:
        """Another message begins: file away these choices, and all that are over."""
        ended = [
            number for number, choice in self._now.items() if choice in known or is_over(choice.fold.snapshot)
        ]
        self._before.append([self._now.pop(number) for number in ended])
        self._resets.clear()

    def is_over(self) -> bool:
        """Whether every choice that has begun is over."""
        return bool(self._now) and all(is_over(choice.fold.snapshot) for choice in self._now.values())

    def begins_another(self, event: Event) -> bool:
        """Whether the event belongs to the next message."""
        if isinstance(event, AttemptReset):
            return self.is_over()
        known = self._now.get(getattr(event, "choice", -1))
        return known is not None and known.fold.begins_another(event)

    def so_far(self) -> Sequence[Event]:
        """The events that a late subscriber gets first."""
        events = [event for message in (*self._before, self._now.values()) for event in _events_of(message)]
        return events if self._now else [*events, *self._resets]

    def snapshot(self) -> Snapshot | None:
        """The first choice of the newest message."""
        messages = (self._now.values(), *reversed(self._before))
        return next((choice.fold.snapshot for message in messages for choice in message), None)


class _Choice:
    """One choice of one message."""

    __slots__ = ("began", "cut", "fold")

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.cut: Event | None = None  # the start that cut off the previous message
        self.began = False  # whether this attempt has had an event

    def events(self) -> list[Event]:
        events = to_events(self.fold.snapshot)
        if self.began:
            return events
        return [event for event in events if not isinstance(event, MessageStart)]


def _events_of(message: Iterable[_Choice]) -> Sequence[Event]:
    """The events of a message's choices. The start that cut off the previous message comes before a reset.

    A reset before that start would belong to the previous message.
    """
    choices = list(message)
    lists = [events for choice in choices if (events := choice.events())]
    events = _joined(lists[0], lists[1:]) if lists else []
    if events and isinstance(events[0], AttemptReset):
        events = [choice.cut for choice in choices if choice.cut is not None][:1] + events
    return events


def _joined(first: list[Event], others: list[list[Event]]) -> list[Event]:
    """The events of all choices in turn. Events about the whole message come once: resets first, interruptions last."""
    last = [
        event
        for event in (first[-1], *(other[-1] for other in others))
        if isinstance(event, MessageInterrupted)
    ]
    events = [event for event in first if not isinstance(event, MessageInterrupted)]
    for other in others:
        events += [event for event in other if not isinstance(event, (AttemptReset, MessageInterrupted))]
    return events + last[:1]
