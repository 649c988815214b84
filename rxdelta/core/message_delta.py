"""Small deltas, as LangChain's Elixir `MessageDelta`, and the merging of two snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import attrs

from rxdelta.core.blocks import Block, Content, ContentItem, frozen_content, merge_blocks, merge_content
from rxdelta.core.content_part import ContentPart
from rxdelta.core.custom import Placed, place_custom
from rxdelta.core.errors import MergeError
from rxdelta.core.fast_constructor import set_field
from rxdelta.core.json_values import FrozenDict
from rxdelta.core.message import add_usage, content_to_json, show
from rxdelta.core.runs import another_run
from rxdelta.core.snapshot import Head, Snapshot, keyed, make_head
from rxdelta.core.tool_call import ToolCall
from rxdelta.core.values import TokenUsage, add_violations, items_of, without_empty, wrong_items

if TYPE_CHECKING:
    from rxdelta.core.literals import FinishReason, SnapshotRole, SnapshotStatus


@attrs.frozen(weakref_slot=False, init=False, repr=False, eq=False)
class MessageDelta(Snapshot):
    """A small delta made by hand, to be merged by `merge_delta`; and what merging such deltas makes.

    It has all that a `Snapshot` has, and what LangChain's `MessageDelta` has besides: content that isn't merged yet, and
    parts by slot. Most programs read snapshots, and never make a delta: providers' chunks become events.

    Args:
        content: Content that is not merged yet: text, a part, or a list of parts, strings and mappings (only
            those with `type` "text" count). It belongs to the slot `index`, or to 0.
        merged_content: Parts by slot; `None` leaves a slot empty. A single part is a list of one.
        tool_calls: Calls, each with its own `index`.
        role: `unknown` or `assistant`.
        status: `incomplete`, `complete`, `length`, or `interrupted`.
        index: The slot that `content` belongs to.
        metadata: Other facts about the message; a JSON object.
        usage: The usage so far.
        choice: The number of the alternative reply that this is.
        id, model, provider_finish_reason: As the provider sent them.
        finish_reason: `stop`, `length`, `tool_use`, `content_filter`, or `pause`: the provider has paused its own
            work, and continues when the message is sent back.
        run_id, parent_run_id: The run that the reply belongs to, and the run on whose behalf that one works; see
            `events.MessageStart`.
        custom: The application's own events, each with its place; see `custom_events`.

    Raises:
        InvalidValueError: Names each invalid field.

    Example:
        >>> import rxdelta as rd
        >>> first = rd.MessageDelta(content="Hel", role="assistant")
        >>> (rd.merge_delta(None, first) + rd.MessageDelta(content="lo")).text
        'Hello'
    """

    content: str | ContentPart | tuple[ContentItem, ...] | None = None
    """What isn't merged yet; `None` after merging."""
    index: int | None = None
    """The slot that `content` belongs to."""

    def __init__(
        self,
        content: Content = None,
        merged_content: Sequence[ContentPart | None] | ContentPart | None = None,
        tool_calls: Iterable[ToolCall] | None = None,
        role: SnapshotRole = "unknown",
        status: SnapshotStatus = "incomplete",
        index: int | None = None,
        metadata: Mapping[str, Any] | None = None,
        usage: TokenUsage | None = None,
        choice: int = 0,
        *,
        id: str | None = None,
        model: str | None = None,
        finish_reason: FinishReason | None = None,
        provider_finish_reason: str | None = None,
        run_id: str | None = None,
        parent_run_id: str | None = None,
        custom: Iterable[Placed] | None = None,
    ) -> None:
        parts = items_of(
            "merged_content", (merged_content,) if isinstance(merged_content, ContentPart) else merged_content
        )
        calls = items_of("tool_calls", tool_calls)
        head = make_head(
            role=role,
            status=status,
            metadata=metadata,
            usage=usage,
            choice=choice,
            id=id,
            model=model,
            finish_reason=finish_reason,
            provider_finish_reason=provider_finish_reason,
            run_id=run_id,
            parent_run_id=parent_run_id,
            custom=custom,
            index=index,
            others=[
                *wrong_items("merged_content", parts, (ContentPart, type(None))),
                *wrong_items("tool_calls", calls, (ToolCall,)),
            ],
        )
        self._set(head, keyed(parts, calls), frozen_content(content), index)

    def _set(self, head: Head, blocks: tuple[Block, ...], content: Any, index: int | None) -> None:
        set_field(self, "_head", head)
        set_field(self, "blocks", blocks)
        set_field(self, "content", content)
        set_field(self, "index", index)

    @classmethod
    def _made(
        cls, head: Head, blocks: tuple[Block, ...], content: Any = None, index: int | None = None
    ) -> Self:
        made = object.__new__(cls)
        made._set(head, blocks, content, index)
        return made

    def _with(self, head: Head | None = None, blocks: tuple[Block, ...] | None = None) -> Self:
        blocks = self.blocks if blocks is None else blocks
        return self._made(head or self._head, blocks, self.content, self.index)

    @property
    def merged_content(self) -> tuple[ContentPart, ...]:
        """The blocks that are parts."""
        return tuple(block for block in self.blocks if isinstance(block, ContentPart))

    def _whole(self) -> tuple[Block, ...]:
        """`content` that was never merged counts if there are no merged parts."""
        return self.blocks if self.merged_content else as_snapshot(self).blocks

    def migrate_to_content_parts(self) -> Self:
        """The delta with the text of `content` as a part; `""` becomes `None`."""
        if not isinstance(self.content, str):
            return self
        part = ContentPart("text", self.content) if self.content else None
        return self._made(self._head, self.blocks, part, self.index)

    def __eq__(self, other: object) -> bool:
        """Equality with a reply that has the same fields and blocks, and no other content; or with such a delta."""
        if not isinstance(other, Snapshot):
            return NotImplemented
        theirs = (other.content, other.index) if isinstance(other, MessageDelta) else (None, None)
        return (self.content, self.index) == theirs and Snapshot.__eq__(self, other)

    __hash__ = Snapshot.__hash__

    def __repr__(self) -> str:
        return show("MessageDelta", self, [] if self.content is None else [f"content={self.content!r}"])

    def to_dict(self) -> dict[str, Any]:
        """A JSON object from which `from_dict` restores the delta."""
        own = {"content": content_to_json(self.content), "index": self.index}
        return Snapshot.to_dict(self) | without_empty(own)


def as_snapshot(snapshot: Snapshot) -> Snapshot:
    """The reply that a delta is so far: its own content is merged."""
    if not isinstance(snapshot, MessageDelta):
        return snapshot
    return Snapshot._made(snapshot._head, snapshot.blocks, snapshot.content, snapshot.index)


def merge_snapshots(primary: Snapshot, delta: Snapshot) -> Snapshot:
    """`merge_delta` of two snapshots. The result is a delta if `primary` is one.

    Raises:
        MergeError: The role of `primary` is not `assistant`.
        ProtocolError: The snapshots are of different runs. A small delta without a run belongs to any.
    """
    if delta.choice != primary.choice:
        return primary
    own = primary.run_id
    if delta.run_id not in (None, own) and (own is not None or primary.blocks):
        raise another_run(delta.run_id, own)
    if primary.role != "assistant":
        raise MergeError(
            f"cannot merge into a delta whose role is {primary.role!r}; begin with merge_delta(None, …)"
        )
    blocks, index = list(primary.blocks), None
    if isinstance(primary, MessageDelta):
        index = primary.index
        merge_content(blocks, primary.content, index or 0)
    known = len(blocks)
    if isinstance(delta, MessageDelta):
        index = index if delta.index is None else delta.index
        merge_content(blocks, delta.content, delta.index or 0)
    merge_blocks(blocks, delta.blocks)
    head = _merge_head(primary._head, delta._head)
    for place, event in delta._head.custom:
        head = attrs.evolve(head, custom=place_custom(head.custom, event, known + place))
    return primary._made(head, tuple(blocks), None, index)


def _merge_head(mine: Head, theirs: Head) -> Head:
    return attrs.evolve(
        mine,
        status=theirs.status if mine.status == "incomplete" else mine.status,
        metadata=FrozenDict({**mine.metadata, **theirs.metadata}) if theirs.metadata else mine.metadata,
        usage=add_usage(mine.usage, theirs.usage),
        id=mine.id or theirs.id,
        model=mine.model or theirs.model,
        run_id=theirs.run_id if mine.run_id is None else mine.run_id,
        parent_run_id=theirs.parent_run_id if mine.parent_run_id is None else mine.parent_run_id,
        finish_reason=theirs.finish_reason or mine.finish_reason,
        provider_finish_reason=theirs.provider_finish_reason or mine.provider_finish_reason,
        attempt=max(mine.attempt, theirs.attempt),
        failed_usage=add_usage(mine.failed_usage, theirs.failed_usage),
        violations=add_violations(mine.violations, theirs.violations),
    )
