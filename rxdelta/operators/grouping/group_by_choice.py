"""A stream of events for each of several alternative replies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactivex import Observable, abc

from rxdelta.core import DEFAULT_LIMITS, ByChoice, Event, LimitExceededError, Limits
from rxdelta.core.events import AttemptReset
from rxdelta.operators.grouping.streams import EventBranch, EventSplit, Split

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ChoiceStream", "group_by_choice"]


class ChoiceStream(EventBranch):
    """The events of one alternative reply, and the events that concern all replies.

    Hot. A late subscriber gets `to_events` of the reply so far (in a conversation, of the newest message that has
    begun), then live events or the end. A subscriber that raises is removed, as in `BlockStream`.

    Attributes:
        choice: The number of the reply.
    """

    def __init__(self, split: Split[ChoiceStream], choice: int, limits: Limits) -> None:
        super().__init__(split, limits, choice)
        self.choice = choice

    @property
    def _label(self) -> str:
        return f"choice {self.choice}"

    def __repr__(self) -> str:
        return f"<ChoiceStream {self.choice}>"


def group_by_choice(
    *, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[ChoiceStream]]:
    """Emit a stream for each choice of a request with `n` alternative replies.

    A stream is emitted at the first event of its choice, before that event. Events without a choice
    (`ProviderEvent`, `ToolUpdate`, `MessageInterrupted`, `AttemptReset`) go to every choice that has begun;
    before the first choice begins, they wait for it. A choice that begins after an `AttemptReset` gets that event,
    too. Other events are emitted at once. Events are never changed. Subscriptions and threads are as in
    `group_by_block`.

    Completes with the source, and so do the choices.

    Args:
        limits: The most that the stream may make us hold.

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

    def apply(source: Observable[Event]) -> Observable[ChoiceStream]:
        def subscribe(
            observer: abc.ObserverBase[ChoiceStream], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            return _ByChoice(observer, limits).connect(source, scheduler)

        return Observable(subscribe)

    return apply


class _ByChoice(EventSplit[ChoiceStream]):
    """One subscription's state."""

    def __init__(self, observer: abc.ObserverBase[ChoiceStream], limits: Limits) -> None:
        super().__init__(observer, limits)
        self._choices: dict[int, ChoiceStream] = ByChoice(limits)
        self._waiting: Sequence[Event] = ()  # events without a choice, for choices that begin later

    def _route(self, event: Event) -> None:
        choice = getattr(event, "choice", None)
        if choice is None:
            if not self._choices or isinstance(event, AttemptReset):
                self._waiting = [*self._waiting, event]
            for begun in list(self._choices.values()):
                self._deliver(begun, event)
            return
        stream = self._choices.get(choice)
        if stream is None:
            if self._outer_disposed:
                return
            stream = ChoiceStream(self, choice, self._limits)
            try:
                self._choices[choice] = stream
            except LimitExceededError as error:
                self._finish(error)
                return
            self._start(stream)
        self._deliver(stream, event)

    def _start(self, stream: ChoiceStream) -> None:
        waiting = self._waiting
        self._waiting = [event for event in waiting if isinstance(event, AttemptReset)]
        self._open_stream(stream, waiting)

    def _forget(self) -> None:
        self._choices.clear()
