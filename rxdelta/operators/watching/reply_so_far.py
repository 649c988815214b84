"""The reply so far of a passing stream."""

from __future__ import annotations

from typing import Any

from rxdelta.core import Fold, ProviderError, Snapshot
from rxdelta.core.events import EVENT_TYPES
from rxdelta.runtime import report

__all__ = ["ReplySoFar"]


class ReplySoFar:
    """The last snapshot of a stream. Events are folded; of a conversation this is the last message."""

    def __init__(self, operator: str, choice: int = 0) -> None:
        self._operator = operator
        self._choice = choice
        self._fold: Fold | None = Fold(choice=choice)
        self.snapshot: Snapshot | None = None

    def note(self, value: Any) -> None:
        if isinstance(value, Snapshot):
            self.snapshot = value
        elif self._fold is not None and type(value) in EVENT_TYPES:
            try:
                if self._fold.begins_another(value):
                    self._fold = Fold(choice=self._choice)
                self.snapshot = self._fold.step(value)
            except ProviderError:
                pass
            except Exception as error:
                self._fold = None
                report(
                    error, f"{self._operator} could not fold the events; it keeps the last snapshot before"
                )
