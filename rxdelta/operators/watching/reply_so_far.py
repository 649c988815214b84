"""The reply so far of a passing stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import Fold, ProviderError, Snapshot
from rxdelta.core.events import EVENT_TYPES
from rxdelta.runtime import report

if TYPE_CHECKING:
    from rxdelta.runtime import Sink

__all__ = ["ReplySoFar"]


class ReplySoFar:
    """The last snapshot of a stream. Events are folded; of a conversation this is the last message."""

    def __init__(self, sink: Sink[Any], choice: int = 0) -> None:
        self._sink = sink
        self._choice = choice
        self._fold: Fold | None = None
        self._gave_up = False
        self.snapshot: Snapshot | None = None

    def note(self, value: Any) -> None:
        if isinstance(value, Snapshot):
            self.snapshot = value
        elif not self._gave_up and type(value) in EVENT_TYPES:
            try:
                if self._fold is None or self._fold.begins_another(value):
                    self._fold = Fold(choice=self._choice, limits=self._sink.limits)
                self.snapshot = self._fold.step(value)
            except ProviderError:
                pass
            except Exception as error:
                self._gave_up = True
                report(error, f"{self._sink.name} could not fold the events; it keeps the last snapshot")
