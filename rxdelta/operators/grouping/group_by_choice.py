"""A stream of events for each of several alternative replies."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from rxdelta.core import ByChoice, Event
from rxdelta.core.events import AttemptReset, Custom, MessageInterrupted, MessageStart
from rxdelta.operators.grouping.streams import EventBranch, EventSplit, Split, hold, split_by
from rxdelta.runtime import Sink, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


class ChoiceStream(EventBranch):
    """The events of one alternative reply, and the events that concern all replies.

    Hot. A late subscriber gets `to_events` of the reply so far (in a conversation, of the newest message that has
    begun), then live events or the end. A subscriber that raises is removed, as in `BlockStream`.

    Attributes:
        choice: The number of the reply.
    """

    def __init__(self, split: Split[ChoiceStream], choice: int) -> None:
        super().__init__(split, choice)
        self.choice = choice

    def _begin(self, reader: Sink[Event]) -> None:
        reader.bounds.read(frozenset((self.choice,)))
        super()._begin(reader)

    @property
    def _label(self) -> str:
        return f"choice {self.choice}"

    def __repr__(self) -> str:
        return f"<ChoiceStream {self.choice}>"


@operator_maker
def group_by_choice() -> Callable[[Observable[Event]], Observable[ChoiceStream]]:
    """Emit a stream for each choice of a request with `n` alternative replies.

    ::

        events    Yes(choice:1)No(choice:0)_sir(choice:1)_way-|
                  group_by_choice()
        choice 0  Yes-           _sir          -             -|
        choice 1     (choice:1)No-             _way          -|

    A stream is emitted at the first event of its choice, before that event. Events that name no choice
    (`ProviderEvent`, and mostly `ToolUpdate`, `MessageInterrupted`, `AttemptReset`) go to every choice that has begun;
    before the first choice begins, they wait for it. An `AttemptReset` or `MessageInterrupted` that names none also
    goes to the choices that begin later, until another message begins. So does a `Custom` that isn't transient, because
    it belongs to the message. Other events are emitted at once. Events are never changed. Subscriptions and threads are
    as in `group_by_block`.

    Completes with the source, and so do the choices.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for a
    value that is no event. The choices get the error first.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> events = rx.of(rd.events.MessageStart(id="a"), rd.events.MessageStart(id="b", choice=1))
        >>> choices = events.pipe(rd.group_by_choice())
        >>> choices.subscribe(lambda one: one.subscribe(lambda event: print(one.choice, event.id))).dispose()
        0 a
        1 b
    """

    return split_by("group_by_choice", _ByChoice)


class _ByChoice(EventSplit[ChoiceStream]):
    """One subscription's state."""

    def __init__(self, sink: Sink[ChoiceStream]) -> None:
        super().__init__(sink)
        self._waiting: dict[object, Event] = {}  # events without a choice, for choices that begin later

    @cached_property
    def _choices(self) -> dict[int, ChoiceStream]:
        return ByChoice(self.sink.limits)  # which are known at the first event

    def _route(self, event: Event) -> None:
        choice = getattr(event, "choice", None)
        if choice is None:
            self._route_to_all(event)
            return
        stream = self._choices.get(choice)
        if stream is None:
            if self._outer_left:
                return
            self._choices[choice] = stream = ChoiceStream(self, choice)
            self._announce(stream)
            waiting = self._waiting
            self._waiting = {subject: one for subject, one in waiting.items() if _is_for_later(one)}
            for one in waiting.values():
                stream._deliver(one)
        elif self._waiting and isinstance(event, MessageStart) and stream._replay.begins_another(event):
            self._waiting = {
                subject: one for subject, one in self._waiting.items() if not isinstance(one, Custom)
            }
        stream._deliver(event)

    def _route_to_all(self, event: Event) -> None:
        streams = list(self._choices.values())
        if not streams or _is_for_later(event):
            hold(self._waiting, event)
        for stream in streams:
            stream._deliver(event)

    def _forget(self) -> Iterable[ChoiceStream]:
        streams = list(self._choices.values())
        self._choices.clear()
        return streams


def _is_for_later(event: Event) -> bool:
    """Whether an event without a choice also goes to the choices that begin after it."""
    if isinstance(event, Custom):
        return not event.transient
    return isinstance(event, (AttemptReset, MessageInterrupted))
