"""The runs of a stream, as an encoder keeps them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, Protocol, TypeVar

from rxdelta.core import BlockFold, ByRun, Event, Limits, Tail, Walk, concerns_any_run
from rxdelta.core.events import ProviderEvent, StreamError, ToolUpdate, UsageUpdate

__all__ = ["Lane", "Lanes"]


class Lane(Protocol):
    """What an encoder has of one run."""

    @property
    def walk(self) -> Walk: ...

    def begin(self, event: Event, /) -> None:
        """The run begins with this event."""


L = TypeVar("L", bound=Lane)

_BEGIN_NO_RUN = (ToolUpdate, ProviderEvent)
"""The events that begin no run: they tell of something that has begun, or are of no message."""


class Lanes(Generic[L]):
    """The runs of a stream, each with what an encoder has of it.

    The first lane exists from the beginning, for events that concern whichever run there is. It is taken by the first
    run that comes, so a stream of one run, with or without a name, is encoded in one lane.

    Args:
        make: Makes a lane, of the walk that follows its run, and of the first lane; `None` for the first lane itself.
        choice: The choice that the encoder shows. Events of another choice begin no run.
        limits: Bounds the number of runs.

    Attributes:
        first: The first lane.
        newest: The lane that an encoder has turned to, so that it needn't look up the run of each delta.
        newest_id: The run of this lane; no name at all before the first turn.
    """

    def __init__(self, make: Callable[[Walk, L | None], L], choice: int, limits: Limits) -> None:
        self._make = make
        self._choice = choice
        self._limits = limits
        self._lanes: dict[str | None, L] = ByRun(limits)
        self.first = self.newest = self._new(None)
        self.newest_id: object = self  # which no run is named
        self._tails: dict[BlockFold | None, Tail] = {}  # each of a block that has grown since `settle`

    def _new(self, first: L | None) -> L:
        return self._make(Walk(self._choice, limits=self._limits, keep_calls=True), first)

    def __iter__(self) -> Iterator[L]:
        """The lanes, in the order in which their runs began. Their blocks have all pieces."""
        self.settle()
        return iter(self._lanes.values() or (self.first,))

    def __len__(self) -> int:
        return len(self._lanes)

    @property
    def over(self) -> bool:
        """Whether the last message of each run has ended."""
        return all(lane.walk.over for lane in self)

    def find(self, run_id: str | None) -> L | None:
        """The lane of a run that has begun."""
        return self._lanes.get(run_id)

    def turn_to(self, run_id: str | None) -> bool:
        """Make the lane of a run the newest; `False` if the run hasn't begun."""
        lane = self._lanes.get(run_id)
        if lane is None:
            return False
        self.newest, self.newest_id = lane, run_id
        return True

    def grow(self, delta: Any) -> BlockFold | None:
        """Take a delta of the newest lane, and return the block that it continues.

        An encoder sends the piece. It looks at the block when something else comes, so the block has the piece only then.

        Raises:
            LimitExceededError: The block has become too large.
        """
        walk = self.newest.walk
        fold = walk.blocks.get(delta.index)
        tail = self._tails.get(fold)
        if tail is None:
            fold = walk.grow(delta)
            if fold is not None:
                self._tails[fold] = Tail(walk.grow, lambda _: walk)
        elif not tail.take(delta):
            tail.follow(delta)
            fold = walk.grow(delta)
        return fold

    def settle(self) -> None:
        """Give the blocks their pieces, before somebody looks at them."""
        for tail in self._tails.values():
            tail.settle()
        self._tails.clear()

    def of(self, event: Event) -> Sequence[L]:
        """The lanes that an event concerns; none for a run that hasn't begun, unless the event begins it.

        Raises:
            ProviderError: The event is a `StreamError`, of any run and choice.
            LimitExceededError: There are too many runs.
        """
        if not isinstance(event, UsageUpdate):  # some providers send one with each chunk
            self.settle()
        if isinstance(event, StreamError):
            self.first.walk.step(event)
        if concerns_any_run(event):
            return self._of_any_run(event)
        lane = self._lanes.get(event.run_id)
        if lane is not None:
            return (lane,)
        if isinstance(event, _BEGIN_NO_RUN) or getattr(event, "choice", None) not in (None, self._choice):
            return ()
        lane = self._new(self.first) if self._lanes else self.first
        self._lanes[event.run_id] = lane
        lane.walk.run_id = event.run_id
        lane.begin(event)
        return (lane,)

    def _of_any_run(self, event: Event) -> Sequence[L]:
        lanes = tuple(self)
        if isinstance(event, ToolUpdate) and len(lanes) > 1:
            return [lane for lane in lanes if lane.walk.has_call(event.call_id)] or lanes[:1]
        return lanes
