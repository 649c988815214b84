"""How a reply grows by events: one step is O(1) in the text received so far.

Lenient by design. What the protocol forbids is ignored where it would damage a block (a delta before its block's
start, after its end, or of another kind), and taken at its word where it can be (a second start resets the block, a
second finish overrules the first). `rxdelta.operators.validate` is for those who want to know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from rxdelta.core._block_wire import block_from_wire, finish_block, finish_content, update_block
from rxdelta.core._blocks import (
    TERMINAL,
    BlankPart,
    Block,
    ContentPart,
    Key,
    ToolCall,
    change,
    merge_call_metadata,
    raw_arguments,
    raw_text,
    with_arguments,
)
from rxdelta.core._errors import LimitExceededError, ProtocolError, ProviderError
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    Event,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.core._frozen import FrozenDict
from rxdelta.core._limits import DEFAULT_LIMITS, Limits
from rxdelta.core._snapshot import BlankDelta, Head, MessageDelta, make_delta
from rxdelta.core._text import extend, text_length

__all__ = ["BlockFold", "Fold", "apply_event"]

_GROWS: dict[str, type] = {"text": TextDelta, "refusal": TextDelta, "reasoning": ReasoningDelta}
_CUT = {
    "length": "the message was cut short by the token limit while the call was open",
    "interrupted": "the message was interrupted while the call was open",
}


class BlockFold:
    """One block and how it grows; the fold of a message is one of these a block, and its head.

    Example:
        >>> import rxdelta as rd
        >>> fold = rd.BlockFold(rd.events.BlockStart(0, {"type": "text"}))
        >>> fold.step(rd.events.TextDelta(0, "Hi")).text
        'Hi'
    """

    __slots__ = ("_limits", "_size", "_text", "block", "grows", "place")

    def __init__(self, start: BlockStart | Block, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self.place = 0
        self.reset(start)

    def reset(self, start: BlockStart | Block) -> Block:
        """Begin anew with this start, or with a block as it stands."""
        self.block: Block = block_from_wire(start.content, start.index) if isinstance(start, BlockStart) else start
        self._take_stock()
        return self.block

    def _take_stock(self) -> None:
        block = self.block
        self.grows: type | None = None  # the kind of delta that is more of this block
        if not block.open:
            return
        if isinstance(block, ToolCall):
            self._text = raw_arguments(block)
            if not isinstance(self._text, FrozenDict) or not self._text:
                self.grows = ToolCallDelta  # an object that came whole takes no more text
        else:
            self._text = raw_text(block)
            self.grows = _GROWS.get(block.type, DataDelta)
        self._text = self._text or ""
        self._size = 0 if isinstance(self._text, FrozenDict) else text_length(self._text)
        if self._size > self._limits.block_chars:
            raise LimitExceededError.of("block_chars", self._limits.block_chars, "the length of one block")

    def step(self, event: TextDelta | ReasoningDelta | DataDelta | ToolCallDelta | BlockDelta | BlockFinish) -> Block:
        """The block after one event of it; the same object where nothing changed.

        Raises:
            LimitExceededError: The block grew beyond `Limits.block_chars`.
        """
        if type(event) is self.grows:
            if isinstance(event, TextDelta):
                return self.grow(event.text)
            if isinstance(event, ToolCallDelta):
                return self.grow(event.args)
            return self.grow(event.reasoning if isinstance(event, ReasoningDelta) else event.data)  # type: ignore[union-attr]
        if isinstance(event, BlockFinish):
            return self.finish(event.content)
        if isinstance(event, BlockDelta) and self.block.open:
            self.reset(update_block(self.block, event.fields))
        return self.block

    def grow(self, piece: str) -> Block:
        """The block with this piece of the kind that it grows by."""
        if not piece:
            return self.block
        self._size += len(piece)
        if self._size > self._limits.block_chars:
            raise LimitExceededError.of("block_chars", self._limits.block_chars, "the length of one block")
        self._text = text = extend(self._text, piece)
        block = self.block
        if type(block) is ToolCall:
            self.block = grown = with_arguments(block, text)
            return grown
        part: Any = BlankPart()
        part.type = block.type
        part.text = text
        part.options = block.options  # type: ignore[union-attr]
        part.citations = block.citations  # type: ignore[union-attr]
        part.key = block.key
        part.open = True
        part.__class__ = ContentPart
        self.block = part
        return self.block

    def finish(self, content: FrozenDict[Any] | None = None, *, cut: str | None = None) -> Block:
        """The block closed; see `finish_block`. A second finish overrules the first if it carries content."""
        if content is not None:
            self.block = finish_block(finish_content(self.block, content, self.block.key), cut=cut)
        elif self.block.open:
            self.block = finish_block(self.block, cut=cut)
        self.grows = None
        return self.block


class Fold:
    """A reply being folded: remembers where each block is, so that a step needn't look.

    Args:
        snapshot: Where to begin; `None` is an empty assistant message.
        choice: Which of several alternative replies to fold, events of the others being ignored; `None` takes the
            snapshot's, or that of the first event.
        limits: What a stream may make us hold.

    Example:
        >>> import rxdelta as rd
        >>> fold = rd.Fold()
        >>> for event in [rd.events.BlockStart(0, {"type": "text"}), rd.events.TextDelta(0, "Hi")]:
        ...     snapshot = fold.step(event)
        >>> snapshot.text
        'Hi'
    """

    def __init__(
        self, snapshot: MessageDelta | None = None, *, choice: int | None = None, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        self._limits = limits
        self._choice = choice if snapshot is None or choice is not None else snapshot.choice
        if snapshot is None:
            snapshot = make_delta(Head(role="assistant", choice=choice or 0), ())
        self._load(snapshot)

    def _load(self, snapshot: MessageDelta) -> None:
        self.snapshot = snapshot
        self._head = snapshot._head
        self._blocks = list(snapshot.blocks)
        self._folds: dict[Key, BlockFold] = {}
        for place, block in enumerate(self._blocks):  # of several with one key the newest is meant
            self._folds[block.key] = fold = BlockFold(block, limits=self._limits)
            fold.place = place
        self._highest: int = max((block.key for block in self._blocks if type(block.key) is int), default=-1)

    def step(self, event: Event | MessageDelta) -> MessageDelta:
        """The snapshot after one event, or small delta; the same object where nothing changed.

        Raises:
            ProviderError: The event is a `StreamError`; `.snapshot` is what came before it.
            ProtocolError: A second message begins after this one has finished.
            LimitExceededError: Too many blocks, or one too large.
        """
        kind = type(event)
        if kind is TextDelta:
            piece = event.text  # type: ignore[union-attr]
        elif kind is ToolCallDelta:
            piece = event.args  # type: ignore[union-attr]
        elif kind is ReasoningDelta:
            piece = event.reasoning  # type: ignore[union-attr]
        elif kind is DataDelta:
            piece = event.data  # type: ignore[union-attr]
        else:
            return self._step_with_care(event)
        if event.choice != self._choice:  # type: ignore[union-attr]
            return self._step_with_care(event)
        fold = self._folds.get(event.index)  # type: ignore[union-attr]
        if fold is None or fold.grows is not kind or not piece:
            return self.snapshot
        blocks = self._blocks
        blocks[fold.place] = fold.grow(piece)
        delta: Any = BlankDelta()
        delta._head = self._head
        delta.blocks = tuple(blocks)
        delta.__class__ = MessageDelta
        self.snapshot = delta
        return self.snapshot

    def _step_with_care(self, event: Event | MessageDelta) -> MessageDelta:
        choice = getattr(event, "choice", None)
        if choice is not None and choice != self._choice:
            if self._choice is None:
                self._choice = choice
                self._head = attrs.evolve(self._head, choice=choice)
                return self.step(event)
            if not isinstance(event, (StreamError, MessageDelta)):
                return self.snapshot
        return _STEPS[type(event)](self, event)

    def _show(self, **head: Any) -> MessageDelta:
        if head:
            self._head = attrs.evolve(self._head, **head)
        self.snapshot = make_delta(self._head, tuple(self._blocks))
        return self.snapshot

    def _block_start(self, event: BlockStart) -> MessageDelta:
        if self._head.status != "incomplete":
            return self.snapshot
        fold = self._folds.get(event.index)
        if fold is None:
            self._add(event.index, BlockFold(event, limits=self._limits))
        else:
            self._blocks[fold.place] = fold.reset(event)
        return self._show()

    def _block_delta(self, event: BlockDelta | BlockFinish) -> MessageDelta:
        fold = self._folds.get(event.index)
        if fold is None or self._head.status != "incomplete":
            return self.snapshot
        known = fold.block
        self._blocks[fold.place] = block = fold.step(event)
        return self.snapshot if block is known else self._show()

    def _block_finish(self, event: BlockFinish) -> MessageDelta:
        if event.content is not None and event.index not in self._folds and self._head.status == "incomplete":
            self._add(event.index, BlockFold(finish_content(None, event.content, event.index), limits=self._limits))
        return self._block_delta(event)

    def _add(self, key: Key, fold: BlockFold) -> None:
        """Put a new block where its key belongs: integers in their order, all else as first seen."""
        if len(self._blocks) >= self._limits.blocks:
            raise LimitExceededError.of("blocks", self._limits.blocks, "the number of blocks in one message")
        place = len(self._blocks)
        if type(key) is int:
            if key < self._highest:
                place = next(n for n, block in enumerate(self._blocks) if type(block.key) is int and block.key > key)
            self._highest = max(self._highest, key)
        self._blocks.insert(place, fold.block)
        self._folds[key] = fold
        for later in range(place, len(self._blocks)):
            self._folds[self._blocks[later].key].place = later

    def _message_start(self, event: MessageStart) -> MessageDelta:
        head = self._head
        if head.status != "incomplete":
            if event.id is not None and event.id == head.id:
                return self.snapshot
            raise ProtocolError(
                "a second message begins after the first has finished; split a conversation with group_by_message()",
                violation="duplicate_message_start",
            )
        return self._show(
            id=event.id if head.id is None else head.id,
            model=event.model if head.model is None else head.model,
            usage=event.usage if head.usage is None else head.usage,
            metadata=FrozenDict({**event.metadata, **head.metadata}),
        )

    def _usage_update(self, event: UsageUpdate) -> MessageDelta:
        if self._head.status != "incomplete" or event.usage == self._head.usage:
            return self.snapshot
        return self._show(usage=event.usage)

    def _message_finish(self, event: MessageFinish) -> MessageDelta:
        head = self._head
        if head.status != "incomplete":
            return self.snapshot
        self._close_all(_CUT.get(event.reason or ""))
        reason = _reason(event.reason, self._blocks)
        model = event.metadata.get("model_name", event.metadata.get("model"))
        return self._show(
            status="length" if reason == "length" else "complete",
            finish_reason=reason,
            provider_finish_reason=event.reason if event.provider_reason is None else event.provider_reason,
            usage=event.usage or head.usage,
            metadata=FrozenDict({**head.metadata, **event.metadata}),
            model=model if head.model is None and isinstance(model, str) else head.model,
        )

    def _close_all(self, cut: str | None) -> None:
        for fold in self._folds.values():
            if fold.block.open:
                self._blocks[fold.place] = fold.finish(cut=cut)

    def _stream_error(self, event: StreamError) -> MessageDelta:
        raise ProviderError(event.message, type=event.type, code=event.code, snapshot=self.snapshot)

    def _tool_update(self, event: ToolUpdate) -> MessageDelta:
        changed = False
        for place, block in enumerate(self._blocks):
            if isinstance(block, ToolCall) and block.call_id == event.call_id and block.type == "tool_call":
                updated = _updated(block, event)
                if updated is not block:
                    changed = True
                    self._blocks[place] = updated
                    fold = self._folds[block.key]
                    if fold.place == place:
                        fold.reset(updated)
        return self._show() if changed else self.snapshot

    def _message_interrupted(self, event: MessageInterrupted) -> MessageDelta:
        if self._head.status != "incomplete":
            return self.snapshot
        self._close_all(_CUT["interrupted"])
        why = {} if event.reason is None else {"interrupted": event.reason}
        return self._show(status="interrupted", metadata=FrozenDict({**self._head.metadata, **why}))

    def _attempt_reset(self, event: AttemptReset) -> MessageDelta:
        head, spent = self._head, event.usage or self._head.usage
        failed = spent if head.failed_usage is None else head.failed_usage.add(spent)
        self._load(
            make_delta(Head(role="assistant", choice=head.choice, attempt=event.attempt, failed_usage=failed), ())
        )
        return self.snapshot

    def _merge(self, delta: MessageDelta) -> MessageDelta:
        from rxdelta.core._merge import merge_delta

        self._load(merge_delta(self.snapshot, delta))
        return self.snapshot

    def _unchanged(self, event: Any) -> MessageDelta:
        return self.snapshot


def _updated(call: ToolCall, event: ToolUpdate) -> ToolCall:
    """Status moves forward, the display text is refined, and the first terminal result stands."""
    ended = call.metadata.get("execution_status") in TERMINAL
    fields: dict[str, Any] = {}
    if event.execution_status is not None:
        metadata = merge_call_metadata(call.metadata, {"execution_status": event.execution_status})
        if metadata != call.metadata:
            fields["metadata"] = metadata
    if event.display_text and event.display_text != call.display_text:
        fields["display_text"] = event.display_text
    if event.result is not None and not ended and event.result != call.result:
        fields["result"] = event.result
    return change(call, **fields) if fields else call


def _reason(reason: str | None, blocks: list[Block]) -> str:
    """`length` and `content_filter` are the provider's to say; otherwise the calls decide."""
    if reason in ("length", "content_filter"):
        return reason
    asked = any(isinstance(block, ToolCall) and block.type != "server_tool_call" for block in blocks)
    return "tool_use" if asked else "stop"


_STEPS: dict[type, Callable[[Fold, Any], MessageDelta]] = {
    MessageStart: Fold._message_start,
    BlockStart: Fold._block_start,
    BlockDelta: Fold._block_delta,
    BlockFinish: Fold._block_finish,
    UsageUpdate: Fold._usage_update,
    MessageFinish: Fold._message_finish,
    StreamError: Fold._stream_error,
    ProviderEvent: Fold._unchanged,
    ToolUpdate: Fold._tool_update,
    MessageInterrupted: Fold._message_interrupted,
    AttemptReset: Fold._attempt_reset,
    MessageDelta: Fold._merge,
}


def apply_event(snapshot: MessageDelta | None, event: Event) -> MessageDelta:
    """The snapshot after one event of the chat stream event protocol.

    One step of a `Fold`; where many follow each other, keep the fold.

    Args:
        snapshot: The reply so far; `None` is an empty assistant message. An event of another choice changes nothing.
        event: The event.

    Raises:
        ProviderError: The event is a `StreamError`; the error's `.snapshot` is `snapshot`.
        ProtocolError: A second message begins after this one has finished.
        LimitExceededError: Too many blocks, or one too large.

    Example:
        >>> import rxdelta as rd
        >>> rd.apply_event(None, rd.events.MessageStart(id="m1")).id
        'm1'
    """
    return Fold(snapshot).step(event)
