"""The run of an event: which lane of a stream it belongs to.

A stream may carry several replies at once: of parallel agents, of the nodes of a graph, of a sub-agent within a tool.
Each event names the run that it belongs to, a lane in which one message ends before the next begins. Events without a
name are a lane too, but for those of `FOR_ANY_RUN`, which without a name concern every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import attrs

from rxdelta.core.block_fold import PIECE_FIELDS
from rxdelta.core.errors import ProtocolError
from rxdelta.core.event_classes import (
    AttemptReset,
    Custom,
    Event,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    StreamError,
    ToolUpdate,
)
from rxdelta.core.fast_constructor import fast_constructor
from rxdelta.core.options import DEFAULT_LIMITS, ByRun, Limits
from rxdelta.core.values import shorten

T = TypeVar("T")

FOR_ANY_RUN = frozenset([ToolUpdate, MessageInterrupted, AttemptReset, ProviderEvent, Custom, StreamError])
"""The events that concern every run if they name none."""


def concerns_any_run(event: Event) -> bool:
    """Whether the event concerns every run, whichever it is."""
    return event.run_id is None and type(event) in FOR_ANY_RUN


def concerns_choice(event: Event, choice: int | None) -> bool:
    """Whether the event is of this choice, or of none, and so of each."""
    return getattr(event, "choice", None) in (None, choice)


def another_run(other: str | None, own: str | None) -> ProtocolError:
    """The error of a reader of one run that meets another."""
    theirs, ours = (
        "the run without a name" if run is None else f"run {shorten(run)}" for run in (other, own)
    )
    return ProtocolError(
        f"{theirs} came among the events of {ours}; split the runs of a stream with group_by_run()",
        violation="another_run",
    )


def _copy(event: Event, run_id: str) -> Event:
    raise NotImplementedError


_COPIES: Mapping[type, Callable[[Any, str], Event]] = {
    kind: cast("Any", fast_constructor)(kind, like="event")(_copy) for kind in PIECE_FIELDS
}
"""Copies of the frequent events, which cost a fifth of `attrs.evolve`."""


def in_run(event: Event, run_id: str, parent: str | None = None) -> Event:
    """A copy of the event within a run. A run that the event already names becomes a part of this one.

    Args:
        event: The event.
        run_id: The run. A run `old` of the event becomes `run_id/old`, and so does its parent.
        parent: The parent of a message that names none.
    """
    whole = run_id if event.run_id is None else f"{run_id}/{event.run_id}"
    copy = _COPIES.get(type(event))
    if copy is not None:
        return copy(event, whole)
    names: dict[str, Any] = {"run_id": whole}
    if isinstance(event, MessageStart):
        old = event.parent_run_id
        names["parent_run_id"] = parent if old is None else f"{run_id}/{old}"
    return attrs.evolve(event, **names)


class PerRun(Generic[T]):
    """Something for each run of a stream, such as a fold: finds what an event concerns.

    An event that concerns any run goes to those that have begun. If none has, the event goes to the first, before its
    name is known. So does an application's own event of a run that hasn't begun: it begins none.

    Args:
        begin: Makes the value for a run.
        limits: Bounds on the number of runs.
        name: Gives the first value the name of its run, if the value was made before.
    """

    def __init__(
        self,
        begin: Callable[[str | None], T],
        limits: Limits = DEFAULT_LIMITS,
        *,
        name: Callable[[T, str | None], None] | None = None,
    ) -> None:
        self._begin = begin
        self._name = name
        self._runs: dict[str | None, T] = ByRun(limits)
        self._early: list[T] = []  # the first value, as long as no run is known

    def of(self, event: Event) -> Sequence[T]:
        """The values that the event concerns: one, unless it concerns any run.

        Raises:
            LimitExceededError: There are too many runs.
        """
        run_id, kind = event.run_id, type(event)
        if (run_id is None and kind in FOR_ANY_RUN) or (kind is Custom and run_id not in self._runs):
            if not self._runs and not self._early:
                self._early.append(self._begin(None))
            return self.known()
        found = self._runs.get(run_id)
        return (self._begun(run_id) if found is None else found,)

    def get(self, run_id: str | None) -> T | None:
        """The value for a run, if the run has begun."""
        return self._runs.get(run_id)

    def _begun(self, run_id: str | None) -> T:
        if self._early:
            found = self._early.pop()
            if self._name is not None:
                self._name(found, run_id)
        else:
            found = self._begin(run_id)
        self._runs[run_id] = found
        return found

    def known(self) -> list[T]:
        """The values, in the order in which their runs began."""
        return [*self._runs.values(), *self._early]
