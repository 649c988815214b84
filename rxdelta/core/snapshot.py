"""The reply so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Never, Self, cast

import attrs

from rxdelta.core.blocks import Block, frozen_content, merge_content
from rxdelta.core.content_part import ContentPart, Origin, change_part
from rxdelta.core.custom import Placed, to_placed
from rxdelta.core.errors import IncompleteMessageError, InvalidToolCallError, InvalidValueError
from rxdelta.core.fast_constructor import fast_constructor
from rxdelta.core.json_values import EMPTY, FrozenDict, clean_text, freeze_mapping, to_more
from rxdelta.core.literals import (
    FINISH_REASONS,
    SNAPSHOT_ROLES,
    SNAPSHOT_STATUSES,
    TERMINAL,
    ExecutionStatus,
    FinishReason,
    SnapshotRole,
    SnapshotStatus,
    merge_call_metadata,
)
from rxdelta.core.message import (
    Message,
    Reply,
    add_usage,
    call_from_json,
    content_from_json,
    listed,
    part_from_json,
    reply_fields,
    reply_to_dict,
    show,
)
from rxdelta.core.tool_call import ToolCall, change, invalid, with_news
from rxdelta.core.values import (
    Key,
    Problem,
    TokenUsage,
    check,
    clean,
    index_of,
    index_or_none,
    one_of,
    one_of_or_none,
    text_or_none,
    to_violations,
    usage_or_none,
    whole_number,
    without_empty,
    wrong_items,
)

if TYPE_CHECKING:
    from rxdelta.core.event_classes import Event


@attrs.frozen(kw_only=True, weakref_slot=False)
class Head:
    """The fields of a snapshot that a text delta does not change, so that the next snapshot can share them."""

    role: SnapshotRole = "unknown"
    status: SnapshotStatus = "incomplete"
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


def empty_head(choice: int = 0, run_id: str | None = None, origin: Origin | None = None) -> Head:
    """The head of a reply of which nothing has come."""
    return Head(role="assistant", choice=choice, run_id=run_id, started=False, origin=origin)


def make_head(
    *,
    role: SnapshotRole = "unknown",
    status: SnapshotStatus = "incomplete",
    metadata: Mapping[str, Any] | None = None,
    usage: TokenUsage | None = None,
    choice: int = 0,
    id: str | None = None,
    model: str | None = None,
    finish_reason: FinishReason | None = None,
    provider_finish_reason: str | None = None,
    run_id: str | None = None,
    parent_run_id: str | None = None,
    custom: Iterable[Placed] | None = None,
    index: int | None = None,
    others: Iterable[Problem | None] = (),
) -> Head:
    """The head of a snapshot that is made by hand, or of untrusted input.

    Args:
        index: The index of a `MessageDelta`. It is only checked here.
        others: Problems of the other fields, which one error names together.

    Raises:
        InvalidValueError: Names each invalid field.
    """
    texts = {
        "id": id,
        "model": model,
        "provider_finish_reason": provider_finish_reason,
        "run_id": run_id,
        "parent_run_id": parent_run_id,
    }
    check(
        [
            one_of("role", role, SNAPSHOT_ROLES),
            one_of("status", status, SNAPSHOT_STATUSES),
            one_of_or_none("finish_reason", finish_reason, FINISH_REASONS),
            index_or_none("index", index),
            index_of("choice", choice),
            *others,
            *wrong_items("usage", (usage,), (TokenUsage, type(None))),
            *(text_or_none(name, value) for name, value in texts.items()),
        ]
    )
    return Head(
        role=role,
        status=status,
        metadata=freeze_mapping(metadata, "metadata"),
        usage=usage,
        choice=choice,
        finish_reason=finish_reason,
        id=id,
        model=model,
        provider_finish_reason=provider_finish_reason,
        run_id=run_id,
        parent_run_id=parent_run_id,
        custom=to_placed(custom),
    )


@attrs.frozen(weakref_slot=False, init=False, repr=False, eq=False)
class Snapshot(Reply):
    """The reply so far, which `scan_deltas` and the other folds emit: immutable, and safe to keep.

    `Snapshot()` is a reply of which nothing has come, `Snapshot.from_dict` restores a stored one, and all others come from
    a fold. The text is in `text`, all content in `blocks`. A small delta, to be merged into a reply, is a `MessageDelta`.

    Example:
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "text", "text": "Hel"})
        >>> snapshot = rd.apply_event(rd.Snapshot(), start)
        >>> snapshot.text, rd.apply_event(snapshot, rd.events.TextDelta(0, "lo")).text, snapshot.text
        ('Hel', 'Hello', 'Hel')
    """

    _head: Head
    blocks: tuple[Block, ...]

    # `merge_delta`. Its file sets this, because it stands above: it folds events, and a fold makes snapshots.
    _merged: ClassVar[Callable[[Any, Snapshot | Event], Any]]

    def __init__(self, *given: Never, **named: Never) -> None:
        if given or named:
            raise InvalidValueError(
                "Snapshot() takes no arguments: a snapshot is what a fold makes of events (scan_deltas, Fold, apply_event). "
                "A small delta made by hand is a MessageDelta, a finished reply a Message; Snapshot.from_dict reads a stored one"
            )
        object.__setattr__(self, "_head", empty_head())
        object.__setattr__(self, "blocks", ())

    # The fields of the head.

    @property
    def role(self) -> SnapshotRole:
        return self._head.role

    @property
    def status(self) -> SnapshotStatus:
        """`incomplete`; `complete`; `length`, cut by the token limit; or `interrupted`, stopped by its consumer."""
        return self._head.status

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

    # The operations, which all return a new snapshot.

    def merge(self, other: Snapshot | Event) -> Self:
        """`merge_delta(self, other)`."""
        merged: Self = Snapshot._merged(self, other)
        return merged

    def __add__(self, other: Snapshot | Event) -> Self:
        return self.merge(other)

    def _with(self, head: Head | None = None, blocks: tuple[Block, ...] | None = None) -> Self:
        """The same value with another head, or other blocks."""
        return self._made(head or self._head, self.blocks if blocks is None else blocks)

    @classmethod
    def _made(
        cls, head: Head, blocks: tuple[Block, ...], content: Any = None, index: int | None = None
    ) -> Self:
        """A value of checked fields. A snapshot has no `content` of its own, so that is merged into the blocks."""
        if content is not None:
            merge_content(whole := list(blocks), content, index or 0)
            blocks = tuple(whole)
        return cast("Self", make_snapshot(head, blocks))

    def _whole(self) -> tuple[Block, ...]:
        """The blocks of the message."""
        return self.blocks

    def to_message(self) -> Message:
        """The finished message.

        If the status is `complete`, open calls are completed; if the message was cut by length or by its consumer,
        they become invalid.

        Raises:
            IncompleteMessageError: The status is `incomplete`. The error has this snapshot.
            InvalidToolCallError: An open call lacks its id or name, or its arguments are not one JSON object.
            InvalidValueError: The role is still `unknown`.
        """
        head = self._head
        status = head.status
        if status == "incomplete":
            why = (
                "the provider has not finished it: the stream was cut off, or still goes on; what came is in .snapshot"
                if head.started or self.blocks
                else "nothing of it has come: the stream was empty, or has not begun"
            )
            raise IncompleteMessageError(f"Cannot convert incomplete message: {why}", snapshot=self)
        if self.role != "assistant":
            wanted = "to_message() takes a snapshot with the role 'assistant'"
            raise InvalidValueError.of([("role", self.role, "is invalid", wanted)])
        blocks = [self._finished(block) for block in self._whole()]
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
            _attempt=head.attempt,
            _failed_usage=head.failed_usage,
            run_id=head.run_id,
            parent_run_id=head.parent_run_id,
            custom=head.custom,
            _violations=head.violations,
            _more=head.more,
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

    def accumulate_token_usage(self, other: Snapshot) -> Self:
        """The snapshot with `other`'s usage added to its own; see `TokenUsage.add`."""
        if other.usage is None:
            return self
        return self._with(attrs.evolve(self._head, usage=add_usage(self.usage, other.usage)))

    def upsert_tool_call(self, call: ToolCall) -> Self:
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
                return self._with(blocks=(*self.blocks[:place], updated, *self.blocks[place + 1 :]))
        return self._with(blocks=(*self.blocks, change(call, key=("call", call.index))))

    def set_tool_execution_status(self, call_id: str, status: ExecutionStatus) -> Self:
        """The snapshot with a new execution status for the calls of that id. The status never goes back."""
        check([None if isinstance(status, str) else ("status", status, "must be a string")])
        return self._with_calls(call_id, lambda call: with_news(call, execution_status=clean_text(status)))

    def set_tool_display_text(self, call_id: str, text: str | None) -> Self:
        """The snapshot with a new display text for the calls of that id; `None` and `""` change nothing."""
        check([text_or_none("text", text)])
        return self._with_calls(call_id, lambda call: with_news(call, display_text=clean(text)))

    def _with_calls(self, call_id: str, update: Callable[[ToolCall], ToolCall]) -> Self:
        blocks = tuple(
            update(block) if isinstance(block, ToolCall) and block.call_id == call_id else block
            for block in self.blocks
        )
        return self if all(new is old for new, old in zip(blocks, self.blocks)) else self._with(blocks=blocks)

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

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __repr__(self) -> str:
        return show("Snapshot", self)

    if not TYPE_CHECKING:  # so that a type checker reports them, too

        def __getattr__(self, name: str) -> Any:
            advice = _ELSEWHERE.get(name)
            if advice is None:
                return super().__getattr__(name)
            raise AttributeError(f"a Snapshot has no attribute {name!r}: {advice}", name=name, obj=self)

    def to_dict(self) -> dict[str, Any]:
        """A JSON object from which `from_dict` restores the snapshot, even an incomplete one."""
        started = None if self._head.started else False
        return reply_to_dict(self) | without_empty({"started": started})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read `to_dict`'s form, or the keywords of a `MessageDelta` as JSON, as untrusted input.

        An `index` or `choice` of digits is cast; a complete call is parsed. A field that this version doesn't know is
        kept in `.more`. A `Snapshot` has the content of a stored `MessageDelta` among its blocks.

        Raises:
            InvalidValueError: Names each invalid field; or the `format` is newer than this version's.
            InvalidToolCallError: A complete call without id or name, or whose arguments are not one JSON
                object.
        """
        fields = reply_fields(data, cls.__name__)
        blocks: tuple[Block, ...] = fields.pop("blocks")
        attempt, failed = fields.pop("attempt"), fields.pop("failed_usage")
        more, violations = to_more(fields.pop("more")), to_violations(fields.pop("violations"))
        content, index = content_from_json(data.get("content")), whole_number(data.get("index"))
        parts = [
            None if part is None else part_from_json(part, "merged_content")
            for part in listed(data.get("merged_content"))
        ]
        calls = [call_from_json(call) for call in listed(data.get("tool_calls"))]
        others = [
            index_of("attempt", attempt),
            *wrong_items("failed_usage", (failed,), (TokenUsage, type(None))),
        ]
        head = attrs.evolve(
            make_head(index=index, others=others, **fields),
            attempt=attempt,
            failed_usage=failed,
            violations=violations,
            more=more,
            started=data.get("started") is not False,
        )
        restored = tuple(_keyed(block, place) for place, block in enumerate(blocks))
        return cls._made(head, (*restored, *keyed(parts, calls)), frozen_content(content), index)


_ELSEWHERE = {
    "merged_content": "its parts are among .blocks",
    "index": "its alternative reply is .choice, and each call in .tool_calls has an index; only a MessageDelta has one itself",
    "migrate_to_content_parts": "it has content parts already, in .blocks; only a MessageDelta has others",
}
"""The answers to a search for a name of a `MessageDelta`. `Reply` knows the names of other libraries."""


@fast_constructor(Snapshot)
def make_snapshot(head: Head, blocks: tuple[Block, ...]) -> Snapshot:
    """A snapshot of fields that the caller has checked."""
    raise NotImplementedError


@fast_constructor(Head, like="head")
def with_usage(head: Head, usage: TokenUsage | None) -> Head:
    """The head with another usage, which isn't empty."""
    raise NotImplementedError


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


def keyed(parts: Iterable[ContentPart | None], calls: Iterable[ToolCall]) -> tuple[Block, ...]:
    """Parts by slot, and calls, as blocks with their keys. `None` leaves a slot empty."""
    found = [change_part(part, key=("part", slot)) for slot, part in enumerate(parts) if part is not None]
    return (*found, *(change(call, key=("call", call.index)) for call in calls))


def _keyed(block: Block, place: int) -> Block:
    if block.key is not None:
        return block
    key: Key = ("part", place) if isinstance(block, ContentPart) else ("call", block.index)
    return change_part(block, key=key) if isinstance(block, ContentPart) else change(block, key=key)
