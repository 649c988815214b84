"""One paid request, however many watch."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from rxdelta.core import DEFAULT_LIMITS, Event, Fold, Limits, MessageDelta, to_events
from rxdelta.core.events import AttemptReset, MessageInterrupted, MessageStart, ToolUpdate
from rxdelta.operators._share import share
from rxdelta.operators._streams import begins_another, is_over, joined, refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reactivex import Observable

__all__ = ["share_events"]


def share_events(
    *, keep: bool = False, restart: bool = False, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[Event]]:
    """One subscription to the source for all who read: who comes late is told all so far, then what comes.

    What has come is told as the shortest list of events that leads there, `to_events(now)`: for each message of
    a conversation, and each choice of it, with its usage, the failed attempts' usage, and the news of its tools.
    Whatever folds the events gets the same snapshot as one who was there from the start. A `ProviderEvent` is
    told to those who are there.

    The first reader subscribes the source; the last who leaves disposes it, and whoever comes after that is told
    what had come, and a `StreamInterrupted`: a paid request is never repeated by accident.

    Stands behind `run_tools`, or each reader would run the tools. Each reader reads at its own pace, by the door
    through which it reads, as with `share_latest`: the source waits only while none of them has room. (`latest` is
    for snapshots.) A reader that raises is not told any more; the others don't notice. Readers may come, go and
    read on several threads.

    Completes with the source, also for those who come later, after all that had come.

    Args:
        keep: Go on when the last reader leaves, until the source ends. So a reply is finished, and can be
            stored, though nobody looks.
        restart: Who comes after all have left subscribes the source anew. One that has ended by itself stays
            ended.
        limits: What the stream may make us hold for those who come late.

    Errors: The source's own, replayed after the events so far. `ProviderError` for a `StreamError`;
    `LimitExceededError`; `InvalidValueError` for what is no event. `StreamInterrupted`, see above.

    Example:
        >>> import rxdelta as rd
        >>> from reactivex.subject import Subject
        >>> source = Subject()
        >>> shared = source.pipe(rd.share_events())
        >>> first = shared.subscribe()
        >>> for event in [rd.events.BlockStart(0, {"type": "text"}), *(rd.events.TextDelta(0, x) for x in "abc")]:
        ...     source.on_next(event)
        >>> late = shared.subscribe(lambda event: print(event.event, event.to_dict().get("content", "")))
        message-start
        content-block-start {'type': 'text', 'text': 'abc'}
    """
    return share(lambda: _Story(limits), keep, restart)


class _Choice:
    """One choice of one message."""

    __slots__ = ("began", "fold")

    def __init__(self, fold: Fold) -> None:
        self.fold = fold
        self.began = False  # in this attempt

    def events(self) -> list[Event]:
        events = to_events(self.fold.snapshot)
        if self.began:
            return events
        return [event for event in events if not isinstance(event, MessageStart)]


class _Story:
    """All that has come, as folds."""

    name = "share_events"

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._told: list[list[_Choice]] = []  # messages that others have followed
        self._now: dict[int, _Choice] = {}
        self._resets: list[AttemptReset] = []  # of the message that is told now

    def take(self, value: Event) -> None:
        event, failure = value, refusal(value)
        if failure is not None:
            raise failure
        number = getattr(event, "choice", None)
        if number is not None:
            self._take(number, event)
            return
        if isinstance(event, AttemptReset):
            self._resets.append(event)
        elif isinstance(event, MessageInterrupted) and not self._now:
            self._now[0] = self._begun(0)
        earlier = self._told if isinstance(event, ToolUpdate) else ()
        for choice in chain(*earlier, self._now.values()):
            choice.fold.step(event)
            choice.began = choice.began and not isinstance(event, AttemptReset)

    def _take(self, number: int, event: Any) -> None:
        known = self._now.get(number)
        if known is not None and begins_another(known.fold.snapshot, event):
            self._close(known)
            known = None
        if known is None:
            known = self._now[number] = self._begun(number)
        known.fold.step(event)
        known.began = True

    def _begun(self, number: int) -> _Choice:
        choice = _Choice(Fold(choice=number, limits=self._limits))
        for reset in self._resets:
            choice.fold.step(reset)
        return choice

    def _close(self, known: _Choice) -> None:
        """Another message begins: this one's choices are told before it."""
        ended = [
            number for number, choice in self._now.items() if choice is known or is_over(choice.fold.snapshot)
        ]
        self._told.append([self._now.pop(number) for number in ended])
        self._resets.clear()

    def so_far(self) -> Sequence[Event]:
        if not (self._told or self._now):
            return self._resets
        return [event for message in (*self._told, self._now.values()) for event in _told(message)]

    def snapshot(self) -> MessageDelta | None:
        return next((choice.fold.snapshot for choice in self._now.values()), None)


def _told(message: Iterable[_Choice]) -> Sequence[Event]:
    """The events of a message's choices."""
    lists = [events for choice in message if (events := choice.events())]
    return joined(lists[0], lists[1:]) if lists else ()
