"""The base of the projections: a walk of one choice, and what a projection emits for the changes of the walk.

Three readings of a change serve several projections: as text of the client's calls, as prose, and as one document.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeGuard, TypeVar

from rxdelta.core import (
    PIECE_FIELDS,
    Block,
    BlockFold,
    Change,
    ContentPart,
    Event,
    FrozenDict,
    Tail,
    ToolCall,
    Walk,
    freeze,
    raw_arguments,
    raw_text,
    wrong_value,
)
from rxdelta.core.events import EVENT_TYPES, BlockFinish
from rxdelta.runtime import Emits, all_events, lift_machine

if TYPE_CHECKING:
    from reactivex import Observable


T = TypeVar("T")

Growth: TypeAlias = tuple[Literal["begun", "more", "replaced"], str]
"""The effect of a change on a text: its beginning, an addition, or a replacement of the whole; and that text."""


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


def call_of(fold: BlockFold | None) -> ToolCall | None:
    """The block, if it is a call that the client is to run."""
    block = None if fold is None else fold.block
    return block if isinstance(block, ToolCall) and block.type != "server_tool_call" else None


def argument_text(call: ToolCall) -> str:
    """The arguments as text. An object is written as JSON, unless it is empty and the call may still get arguments."""
    arguments = call.arguments
    if isinstance(arguments, FrozenDict):
        return json.dumps(arguments) if arguments or not call.open else ""
    return arguments or ""


def argument_growth(call: ToolCall, change: Change, event: Event) -> Growth:
    """The effect of a change of this call on the text of its arguments."""
    before = change.before
    if change.kind == "restarted" or not isinstance(before, ToolCall):
        return "begun", argument_text(call)
    parsed = change.kind == "closed" and not (isinstance(event, BlockFinish) and event.content)
    if parsed or raw_arguments(before) is raw_arguments(call):
        return "more", ""
    return text_growth(argument_text(before), argument_text(call))


class Prose:
    """The effect of the changes of a message's blocks on the texts of one type."""

    def __init__(self, type: Literal["text", "reasoning"]) -> None:
        self._type = type
        self.halves: dict[BlockFold, str] = {}  # first halves of surrogate pairs, which wait for the second

    def owns(self, block: Block | None) -> TypeGuard[ContentPart]:
        """Whether the block is of the type."""
        return isinstance(block, ContentPart) and block.type == self._type

    def text(self, block: Block | None) -> str:
        """The block's text, if the block is of the type."""
        return (block.text or "") if self.owns(block) else ""

    def grown(self, fold: BlockFold, piece: str) -> str:
        """The whole characters that a piece of a block completes."""
        if fold.block.type != self._type:
            return ""
        if not self.halves and piece.isascii():
            return piece
        piece = self.halves.pop(fold, "") + piece
        if "\ud800" <= piece[-1] <= "\udbff":
            piece, self.halves[fold] = piece[:-1], piece[-1]
        whole: str = freeze(piece)
        return whole

    def changed(self, change: Change) -> Growth | None:
        """The effect of another change; `None` if it concerns no block of the type. The text may be empty."""
        if change.fold is None:
            return None
        block, before = change.fold.block, change.before
        if not (self.owns(block) or self.owns(before)):
            return None
        anew = change.kind in ("opened", "restarted")
        if not anew and self.owns(block) and self.owns(before) and raw_text(block) is raw_text(before):
            return "more", ""
        self.halves.pop(change.fold, None)
        return ("begun", self.text(block)) if anew else text_growth(self.text(before), self.text(block))


class TextDocument:
    """The text blocks of a message as one document, in their order.

    A block is read when the block before it has ended. A change before the reading position restarts the reading.
    """

    def __init__(self) -> None:
        self._prose = Prose("text")
        self._order: list[BlockFold] = []
        self._known: set[BlockFold] = set()
        self._reached = 0  # the number of blocks that have been read; all but the last of them have ended

    def keeps(self, _: Block) -> bool:
        """Whether the document needs a block after its end: any, since a second finish may make a text of it."""
        return True

    def grown(self, fold: BlockFold, piece: str) -> str:
        """Return more text of the document, which is empty if the block isn't being read."""
        piece = self._prose.grown(fold, piece)
        return piece if fold is self._last() else ""

    def changed(self, changes: Iterable[Change]) -> Iterator[Growth]:
        """Return more text of the document, or the beginning of a new one."""
        for change in changes:
            growth = self._prose.changed(change)
            if growth is None:
                continue
            fold = change.fold
            if fold not in self._known:
                self._insert(fold)
            elif fold is self._last() and growth[0] == "more":
                yield growth
            elif fold in self._order[: self._reached]:
                self._reached = 0
        while self._reached < len(self._order):
            last = self._last()
            if last is not None and last.block.open and self._prose.owns(last.block):
                return
            text = self._prose.text(self._order[self._reached].block)
            self._reached += 1
            yield ("begun" if last is None else "more"), text

    def _last(self) -> BlockFold | None:
        """The last block that has been read."""
        return self._order[self._reached - 1] if self._reached else None

    def _insert(self, fold: BlockFold) -> None:
        """Insert a block as a message does: a number before the next higher one, any other key at the end."""
        key, place = fold.block.key, len(self._order)
        if isinstance(key, int):
            for at in range(place - 1, -1, -1):
                other = self._order[at].block.key
                if isinstance(other, int):
                    if other < key:
                        break
                    place = at
        self._order.insert(place, fold)
        self._known.add(fold)
        if place < self._reached:
            self._reached = 0
