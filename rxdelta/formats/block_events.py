"""The events of a message's blocks, for decoders: `BlockWriter` where blocks have no numbers, `WireBlocks` where they have.

A format without numbers and without borders of blocks uses writers:

    decoder ─┬─ MessageWriter   message-start, usage, message-finish          one of each for every choice
             └─ BlockWriter     content-block-start, -delta, -finish

Writers append to a list of events that their decoder owns and empties with `take_all`.

A format that numbers its blocks, and tells when each begins and ends, uses `WireBlocks`:

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

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

from rxdelta.core import (
    Event,
    TokenUsage,
    events,
    freeze,
    is_mapping,
    reasoning_delta,
    text_delta,
    tool_call_delta,
    usage_update,
)
from rxdelta.formats.calls import (
    BROKEN_OFF,
    CUT_OFF_AMID_ARGUMENTS,
    CUT_OFF_BEFORE_ARGUMENTS,
    Arguments,
    Change,
    arguments_after_end,
    call_identity,
    invalid_call,
)
from rxdelta.formats.decoding import NOTHING, GrowingList, Json, kept


def as_citation(fields: Mapping[str, Any], raw: Mapping[str, Any]) -> dict[str, Any]:
    """A citation with those of the protocol's fields that are known, and with the provider's own object.

    Example:
        >>> as_citation({"title": "A", "url": None}, {"name": "A"})
        {'title': 'A', 'raw': {'name': 'A'}}
    """
    return kept({name: value for name, value in fields.items() if value is not None} | {"raw": raw})


_NO_FIELDS: Json = {}


def take_all(out: list[Event]) -> list[Event]:
    """The events in a decoder's list, which is emptied.

    A malformed chunk raises before this is called. So the events before its fault come out with the next chunk.
    """
    taken = out.copy()
    out.clear()
    return taken


class BlockWriter:
    """Writes the blocks of one choice, and numbers them in the order in which they start.

    At most one block is *current*: the text, reasoning or other prose that is being written. The start of another
    block finishes it, unless that block starts `beside` it. Other blocks can stay open together, such as calls with
    interleaved arguments: they are started with `start`, and changed and finished by their numbers.

    Args:
        out: The decoder's list of events.
        choice: The index of the choice.
        message_id: The provider's id of the message, of which ids of calls are made up.

    Attributes:
        count: How many blocks have started, which is the number of the next.
        type: The type of the current block, `None` if there is none.
        current: The number of the current block; without one, that of the last.
        known: The fields of the current block that have been emitted and may be given again.

    Example:
        >>> out: list[Event] = []
        >>> blocks = BlockWriter(out, 0, "m1")
        >>> blocks.write("reasoning", "Hm.")
        >>> blocks.write("text", "Hi")
        >>> blocks.write("text", "!")
        >>> blocks.end_current()
        >>> for event in out:
        ...     print(event.index, event.event)
        0 content-block-start
        0 content-block-delta
        0 content-block-finish
        1 content-block-start
        1 content-block-delta
        1 content-block-delta
        1 content-block-finish
    """

    __slots__ = ("_citations", "_message_id", "choice", "count", "current", "known", "out", "type")

    def __init__(self, out: list[Event], choice: int, message_id: str | None = None) -> None:
        self.out = out
        self.choice = choice
        self.count = 0
        self.type: str | None = None
        self.current = -1
        self.known: dict[str, Any] = {}
        self._message_id = message_id
        self._citations = GrowingList()

    # Any block.

    def start(self, content: Json, *, beside: bool = False) -> int:
        """Start a block and return its number."""
        if not beside:
            self.end_current()
        number = self.count
        self.count += 1
        self.out.append(events.BlockStart(number, content, choice=self.choice))
        return number

    def change(self, block: int, fields: Json) -> None:
        self.out.append(events.BlockDelta(block, fields, choice=self.choice))

    def add_data(self, block: int, data: str) -> None:
        if data:
            self.out.append(events.DataDelta(block, data, choice=self.choice))

    def add_arguments(self, block: int, text: str) -> None:
        if text:
            self.out.append(tool_call_delta(block, text, self.choice))

    def finish(self, block: int, content: Json | None = None) -> None:
        self.out.append(events.BlockFinish(block, content, choice=self.choice))

    def whole(self, content: Json, data: str = "", *, beside: bool = False) -> None:
        """Write a block that came in one piece."""
        number = self.start(content, beside=beside)
        self.add_data(number, data)
        self.finish(number)

    def pass_on(self, part: Json) -> None:
        """Write a part of an unknown kind as a block that has it unchanged."""
        self.whole({"type": "non_standard", "value": kept(part)})

    def call_identity(self, call_id: str | None) -> dict[str, Any]:
        """The fields that identify the call that starts next: the provider's id, else a made-up one."""
        return call_identity(call_id, self.made_up_id())

    def made_up_id(self) -> str:
        """An id for the next block if the provider gives none."""
        return f"{self._message_id or 'call'}-{self.choice}-{self.count}"

    # The current block.

    def begin(self, content: Json, known: Json = _NO_FIELDS) -> None:
        """Start a block and make it the current one. `known` are those of its fields that may be given again."""
        self.current = self.start(content)
        self.type, self.known = content["type"], {**known}

    def write(self, type: str, text: str, fields: Json = _NO_FIELDS) -> None:
        """Add a piece of prose to the current block if that is of this type, else to a new one with these fields."""
        if self.type != type:
            self.begin({"type": type, type: "", **fields})
        delta = reasoning_delta if type == "reasoning" else text_delta
        self.out.append(delta(self.current, text, self.choice))

    def describe(self, fields: Json) -> None:
        """Change those fields of the current block that are new or have another value."""
        new = {name: value for name, value in fields.items() if self.known.get(name) != value}
        if new:
            self.known.update(new)
            self.change(self.current, new)

    def is_signed_otherwise(self, fields: Json) -> bool:
        """Whether the current block has another signature than these fields. Then each needs its own block."""
        before, now = self.known.get("signature"), fields.get("signature")
        return before is not None and now is not None and before != now

    def cite(self, citations: Iterable[Json]) -> None:
        """Add citations to the current block. They are emitted when they are due, at the latest at its end."""
        for citation in citations:
            self._citations.add(citation)
        self._emit_citations(at_end=False)

    def flush(self) -> None:
        """Emit what is held back of the current block."""
        self._emit_citations(at_end=True)

    def end_current(self) -> None:
        """Finish the current block if there is one."""
        if self.type is None:
            return
        self.flush()
        self.finish(self.current)
        self.type, self.known, self._citations = None, {}, GrowingList()

    def _emit_citations(self, *, at_end: bool) -> None:
        citations = self._citations.take(at_end=at_end)
        if citations is not None:
            self.change(self.current, {"citations": citations})


class MessageWriter:
    """Writes the start of one message, its usage when that has changed, and its finish.

    Args:
        out: The decoder's list of events.
        choice: The index of the choice.
        message_id: The provider's id of the message, as far as it is known at its start.
        model: The model, likewise.
        usage: The usage, likewise.

    Attributes:
        metadata: What the choice has beyond the format's fields. It is emitted with the finish.
        finished: Whether the message has finished.
    """

    __slots__ = ("_choice", "_id", "_lists", "_model", "_out", "_usage", "finished", "metadata")

    def __init__(
        self,
        out: list[Event],
        choice: int,
        message_id: str | None,
        model: str | None,
        usage: TokenUsage | None,
    ) -> None:
        self.metadata: dict[str, Any] = {}
        self.finished = False
        self._out = out
        self._choice = choice
        self._id = message_id
        self._model = model
        self._usage = usage
        self._lists: dict[str, dict[str, Any]] = {}

    def start(self, metadata: Json) -> None:
        start = events.MessageStart(self._id, self._model, self._usage, metadata, choice=self._choice)
        self._out.append(start)

    def show_usage(self, usage: TokenUsage | None) -> bool:
        """Emit the usage if it has changed. `False` if it changed after the finish."""
        if usage is None or usage is self._usage or usage == self._usage:
            return True
        self._usage = usage
        if not self.finished:
            self._out.append(usage_update(usage, self._choice))
        return not self.finished

    def append(self, name: str, found: Any) -> None:
        """Add to a list in the metadata that continues with every chunk, or to an object of such lists.

        Example:
            >>> out: list[Event] = []
            >>> message = MessageWriter(out, 0, "m1", "m", None)
            >>> message.append("logprobs", {"content": [-0.1]})
            >>> message.append("logprobs", {"content": [-0.2]})
            >>> message.finish("stop", "stop", {}, "m")
            >>> out[0].metadata
            {'logprobs': {'content': [-0.1, -0.2]}}
        """
        found = freeze(found, lenient=True)
        for key, items in (found if is_mapping(found) else {"": found}).items():
            if items not in NOTHING:
                known = self._lists.setdefault(name, {}).setdefault(key, [])
                known.extend(items if isinstance(items, (list, tuple)) else [items])

    def finish(
        self,
        reason: str | None,
        word: str | None,
        metadata: Json,
        model: str | None,
        message_id: str | None = None,
    ) -> None:
        """Emit the finish.

        Args:
            reason: Why the message ended, in the protocol's words.
            word: The same in the provider's.
            metadata: What the stream has beyond the format's fields.
            model: The model. It is emitted if it was not yet known at the start.
            message_id: The message's id, likewise.
        """
        self.finished = True
        late: dict[str, Any] = {}
        if message_id is not None and message_id != self._id:
            late["id"] = message_id
        if model != self._model:
            late["model"] = model
        lists = {name: found[""] if [*found] == [""] else found for name, found in self._lists.items()}
        metadata = {**late, **metadata, **self.metadata, **lists}
        finish = events.MessageFinish(reason, word, self._usage, metadata, choice=self._choice)
        self._out.append(finish)


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
        self.start: Json | None = None  # until the stop, to recognise a start that is sent twice
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

    def begin(self, out: Out, place: Place, block: Block, content: Json) -> None:
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

    def add_arguments(self, out: Out, block: Block, arguments: str | Json) -> None:
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
