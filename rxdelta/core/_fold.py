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
    Block,
    ContentPart,
    Key,
    ToolCall,
    change,
    make_part,
    merge_call_metadata,
    raw_arguments,
    raw_text,
    with_arguments,
)
from rxdelta.core._errors import LimitExceededError, ProtocolError, ProviderError
from rxdelta.core._events import (
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
from rxdelta.core._snapshot import Head, MessageDelta, make_delta
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

    __slots__ = ("_limits", "_size", "_text", "block", "grows")

    def __init__(self, start: BlockStart | Block, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self.reset(start)

    def reset(self, start: BlockStart | Block) -> Block:
        """Begin anew with this start, or with a block as it stands."""
        self.block: Block = block_from_wire(start.content, start.index) if isinstance(start, BlockStart) else start
        self._take_stock()
        return self.block

    def _take_stock(self) -> None:
        block = self.block
        self.grows: type | None = None
        if not block.open:
            return
        if isinstance(block, ToolCall):
            self._text = raw_arguments(block)
            if not isinstance(self._text, FrozenDict) or not self._text:
                self.grows = ToolCallDelta  # an object that came whole takes no more text
        else:
            self._text = raw_text(block)
            self.grows = _GROWS.get(block.type, DataDelta)
        if not self._text:
            self._text = ""
        self._size = 0 if isinstance(self._text, FrozenDict) else text_length(self._text)

    def step(self, event: TextDelta | ReasoningDelta | DataDelta | ToolCallDelta | BlockDelta | BlockFinish) -> Block:
        """The block after one event of it; the same object where nothing changed.

        Raises:
            LimitExceededError: The block grew beyond `Limits.block_chars`.
        """
        kind = type(event)
        if kind is self.grows:
            piece: str = (
                event.text if kind is TextDelta  # type: ignore[union-attr]
                else event.args if kind is ToolCallDelta  # type: ignore[union-attr]
                else event.reasoning if kind is ReasoningDelta  # type: ignore[union-attr]
                else event.data  # type: ignore[union-attr]
            )  # fmt: skip
            return self._grow(piece) if piece else self.block
        if kind is BlockFinish:
            return self.finish(event.content)  # type: ignore[union-attr]
        if kind is BlockDelta and self.block.open:
            self.block = update_block(self.block, event.fields)  # type: ignore[union-attr]
            self._take_stock()
            self._check_size()
        return self.block

    def _grow(self, piece: str) -> Block:
        self._size += len(piece)
        if self._size > self._limits.block_chars:
            self._check_size()
        self._text = text = extend(self._text, piece)
        block = self.block
        if type(block) is ContentPart:
            self.block = make_part(block.type, text, block.options, block.citations, block.key, True)
        else:
            self.block = with_arguments(block, text)  # type: ignore[arg-type]
        return self.block

    def finish(self, content: FrozenDict[Any] | None = None, *, cut: str | None = None) -> Block:
        """The block closed; see `finish_block`. A second finish overrules the first if it carries content."""
        if content is not None:
            self.block = finish_block(finish_content(self.block, content, self.block.key), cut=cut)
        elif self.block.open:
            self.block = finish_block(self.block, cut=cut)
        self.grows = None
        return self.block

    def _check_size(self) -> None:
        if self.grows is not None and self._size > self._limits.block_chars:
            raise LimitExceededError.of("block_chars", self._limits.block_chars, "the length of one block")


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
        self._folds: dict[Key, BlockFold | None] = {}
        self._places: dict[Key, int] = {}
        for place, block in enumerate(self._blocks):  # of several with one key the newest is meant
            self._folds[block.key] = None
            self._places[block.key] = place
        numbers = [block.key for block in self._blocks if type(block.key) is int]
        self._highest: int = max(numbers, default=-1)

    def step(self, event: Event | MessageDelta) -> MessageDelta:
        """The snapshot after one event, or small delta; the same object where nothing changed.

        Raises:
            ProviderError: The event is a `StreamError`; `.snapshot` is what came before it.
            ProtocolError: A second message begins after this one has finished.
            LimitExceededError: Too many blocks, or one too large.
        """
        choice = getattr(event, "choice", None)
        if choice != self._choice and choice is not None:
            if self._choice is None:
                self._choice = choice
                if choice:
                    self._show(choice=choice)
            elif not isinstance(event, (StreamError, MessageDelta)):
                return self.snapshot
        return _STEPS[type(event)](self, event)

    def _show(self, **head: Any) -> MessageDelta:
        if head:
            self._head = attrs.evolve(self._head, **head)
        self.snapshot = make_delta(self._head, tuple(self._blocks))
        return self.snapshot

    def _fold_of(self, key: Key) -> BlockFold | None:
        fold = self._folds.get(key)
        if fold is None and key in self._places:
            fold = self._folds[key] = BlockFold(self._blocks[self._places[key]], limits=self._limits)
        return fold

    def _block_step(self, event: Any) -> MessageDelta:
        key = event.index
        fold = self._folds.get(key) or self._fold_of(key)
        if fold is None or self._head.status != "incomplete":
            return self.snapshot
        known = fold.block
        block = fold.step(event)
        if block is known:
            return self.snapshot
        self._blocks[self._places[key]] = block
        self.snapshot = snapshot = make_delta(self._head, tuple(self._blocks))
        return snapshot

    def _block_start(self, event: BlockStart) -> MessageDelta:
        if self._head.status != "incomplete":
            return self.snapshot
        fold = self._fold_of(event.index)
        if fold is None:
            fold = BlockFold(event, limits=self._limits)
            self._add(event.index, fold)
        else:
            self._blocks[self._places[event.index]] = fold.reset(event)
        fold._check_size()
        return self._show()

    def _block_finish(self, event: BlockFinish) -> MessageDelta:
        if event.content is not None and event.index not in self._places and self._head.status == "incomplete":
            self._add(event.index, BlockFold(finish_content(None, event.content, event.index), limits=self._limits))
        return self._block_step(event)

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
            self._places[self._blocks[later].key] = later

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
        for place, block in enumerate(self._blocks):
            if block.open:
                fold = self._fold_of(block.key)
                self._blocks[place] = fold.finish(cut=cut) if fold and fold.block is block else finish_block(block, cut=cut)

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
                    self._folds[block.key] = None
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
    TextDelta: Fold._block_step,
    ReasoningDelta: Fold._block_step,
    DataDelta: Fold._block_step,
    ToolCallDelta: Fold._block_step,
    BlockDelta: Fold._block_step,
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
