"""The replies of a stream so far."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from rxdelta.core import ByChoice, Event, Fold, Limits, PerRun, Snapshot, Tail, is_over
from rxdelta.core.events import AttemptReset

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Replies"]


class Replies:
    """A fold for each lane: each choice of each run.

    Args:
        limits: Bounds on the number of lanes and on the size of each reply.
    """

    def __init__(self, limits: Limits) -> None:
        self._runs = PerRun(partial(_Run, limits), limits, name=_Run.take_name)
        self._begun: dict[Fold, None] = {}  # the folds with an event since the last reset
        self._tail = Tail(self._step, self._lane)
        self.step = self._tail.feed

    def _lane(self, delta: Any) -> Fold | None:
        run = self._runs.get(delta.run_id)
        return None if run is None else run.get(delta.choice)

    def _step(self, event: Event) -> None:
        choice = getattr(event, "choice", None)
        for run in self._runs.of(event):
            for fold in run.values() if choice is None else (run.fold(choice),):
                fold.step(event)
                if isinstance(event, AttemptReset):
                    self._begun.pop(fold, None)
                elif choice is not None:
                    self._begun[fold] = None

    def _has_begun(self, fold: Fold) -> bool:
        return fold in self._begun or is_over(fold.snapshot)

    def _folds(self) -> list[Fold]:
        self._tail.settle()
        return [fold for run in self._runs.known() for fold in run.values()]

    def begun(self) -> Sequence[Snapshot]:
        """The replies that have begun since the last reset, and those that are over."""
        return [fold.snapshot for fold in self._folds() if self._has_begun(fold)]

    def first(self) -> Snapshot:
        """The first of them that has content, else the first; an empty reply if there is none."""
        replies = [*self.begun(), *(fold.snapshot for fold in self._folds()), Fold(choice=0).snapshot]
        return next((reply for reply in replies if reply.blocks), replies[0])

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
        runs = self._runs.known()
        if not runs:
            return [AttemptReset(attempt, error)]
        usages = [fold.snapshot.usage for fold in self._folds() if fold.snapshot.usage is not None]
        usage = usages[0] if usages and len(runs) == 1 else None
        over = any(is_over(fold.snapshot) for fold in self._folds())
        found: list[AttemptReset] = []
        for run in sorted(runs, key=lambda run: run.run_id is not None):
            named = [choice for choice, fold in run.items() if self._has_begun(fold)]
            found += [
                AttemptReset(attempt, error, usage, choice=choice, run_id=run.run_id)
                for choice in (named if over else [None])
            ]
        return found


class _Run(ByChoice[Fold]):
    """The folds of the choices of a run."""

    __slots__ = ("_limits", "run_id")

    def __init__(self, limits: Limits, run_id: str | None) -> None:
        super().__init__(limits)
        self._limits = limits
        self.run_id = run_id
        self.fold(0)

    def take_name(self, run_id: str | None) -> None:
        self.run_id = run_id

    def fold(self, choice: int) -> Fold:
        if choice not in self:
            self[choice] = Fold(choice=choice, run_id=self.run_id, limits=self._limits)
        return self[choice]
