"""A live stream for each content block and each tool call of a reply."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from reactivex import Observable, abc

from rxdelta.core import (
    DEFAULT_LIMITS,
    TERMINAL,
    Block,
    BlockFold,
    ByChoice,
    CallIndex,
    ContentPart,
    Event,
    LimitExceededError,
    Limits,
    StreamInterrupted,
    ToolCall,
    begins_another,
    block_from_wire,
    call_id_of,
    refusal,
    with_news,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.operators.grouping.streams import Branch, Split

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["BlockStream", "group_by_block"]

_PIECES: Mapping[type, Callable[[Any], str]] = {
    TextDelta: attrgetter("text"),
    ToolCallDelta: attrgetter("args"),
    ReasoningDelta: attrgetter("reasoning"),
    DataDelta: attrgetter("data"),
}
_CUT = {  # as in the fold of a message
    "length": "the message was cut short by the token limit while the call was open",
    "interrupted": "the message was interrupted while the call was open",
}
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
    `failed`.

    Errors: `StreamInterrupted` if the source completed, or an attempt was given up, before that; else the
    source's own.

    Attributes:
        index: Names the block within its message.
        choice: Which of several alternative replies the block belongs to.
    """

    def __init__(self, split: Split[BlockStream], index: int | str, choice: int, block: Block) -> None:
        super().__init__(split)
        self.index = index
        self.choice = choice
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
        return f"block {self.index!r}{of} ({self.kind}{named})"

    def __repr__(self) -> str:
        return f"<BlockStream {self._label}>"

    def _so_far(self) -> Sequence[Block]:
        return (self._block,) if self._emitted else ()

    def _show(self, block: Block) -> None:
        self._block = block
        self._emitted = True
        self._emit(block)


def group_by_block(
    *, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[BlockStream]]:
    """Emit a stream for each block of the reply; `BlockStream` describes its values and its end.

    A stream is emitted at its block's start, before the block's first snapshot, so that a subscriber that subscribes
    at once misses nothing. (A block that comes whole, by its finish alone, starts with that.) A second start of an
    open block resets the block within its stream. A block that starts again after its end gets a new stream. Deltas
    of blocks that have not started, or have ended, are ignored, and blocks of different choices are separate.
    `ToolUpdate`s go to the call that they name. The message's finish, or its interruption, finishes its open blocks,
    as in `scan_deltas`; the blocks of a later message get new streams. If another message begins before that, open
    blocks end with `StreamInterrupted`. A stream that has ended is forgotten.

    The source stays subscribed while the stream of blocks or one of the blocks has a subscriber. As everywhere in Rx,
    a source that emits on several threads must serialise its emissions; blocks are subscribed on its thread.

    Completes with the source; open blocks then end with `StreamInterrupted`.

    Args:
        limits: The most that the stream may make us hold.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for a
    value that is no event. Open blocks get the error first. After an `AttemptReset` the open blocks end with
    `StreamInterrupted`, and the next attempt's blocks are new streams.

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

    def apply(source: Observable[Event]) -> Observable[BlockStream]:
        def subscribe(
            observer: abc.ObserverBase[BlockStream], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            return _Grouping(observer, limits).connect(source, scheduler)

        return Observable(subscribe)

    return apply


class _GrowingBlock:
    """A block that has not ended."""

    __slots__ = ("call_id", "fold", "message", "stream")

    def __init__(self, stream: BlockStream, fold: BlockFold, message: _Message) -> None:
        self.stream = stream
        self.fold = fold
        self.message = message
        self.call_id: str | None = None  # its key in the index of calls


class _Message:
    """One choice's message: its growing blocks, and the indexes of the ended ones."""

    __slots__ = ("_ended", "_ended_below", "blocks", "count", "finished", "id", "started")

    def __init__(self, *, finished: bool = False) -> None:
        self.id: str | None = None
        self.started = False
        self.finished = finished
        self.count = 0
        self.blocks: dict[int | str, _GrowingBlock] = {}
        self._ended: set[int | str] = set()
        self._ended_below = 0  # all lower numbers have ended too, so that consecutive numbers take no memory

    def knows(self, index: int | str) -> bool:
        return index in self.blocks or index in self._ended or self._is_ended_below(index)

    def _is_ended_below(self, index: int | str) -> bool:
        return isinstance(index, int) and 0 <= index < self._ended_below

    def end(self, index: int | str) -> None:
        del self.blocks[index]
        if not self._is_ended_below(index):
            self._ended.add(index)
        while self._ended_below in self._ended:
            self._ended.remove(self._ended_below)
            self._ended_below += 1

    def finish(self) -> None:
        """End the message. A call whose tool still runs is found by its id, not here."""
        self.finished = True
        self.blocks.clear()
        self._ended.clear()


class _Grouping(Split[BlockStream]):
    """One subscription's state. A delta finds its block by choice and index, a `ToolUpdate` by its call."""

    def __init__(self, observer: abc.ObserverBase[BlockStream], limits: Limits) -> None:
        super().__init__(observer)
        self._limits = limits
        self._messages: dict[int, _Message] = ByChoice(limits)
        self._calls = CallIndex[_GrowingBlock]()
        self._interrupted = False

    def _step(self, event: Event) -> None:
        delta: Any = event  # type checkers don't follow `type(…)`, the fastest test
        kind: Any = type(event)
        piece_of = _PIECES.get(kind)
        if piece_of is None:
            self._step_any(event)
            return
        message = self._messages.get(delta.choice)
        growing = None if message is None else message.blocks.get(delta.index)
        if growing is None or growing.fold.grows is not kind:
            return
        piece = piece_of(delta)
        if not piece:
            return
        try:
            block = growing.fold.grow(piece)
        except LimitExceededError as error:
            self._finish(error)
            return
        growing.stream._show(block)

    def _step_any(self, event: Event) -> None:
        """Fold the event first, then emit the changed blocks: no foreign code sees a half-changed state."""
        if self._ended:
            return
        failure = refusal(event)
        if failure is not None:
            self._finish(failure)
            return
        try:
            touched = self._STEPS[type(event)](self, event)
        except LimitExceededError as error:
            self._finish(error)
            return
        for growing in touched:
            self._show(growing)

    def _message(self, choice: int) -> _Message:
        message = self._messages.get(choice)
        if message is None:
            self._messages[choice] = message = _Message(finished=self._interrupted)
        return message

    def _message_start(self, event: MessageStart) -> Sequence[_GrowingBlock]:
        message = self._message(event.choice)
        begun = message.started and message.count > 0
        if begins_another(event, id=message.id, begun=begun, over=message.finished):
            self._messages[event.choice] = another = _Message()
            self._cut(message)
            message = another
        message.started = message.started or not event.assumed
        message.id = message.id or event.id
        return ()

    def _cut(self, message: _Message) -> None:
        """End the open blocks unfinished, because another message began."""
        cut = [growing for growing in message.blocks.values() if growing.fold.block.open]
        message.finish()
        for growing in cut:
            stream = growing.stream
            self._forget_call(growing)
            self._close(stream, StreamInterrupted(f"another message began while {stream._label} was open"))

    def _block_start(self, event: BlockStart) -> Sequence[_GrowingBlock]:
        message = self._message(event.choice)
        growing = message.blocks.get(event.index)
        if growing is None:
            return self._new(message, event, event)
        growing.fold.reset(event)
        return (growing,)

    def _block_delta(self, event: BlockDelta) -> Sequence[_GrowingBlock]:
        growing = self._message(event.choice).blocks.get(event.index)
        if growing is None:
            return ()
        growing.fold.step(event)
        return (growing,)

    def _block_finish(self, event: BlockFinish) -> Sequence[_GrowingBlock]:
        message = self._message(event.choice)
        growing = message.blocks.get(event.index)
        if growing is not None:
            touched: Sequence[_GrowingBlock] = (growing,)
        elif event.content is None or message.knows(event.index):
            return ()
        else:
            touched = self._new(message, event, block_from_wire(event.content, event.index))
        for growing in touched:
            growing.fold.finish(event.content)
        return touched

    def _new(
        self, message: _Message, event: BlockStart | BlockFinish, start: BlockStart | Block
    ) -> Sequence[_GrowingBlock]:
        index = event.index
        if message.finished or self._outer_disposed:
            return ()
        if isinstance(index, int) and abs(index) >= self._limits.index:
            raise LimitExceededError.of("index", self._limits.index, "the block index")
        if not message.knows(index):
            if message.count >= self._limits.blocks:
                what = "the number of blocks in one message"
                raise LimitExceededError.of("blocks", self._limits.blocks, what)
            message.count += 1
        fold = BlockFold(start, limits=self._limits)
        message.blocks[index] = growing = _GrowingBlock(
            BlockStream(self, index, event.choice, fold.block), fold, message
        )
        return (growing,)

    def _message_finish(self, event: MessageFinish) -> Sequence[_GrowingBlock]:
        return self._finished(self._message(event.choice), _CUT.get(event.reason or ""))

    def _message_interrupted(self, _: MessageInterrupted) -> Sequence[_GrowingBlock]:
        self._interrupted = True
        messages = self._messages.values()
        return [growing for message in messages for growing in self._finished(message, _CUT["interrupted"])]

    def _finished(self, message: _Message, cut: str | None) -> Sequence[_GrowingBlock]:
        touched = [growing for growing in message.blocks.values() if growing.fold.block.open]
        for growing in touched:
            growing.fold.finish(cut=cut)
        message.finish()
        return touched

    def _tool_update(self, event: ToolUpdate) -> Sequence[_GrowingBlock]:
        touched: list[_GrowingBlock] = []
        for growing in self._calls.of(event.call_id):
            call = growing.fold.block
            if isinstance(call, ToolCall):
                growing.fold.block = with_news(
                    call,
                    execution_status=event.execution_status,
                    display_text=event.display_text,
                    result=event.result,
                )
                touched.append(growing)
        return touched

    def _attempt_reset(self, _: AttemptReset) -> Sequence[_GrowingBlock]:
        self._forget()
        self._interrupted = False
        for stream in list(self._open):
            stream._given_up = True
            self._close(stream, StreamInterrupted(f"the attempt was given up while {stream._label} was open"))
        return ()

    def _unchanged(self, _: Event) -> Sequence[_GrowingBlock]:
        return ()

    def _show(self, growing: _GrowingBlock) -> None:
        """Emit a changed block, in a new stream if it has none, and close the stream of an ended block."""
        stream, block = growing.stream, growing.fold.block
        self._index_call(growing)
        if not stream._emitted:
            self._open[stream] = None
            try:
                self._announce(stream)
            finally:
                stream._show(block)
        elif not _same(stream._block, block):
            stream._show(block)
        if _has_ended(block):
            self._close_block(growing)

    def _index_call(self, growing: _GrowingBlock) -> None:
        call_id = call_id_of(growing.fold.block)
        if call_id != growing.call_id:
            self._calls.note(growing, growing.call_id, call_id)
            growing.call_id = call_id

    def _forget_call(self, growing: _GrowingBlock) -> None:
        self._calls.note(growing, growing.call_id, None)

    def _close_block(self, growing: _GrowingBlock) -> None:
        message, index = growing.message, growing.stream.index
        if message.blocks.get(index) is growing:
            message.end(index)
        self._forget_call(growing)
        self._close(growing.stream)

    def _completion_error(self, stream: BlockStream) -> Exception | None:
        return StreamInterrupted(f"the stream ended while {stream._label} was open")

    def _forget(self) -> None:
        self._messages.clear()
        self._calls = CallIndex[_GrowingBlock]()

    _STEPS: ClassVar[dict[type, Callable[[_Grouping, Any], Sequence[_GrowingBlock]]]] = {
        MessageStart: _message_start,
        BlockStart: _block_start,
        BlockDelta: _block_delta,
        BlockFinish: _block_finish,
        UsageUpdate: _unchanged,
        MessageFinish: _message_finish,
        ProviderEvent: _unchanged,
        ToolUpdate: _tool_update,
        MessageInterrupted: _message_interrupted,
        AttemptReset: _attempt_reset,
    }


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
