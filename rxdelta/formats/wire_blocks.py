"""The life of the blocks of one message, for formats that number their blocks and tell when each begins and ends.

    place    the provider's key of a block: an index, in some formats together with a kind
    index    the protocol's number of a block, unique in the message
    open     from a block's start to its stop; a place means the newest block there

Some streams go beyond that:

- A place is used again while its block is open. The old block is finished before the new one starts.
- A call has been stopped without arguments. Either it takes none, or the token limit cut it off before they came.
  The finish of the call waits for the next event, which tells.
- The message ends while blocks are open. They are finished first.
- A call was cut off, or may have been. It finishes as invalid, because it must never look executable.
- Arguments come for a call that has been stopped. If its finish waits, they are its arguments. Else they make it
  invalid by a second finish, which has their first piece, unless they say the same again.
- Arguments come twice. A format whose servers do that gives its calls a `said`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeAlias, TypeVar

from rxdelta.core import Event, events, freeze, tool_call_delta
from rxdelta.formats.decoding import Chunk
from rxdelta.formats.growing_list import GrowingList
from rxdelta.formats.repeated_arguments import Arguments, Change
from rxdelta.formats.tool_calls import (
    BROKEN_OFF,
    CUT_OFF_AMID_ARGUMENTS,
    CUT_OFF_BEFORE_ARGUMENTS,
    arguments_after_end,
    invalid_call,
)

__all__ = ["WireBlock", "WireBlocks"]

Out: TypeAlias = list[Event]
Place = TypeVar("Place", bound=Hashable)


class WireBlock:
    """A block that has started, and what its finish depends on."""

    __slots__ = (
        "error",
        "has_all_arguments",
        "has_arguments",
        "id",
        "index",
        "items",
        "items_field",
        "kind",
        "late_is_known",
        "open",
        "runnable",
        "said",
        "start",
    )

    def __init__(self, index: int, kind: str, *, runnable: bool = False) -> None:
        self.index, self.kind = index, kind
        self.id: str | None = None  # the provider's
        self.start: Chunk | None = None  # until the stop, to recognise a start that is sent twice
        self.open = True
        self.runnable = runnable  # a call that the client runs
        self.has_arguments = self.has_all_arguments = False
        self.said: Arguments | None = (
            None  # the text of a call's arguments, if servers of the format repeat it
        )
        self.late_is_known = False  # arguments that come after its end change nothing
        self.error: str | None = None  # why the call must not be run
        self.items = GrowingList()  # emitted whole, since no delta can carry them
        self.items_field = "citations"

    def update(self, out: Out, *, last: bool = False) -> None:
        """Emit the items if they are due."""
        items = self.items.take(at_end=last)
        if items is not None:
            out.append(events.BlockDelta(self.index, {self.items_field: items}))

    def say(self, out: Out, piece: str) -> None:
        """Add a piece of the arguments' text, or what it has beyond them if it says them again."""
        if self.said is not None:
            self._tell(out, self.said.add(piece))
        else:
            out.append(tool_call_delta(self.index, piece))

    def end_arguments(self, out: Out) -> None:
        if self.said is not None:
            self._tell(out, self.said.end())

    def _tell(self, out: Out, change: Change) -> None:
        if change.instead is not None:
            out.append(events.BlockDelta(self.index, {"args": change.instead}))
        if change.more:
            out.append(tool_call_delta(self.index, change.more))

    def close(self) -> None:
        self.open, self.start = False, None

    def begin_again(self) -> None:
        """The start is sent twice. So are the arguments behind it, if the block has ended."""
        self.late_is_known |= not self.open


Block = TypeVar("Block", bound=WireBlock)


class WireBlocks(Generic[Place, Block]):
    """The blocks of one message. The methods append events to `out`.

    Example:
        >>> blocks = WireBlocks[int, WireBlock]()
        >>> out: list[Event] = []
        >>> call = WireBlock(blocks.index_for(0), "tool_use", runnable=True)
        >>> blocks.begin(out, 0, call, {"type": "tool_call_chunk", "id": "c1", "name": "now", "args": ""})
        >>> blocks.stop(out, 0)
        >>> [event.event for event in out]
        ['message-start', 'content-block-start']
        >>> blocks.cut = True
        >>> blocks.finish_all(out)
        >>> out[-1].content["error"]
        'cut off by the token limit before its arguments came'
    """

    replaced: str | None = None
    """The error of a call that has no arguments yet when another block takes its place. `None`: it takes none."""

    def __init__(self) -> None:
        self.message_started = False
        self.message_id: str | None = None
        self.foreign = False  # the chunk has something unknown, so that it is passed on
        self.cut: bool | None = None  # by the token limit; unknown until the message ends
        self.newest: dict[Place, Block] = {}
        self.unfinished: dict[int, Block] = {}  # by index
        self.held: Block | None = None  # the call whose finish waits for the next event
        self.calls_client = False  # a call that the client runs has begun
        self.next_index = 0
        self._used: set[int] = set()

    def open_at(self, place: Place) -> Block | None:
        block = self.newest.get(place)
        return block if block is not None and block.open else None

    def index_for(self, index: int) -> int:
        """This index, or a new one if another block has it."""
        return self.next_index if index in self._used else index

    def start_message(self, out: Out, start: events.MessageStart | None = None) -> None:
        """Emit the start, an empty one if the stream's was lost."""
        if not self.message_started:
            self.message_started = True
            out.append(start or events.MessageStart())

    def begin(self, out: Out, place: Place, block: Block, content: Chunk) -> None:
        start = events.BlockStart(block.index, content)
        self.start_message(out)
        self.release(out)
        known = self.open_at(place)
        if known is not None:
            if not known.has_arguments:
                known.error = self.replaced
            self.finish(out, known)
        self.newest[place] = self.unfinished[block.index] = block
        self.calls_client |= block.runnable
        self._used.add(block.index)
        self.next_index = max(self.next_index, block.index + 1)
        out.append(start)

    def add_arguments(self, out: Out, block: Block, arguments: str | Chunk) -> None:
        """Emit a piece of their text, or all of them as an object, which some streams have instead."""
        self.release(out)
        block.has_arguments = True
        if isinstance(arguments, str):
            out.append(tool_call_delta(block.index, arguments))
        else:
            block.has_all_arguments = True
            out.append(events.BlockDelta(block.index, {"args": freeze(arguments, lenient=True)}))

    def open_for(self, place: Place, arguments: object) -> Block | None:
        """The open block at a place. A call whose finish waits is open again if there are arguments for it."""
        block = self.newest.get(place)
        if arguments and block is not None and block is self.held:
            self.held, block.open = None, True
        return self.open_at(place)

    def add_late_arguments(self, out: Out, place: Place, arguments: object) -> bool:
        """Make the call at a place invalid that has ended. `False` if there is no such call, or it is invalid already."""
        block = self.newest.get(place)
        if not isinstance(arguments, str) or not arguments:
            return False
        if block is None or block.open or block.late_is_known or not block.runnable:
            return False
        if block.said is not None and block.said.says(arguments):
            return True
        self.release(out)
        block.late_is_known = True
        out.append(events.BlockFinish(block.index, arguments_after_end(arguments)))
        return True

    def stop(self, out: Out, place: Place) -> None:
        block = self.open_at(place)
        if block is None:
            return
        self.release(out)
        block.close()
        if block.runnable and not block.has_arguments and self.cut is None:
            self.held = block
        else:
            self.finish(out, block)

    def release(self, out: Out) -> None:
        """Finish the call that waits, because the message goes on."""
        held, self.held = self.held, None
        if held is not None:
            self.finish(out, held)

    def finish(self, out: Out, block: Block) -> None:
        error = block.error
        if self.cut and error is None:
            if not block.has_arguments:
                error = CUT_OFF_BEFORE_ARGUMENTS
            elif block.open:
                error = CUT_OFF_AMID_ARGUMENTS
        block.close()
        block.end_arguments(out)
        del self.unfinished[block.index]
        block.update(out, last=True)
        content = invalid_call(error) if error is not None and block.runnable else None
        out.append(events.BlockFinish(block.index, content))

    def finish_all(self, out: Out) -> None:
        self.held = None
        for block in list(self.unfinished.values()):
            self.finish(out, block)

    def break_off(self, out: Out) -> None:
        """Finish all blocks of a reply whose provider failed."""
        for block in self.unfinished.values():
            block.error = block.error or BROKEN_OFF
        self.finish_all(out)

    def flush(self, out: Out) -> None:
        """Emit what unfinished blocks hold back, because the message breaks off."""
        for block in self.unfinished.values():
            block.update(out, last=True)
