"""The reply so far of a passing stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import Fold, ProtocolError, ProviderError, Snapshot
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
                self.snapshot = self._step(value)
            except ProviderError:
                pass
            except Exception as error:
                self._gave_up = True
                message = (
                    f"{self._sink.name} could not fold the events; what came before is what it will tell"
                )
                report(error, message)

    def _step(self, event: Any) -> Snapshot:
        if self._fold is None:
            self._fold = self._new_fold()
        try:
            return self._fold.step(event)
        except ProtocolError:  # another message
            self._fold = self._new_fold()
            return self._fold.step(event)

    def _new_fold(self) -> Fold:
        return Fold(choice=self._choice, limits=self._sink.limits)
