"""How a reply grows by events: one step is O(1) in the text received so far.

Lenient by design. Events that the protocol forbids are ignored if they would damage a block (a delta before its
block's start, after its end, or of another type) and applied if they make sense (a second start resets the block, a
second finish overrules the first). `rxdelta.operators.validate` reports them. Only the start of another message is
refused, because its blocks would be mixed with those of this message.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from rxdelta.core._block_fold import BlockFold, Growth
from rxdelta.core._block_key import Key
from rxdelta.core._block_wire import finish_content
from rxdelta.core._blocks import Block
from rxdelta.core._call_index import CallIndex, call_id_of
from rxdelta.core._errors import (
    InvalidValueError,
    LimitExceededError,
    ProtocolError,
    ProviderError,
    RxDeltaError,
)
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
from rxdelta.core._fast_constructor import blank
from rxdelta.core._frozen import FrozenDict
from rxdelta.core._limits import DEFAULT_LIMITS, Limits, check_place
from rxdelta.core._message import add_attempt
from rxdelta.core._snapshot import Head, Snapshot, make_snapshot, merge_snapshots
from rxdelta.core._tool_call import ToolCall, with_news

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


__all__ = ["Fold", "begins_another"]

_REASONS = ("stop", "length", "tool_use", "content_filter")
_CUT = {
    "length": "the message was cut short by the token limit while the call was open",
    "interrupted": "the message was interrupted while the call was open",
}
_BlankSnapshot = blank(Snapshot)


def begins_another(start: MessageStart, *, id: str | None, begun: bool, over: bool) -> bool:
    """Whether a start begins another message than the current one of its choice.

    A fold, which reads one message, refuses such a start; to a reader of a conversation it ends the current message.
    Some gateways have one id for all messages, or no id. So an equal id means a repeated start only while the current
    message is open.

    Args:
        start: The start.
        id: The current message's id, if it is known.
        begun: Whether the current message has had its start and a block. Before that, any start is a repeated one.
        over: Whether the current message has finished or was interrupted.
    """
    return over or (begun and (start.id is None or start.id != id))


class Fold:
    """Folds the events of one message. It remembers the place of each block, so that a step needs no search.

    Args:
        snapshot: The snapshot to begin with; `None` is an empty assistant message.
        choice: The alternative reply to fold; events of others are ignored. `None` is the choice of `snapshot`, or of
            the first event.
        limits: Bounds on the size of the message.

    Example:
        >>> import rxdelta as rd
        >>> fold = rd.Fold()
        >>> for event in [rd.events.BlockStart(0, {"type": "text"}), rd.events.TextDelta(0, "Hi")]:
        ...     snapshot = fold.step(event)
        >>> snapshot.text
        'Hi'
    """

    def __init__(
        self,
        snapshot: Snapshot | None = None,
        *,
        choice: int | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._limits = limits
        self._choice = choice if snapshot is None or choice is not None else snapshot.choice
        if snapshot is None:
            snapshot = make_snapshot(Head(role="assistant", choice=choice or 0, started=False), ())
        self._load(snapshot)

    def _load(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._head = snapshot._head
        self._blocks = list(snapshot.blocks)  # in the order of their arrival
        self._order: _Order | None = None  # if that differs from the order in the message
        self._quick = self._choice  # the choice whose deltas `step` handles itself; None if there is an order
        self._calls: CallIndex[int] | None = None  # the places of calls, from the first ToolUpdate on
        self._folds: dict[Key, BlockFold] = {}
        for place, block in enumerate(self._blocks):  # the newest of several with the same key
            self._folds[block.key] = fold = BlockFold(block, limits=self._limits)
            fold.place = place
            if snapshot.status != "incomplete":
                fold.grows = None
        self._highest = max((key for key in self._folds if isinstance(key, int)), default=None)

    def step(self, event: Event | Snapshot) -> Snapshot:
        """The snapshot after one event, or one small delta; the same object if nothing changed.

        Every error has the snapshot so far as `.snapshot`.

        Raises:
            ProviderError: The event is a `StreamError`.
            ProtocolError: Another message begins; see `begins_another`.
            LimitExceededError: An index that is too large, too many blocks, or one too large.
            InvalidValueError: `event` is not an event.
        """
        given: Any = event  # type checkers do not narrow by `type(…) is`, which is faster than isinstance
        kind: Any = type(event)
        if kind is TextDelta:
            piece = given.text
        elif kind is ToolCallDelta:
            piece = given.args
        elif kind is ReasoningDelta:
            piece = given.reasoning
        elif kind is DataDelta:
            piece = given.data
        else:
            return self._step_with_care(event)
        if given.choice != self._quick:
            return self._step_with_care(event)
        fold = self._folds.get(given.index)
        if fold is None or fold.grows is not kind or not piece:
            return self.snapshot
        blocks = self._blocks
        try:
            blocks[fold.place] = fold.grow(piece)
        except LimitExceededError as error:
            error.snapshot = self.snapshot
            raise
        # `make_snapshot(self._head, tuple(blocks))`, written out: the call would add 20 ns to 640.
        snapshot: Any = _BlankSnapshot()
        snapshot._head = self._head
        snapshot.blocks = tuple(blocks)
        snapshot.__class__ = Snapshot
        self.snapshot = snapshot
        return self.snapshot

    def _step_with_care(self, event: Event | Snapshot) -> Snapshot:
        choice = getattr(event, "choice", None)
        if choice is not None and choice != self._choice:
            if self._choice is None:
                self._choice = self._quick = choice
                self._head = attrs.evolve(self._head, choice=choice)
                return self.step(event)
            if not isinstance(event, StreamError):
                return self.snapshot
        step = self._STEPS.get(type(event))
        if step is None:
            raise InvalidValueError.of(
                [("event", event, "must be an event or a Snapshot; chunks go through decode() first")]
            )
        try:
            return step(self, event)
        except RxDeltaError as error:
            error.snapshot = self.snapshot
            raise

    def begins_another(self, event: Event | Snapshot) -> bool:
        """Whether the event is the start of another message, which `step` refuses."""
        head = self._head
        return (
            isinstance(event, MessageStart)
            and self._choice in (None, event.choice)
            and begins_another(
                event,
                id=head.id,
                begun=head.started and bool(self._blocks),
                over=head.status != "incomplete",
            )
        )

    def _show(self, **head: Any) -> Snapshot:
        if head:
            self._head = attrs.evolve(self._head, **head)
        blocks = self._blocks if self._order is None else self._order.blocks
        self.snapshot = make_snapshot(self._head, tuple(blocks))
        return self.snapshot

    def _put(self, place: int, block: Block) -> None:
        """Replace the block at this place."""
        if self._calls is not None:
            self._calls.note(place, call_id_of(self._blocks[place]), call_id_of(block))
        if self._order is not None:
            self._order.put(place, block)
        self._blocks[place] = block

    def _block_start(self, event: BlockStart) -> Snapshot:
        if self._head.status != "incomplete":
            return self.snapshot
        fold = self._folds.get(event.index)
        if fold is None:
            self._add(event.index, BlockFold(event, limits=self._limits))
        else:
            self._put(fold.place, fold.reset(event))
        return self._show()

    def _block_delta(self, event: BlockDelta | BlockFinish | Growth) -> Snapshot:
        fold = self._folds.get(event.index)
        if fold is None or self._head.status != "incomplete":
            return self.snapshot
        known = fold.block
        block = fold.step(event)
        if block is known:
            return self.snapshot
        self._put(fold.place, block)
        return self._show()

    def _block_finish(self, event: BlockFinish) -> Snapshot:
        if event.content is None or event.index in self._folds or self._head.status != "incomplete":
            return self._block_delta(event)
        fold = BlockFold(finish_content(None, event.content, event.index), limits=self._limits)
        fold.finish()
        self._add(event.index, fold)
        return self._show()

    def _add(self, key: Key, fold: BlockFold) -> None:
        """Insert a new block. Integer keys stand in their order, all other keys in the order of arrival."""
        check_place(key, len(self._blocks), self._limits)
        fold.place = len(self._blocks)
        if isinstance(key, int):
            if self._highest is not None and key < self._highest and self._order is None:
                self._order = _Order(self._blocks, self._folds)
                self._quick = None
            self._highest = key if self._highest is None else max(key, self._highest)
        if self._order is not None:
            self._order.add(key, fold.place, fold.block)
        self._blocks.append(fold.block)
        self._folds[key] = fold
        if self._calls is not None:
            self._calls.note(fold.place, None, call_id_of(fold.block))

    def _message_start(self, event: MessageStart) -> Snapshot:
        head = self._head
        if self.begins_another(event):
            when = (
                "while the first is open" if head.status == "incomplete" else "after the first has finished"
            )
            raise ProtocolError(
                f"a second message begins {when}; split a conversation with group_by_message()",
                violation="duplicate_message_start",
            )
        return self._show(
            started=head.started or not event.assumed,
            id=event.id if head.id is None else head.id,
            model=event.model if head.model is None else head.model,
            usage=event.usage if head.usage is None else head.usage,
            metadata=FrozenDict({**event.metadata, **head.metadata}),
        )

    def _usage_update(self, event: UsageUpdate) -> Snapshot:
        if self._head.status != "incomplete" or event.usage == self._head.usage:
            return self.snapshot
        return self._show(usage=event.usage)

    def _message_finish(self, event: MessageFinish) -> Snapshot:
        head = self._head
        if head.status != "incomplete":
            return self.snapshot
        self._close_all(_CUT.get(event.reason or ""))
        reason = _reason(event.reason, self._blocks)
        word = event.provider_reason
        if word is None and event.reason not in _REASONS:
            word = event.reason
        own_fields = ("model", "id") if head.id in (None, event.id) and event.id is not None else ("model",)
        return self._show(
            status="length" if reason == "length" else "complete",
            finish_reason=reason,
            provider_finish_reason=word,
            usage=event.usage or head.usage,
            metadata=FrozenDict(
                {k: v for k, v in {**head.metadata, **event.metadata}.items() if k not in own_fields}
            ),
            id=event.id if head.id is None else head.id,
            model=event.model if head.model is None else head.model,
        )

    def _close_all(self, cut: str | None) -> None:
        for fold in self._folds.values():
            if fold.block.open:
                self._put(fold.place, fold.finish(cut=cut))

    def _stream_error(self, event: StreamError) -> Snapshot:
        raise ProviderError(event.message, type=event.type, code=event.code, snapshot=self.snapshot)

    def _tool_update(self, event: ToolUpdate) -> Snapshot:
        if self._calls is None:
            self._calls = CallIndex()
            for place, block in enumerate(self._blocks):
                self._calls.note(place, None, call_id_of(block))
        changed = False
        for place in self._calls.of(event.call_id):
            block = self._blocks[place]
            if isinstance(block, ToolCall):
                updated = with_news(
                    block,
                    execution_status=event.execution_status,
                    display_text=event.display_text,
                    result=event.result,
                )
                if updated is not block:
                    changed = True
                    self._put(place, updated)
                    fold = self._folds[block.key]
                    if fold.place == place:
                        fold.block = updated
        return self._show() if changed else self.snapshot

    def _message_interrupted(self, event: MessageInterrupted) -> Snapshot:
        if self._head.status != "incomplete":
            return self.snapshot
        self._close_all(_CUT["interrupted"])
        why = {} if event.reason is None else {"interrupted": event.reason}
        return self._show(status="interrupted", metadata=FrozenDict({**self._head.metadata, **why}))

    def _attempt_reset(self, event: AttemptReset) -> Snapshot:
        head = self._head
        failed = add_attempt(head.failed_usage, event.usage or head.usage)
        fresh = Head(
            role="assistant", choice=head.choice, attempt=event.attempt, failed_usage=failed, started=False
        )
        self._load(make_snapshot(fresh, ()))
        return self.snapshot

    def _merge(self, delta: Snapshot) -> Snapshot:
        self._load(merge_snapshots(self.snapshot, delta))
        return self.snapshot

    def _unchanged(self, _: ProviderEvent) -> Snapshot:
        return self.snapshot

    _STEPS: ClassVar[dict[type, Callable[[Fold, Any], Snapshot]]] = {
        TextDelta: _block_delta,
        ReasoningDelta: _block_delta,
        DataDelta: _block_delta,
        ToolCallDelta: _block_delta,
        MessageStart: _message_start,
        BlockStart: _block_start,
        BlockDelta: _block_delta,
        BlockFinish: _block_finish,
        UsageUpdate: _usage_update,
        MessageFinish: _message_finish,
        StreamError: _stream_error,
        ProviderEvent: _unchanged,
        ToolUpdate: _tool_update,
        MessageInterrupted: _message_interrupted,
        AttemptReset: _attempt_reset,
        Snapshot: _merge,
    }


class _Order:
    """The blocks in the order of the message, if they arrived in another order.

    It searches and inserts in lists, which is fast. To renumber all blocks at each insertion could take minutes.
    """

    def __init__(self, blocks: Sequence[Block], folds: Mapping[Key, BlockFold]) -> None:
        self.blocks = list(blocks)
        self._places = list(range(len(blocks)))  # the place of each block by arrival
        self._at = {key: fold.place for key, fold in folds.items() if isinstance(key, int)}
        self._numbers = sorted(self._at)

    def add(self, key: Key, place: int, block: Block) -> None:
        """Insert a block: an integer key before the next higher one, any other key at the end."""
        behind = len(self._places)
        if isinstance(key, int):
            number = bisect_right(self._numbers, key)
            if number < len(self._numbers):
                behind = self._places.index(self._at[self._numbers[number]])
            self._numbers.insert(number, key)
            self._at[key] = place
        self._places.insert(behind, place)
        self.blocks.insert(behind, block)

    def put(self, place: int, block: Block) -> None:
        self.blocks[self._places.index(place)] = block


def _reason(reason: str | None, blocks: list[Block]) -> str:
    """`length` and `content_filter` are the provider's decision; otherwise the presence of calls decides."""
    if reason in ("length", "content_filter"):
        return reason
    asked = any(isinstance(block, ToolCall) and block.type != "server_tool_call" for block in blocks)
    return "tool_use" if asked else "stop"
