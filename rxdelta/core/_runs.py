"""The run of an event: which lane of a stream it belongs to.

A stream may carry several replies at once: of parallel agents, of the nodes of a graph, of a sub-agent within a tool.
Each event names the run that it belongs to, a lane in which one message ends before the next begins. Events without a
name are a lane too, but for those of `FOR_ANY_RUN`, which without a name concern every run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import attrs

from rxdelta.core._errors import ProtocolError
from rxdelta.core._events import (
    AttemptReset,
    Event,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    StreamError,
    ToolUpdate,
)
from rxdelta.core._fast_constructor import fast_constructor
from rxdelta.core._joined import PIECE_FIELDS

__all__ = ["FOR_ANY_RUN", "another_run", "concerns_any_run", "in_run"]

FOR_ANY_RUN = frozenset([ToolUpdate, MessageInterrupted, AttemptReset, ProviderEvent, StreamError])
"""The events that concern every run if they name none."""


def concerns_any_run(event: Event) -> bool:
    """Whether the event concerns every run, whichever it is."""
    return event.run_id is None and type(event) in FOR_ANY_RUN


def another_run(other: str | None, own: str | None) -> ProtocolError:
    """The error of a reader of one run that meets another."""
    theirs, ours = ("the run without a name" if run is None else f"run {run!r}" for run in (other, own))
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
