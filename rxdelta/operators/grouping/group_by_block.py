"""A live stream for each content block and each tool call of a reply."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from rxdelta.core import (
    PIECE_FIELDS,
    TERMINAL,
    Block,
    BlockFold,
    Change,
    ContentPart,
    Event,
    StreamInterrupted,
    ToolCall,
    Walk,
    Walks,
    call_id_of,
    is_waiting,
    refusal,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockFinish,
    BlockStart,
    MessageStart,
)
from rxdelta.operators.grouping.streams import Branch, Split, split_by
from rxdelta.runtime import Sink, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


_PART = attrgetter("type", "open", "options", "citations")
_CALL = attrgetter("type", "open", "call_id", "name", "status", "display_text", "metadata", "result", "error")


class BlockStream(Branch[Block]):
    """One block of a reply as it grows: emits a `ContentPart` or `ToolCall` after each change.

    Hot: it doesn't wait for subscribers. A late subscriber gets the newest snapshot at once, and after the end also
    the end. A subscriber that raises or leaves doesn't affect the others, nor other blocks. It is removed, and its
    exception goes once to the running asyncio loop's exception handler, or without a loop to the log `rxdelta`. If it
    was subscribed as part of a pipeline that a `for_each` or `async for` reads, as by `flat_map`, its exception is
    raised there.

    Completes when the block has finished and, if its call has an execution status, that is `completed` or
    `failed`; a finished call that waits for approval completes with the source.

    Errors: `StreamInterrupted` if the source completed, or an attempt was given up, before that; else the
    source's own.

    Attributes:
        index: Names the block within its message.
        choice: Which of several alternative replies the block belongs to.
        run_id: The run that the block belongs to; `None` is the run without a name.
    """

    def __init__(self, split: Split[BlockStream], start: BlockStart | BlockFinish, block: Block) -> None:
        super().__init__(split)
        self.index = start.index
        self.choice = start.choice
        self.run_id = start.run_id
        self._block = block
        self._emitted = False
        self._given_up = False

    @property
    def kind(self) -> str:
        """The block's type: `text`, `reasoning`, `tool_call`, … as in `ContentPart` and `ToolCall`."""
        return self._block.type

    @property
    def call_id(self) -> str | None:
        """The call's id; `None` until it has arrived, and for a block that is no call."""
        return call_id_of(self._block)

    @property
    def name(self) -> str | None:
        """The tool's name; `None` until it has arrived, and for a block that is no call."""
        return self._block.name if isinstance(self._block, ToolCall) else None

    @property
    def _label(self) -> str:
        named = "" if self.name is None else f" {self.name!r}"
        of = f" of choice {self.choice}" if self.choice else ""
        of += "" if self.run_id is None else f" of run {self.run_id!r}"
        return f"block {self.index!r}{of} ({self.kind}{named})"

    def __repr__(self) -> str:
        return f"<BlockStream {self._label}>"

    def _so_far(self) -> Sequence[Block]:
        return (self._block,) if self._emitted else ()


@operator_maker
def group_by_block() -> Callable[[Observable[Event]], Observable[BlockStream]]:
    """Emit a stream for each block of the reply; `BlockStream` describes its values and its end.

    ::

        events     (think:Hm.)The     _tide     (call:look{"at": "sea"})  -|
                   group_by_block()
        reasoning  <Hm.>      [<Hm.>|]
        text                  <The>   <The tide>[<The tide>|]
        tool_call                               [<look…><look(at='sea')>|]

    A stream is emitted at its block's start, before the block's first snapshot, so that a subscriber that subscribes
    at once misses nothing. (A block that comes whole, by its finish alone, starts with that.) A second start of an
    open block resets the block within its stream. A block that starts again after its end gets a new stream. Deltas
    of blocks that have not started, or have ended, are ignored. Blocks of different choices and runs are separate.
    `ToolUpdate`s go to the call that they name, also after its message. The message's finish, or its interruption,
    finishes its open blocks, as in `scan_deltas`; the blocks of a later message get new streams. If another message
    begins before that, open blocks end with `StreamInterrupted`. A stream that has ended is forgotten.

    The source stays subscribed while the stream of blocks or one of the blocks has a subscriber. As everywhere in Rx,
    a source that emits on several threads must serialise its emissions; blocks are subscribed on its thread. An
    observer of the stream of blocks that raises ends the subscription: open blocks end with `StreamInterrupted`.

    Completes with the source; open blocks then end with `StreamInterrupted`, except for calls that wait for approval.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for a
    value that is no event. Open blocks get the error first. After an `AttemptReset` the blocks of an unfinished message
    end with `StreamInterrupted`, and the next attempt's blocks are new streams. An `AttemptReset` that names a choice
    does this to that choice's message only, also if it has finished.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> ev = rd.events
        >>> events = rx.of(ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "Hi"), ev.BlockFinish(0))
        >>> blocks = events.pipe(rd.group_by_block())
        >>> blocks.subscribe(lambda block: block.subscribe(lambda part: print(block.kind, part.text))).dispose()
        text None
        text Hi
        text Hi
    """

    return split_by("group_by_block", Grouping)


class Grouping(Split[BlockStream]):
    """One subscription's state. A delta finds its block by its lane and index, then the block's stream."""

    def __init__(self, sink: Sink[BlockStream]) -> None:
        super().__init__(sink)
        self._streams: dict[BlockFold, BlockStream] = {}  # those that are open
        self._begun: dict[tuple[str | None, int], Walk] = {}  # by run and choice, of blocks with streams

    @cached_property
    def _walks(self) -> Walks:
        return Walks(self.sink.limits)  # which are known at the first event

    def on_next(self, event: Event) -> None:
        delta: Any = event  # type checkers don't follow `type(…)`, the fastest test
        kind = type(event)
        field = PIECE_FIELDS.get(kind)
        if field is None:
            self._step(event)
            return
        walk = self._begun.get((delta.run_id, delta.choice))
        fold = None if walk is None else walk.blocks.get(delta.index)
        if fold is None or fold.grows is not kind:  # as in `Walk.grow`
            return
        piece = getattr(delta, field)
        if piece:
            stream: BlockStream = fold.place
            stream._block = block = fold.grow(piece)
            stream._emit(block)

    def _step(self, event: Event) -> None:
        """Apply the event first, then emit the changed blocks: no foreign code sees a half-changed state."""
        failure = refusal(event, self.sink.name)
        if failure is not None:
            raise failure
        if isinstance(event, (MessageStart, AttemptReset)):
            self._begin_message(event)
            return
        touched: dict[BlockFold, Walk] = {}
        replaced: list[BlockStream] = []
        start = event if isinstance(event, (BlockStart, BlockFinish)) else None
        for walk in self._walks.of(event):
            if start is not None and self._outer_left and start.index not in walk.blocks:
                return
            for change in walk.step(event):
                fold = change.fold
                if start is not None and (change.kind == "opened" or _is_replaced(change)):
                    if change.before is not None:
                        replaced.append(fold.place)
                    fold.place = self._streams[fold] = BlockStream(self, start, fold.block)
                    self._begun[start.run_id, start.choice] = walk
                if fold is not None:
                    touched[fold] = walk
        for stream in replaced:
            stream._end(
                StreamInterrupted(f"another block began in the place of {stream._label} while its tool ran")
            )
        for fold, walk in touched.items():
            self._show(fold, walk)

    def _begin_message(self, event: MessageStart | AttemptReset) -> None:
        cut: list[BlockStream] = []
        for walk in self._walks.of(event):
            before = list(walk.blocks.values())
            kind = walk.step(event)[0].kind
            for fold in before:
                if kind == "reset" or (kind == "another" and fold.block.open):
                    walk.let_go(fold)
                    cut.append(self._streams.pop(fold))
        given_up = isinstance(event, AttemptReset)
        why = "the attempt was given up" if given_up else "another message began"
        for stream in cut:
            stream._given_up = given_up
            stream._end(StreamInterrupted(f"{why} while {stream._label} was open"))

    def _show(self, fold: BlockFold, walk: Walk) -> None:
        """Emit a changed block, with its stream if that is new, and end the stream of an ended block."""
        stream, block = self._streams.get(fold), fold.block
        if stream is None:
            return  # an observer of another block has left
        is_new = not stream._emitted
        if is_new:
            self._announce(stream)
        if is_new or not _same(stream._block, block):
            stream._block, stream._emitted = block, True
            stream._emit(block)
        if _has_ended(block) and self._streams.pop(fold, None) is not None:
            walk.let_go(fold, acts=False)
            stream._end(None)

    def _completion_error(self, stream: BlockStream) -> Exception | None:
        block = stream._block
        if isinstance(block, ToolCall) and not block.open and is_waiting(block):
            return None  # nothing is lost: the person answers with a later request
        return StreamInterrupted(f"the stream ended while {stream._label} was open")

    def _forget(self) -> Iterable[BlockStream]:
        streams = list(self._streams.values())
        self._streams.clear()
        self._begun.clear()
        return streams


def _is_replaced(change: Change) -> bool:
    """Whether another block begins in the place of a call that has ended, whose tool still runs."""
    before = change.before
    return (
        change.kind == "restarted"
        and before is not None
        and not before.open
        and call_id_of(before) != call_id_of(change.fold.block)
    )


def _has_ended(block: Block) -> bool:
    """Whether the block has finished, and no tool runs for it."""
    if block.open:
        return False
    status = block.metadata.get("execution_status") if isinstance(block, ToolCall) else None
    return not isinstance(status, str) or status in TERMINAL


def _same(one: Block, other: Block) -> bool:
    """Whether two blocks look the same to a reader. Text is compared last, because it is long."""
    if one is other:
        return True
    if isinstance(one, ContentPart) and isinstance(other, ContentPart):
        return _PART(one) == _PART(other) and one.text == other.text
    if isinstance(one, ToolCall) and isinstance(other, ToolCall):
        return _CALL(one) == _CALL(other) and one.arguments == other.arguments
    return False
