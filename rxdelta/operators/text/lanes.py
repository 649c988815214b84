"""Which of a stream's replies are over, for an operator that ends some of them before the source does."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rxdelta.core.events import AttemptReset, MessageFinish, MessageStart, StreamError

if TYPE_CHECKING:
    from rxdelta.core import Event

__all__ = ["Lane", "Lanes"]

Lane: TypeAlias = tuple[str | None, int]
"""A run and a choice."""


class Lanes:
    """The replies that have begun: a choice of a run each."""

    def __init__(self) -> None:
        self._is_over: dict[Lane, bool] = {}
        self.ended: set[Lane] = set()
        """Those that were ended here."""

    def begin(self, event: Event) -> Lane | None:
        """Note an event; return its reply, if it names one. An error concerns all, whatever it names."""
        choice: int | None = getattr(event, "choice", None)
        if choice is None or type(event) is StreamError:
            if type(event) is AttemptReset:  # takes back also those that are over
                again = [lane for lane in self._is_over if event.run_id in (None, lane[0])]
                self._is_over.update(dict.fromkeys(again, False))
                self.ended.difference_update(again)
            return None
        lane = (event.run_id, choice)
        if type(event) is MessageStart or lane not in self._is_over:
            self._is_over[lane] = False
        if type(event) is MessageFinish:
            self._is_over[lane] = True
        return lane

    def end(self, lane: Lane) -> None:
        self.ended.add(lane)

    def all_over(self) -> bool:
        """Whether no reply that has begun still comes."""
        return all(over or lane in self.ended for lane, over in self._is_over.items())
