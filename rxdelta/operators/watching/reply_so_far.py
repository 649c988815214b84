"""The reply so far of a passing stream."""

from __future__ import annotations

from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import attrs

from rxdelta.core import Fold, PerRun, ProviderError, Snapshot, TokenUsage, is_settled
from rxdelta.core.events import EVENT_TYPES
from rxdelta.runtime import report

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.core import Event
    from rxdelta.runtime import Sink

__all__ = ["ReplySoFar"]


class ReplySoFar:
    """The last snapshot of a stream. Events are folded; of a conversation this is the message of the newest event."""

    def __init__(self, sink: Sink[Any], choice: int = 0) -> None:
        self._sink = sink
        self._choice = choice
        self._gave_up = False
        self._open: list[_Run] = []
        self._settled: TokenUsage | None = None
        self.snapshot: Snapshot | None = None

    @cached_property
    def _runs(self) -> PerRun[_Run]:
        return PerRun(self._begin, self._sink.limits)  # which are known at the first event

    def _begin(self, run_id: str | None) -> _Run:
        """Begin a run, and forget the runs whose messages have ended, but for their usage."""
        for run in [run for run in self._open if is_settled(run.snapshot)]:
            self._open.remove(run)
            self._settled = _sum(self._settled, run.snapshot.total_usage)
            run.forget()
        begun = _Run(lambda: Fold(choice=self._choice, run_id=run_id, limits=self._sink.limits))
        self._open.append(begun)
        return begun

    @property
    def usage(self) -> TokenUsage | None:
        """The usage of the newest message, failed attempts included; of several runs the sum."""
        if not self._open:
            return None if self.snapshot is None else self.snapshot.total_usage
        return reduce(_sum, (run.snapshot.total_usage for run in self._open), self._settled)

    def note(self, value: Any) -> None:
        if isinstance(value, Snapshot):
            self.snapshot = value
        elif not self._gave_up and type(value) in EVENT_TYPES:
            try:
                for run in self._runs.of(value):
                    before = run.snapshot
                    if run.step(value) is not before or self.snapshot is None:
                        self.snapshot = run.snapshot
            except ProviderError:
                pass
            except Exception as error:
                self._gave_up = True
                report(error, f"{self._sink.name} could not fold the events; it keeps the last snapshot")


class _Run:
    """The newest message of a run."""

    def __init__(self, begin: Callable[[], Fold]) -> None:
        self._begin = begin
        self._fold = begin()

    @property
    def snapshot(self) -> Snapshot:
        return self._fold.snapshot

    def step(self, event: Event) -> Snapshot:
        if self._fold.begins_another(event):
            self._fold = self._begin()
        return self._fold.step(event)

    def forget(self) -> None:
        self._fold = self._begin()


def _sum(one: TokenUsage | None, other: TokenUsage | None) -> TokenUsage | None:
    return one if other is None else other if one is None else one.add(attrs.evolve(other, cumulative=False))
