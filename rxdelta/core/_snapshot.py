"""The reply so far, and the merging of two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import attrs

from rxdelta.core._block_key import Key
from rxdelta.core._blocks import Block
from rxdelta.core._content_part import ContentPart, change_part
from rxdelta.core._custom import Placed, place_custom, to_placed
from rxdelta.core._errors import IncompleteMessageError, InvalidToolCallError, InvalidValueError, MergeError
from rxdelta.core._execution_status import TERMINAL, merge_call_metadata
from rxdelta.core._fast_constructor import fast_constructor
from rxdelta.core._frozen import EMPTY, FrozenDict, freeze_mapping, is_list, is_mapping
from rxdelta.core._literals import (
    FINISH_REASONS,
    SNAPSHOT_ROLES,
    SNAPSHOT_STATUSES,
    ExecutionStatus,
    FinishReason,
    SnapshotRole,
    SnapshotStatus,
)
from rxdelta.core._merge_blocks import merge_blocks, merge_content
from rxdelta.core._message import Message, Reply, add_usage, show
from rxdelta.core._origin import Origin
from rxdelta.core._reply_json import (
    call_from_json,
    content_from_json,
    content_to_json,
    listed,
    part_from_json,
    reply_fields,
    reply_to_dict,
)
from rxdelta.core._runs import another_run
from rxdelta.core._stored_form import to_more
from rxdelta.core._strict_json import clean_text
from rxdelta.core._tool_call import ToolCall, change, invalid, with_news
from rxdelta.core._values import (
    TokenUsage,
    check,
    clean,
    index_of,
    index_or_none,
    items_of,
    one_of,
    one_of_or_none,
    text_or_none,
    usage_or_none,
    whole_number,
    without_empty,
    wrong_items,
)
from rxdelta.core._violations import add_violations, to_violations

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.core._events import Event

__all__ = [
    "Head",
    "MessageDelta",
    "Snapshot",
    "absorb_content",
    "is_over",
    "is_settled",
    "make_snapshot",
    "merge_snapshots",
]

ContentItem: TypeAlias = str | ContentPart | Mapping[str, Any]
Content: TypeAlias = ContentItem | Sequence[ContentItem] | None


@attrs.frozen(kw_only=True)
class Head:
    """The fields of a snapshot that a text delta does not change, so that the next snapshot can share them."""

    role: SnapshotRole = "unknown"
    status: SnapshotStatus = "incomplete"
    content: str | ContentPart | tuple[ContentItem, ...] | None = None
    index: int | None = None
    metadata: FrozenDict[Any] = EMPTY
    usage: TokenUsage | None = attrs.field(default=None, converter=usage_or_none)
    choice: int = 0
    id: str | None = attrs.field(default=None, converter=clean)
    model: str | None = attrs.field(default=None, converter=clean)
    finish_reason: FinishReason | None = None
    provider_finish_reason: str | None = attrs.field(default=None, converter=clean)
    attempt: int = 0
    failed_usage: TokenUsage | None = attrs.field(default=None, converter=usage_or_none)
    run_id: str | None = attrs.field(default=None, converter=clean)
    parent_run_id: str | None = attrs.field(default=None, converter=clean)
    custom: tuple[Placed, ...] = ()
    violations: FrozenDict[int] = attrs.field(default=EMPTY, eq=False)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, eq=False)
    started: bool = attrs.field(default=True, eq=False)
    """Whether this attempt has had a `MessageStart`; assumed of a snapshot that was constructed."""
    origin: Origin | None = attrs.field(default=None, eq=False)


@attrs.frozen(weakref_slot=False, init=False, repr=False, eq=False)
class Snapshot(Reply):
    """A reply, or a piece of one: the snapshot folded so far, or a small delta to be merged into one.

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
            work, and goes on when the message is sent back.
        run_id, parent_run_id: The run that the reply belongs to, and the run on whose behalf that one works; see
            `events.MessageStart`.
        custom: The application's own events, each with its place; see `custom_events`.

    Raises:
        InvalidValueError: Names each invalid field.

    Example:
        >>> import rxdelta as rd
        >>> first = rd.Snapshot(content="Hel", role="assistant")
        >>> (rd.merge_delta(None, first) + rd.Snapshot(content="lo")).text
        'Hello'
    """

    _head: Head
    blocks: tuple[Block, ...]

    # `merge_delta`. Its file sets this, because it stands above: it folds events, and a fold makes snapshots.
    _merged: ClassVar[Callable[[Snapshot, Snapshot | Event], Snapshot]]

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
        check(
            [
                one_of("role", role, SNAPSHOT_ROLES),
                one_of("status", status, SNAPSHOT_STATUSES),
                one_of_or_none("finish_reason", finish_reason, FINISH_REASONS),
                index_or_none("index", index),
                index_of("choice", choice),
                *wrong_items("merged_content", parts, (ContentPart, type(None))),
                *wrong_items("tool_calls", calls, (ToolCall,)),
                *wrong_items("usage", (usage,), (TokenUsage, type(None))),
                *(
                    text_or_none(name, value)
                    for name, value in (
                        ("id", id),
                        ("model", model),
                        ("provider_finish_reason", provider_finish_reason),
                        ("run_id", run_id),
                        ("parent_run_id", parent_run_id),
                    )
                ),
            ]
        )
        head = Head(
            role=role,
            status=status,
            content=_content(content),
            index=index,
            metadata=freeze_mapping(metadata, "metadata"),
            usage=usage,
            choice=choice,
            id=id,
            model=model,
            finish_reason=finish_reason,
            provider_finish_reason=provider_finish_reason,
            run_id=run_id,
            parent_run_id=parent_run_id,
            custom=to_placed(custom),
        )
        blocks = [
            change_part(part, key=("part", slot)) for slot, part in enumerate(parts) if part is not None
        ]
        keyed = [change(call, key=("call", call.index)) for call in calls]
        object.__setattr__(self, "_head", head)
        object.__setattr__(self, "blocks", (*blocks, *keyed))

    # The fields of the head.

    @property
    def role(self) -> SnapshotRole:
        return self._head.role

    @property
    def status(self) -> SnapshotStatus:
        """`incomplete`; `complete`; `length`, cut by the token limit; or `interrupted`, stopped by its consumer."""
        return self._head.status

    @property
    def content(self) -> str | ContentPart | tuple[ContentItem, ...] | None:
        """What a small delta brings. In a snapshot of a fold it is `None`: the reply's text is `text`."""
        return self._head.content

    @property
    def index(self) -> int | None:
        return self._head.index

    @property
    def metadata(self) -> FrozenDict[Any]:
        return self._head.metadata

    @property
    def usage(self) -> TokenUsage | None:
        """The usage of this attempt so far, in the provider's figures."""
        return self._head.usage

    @property
    def failed_usage(self) -> TokenUsage | None:
        """The usage of the attempts that failed before."""
        return self._head.failed_usage

    @property
    def choice(self) -> int:
        return self._head.choice

    @property
    def id(self) -> str | None:
        return self._head.id

    @property
    def model(self) -> str | None:
        return self._head.model

    @property
    def finish_reason(self) -> FinishReason | None:
        """`stop`, `length`, `tool_use`, `content_filter` or `pause`; `None` until the message has finished."""
        return self._head.finish_reason

    @property
    def provider_finish_reason(self) -> str | None:
        """The provider's own word for the reason."""
        return self._head.provider_finish_reason

    @property
    def attempt(self) -> int:
        """The number of attempts that failed before this one."""
        return self._head.attempt

    @property
    def run_id(self) -> str | None:
        """The run that the reply belongs to; `None` is the lane without a name."""
        return self._head.run_id

    @property
    def parent_run_id(self) -> str | None:
        """The run on whose behalf this one works."""
        return self._head.parent_run_id

    @property
    def _custom(self) -> tuple[Placed, ...]:
        return self._head.custom

    @property
    def violations(self) -> FrozenDict[int]:
        """The rules of the event protocol that this attempt's events broke, each with how often it happened.

        A fold leaves out what can't be applied, such as a delta of a block that has never begun. So if this isn't
        empty, something is missing or has come twice, whatever the status says. The names are those of
        `ProtocolError.violation`; see `rxdelta.core.ProtocolChecker`. A stream that was cut off breaks no rule. Not
        compared, because the counts of wrong deltas depend on how the text was cut.
        """
        return self._head.violations

    @property
    def more(self) -> FrozenDict[Any]:
        """Fields of a stored snapshot that this version doesn't know; `to_dict` writes them back."""
        return self._head.more

    @property
    def merged_content(self) -> tuple[ContentPart, ...]:
        """The blocks that are parts."""
        return tuple(block for block in self.blocks if isinstance(block, ContentPart))

    # The operations, which all return a new snapshot.

    def merge(self, other: Snapshot | Event) -> Snapshot:
        """`merge_delta(self, other)`."""
        return Snapshot._merged(self, other)

    def __add__(self, other: Snapshot | Event) -> Snapshot:
        return self.merge(other)

    def to_message(self) -> Message:
        """The finished message.

        If the status is `complete`, open calls are completed; if the message was cut by length or by its consumer,
        they become invalid. `content` that was never merged is used if there are no merged parts.

        Raises:
            IncompleteMessageError: The status is `incomplete`. The error has this snapshot.
            InvalidToolCallError: An open call lacks its id or name, or its arguments are not one JSON object.
            InvalidValueError: The role is still `unknown`.
        """
        head = self._head
        status = head.status
        if status == "incomplete":
            raise IncompleteMessageError(
                "Cannot convert incomplete message: the stream ended, or has not ended, before the provider finished "
                "it; what came is in .snapshot",
                snapshot=self,
            )
        if self.role != "assistant":
            wanted = "to_message() takes a snapshot with the role 'assistant'"
            raise InvalidValueError.of([("role", self.role, "is invalid", wanted)])
        whole = self if self.merged_content else absorb_content(self)
        blocks = [self._finished(block) for block in whole.blocks]
        return Message(
            status=status,
            blocks=blocks,
            choice=head.choice,
            id=head.id,
            model=head.model,
            finish_reason=head.finish_reason,
            provider_finish_reason=head.provider_finish_reason,
            usage=head.usage,
            metadata=head.metadata,
            attempt=head.attempt,
            failed_usage=head.failed_usage,
            run_id=head.run_id,
            parent_run_id=head.parent_run_id,
            custom=head.custom,
            violations=head.violations,
            more=head.more,
        )

    def _finished(self, block: Block) -> Block:
        if isinstance(block, ContentPart) or block.type != "tool_call":
            return block
        if self.status == "complete":
            try:
                return block.complete()
            except InvalidToolCallError as error:
                error.args = (f"tool_calls: {error}",)
                error.snapshot = self
                raise
        if block.status == "complete" and isinstance(block.arguments, FrozenDict):
            return block
        return invalid(block, f"the message was cut short ({self.status}) while the call was open")

    def migrate_to_content_parts(self) -> Snapshot:
        """The snapshot with the text of `content` as a part; `""` becomes `None`."""
        content = self.content
        if not isinstance(content, str):
            return self
        return with_head(self, content=ContentPart("text", content) if content else None)

    def accumulate_token_usage(self, other: Snapshot) -> Snapshot:
        """The snapshot with `other`'s usage added to its own; see `TokenUsage.add`."""
        return self if other.usage is None else with_head(self, usage=add_usage(self.usage, other.usage))

    def upsert_tool_call(self, call: ToolCall) -> Snapshot:
        """The snapshot with the call of the same `call_id` updated, or with the call appended if there is none.

        The name, arguments and display text that `call` has replace the known ones; metadata are merged; the status
        never goes back. A call without an id changes nothing.
        """
        if call.call_id is None:
            return self
        for place, known in enumerate(self.blocks):
            if isinstance(known, ToolCall) and known.call_id == call.call_id:
                updated = change(
                    known,
                    name=known.name if call.name is None else call.name,
                    arguments=known.arguments if call.arguments is None else call.arguments,
                    display_text=call.display_text or known.display_text,
                    status="complete" if "complete" in (known.status, call.status) else "incomplete",
                    metadata=merge_call_metadata(known.metadata, call.metadata),
                    result=call.result or known.result,
                )
                return with_blocks(self, (*self.blocks[:place], updated, *self.blocks[place + 1 :]))
        return with_blocks(self, (*self.blocks, change(call, key=("call", call.index))))

    def set_tool_execution_status(self, call_id: str, status: ExecutionStatus) -> Snapshot:
        """The snapshot with a new execution status for the calls of that id. The status never goes back."""
        check([None if isinstance(status, str) else ("status", status, "must be a string")])
        return self._with_calls(call_id, lambda call: with_news(call, execution_status=clean_text(status)))

    def set_tool_display_text(self, call_id: str, text: str | None) -> Snapshot:
        """The snapshot with a new display text for the calls of that id; `None` and `""` change nothing."""
        check([text_or_none("text", text)])
        return self._with_calls(call_id, lambda call: with_news(call, display_text=clean(text)))

    def _with_calls(self, call_id: str, update: Callable[[ToolCall], ToolCall]) -> Snapshot:
        blocks = tuple(
            update(block) if isinstance(block, ToolCall) and block.call_id == call_id else block
            for block in self.blocks
        )
        return self if all(new is old for new, old in zip(blocks, self.blocks)) else with_blocks(self, blocks)

    def __eq__(self, other: object) -> bool:
        """Equality of every field and block, and of each block's `key` and `open`."""
        if not isinstance(other, Snapshot):
            return NotImplemented
        return (
            self._head == other._head
            and self.blocks == other.blocks
            and all(
                mine.key == theirs.key and mine.open is theirs.open
                for mine, theirs in zip(self.blocks, other.blocks)
            )
        )

    def __hash__(self) -> int:
        return hash((self._head, self.blocks))

    def __copy__(self) -> Snapshot:
        return self

    def __deepcopy__(self, memo: object) -> Snapshot:
        return self

    def __repr__(self) -> str:
        content = [f"content={self.content!r}"] if self.content is not None else []
        return show("Snapshot", self, content)

    def to_dict(self) -> dict[str, Any]:
        """A JSON object from which `from_dict` restores the snapshot, even an incomplete one."""
        head = self._head
        started = None if head.started else False
        return reply_to_dict(self) | without_empty(
            {"content": content_to_json(head.content), "index": head.index, "started": started}
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Snapshot:
        """Read `to_dict`'s form, or the constructor's keywords as JSON, as untrusted input.

        An `index` or `choice` of digits is cast; a complete call is parsed. A field that this version doesn't know is
        kept in `.more`.

        Raises:
            InvalidValueError: Names each invalid field; or the `format` is newer than this version's.
            InvalidToolCallError: A complete call without id or name, or whose arguments are not one JSON
                object.
        """
        fields = reply_fields(data, "Snapshot")
        merged = listed(data.get("merged_content"))
        blocks: tuple[Block, ...] = fields.pop("blocks")
        attempt, failed = fields.pop("attempt"), fields.pop("failed_usage")
        more, violations = to_more(fields.pop("more")), to_violations(fields.pop("violations"))
        delta = cls(
            content=content_from_json(data.get("content")),
            merged_content=[
                None if part is None else part_from_json(part, "merged_content") for part in merged
            ],
            tool_calls=[call_from_json(call) for call in listed(data.get("tool_calls"))],
            index=whole_number(data.get("index")),
            **fields,
        )
        check(
            [index_of("attempt", attempt), *wrong_items("failed_usage", (failed,), (TokenUsage, type(None)))]
        )
        restored = tuple(_keyed(block, place) for place, block in enumerate(blocks))
        started = data.get("started") is not False
        return with_head(
            with_blocks(delta, (*restored, *delta.blocks)),
            attempt=attempt,
            failed_usage=failed,
            violations=violations,
            more=more,
            started=started,
        )


MessageDelta = Snapshot
"""The same class by LangChain's name for it."""


@fast_constructor(Snapshot)
def make_snapshot(head: Head, blocks: tuple[Block, ...]) -> Snapshot:
    """A snapshot of fields that the caller has checked."""
    raise NotImplementedError


def with_head(snapshot: Snapshot, **fields: Any) -> Snapshot:
    return make_snapshot(attrs.evolve(snapshot._head, **fields), snapshot.blocks)


def with_blocks(snapshot: Snapshot, blocks: tuple[Block, ...]) -> Snapshot:
    return make_snapshot(snapshot._head, blocks)


def is_over(snapshot: Snapshot) -> bool:
    """Whether the message has finished or was interrupted."""
    return snapshot.status != "incomplete"


def is_settled(snapshot: Snapshot) -> bool:
    """Whether the message is over, and each of its calls has an outcome."""
    return (
        is_over(snapshot)
        and not snapshot.waiting_calls
        and all(call.execution_status() in TERMINAL for call in snapshot.tool_calls)
    )


def absorb_content(snapshot: Snapshot) -> Snapshot:
    """The snapshot with its own unmerged `content` merged into its blocks."""
    if snapshot.content is None:
        return snapshot
    blocks = list(snapshot.blocks)
    merge_content(blocks, snapshot.content, snapshot.index or 0)
    return make_snapshot(attrs.evolve(snapshot._head, content=None), tuple(blocks))


def merge_snapshots(primary: Snapshot, delta: Snapshot) -> Snapshot:
    """`merge_delta` of two snapshots.

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
    base = absorb_content(primary)
    blocks = list(base.blocks)
    merge_content(blocks, delta.content, delta.index or 0)
    merge_blocks(blocks, delta.blocks)
    head = _merge_head(base._head, delta._head)
    for place, event in delta._head.custom:
        head = attrs.evolve(head, custom=place_custom(head.custom, event, len(base.blocks) + place))
    return make_snapshot(head, tuple(blocks))


def _merge_head(mine: Head, theirs: Head) -> Head:
    return attrs.evolve(
        mine,
        status=theirs.status if mine.status == "incomplete" else mine.status,
        index=mine.index if theirs.index is None else theirs.index,
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


def _content(value: Any) -> Any:
    """Content as a frozen value: text, a part, or a tuple of parts, texts and mappings."""
    if value is None or isinstance(value, ContentPart):
        return value
    if isinstance(value, str):
        return clean_text(value)
    if is_mapping(value):
        return (freeze_mapping(value, "content"),)
    if is_list(value):
        return tuple(_content_item(item) for item in value)
    raise InvalidValueError.of([("content", value, "must be text, a part, or a list of them")])


def _content_item(item: Any) -> ContentItem:
    if is_mapping(item):
        return freeze_mapping(item, "content")
    if isinstance(item, str):
        return clean_text(item)
    if isinstance(item, ContentPart):
        return item
    raise InvalidValueError.of([("content", item, "must hold parts, strings and mappings")])


def _keyed(block: Block, place: int) -> Block:
    if block.key is not None:
        return block
    key: Key = ("part", place) if isinstance(block, ContentPart) else ("call", block.index)
    return change_part(block, key=key) if isinstance(block, ContentPart) else change(block, key=key)
