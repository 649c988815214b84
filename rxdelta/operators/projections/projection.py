"""The base of the projections: a walk of one choice, and what a projection emits for the changes of the walk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar

from rxdelta.core import PIECE_FIELDS, Tail, Walk, wrong_value
from rxdelta.core.events import EVENT_TYPES
from rxdelta.runtime import all_events, lift_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reactivex import Observable

    from rxdelta.core import Block, BlockFold, Change, Event
    from rxdelta.runtime import Emits

__all__ = ["Growth", "Projection", "project", "text_growth"]

T = TypeVar("T")

Growth: TypeAlias = tuple[Literal["begun", "more", "replaced"], str]
"""What a change means for a text: its beginning, an addition, or a replacement of the whole; and that text."""


def project(
    name: str,
    begin: Callable[[str, Walk], Projection[T]],
    *,
    emits: Emits | None = None,
) -> Callable[[Observable[Event]], Observable[T]]:
    """The operator that passes the events of each subscription to a new projection."""
    projecting: Callable[[Observable[Event]], Observable[T]] = lift_machine(
        name,
        lambda sink: begin(name, Walk(sink.choice, limits=sink.limits)),
        emits=emits,
        needs_all=True,
    )
    return all_events(name, projecting)


class Projection(Generic[T]):
    """One subscription's state. It knows no Rx.

    Args:
        name: The operator's name in messages.
        walk: Follows the choice that is projected.
        delta: The type of the deltas whose pieces are projected; others aren't read.
    """

    def __init__(self, name: str, walk: Walk, delta: type | None = None) -> None:
        self.walk = walk
        self._name = name
        self._delta = delta
        self._field = "" if delta is None else PIECE_FIELDS[delta]
        self._blocks, self._choice = walk.blocks, walk.choice
        self._tail = Tail(walk.grow, self.lane)  # a block's own text is needed when something else changes
        self.begin()

    def begin(self) -> None:
        """Set the state for a new message, or for another attempt at it."""

    def grown(self, _: BlockFold, __: str, /) -> Iterable[T]:
        """Return the values for a block that gets one more piece, which the block may lack still; by default none."""
        return ()

    def changed(self, changes: Sequence[Change], event: Event, /) -> Iterable[T]:
        """Return the values for all other changes."""
        raise NotImplementedError

    def keeps(self, _: Block, /) -> bool:
        """Whether the projection needs a block after the block's end. By default it needs none, and holds none."""
        return False

    def lane(self, _: Any, /) -> Walk | None:
        """The walk, if this delta's block may lack the next pieces while `grown` gets them."""
        return self.walk

    def step(self, event: Event) -> Iterable[T]:
        if self._tail.take(event):
            given: Any = event  # type checkers don't narrow by a type in a variable
            piece = getattr(given, self._field)
            return self.grown(self._blocks[given.index], piece) if piece else ()
        return self.step_alone(event)

    def step_alone(self, event: Event) -> Iterable[T]:
        """The step of an event that isn't one more piece of the newest block."""
        given: Any = event
        kind: type = type(event)
        if kind is self._delta:
            self._tail.follow(event)
            fold = self._blocks.get(given.index)  # as in `Walk.grow`, which would cost more
            if given.run_id != self.walk.run_id:
                self.walk.grow(given)  # which refuses another run
            if fold is None or fold.grows is not kind or given.choice != self._choice:
                return ()
            piece = getattr(given, self._field)
            if not piece:
                return ()
            fold.grow(piece)
            return self.grown(fold, piece)
        if kind in PIECE_FIELDS:
            return ()  # the tail must not follow it, or it would take the next one
        if kind not in EVENT_TYPES:
            raise wrong_value(self._name, event)
        self._tail.follow(event)
        changes = self.walk.step(event)
        if not changes:
            return ()
        if changes[0].kind in ("another", "reset"):
            self.begin()
        for change in changes:
            if change.kind == "closed" and not self.keeps(change.fold.block):
                self.walk.let_go(change.fold)
        return self.changed(changes, event)


def text_growth(before: str, after: str) -> Growth:
    """The growth of a text from `before` to `after`."""
    return ("more", after[len(before) :]) if after.startswith(before) else ("replaced", after)
