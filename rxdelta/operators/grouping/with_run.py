"""The name of a run, for all events of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import attrs

from rxdelta.core import ByRun, Event, InvalidValueError, clean_text, concerns_any_run, in_run, wrong_value
from rxdelta.core.events import EVENT_TYPES, Custom, ProviderEvent, StreamError
from rxdelta.runtime import Sink, lift_machine, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


@operator_maker
def with_run(run_id: str, parent: str | None = None) -> Callable[[Observable[Event]], Observable[Event]]:
    """Give all events the name of a run, to tell merged replies apart: an operator, not a context manager.

    An event without a run gets `run_id`. An event of a run `old` gets `f"{run_id}/{old}"`, so that a stream of several
    runs keeps them apart. Its messages' parents are renamed likewise, and those without one get `parent`.

    A `ToolUpdate`, `MessageInterrupted` or `AttemptReset` without a run concerns every run of this stream, but none of
    those that it is merged with. So it is emitted once for each run that has begun here; before the first one it waits
    for it. Every other event is emitted at once. A `ProviderEvent` or `Custom` without a run belongs to the run that began
    last; a `Custom` before the first one gets `run_id`.

    Completes with the source.

    Args:
        run_id: The run's name.
        parent: The run on whose behalf this one works: `MessageStart.parent_run_id`.

    Raises:
        InvalidValueError: At once, if a name isn't a string, or is empty.

    Errors: The source's own. `InvalidValueError` for a value that is no event; `LimitExceededError` for too many runs.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> events = rx.of(rd.events.MessageStart(), rd.events.TextDelta(0, "Hi", run_id="node"))
        >>> events.pipe(rd.with_run("agent")).subscribe(lambda event: print(event.run_id)).dispose()
        agent
        agent/node
    """
    wrong = [
        (name, value, "must be a string that is not empty")
        for name, value in (("run_id", run_id), ("parent", parent))
        if not (isinstance(value, str) and value) and (name, value) != ("parent", None)
    ]
    if wrong:
        raise InvalidValueError.of(wrong)
    name, above = clean_text(run_id), None if parent is None else clean_text(parent)
    return lift_machine("with_run", lambda sink: _WithRun(sink, name, above), emits="events")


class _WithRun:
    """One subscription's state."""

    def __init__(self, sink: Sink[Event], run_id: str, parent: str | None) -> None:
        self._sink = sink
        self._run_id = run_id
        self._parent = parent
        self._waiting: list[Event] = []  # events for the first run

    @cached_property
    def _runs(self) -> dict[str | None, None]:
        """The source's runs, in the order in which they began."""
        return ByRun(self._sink.limits)  # which are known at the first event

    def step(self, event: Event) -> Iterable[Event]:
        if type(event) not in EVENT_TYPES:
            raise wrong_value("with_run", event)
        if isinstance(event, Custom):  # begins no run, and waits for none
            known = event.run_id is not None or not self._runs
            return (self._named(event) if known else self._of(next(reversed(self._runs)), event),)
        if not concerns_any_run(event):
            if event.run_id in self._runs:
                return (self._named(event),)
            self._runs[event.run_id] = None
            return [*self._waited(event.run_id), self._named(event)]
        if isinstance(event, StreamError):
            return (self._named(event),)
        if not self._runs:
            self._waiting.append(event)
            return ()
        if isinstance(event, ProviderEvent):  # changes no reply: one is enough
            return (self._of(next(reversed(self._runs)), event),)
        return [self._of(run_id, event) for run_id in self._runs]

    def close(self) -> Iterable[Event]:
        return self._waited(None)

    def fail(self, error: Exception) -> tuple[Iterable[Event], Exception]:
        return self.close(), error

    def _waited(self, run_id: str | None) -> list[Event]:
        waiting, self._waiting = self._waiting, []
        return [self._of(run_id, event) for event in waiting]

    def _of(self, run_id: str | None, event: Event) -> Event:
        return self._named(attrs.evolve(event, run_id=run_id))

    def _named(self, event: Event) -> Event:
        return in_run(event, self._run_id, self._parent)
