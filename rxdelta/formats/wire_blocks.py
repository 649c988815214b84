"""The life of the blocks of one message, where the provider numbers them and says when each begins and ends.

    place    what the provider calls a block by: an index, in some formats with the kind of block
    index    what we call it by: no two blocks of a message have the same
    open     from its start to its stop; at each place the newest block is the one that is meant

What streams do beyond that, and what happens then:

- A place is used again while its block is open. The old block is finished before the new one starts.
- A call has been stopped and has no arguments. It takes none, or the token limit cut it off before they came.
  Only what follows tells, so its finish is held back until something follows.
- The message ends while blocks are open. They are finished with it.
- A call was cut off, or may have been. It finishes as invalid, so that it never looks executable.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeAlias, TypeVar

from rxdelta.core import Event, events, freeze, tool_call_delta
from rxdelta.formats.decoding import (
    CUT_OFF_AMID_ARGUMENTS,
    CUT_OFF_BEFORE_ARGUMENTS,
    Chunk,
    due,
    invalid_call,
)

__all__ = ["WireBlock", "WireBlocks"]

Out: TypeAlias = list[Event]
Place = TypeVar("Place", bound=Hashable)


class WireBlock:
    """A block that has started, and what its finish depends on."""

    __slots__ = (
        "emitted",
        "fed",
        "has_object",
        "id",
        "index",
        "items",
        "items_field",
        "kind",
        "open",
        "runnable",
        "start",
        "wrong",
    )

    def __init__(self, index: int, kind: str, *, runnable: bool = False) -> None:
        self.index, self.kind = index, kind
        self.id: str | None = None  # the provider's
        self.start: Chunk | None = None  # while it is open; by it a start that is sent twice is known
        self.open = True
        self.runnable = runnable  # a call that the client runs
        self.fed = False  # it has arguments
        self.has_object = False  # they came as an object, so that no text can follow
        self.wrong: str | None = None  # why it must not be run
        self.items: list[Any] = []
        self.items_field = "citations"
        self.emitted = 0  # so many items have been emitted

    def update(self, out: Out, *, last: bool = False) -> None:
        """Emit the list of items, for which there are no deltas: when it has grown by an eighth, and at the end."""
        size = len(self.items)
        if size > self.emitted and (last or due(size, self.emitted)):
            self.emitted = size
            out.append(events.BlockDelta(self.index, {self.items_field: self.items}))

    def close(self) -> None:
        self.open, self.start = False, None


Block = TypeVar("Block", bound=WireBlock)


class WireBlocks(Generic[Place, Block]):
    """The blocks of one message. The methods append events to `out`."""

    replaced: str | None = None
    """Why a call is invalid in whose place another block began before its arguments came. `None`: it has none."""

    def __init__(self) -> None:
        self.message_started = False
        self.message_id: str | None = None
        self.foreign = False  # the chunk has something for which there is no event: it is passed on
        self.cut: bool | None = (
            None  # whether the token limit ended the message; `None` until its end is known
        )
        self.newest: dict[Place, Block] = {}
        self.unfinished: dict[int, Block] = {}  # by index
        self.held: Block | None = None  # the call whose finish is held back
        self.next_index = 0
        self._used: set[int] = set()

    def open_at(self, place: Place) -> Block | None:
        block = self.newest.get(place)
        return block if block is not None and block.open else None

    def index_for(self, index: int) -> int:
        """This index, or a new one if another block has it."""
        return self.next_index if index in self._used else index

    def start_message(self, out: Out, start: events.MessageStart | None = None) -> None:
        """A stream whose beginning was lost begins with a start all the same."""
        if not self.message_started:
            self.message_started = True
            out.append(start or events.MessageStart())

    def begin(self, out: Out, place: Place, block: Block, content: Chunk) -> None:
        start = events.BlockStart(block.index, content)
        self.start_message(out)
        self.release(out)
        known = self.open_at(place)
        if known is not None:
            if not known.fed:
                known.wrong = self.replaced
            self.finish(out, known)
        self.newest[place] = self.unfinished[block.index] = block
        self._used.add(block.index)
        self.next_index = max(self.next_index, block.index + 1)
        out.append(start)

    def add_arguments(self, out: Out, block: Block, arguments: str | Chunk) -> None:
        """A piece of their text, or beyond the format all of them as an object."""
        self.release(out)
        block.fed = True
        if isinstance(arguments, str):
            out.append(tool_call_delta(block.index, arguments))
        else:
            block.has_object = True
            out.append(events.BlockDelta(block.index, {"args": freeze(arguments, lenient=True)}))

    def stop(self, out: Out, place: Place) -> None:
        block = self.open_at(place)
        if block is None:
            return
        self.release(out)
        block.close()
        if block.runnable and not block.fed and self.cut is None:
            self.held = block
        else:
            self.finish(out, block)

    def release(self, out: Out) -> None:
        """Finish the call that was held back: whether the message goes on behind it is known now."""
        held, self.held = self.held, None
        if held is not None:
            self.finish(out, held)

    def finish(self, out: Out, block: Block) -> None:
        wrong = block.wrong
        if self.cut and wrong is None:
            if not block.fed:
                wrong = CUT_OFF_BEFORE_ARGUMENTS
            elif block.open:
                wrong = CUT_OFF_AMID_ARGUMENTS
        block.close()
        del self.unfinished[block.index]
        block.update(out, last=True)
        out.append(events.BlockFinish(block.index, invalid_call(wrong) if wrong and block.runnable else None))

    def finish_all(self, out: Out) -> None:
        self.held = None
        for block in list(self.unfinished.values()):
            self.finish(out, block)

    def flush(self, out: Out) -> None:
        """Emit what unfinished blocks have held back, when the message breaks off."""
        for block in self.unfinished.values():
            block.update(out, last=True)
