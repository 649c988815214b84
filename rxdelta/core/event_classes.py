"""The classes of the events, and how these convert and check their fields.

Converters let a value of the wrong type pass: the check that follows reports it with the field's name.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast, get_args

import attrs

from rxdelta.core.blocks import Block, block_to_wire
from rxdelta.core.content_part import ContentPart
from rxdelta.core.errors import InvalidValueError
from rxdelta.core.fast_constructor import fast_constructor
from rxdelta.core.json_values import EMPTY, FrozenDict, clean_text, freeze, freeze_mapping, thaw, to_more
from rxdelta.core.literals import ExecutionStatus, FinishReason
from rxdelta.core.tool_call import ToolCall
from rxdelta.core.values import (
    Problem,
    TokenUsage,
    ToolResult,
    check,
    clean,
    index_of,
    index_or_none,
    text_or_none,
    to_violations,
    usage_or_none,
    usage_to_wire,
)

Index: TypeAlias = int | str
"""What names a block within its message."""


def to_index(value: Index) -> Index:
    return clean_text(value) if isinstance(value, str) else value


def to_text(value: str) -> str:
    return clean_text(value) if isinstance(value, str) else value


def to_run_id(value: str | None) -> str | None:
    return _run("run_id", value)


def to_parent_run_id(value: str | None) -> str | None:
    return _run("parent_run_id", value)


def _run(field: str, value: str | None) -> str | None:
    if value is None or isinstance(value, str):
        return clean(value)
    raise InvalidValueError.of([(field, value, "must be a string")])


def to_reason(value: FinishReason | str | None) -> str | None:
    return clean(value)


def to_status(value: ExecutionStatus | None) -> Any:
    return clean(value)


def to_metadata(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "metadata", lenient=True)


def to_fields(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "fields", lenient=True)


def to_payload(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "payload", lenient=True)


def to_data(value: object) -> Any:
    """Any JSON value of the application, whose mistakes are refused."""
    return freeze(value, "data")


def to_content(value: Mapping[str, Any] | Block | None) -> FrozenDict[Any]:
    """Block content in the wire's vocabulary. A `ContentPart` or `ToolCall` is translated."""
    if isinstance(value, (ContentPart, ToolCall)):
        value = block_to_wire(value)
    return freeze_mapping(value, "content", lenient=True)


def to_finish_content(value: Mapping[str, Any] | Block | None) -> FrozenDict[Any] | None:
    return None if value is None else to_content(value)


def wrong_index(value: object) -> Problem | None:
    """An index is a key: a non-empty string, or an integer below `Limits.index`; not a bool or float."""
    if isinstance(value, str):
        return None if value else ("index", value, "is invalid", "index is a whole number or a text")
    return index_of("index", value, lowest=None)


def wrong_text(field: str, value: object) -> Problem | None:
    return None if isinstance(value, str) else (field, value, "must be a string")


def wrong_usage(value: object) -> Problem | None:
    if value is None or isinstance(value, TokenUsage):
        return None
    return ("usage", value, "must be a TokenUsage")


Wire: TypeAlias = dict[str, Any]


class _WireForm:
    """The base of all events. It has no slots of its own, as `fast_constructor` requires."""

    __slots__ = ()

    event: ClassVar[str]
    """The event's name on the wire."""

    if TYPE_CHECKING:

        @property
        def run_id(self) -> str | None: ...
        @property
        def more(self) -> FrozenDict[Any]: ...

    def to_dict(self) -> Wire:
        """The event in the protocol's wire form, a JSON object that `from_dict` reads."""
        raise NotImplementedError

    def _wire(self, **fields: Any) -> Wire:
        """The wire form with these fields. Omits fields that are `None` or `{}`, and a `choice` of 0."""
        fields.setdefault("choice", getattr(self, "choice", None) or None)
        fields["run_id"] = self.run_id
        known = {name: value for name, value in fields.items() if value is not None and value != {}}
        return {"event": self.event, **known, **(thaw(self.more) if self.more else {})}

    def __repr__(self) -> str:
        shown = [
            f"{field.name}={value!r}"
            for field in attrs.fields(cast("Any", type(self)))
            if (value := getattr(self, field.name)) not in (None, EMPTY) or field.name not in _SHOWN_IF_SET
            if field.name not in _HIDDEN
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


_HIDDEN = ("assumed", "more")
_SHOWN_IF_SET = ("run_id", "parent_run_id", "transient", "violations")


def _take_out(event: Any, name: str, field: str) -> None:
    """Move the metadata's member `name`, which belongs to this field, out of them. A field that is set stays."""
    if name in event.metadata:
        metadata = dict(event.metadata)
        value = metadata.pop(name)
        object.__setattr__(event, "metadata", FrozenDict(metadata))
        if getattr(event, field) is None and isinstance(value, str):
            object.__setattr__(event, field, value)


@attrs.frozen(repr=False)
class MessageStart(_WireForm):
    """A message begins.

    Attributes:
        id: The message's id.
        model: The model; a `model` in `metadata` is read as that.
        usage: The usage so far, if the start reports it.
        metadata: The provider's other facts about the whole message.
        choice: The alternative reply that the event belongs to, as in every event that has it.
        run_id: The run that the event belongs to, as in every event. A run is a lane: within it one message ends before
            the next begins. `None` is the lane without a name; on `ToolUpdate`, `MessageInterrupted`, `AttemptReset`,
            `ProviderEvent`, `Custom` and `StreamError` it is every run.
        parent_run_id: The run on whose behalf this one works, such as that of the agent that called a sub-agent.
        violations: The rules that the message's events had broken when `to_events` wrote this start, with their counts;
            see `Snapshot.violations`. Decoders write none. Not compared.
        more: Fields of a stored event that this version doesn't know; `to_dict` writes them back. So in every event.
        assumed: Whether `to_events` wrote this start for a message whose blocks came without one. A real start may
            follow, and is then not a second start. Not compared, and not on the wire.
    """

    event: ClassVar[str] = "message-start"
    id: str | None = attrs.field(default=None, converter=clean)
    model: str | None = attrs.field(default=None, converter=clean)
    usage: TokenUsage | None = attrs.field(default=None, converter=usage_or_none)
    metadata: FrozenDict[Any] = attrs.field(default=None, converter=to_metadata)
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    parent_run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_parent_run_id)
    violations: FrozenDict[int] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_violations)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)
    assumed: bool = attrs.field(default=False, kw_only=True, eq=False)

    def __attrs_post_init__(self) -> None:
        _take_out(self, "model", "model")
        if self.model is None and isinstance(self.metadata.get("model_name"), str):
            object.__setattr__(self, "model", self.metadata["model_name"])
        check(
            [
                text_or_none("id", self.id),
                text_or_none("model", self.model),
                wrong_usage(self.usage),
                index_of("choice", self.choice),
            ]
        )

    def to_dict(self) -> Wire:
        model = {} if self.model is None else {"model": self.model}
        metadata = model | thaw(self.metadata)
        return self._wire(
            id=self.id,
            role="ai",
            metadata=metadata,
            usage=usage_to_wire(self.usage),
            parent_run_id=self.parent_run_id,
            violations=dict(self.violations),
        )


@attrs.frozen(repr=False)
class BlockStart(_WireForm):
    """A block begins. `content` is in the wire's vocabulary: `{"type": "text", "text": ""}`."""

    event: ClassVar[str] = "content-block-start"
    index: Index = attrs.field(converter=to_index)
    content: FrozenDict[Any] = attrs.field(default=None, converter=to_content)
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check([wrong_index(self.index), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        return self._wire(index=self.index) | {"content": thaw(self.content)}


@attrs.frozen(weakref_slot=False, repr=False)
class TextDelta(_WireForm):
    """A piece of a text or a refusal."""

    event: ClassVar[str] = "content-block-delta"
    index: Index = attrs.field(converter=to_index)
    text: str
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check([wrong_index(self.index), wrong_text("text", self.text), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        return self._wire(index=self.index, delta={"type": "text-delta", "text": self.text})


@attrs.frozen(weakref_slot=False, repr=False)
class ReasoningDelta(_WireForm):
    """A piece of a reasoning."""

    event: ClassVar[str] = "content-block-delta"
    index: Index = attrs.field(converter=to_index)
    reasoning: str
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check(
            [
                wrong_index(self.index),
                wrong_text("reasoning", self.reasoning),
                index_of("choice", self.choice),
            ]
        )

    def to_dict(self) -> Wire:
        return self._wire(index=self.index, delta={"type": "reasoning-delta", "reasoning": self.reasoning})


@attrs.frozen(weakref_slot=False, repr=False)
class DataDelta(_WireForm):
    """A piece of an image, an audio, … in base64. Pieces of any length are joined as text."""

    event: ClassVar[str] = "content-block-delta"
    index: Index = attrs.field(converter=to_index)
    data: str
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check([wrong_index(self.index), wrong_text("data", self.data), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        delta = {"type": "data-delta", "data": self.data, "encoding": "base64"}
        return self._wire(index=self.index, delta=delta)


@attrs.frozen(weakref_slot=False, repr=False)
class ToolCallDelta(_WireForm):
    """A piece of a call's argument text."""

    event: ClassVar[str] = "content-block-delta"
    index: Index = attrs.field(converter=to_index)
    args: str
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check([wrong_index(self.index), wrong_text("args", self.args), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        return self._wire(index=self.index, delta={"type": "tool-call-delta", "args": self.args})


@attrs.frozen(repr=False)
class BlockDelta(_WireForm):
    """New or replaced fields of a block; a null changes nothing. The `args` of a call are its whole text so far."""

    event: ClassVar[str] = "content-block-delta"
    index: Index = attrs.field(converter=to_index)
    fields: FrozenDict[Any] = attrs.field(default=None, converter=to_fields)
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check([wrong_index(self.index), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        return self._wire(index=self.index, delta={"type": "block-delta", "fields": thaw(self.fields)})


@attrs.frozen(repr=False)
class BlockFinish(_WireForm):
    """A block has ended. `content` replaces the folded content; `None` leaves it."""

    event: ClassVar[str] = "content-block-finish"
    index: Index = attrs.field(converter=to_index)
    content: FrozenDict[Any] | None = attrs.field(default=None, converter=to_finish_content)
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check([wrong_index(self.index), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        content = {} if self.content is None else {"content": thaw(self.content)}
        return self._wire(index=self.index) | content


@attrs.frozen(weakref_slot=False, repr=False)
class UsageUpdate(_WireForm):
    """The usage of the message so far: a running total, not an increment."""

    event: ClassVar[str] = "usage"
    usage: TokenUsage
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        missing = ("usage", None, "can't be blank") if self.usage is None else None
        check([missing or wrong_usage(self.usage), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        return self._wire() | {"usage": usage_to_wire(self.usage)}


@attrs.frozen(repr=False)
class MessageFinish(_WireForm):
    """The message has ended.

    Attributes:
        reason: `stop`, `length`, `tool_use`, `content_filter` or `pause`; by default `provider_reason`.
        provider_reason: The provider's own word; a `finish_reason` in `metadata` is read as that.
        usage: The final usage, if it comes with the finish.
        metadata: The provider's other facts about the whole message.
    """

    event: ClassVar[str] = "message-finish"
    reason: FinishReason | str | None = attrs.field(default=None, converter=to_reason)
    provider_reason: str | None = attrs.field(default=None, converter=clean)
    usage: TokenUsage | None = attrs.field(default=None, converter=usage_or_none)
    metadata: FrozenDict[Any] = attrs.field(default=None, converter=to_metadata)
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    @property
    def id(self) -> str | None:
        """The message's id, if `metadata` has it. The start may have been lost."""
        found = self.metadata.get("id")
        return found if isinstance(found, str) else None

    @property
    def model(self) -> str | None:
        """The model, if `metadata` names it."""
        name = self.metadata.get("model_name", self.metadata.get("model"))
        return name if isinstance(name, str) else None

    def __attrs_post_init__(self) -> None:
        _take_out(self, "finish_reason", "provider_reason")
        if self.reason is None and isinstance(self.provider_reason, str):
            object.__setattr__(self, "reason", self.provider_reason)
        check(
            [
                text_or_none("reason", self.reason),
                text_or_none("provider_reason", self.provider_reason),
                wrong_usage(self.usage),
                index_of("choice", self.choice),
            ]
        )

    def to_dict(self) -> Wire:
        word = {} if self.provider_reason is None else {"finish_reason": self.provider_reason}
        metadata = thaw(self.metadata) | word
        return self._wire(reason=self.reason, usage=usage_to_wire(self.usage), metadata=metadata)


@attrs.frozen(repr=False)
class StreamError(_WireForm):
    """The provider reported an error, which ends the stream.

    Attributes:
        message: The provider's own sentence; ours if it sent only a word.
        type, code: The provider's words for the error.
        transient: Whether another try may succeed, where the decoder knows; `None` leaves it to the words.
    """

    event: ClassVar[str] = "error"
    message: str = attrs.field(converter=to_text)
    type: str | None = attrs.field(default=None, converter=clean)
    code: str | None = attrs.field(default=None, converter=clean)
    transient: bool | None = attrs.field(default=None, kw_only=True)
    choice: int = attrs.field(default=0, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check(
            [
                wrong_text("message", self.message),
                text_or_none("type", self.type),
                text_or_none("code", self.code),
                None
                if self.transient is None or isinstance(self.transient, bool)
                else ("transient", self.transient, "must be True, False or None"),
                index_of("choice", self.choice),
            ]
        )

    def to_dict(self) -> Wire:
        return self._wire(message=self.message, type=self.type, code=self.code, transient=self.transient)


@attrs.frozen(repr=False)
class ProviderEvent(_WireForm):
    """An event of the provider that has no standard form. It passes through and changes no message."""

    event: ClassVar[str] = "provider"
    provider: str = attrs.field(converter=to_text)
    name: str = attrs.field(converter=to_text)
    payload: FrozenDict[Any] = attrs.field(default=None, converter=to_payload)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check([wrong_text("provider", self.provider), wrong_text("name", self.name)])

    def to_dict(self) -> Wire:
        if (
            not self.provider and self.payload.get("event") == self.name
        ):  # an event of a later version, as it came
            payload: Wire = thaw(self.payload)
            return payload if self.run_id is None else payload | {"run_id": self.run_id}
        return self._wire(provider=self.provider, name=self.name) | {"payload": thaw(self.payload)}


@attrs.frozen(repr=False)
class Custom(_WireForm):
    """The application's own data among the reply: a status line, documents, a title. Legal at every place.

    It changes no block, and no request to a provider has it. A fold keeps it in `custom_events`, and replays give it in
    its place, unless it is transient.

    Attributes:
        name: What the data are, in the application's words.
        data: Any JSON value.
        id: Names the data among those of this name: a later event with both has newer data, which replace the older in
            their place.
        transient: Whether only current readers get it: no snapshot and no replay has it.
    """

    event: ClassVar[str] = "custom"
    name: str = attrs.field(converter=to_text)
    data: Any = attrs.field(converter=to_data)  # pyright: ignore[reportUnknownVariableType]
    id: str | None = attrs.field(default=None, converter=clean)
    transient: bool = False
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check(
            [
                wrong_text("name", self.name)
                or (None if self.name else ("name", self.name, "can't be blank")),
                text_or_none("id", self.id),
                None
                if isinstance(self.transient, bool)
                else ("transient", self.transient, "must be True or False"),
            ]
        )

    def to_dict(self) -> Wire:
        return self._wire(name=self.name, id=self.id, transient=self.transient or None) | {
            "data": thaw(self.data)
        }


@attrs.frozen(repr=False)
class ToolUpdate(_WireForm):
    """News of a call's execution. Legal from the start of the call's block to the end of the stream.

    Attributes:
        call_id: The id of the call.
        execution_status: `identified`, `awaiting_approval`, `executing`, `completed` or `failed`. The wire may have
            another word, which passes through and counts as `executing`.
        display_text: A new line for people.
        result: The tool's result, partial until the status is terminal.
        choice: The alternative reply whose call it is; `None` is whichever has a call with this id.
    """

    event: ClassVar[str] = "tool-update"
    call_id: str = attrs.field(converter=to_text)
    execution_status: ExecutionStatus | None = attrs.field(default=None, converter=to_status)
    display_text: str | None = attrs.field(default=None, converter=clean)
    result: ToolResult | None = None
    choice: int | None = attrs.field(default=None, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        wrong = self.result is not None and not isinstance(self.result, ToolResult)
        check(
            [
                wrong_text("call_id", self.call_id),
                text_or_none("execution_status", self.execution_status),
                text_or_none("display_text", self.display_text),
                ("result", self.result, "must be a ToolResult") if wrong else None,
                index_or_none("choice", self.choice),
            ]
        )

    def to_dict(self) -> Wire:
        return self._wire(
            call_id=self.call_id,
            execution_status=self.execution_status,
            display_text=self.display_text,
            result=None if self.result is None else self.result.to_dict(),
            choice=self.choice,
        )


@attrs.frozen(repr=False)
class MessageInterrupted(_WireForm):
    """The consumer stopped the message; the part received so far is kept.

    Attributes:
        reason: Why it was stopped.
        choice: The alternative reply that was stopped; `None` is all of them, also those that begin later.
    """

    event: ClassVar[str] = "message-interrupted"
    reason: str | None = attrs.field(default=None, converter=clean)
    choice: int | None = attrs.field(default=None, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check([text_or_none("reason", self.reason), index_or_none("choice", self.choice)])

    def to_dict(self) -> Wire:
        return self._wire(reason=self.reason, choice=self.choice)


@attrs.frozen(repr=False)
class AttemptReset(_WireForm):
    """An attempt failed and another begins. The snapshot starts afresh, but keeps the usage of failed attempts.

    Attributes:
        attempt: The number of attempts that have failed.
        error: The error that ended the last attempt.
        usage: The usage of the last attempt, if known.
        choice: The alternative reply that begins again, even if it had ended; `None` is every reply. After a reply's
            end, a reset without a choice belongs to the next message.
    """

    event: ClassVar[str] = "attempt-reset"
    attempt: int = 1
    error: str | None = attrs.field(default=None, converter=clean)
    usage: TokenUsage | None = attrs.field(default=None, converter=usage_or_none)
    choice: int | None = attrs.field(default=None, kw_only=True)
    run_id: str | None = attrs.field(default=None, kw_only=True, converter=to_run_id)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check(
            [
                index_of("attempt", self.attempt),
                text_or_none("error", self.error),
                wrong_usage(self.usage),
                index_or_none("choice", self.choice),
            ]
        )

    def to_dict(self) -> Wire:
        return self._wire(
            attempt=self.attempt, error=self.error, usage=usage_to_wire(self.usage), choice=self.choice
        )


Event: TypeAlias = (
    MessageStart
    | BlockStart
    | TextDelta
    | ReasoningDelta
    | DataDelta
    | ToolCallDelta
    | BlockDelta
    | BlockFinish
    | UsageUpdate
    | MessageFinish
    | StreamError
    | ProviderEvent
    | Custom
    | ToolUpdate
    | MessageInterrupted
    | AttemptReset
)
"""Any event, for annotations."""

EVENT_TYPES: frozenset[type] = frozenset(get_args(Event))
"""The classes of `Event`, to test whether a value is one."""

for _event_type in EVENT_TYPES:
    # Pickles and reprs name the public module. This file does without `from __future__ import annotations`, because
    # `typing.get_type_hints` would look for the names of the annotations in the public module.
    _event_type.__module__ = "rxdelta.core.events"


@fast_constructor(TextDelta)
def text_delta(
    index: Index, text: str, choice: int = 0, *, run_id: str | None = None, more: FrozenDict[Any] = EMPTY
) -> TextDelta:
    """A `TextDelta` of fields that the caller has checked."""
    raise NotImplementedError


@fast_constructor(ReasoningDelta)
def reasoning_delta(
    index: Index, reasoning: str, choice: int = 0, *, run_id: str | None = None, more: FrozenDict[Any] = EMPTY
) -> ReasoningDelta:
    """A `ReasoningDelta` of fields that the caller has checked."""
    raise NotImplementedError


@fast_constructor(ToolCallDelta)
def tool_call_delta(
    index: Index, args: str, choice: int = 0, *, run_id: str | None = None, more: FrozenDict[Any] = EMPTY
) -> ToolCallDelta:
    """A `ToolCallDelta` of fields that the caller has checked."""
    raise NotImplementedError


@fast_constructor(UsageUpdate)
def usage_update(
    usage: TokenUsage, choice: int = 0, *, run_id: str | None = None, more: FrozenDict[Any] = EMPTY
) -> UsageUpdate:
    """A `UsageUpdate` of fields that the caller has checked."""
    raise NotImplementedError
