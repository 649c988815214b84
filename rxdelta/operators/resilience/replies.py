"""The replies of a stream so far."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rxdelta.core import ByChoice, ByRun, Event, Fold, Limits, Snapshot, concerns_any_run, is_over
from rxdelta.core.events import AttemptReset

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Replies"]


class Replies:
    """A fold for each lane: each choice of each run.

    Args:
        limits: Bounds on the number of lanes and on the size of each reply.
    """

    def __init__(self, limits: Limits) -> None:
        self._fold = partial(Fold, limits=limits)
        self._limits = limits
        self._runs: dict[str | None, dict[int, Fold]] = ByRun(limits)
        self._early: dict[int, Fold] = ByChoice(limits)  # before any run has begun; the first run's then
        self._early[0] = self._fold(choice=0)
        self._begun: dict[Fold, None] = {}  # the folds with an event since the last reset

    def step(self, event: Event) -> None:
        """Apply an event of any lane.

        Raises:
            LimitExceededError, ProtocolError: As from a fold.
        """
        choice = getattr(event, "choice", None)
        for run in self._concerned(event):
            if choice is not None and choice not in run:
                run[choice] = self._fold(choice=choice, run_id=event.run_id)
            folds = [*run.values()] if choice is None else [run[choice]]
            for fold in folds:
                fold.step(event)
                if isinstance(event, AttemptReset):
                    self._begun.pop(fold, None)
                elif choice is not None:
                    self._begun[fold] = None

    def _concerned(self, event: Event) -> Iterable[dict[int, Fold]]:
        if concerns_any_run(event):
            return [*self._runs.values()] or [self._early]
        if event.run_id not in self._runs:
            self._runs[event.run_id] = ByChoice(self._limits) if self._runs else self._early
        return [self._runs[event.run_id]]

    def _folds(self) -> list[Fold]:
        return [fold for run in [*self._runs.values()] or [self._early] for fold in run.values()]

    def _has_begun(self, fold: Fold) -> bool:
        return fold in self._begun or is_over(fold.snapshot)

    def begun(self) -> Sequence[Snapshot]:
        """The replies that have begun since the last reset, and those that are over."""
        return [fold.snapshot for fold in self._folds() if self._has_begun(fold)]

    def first(self) -> Snapshot:
        """The first of them; an empty reply if there is none."""
        return next(iter(self.begun()), self._folds()[0].snapshot)

    def only(self) -> Snapshot | None:
        """The reply, if only one has begun."""
        begun = self.begun()
        return begun[0] if len(begun) == 1 else None

    def all_over(self) -> bool:
        begun = self.begun()
        return bool(begun) and all(map(is_over, begun))

    def text(self) -> str:
        return "".join(reply.text for reply in self.begun())

    def resets(self, attempt: int, error: str) -> Sequence[AttemptReset]:
        """The resets that take back all replies: one for each run.

        If a reply is over, each names its choice, because it would be the next message's otherwise. The reset of the run
        without a name concerns all runs, so it is the first. It tells the usage if there is no other run; otherwise each
        fold knows its own.
        """
        runs = self._runs or {None: self._early}
        usages = [fold.snapshot.usage for fold in self._folds() if fold.snapshot.usage is not None]
        usage = usages[0] if usages and len(runs) == 1 else None
        over = any(is_over(fold.snapshot) for fold in self._folds())
        found: list[AttemptReset] = []
        for run_id in sorted(runs, key=lambda run_id: run_id is not None):
            named = [choice for choice, fold in runs[run_id].items() if self._has_begun(fold)]
            found += [
                AttemptReset(attempt, error, usage, choice=choice, run_id=run_id)
                for choice in (named if over else [None])
            ]
        return found
