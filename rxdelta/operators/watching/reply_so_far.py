"""The reply so far of a passing stream."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce
from threading import Lock
from typing import Any

import attrs

from rxdelta.core import (
    Event,
    Fold,
    PerRun,
    ProviderError,
    Snapshot,
    Tail,
    TokenUsage,
    apply_event,
    is_settled,
)
from rxdelta.core.events import EVENT_TYPES, Custom, MessageStart
from rxdelta.runtime import Sink, report


class ReplySoFar:
    """The last snapshot of a stream. Events are folded; of a conversation this is the message of the newest event."""

    def __init__(self, sink: Sink[Any]) -> None:
        self._sink = sink
        self._gave_up = False
        self._open: dict[_Run, None] = {}  # the runs that have had an event since they were last put away
        self._newest: _Run | None = None  # whose reply is shown
        self._shown: Snapshot | None = None
        # A timer, or a reader that leaves, may look from another thread.
        self._tail = Tail(self._step, self._lane, Lock())
        self.keeps = self._tail.take
        """Keep a delta, or return `False`: then call `note`."""

    @property
    def snapshot(self) -> Snapshot | None:
        self._tail.settle()
        return self._shown

    @cached_property
    def _runs(self) -> PerRun[_Run]:
        return PerRun(self._begin, self._sink.limits)  # which are known at the first event

    def _begin(self, run_id: str | None) -> _Run:
        """Begin a run, and put away the messages that have ended, but for their usage."""
        for run in [run for run in self._open if is_settled(run.snapshot)]:
            del self._open[run]
            run.put_away()
        return _Run(lambda: Fold(choice=self._sink.choice, run_id=run_id, limits=self._sink.limits))

    @property
    def usage(self) -> TokenUsage | None:
        """The usage of the newest message, failed attempts included; of several runs the sum."""
        if not self._open:
            return None if self._shown is None else self._shown.total_usage
        return reduce(_sum, (run.usage for run in self._runs.known()))

    def note(self, value: Any) -> None:
        if type(value) is Snapshot and self._newest is None:  # a stream of snapshots
            self._shown = value
        else:
            self._tail.follow(value)
            self._step(value)

    def _lane(self, delta: Any) -> Fold | None:
        run = self._runs.get(delta.run_id)
        return None if run is None else run.fold

    def _step(self, value: Any) -> None:
        if isinstance(value, Snapshot):
            self._shown = value
        elif not self._gave_up and type(value) in EVENT_TYPES:
            try:
                if isinstance(value, Custom) and self._shown is not None:
                    self._shown = self._with(self._shown, value)
                    return
                for run in self._runs.of(value):
                    self._open[run] = None
                    before = run.snapshot
                    if run.step(value) is not before or self._shown is None:
                        self._shown, self._newest = run.snapshot, run
            except ProviderError:
                pass
            except Exception as error:
                self._gave_up = True
                report(error, f"{self._sink.name} could not fold the events; it keeps the last snapshot")

    def _with(self, shown: Snapshot, event: Custom) -> Snapshot:
        """The reply that is shown, of whatever run, with an event of the application's own."""
        if self._newest in self._open:
            return self._newest.step(event)
        return apply_event(shown, event)


class _Run:
    """The newest message of a run."""

    def __init__(self, begin: Callable[[], Fold]) -> None:
        self._begin = begin
        self.fold = begin()
        self._usage_before: TokenUsage | None = None  # of a message that was put away

    @property
    def snapshot(self) -> Snapshot:
        return self.fold.snapshot

    @property
    def usage(self) -> TokenUsage | None:
        return self._usage_before or self.fold.snapshot.total_usage

    def step(self, event: Event) -> Snapshot:
        if self.fold.begins_another(event):
            self.fold = self._begin()
        if isinstance(event, MessageStart):
            self._usage_before = None
        return self.fold.step(event)

    def put_away(self) -> None:
        self._usage_before = self.usage
        self.fold = self._begin()


def _sum(one: TokenUsage | None, other: TokenUsage | None) -> TokenUsage | None:
    return one if other is None else other if one is None else one.add(attrs.evolve(other, cumulative=False))
