"""A live stream for each content block and each tool call of a reply."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from reactivex import Observable, abc

from rxdelta.core import (
    DEFAULT_LIMITS,
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
    """One block of a reply as it grows: a `ContentPart` or `ToolCall` whenever it has changed.

    Hot: it goes on whether anybody listens or not. A late subscriber gets the newest snapshot at once, after the
    end too, and then the end. A subscriber that raises, or leaves, doesn't disturb the others, nor other blocks:
    it is not told any more, and its exception goes once to the running asyncio loop's exception handler, or to
    the log `rxdelta` where no loop runs. What was subscribed as a part of a pipeline that a `for_each` or `async for`
    reads, as by `flat_map`, raises there.

    Completes when the block has finished and, if its call has an execution status, that is `completed` or
    `failed`.

    Errors: `StreamInterrupted` when the source completed, or an attempt was given up, before that; else the
    source's own.

    Attributes:
        index: Names the block within its message.
        choice: Which of several alternative replies it belongs to.
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
        """The call's id, as soon as it is known; `None` for what is no call."""
        return call_id_of(self._block)

    @property
    def name(self) -> str | None:
        """The tool's name, as soon as it is known; `None` for what is no call."""
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
    """A stream for each block of the reply; see `BlockStream` for what it emits and when it ends.

    A stream is emitted at its block's start, before the block's first snapshot, so that whoever subscribes at
    once misses nothing. (A block that comes whole, by its finish alone, starts then.) A second start of an open
    block resets it within its stream; what has ended and starts again is a new stream. Deltas of blocks that have
    not started, or have ended, are ignored, and blocks of different choices never meet. `ToolUpdate`s go to the
    call that they name. The message's finish, or its interruption, finishes the blocks that are still open, as in
    `scan_deltas`; a message that starts thereafter has streams of its own. A stream that has ended is forgotten. Where
    another message begins before that, blocks that are open end with `StreamInterrupted`.

    The source stays subscribed while anybody reads the blocks' stream or one of the blocks. One thread at a
    time, as everywhere in Rx: a source that emits on several must serialise, and blocks are subscribed on its
    thread.

    Completes with the source; blocks that are open then end with `StreamInterrupted`.

    Args:
        limits: What the stream may make us hold.

    Errors: The source's own, which the open blocks get first, as of the others: `ProviderError` for a
    `StreamError`, `LimitExceededError`, `InvalidValueError` for what is no event. After an `AttemptReset` the
    open blocks end with `StreamInterrupted`, and the next attempt's are new ones.

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
    """A block that hasn't ended."""

    __slots__ = ("call_id", "fold", "message", "stream")

    def __init__(self, stream: BlockStream, fold: BlockFold, message: _Message) -> None:
        self.stream = stream
        self.fold = fold
        self.message = message
        self.call_id: str | None = None  # under which it is known


class _Message:
    """What a choice has said so far: its growing blocks, and which ones have been."""

    __slots__ = ("_ended", "_ended_below", "blocks", "count", "finished", "id", "started")

    def __init__(self, *, finished: bool = False) -> None:
        self.id: str | None = None
        self.started = False
        self.finished = finished
        self.count = 0
        self.blocks: dict[int | str, _GrowingBlock] = {}
        self._ended: set[int | str] = set()
        self._ended_below = 0  # these have ended too: numbers that come in order take no memory

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
        """Whoever still waits for a tool is found by its call."""
        self.finished = True
        self.blocks.clear()
        self._ended.clear()


class _Grouping(Split[BlockStream]):
    """One subscription's state. A delta finds its block by choice and index, an update by its call."""

    def __init__(self, observer: abc.ObserverBase[BlockStream], limits: Limits) -> None:
        super().__init__(observer)
        self._limits = limits
        self._messages: dict[int, _Message] = ByChoice(limits)
        self._calls = CallIndex[_GrowingBlock]()
        self._interrupted = False

    def _step(self, event: Event) -> None:
        delta: Any = event  # the checkers don't follow `type(…)`, which is what is quick
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
        """Fold first, then show what was touched: nobody's code runs between the two."""
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
        """Another message began: what was open stays as it is."""
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
        """Tell of what is new, and be done with a block that has ended."""
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
    """It has finished, and no tool runs for it."""
    if block.open:
        return False
    status = block.metadata.get("execution_status") if isinstance(block, ToolCall) else None
    return not isinstance(status, str) or status in ("completed", "failed")


def _same(one: Block, other: Block) -> bool:
    """Whether a reader sees no difference. Text comes last, being long."""
    if one is other:
        return True
    if isinstance(one, ContentPart) and isinstance(other, ContentPart):
        return _PART(one) == _PART(other) and one.text == other.text
    if isinstance(one, ToolCall) and isinstance(other, ToolCall):
        return _CALL(one) == _CALL(other) and one.arguments == other.arguments
    return False
