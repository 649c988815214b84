"""The steps in which a reply arrives: the chat stream event protocol, and three events of our own.

Every event is a small frozen value with the wire's field names in snake case. `to_dict` gives the wire form
and `from_dict` reads it, the older spellings of it too. `choice` tells alternative replies of one stream
apart and is left out of the wire form where it is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeAlias, get_args

import attrs

from rxdelta.core._blank import blank
from rxdelta.core._blocks import Block, ContentPart, ToolCall
from rxdelta.core._errors import InvalidValueError
from rxdelta.core._frozen import FrozenDict, freeze_mapping, is_mapping, thaw
from rxdelta.core._strict_json import clean_text
from rxdelta.core._values import (
    Problem,
    TokenUsage,
    ToolResult,
    check,
    clean,
    count_or_none,
    index_of,
    text_or_none,
    usage_if_said,
    without_empty,
)

__all__ = [
    "AttemptReset",
    "BlockDelta",
    "BlockFinish",
    "BlockStart",
    "DataDelta",
    "Event",
    "MessageFinish",
    "MessageInterrupted",
    "MessageStart",
    "ProviderEvent",
    "ReasoningDelta",
    "StreamError",
    "TextDelta",
    "ToolCallDelta",
    "ToolUpdate",
    "UsageUpdate",
    "from_dict",
]

Index: TypeAlias = int | str
Wire: TypeAlias = dict[str, Any]


def _index(value: Index) -> Index:
    return clean_text(value) if isinstance(value, str) else value


def _wrong_index(value: object) -> Problem | None:
    """An index is a key: any string, or an integer that isn't absurd. A bool or float is a mistake."""
    if isinstance(value, str):
        return None if value else ("index", value, "is invalid")
    return index_of("index", value, lowest=None)


def _metadata(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "metadata", lenient=True)


def _fields(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "fields", lenient=True)


def _payload(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "payload", lenient=True)


def _content(value: Mapping[str, Any] | Block | None) -> FrozenDict[Any]:
    """Block content in the wire's vocabulary; a part or call of ours is translated."""
    if isinstance(value, (ContentPart, ToolCall)):
        from rxdelta.core._block_wire import block_to_wire

        value = block_to_wire(value)
    return freeze_mapping(value, "content", lenient=True)


def _finished_content(value: Mapping[str, Any] | Block | None) -> FrozenDict[Any] | None:
    return None if value is None else _content(value)


def _words(value: str) -> str:
    return clean_text(value) if isinstance(value, str) else value


def _take_out(event: Any, name: str, field: str) -> None:
    """What the wire has under `name` in the metadata belongs to this field; one that is set already stays."""
    if name in event.metadata:
        metadata = dict(event.metadata)
        value = metadata.pop(name)
        object.__setattr__(event, "metadata", FrozenDict(metadata))
        if getattr(event, field) is None and isinstance(value, str):
            object.__setattr__(event, field, value)


def _text(field: str, value: object) -> Problem | None:
    return None if isinstance(value, str) else (field, value, "must be a string")


def _usage(value: object) -> Problem | None:
    return (
        None if value is None or isinstance(value, TokenUsage) else ("usage", value, "must be a TokenUsage")
    )


def usage_to_wire(usage: TokenUsage | None) -> Wire | None:
    """A usage object as the protocol has it; one that is so already stays as the provider sent it."""
    if usage is None:
        return None
    raw: Wire = thaw(usage.raw)
    if usage_from_wire(raw) == usage:
        return raw
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    flag = {"cumulative": True} if usage.cumulative else {}
    return without_empty(counts) | {"total_tokens": usage.total(), "raw": raw} | flag


def usage_from_wire(value: object) -> TokenUsage | None:
    """Read either form of `usage_to_wire`. A count that is no count is unknown, which is not 0."""
    if not is_mapping(value):
        return None
    counts = [value.get(name) for name in ("input_tokens", "output_tokens")]
    known = [None if count_or_none("", count) else count for count in counts]
    raw = value.get("raw")
    ours = is_mapping(raw)
    whole = freeze_mapping(raw if ours else value, "usage", lenient=True)
    return TokenUsage(known[0], known[1], whole, ours and value.get("cumulative") is True)


@attrs.frozen
class MessageStart:
    """A message begins. `metadata` is what the provider says of the whole of it; a `model` in it is the model.

    `assumed` is whether `to_events` wrote it for a message whose blocks came without a start. The start itself may
    still come, and is then not a second one. Not compared, and not on the wire.
    """

    event: ClassVar[str] = "message-start"
    id: str | None = attrs.field(default=None, converter=clean)
    model: str | None = attrs.field(default=None, converter=clean)
    usage: TokenUsage | None = attrs.field(default=None, converter=usage_if_said)
    metadata: FrozenDict[Any] = attrs.field(default=None, converter=_metadata)
    choice: int = attrs.field(default=0, kw_only=True)
    assumed: bool = attrs.field(default=False, kw_only=True, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _take_out(self, "model", "model")
        if self.model is None and isinstance(self.metadata.get("model_name"), str):
            object.__setattr__(self, "model", self.metadata["model_name"])
        check(
            [
                text_or_none("id", self.id),
                text_or_none("model", self.model),
                _usage(self.usage),
                index_of("choice", self.choice),
            ]
        )

    def to_dict(self) -> Wire:
        """The protocol's wire form."""
        model = {} if self.model is None else {"model": self.model}
        metadata = model | thaw(self.metadata)
        return _wire(self, id=self.id, role="ai", metadata=metadata, usage=usage_to_wire(self.usage))


@attrs.frozen
class BlockStart:
    """A block begins. `content` is in the wire's vocabulary: `{"type": "text", "text": ""}`."""

    event: ClassVar[str] = "content-block-start"
    index: Index = attrs.field(converter=_index)
    content: FrozenDict[Any] = attrs.field(default=None, converter=_content)
    choice: int = attrs.field(default=0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check([_wrong_index(self.index), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return _wire(self, index=self.index) | {"content": thaw(self.content)}


@attrs.frozen(weakref_slot=False)
class TextDelta:
    """More of a text, or of a refusal."""

    event: ClassVar[str] = "content-block-delta"
    index: Index = attrs.field(converter=_index)
    text: str
    choice: int = attrs.field(default=0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check([_wrong_index(self.index), _text("text", self.text), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return _wire(self, index=self.index, delta={"type": "text-delta", "text": self.text})


@attrs.frozen(weakref_slot=False)
class ReasoningDelta:
    """More of a reasoning."""

    event: ClassVar[str] = "content-block-delta"
    index: Index = attrs.field(converter=_index)
    reasoning: str
    choice: int = attrs.field(default=0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check([_wrong_index(self.index), _text("reasoning", self.reasoning), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return _wire(self, index=self.index, delta={"type": "reasoning-delta", "reasoning": self.reasoning})


@attrs.frozen(weakref_slot=False)
class DataDelta:
    """More of an image, an audio, …, as base64 text. Pieces are joined as text, whatever their length."""

    event: ClassVar[str] = "content-block-delta"
    index: Index = attrs.field(converter=_index)
    data: str
    choice: int = attrs.field(default=0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check([_wrong_index(self.index), _text("data", self.data), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return _wire(
            self, index=self.index, delta={"type": "data-delta", "data": self.data, "encoding": "base64"}
        )


@attrs.frozen(weakref_slot=False)
class ToolCallDelta:
    """More of a call's argument text."""

    event: ClassVar[str] = "content-block-delta"
    index: Index = attrs.field(converter=_index)
    args: str
    choice: int = attrs.field(default=0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check([_wrong_index(self.index), _text("args", self.args), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return _wire(self, index=self.index, delta={"type": "tool-call-delta", "args": self.args})


@attrs.frozen
class BlockDelta:
    """Fields of a block that are new or replaced; a null changes nothing. A call's `args` is its whole text so far."""

    event: ClassVar[str] = "content-block-delta"
    index: Index = attrs.field(converter=_index)
    fields: FrozenDict[Any] = attrs.field(default=None, converter=_fields)
    choice: int = attrs.field(default=0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check([_wrong_index(self.index), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return _wire(self, index=self.index, delta={"type": "block-delta", "fields": thaw(self.fields)})


@attrs.frozen
class BlockFinish:
    """A block has ended. `content` overrules what was folded; `None` means *as folded*."""

    event: ClassVar[str] = "content-block-finish"
    index: Index = attrs.field(converter=_index)
    content: FrozenDict[Any] | None = attrs.field(default=None, converter=_finished_content)
    choice: int = attrs.field(default=0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check([_wrong_index(self.index), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        content = {} if self.content is None else {"content": thaw(self.content)}
        return _wire(self, index=self.index) | content


@attrs.frozen
class UsageUpdate:
    """What the message has cost so far: a running snapshot, not an increment."""

    event: ClassVar[str] = "usage"
    usage: TokenUsage
    choice: int = attrs.field(default=0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        missing = ("usage", None, "can't be blank") if self.usage is None else None
        check([missing or _usage(self.usage), index_of("choice", self.choice)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return _wire(self) | {"usage": usage_to_wire(self.usage)}


@attrs.frozen
class MessageFinish:
    """The message has ended.

    Attributes:
        reason: `stop`, `length`, `tool_use` or `content_filter`; without one, the provider's own word.
        provider_reason: The provider's own word; a `finish_reason` in `metadata` is that.
        usage: The final usage, if it comes with the finish.
        metadata: What the provider says of the whole message.
    """

    event: ClassVar[str] = "message-finish"
    reason: str | None = attrs.field(default=None, converter=clean)
    provider_reason: str | None = attrs.field(default=None, converter=clean)
    usage: TokenUsage | None = attrs.field(default=None, converter=usage_if_said)
    metadata: FrozenDict[Any] = attrs.field(default=None, converter=_metadata)
    choice: int = attrs.field(default=0, kw_only=True)

    @property
    def id(self) -> str | None:
        """The message's id, where `metadata` has it: the start may have been lost."""
        found = self.metadata.get("id")
        return found if isinstance(found, str) else None

    @property
    def model(self) -> str | None:
        """The model, where `metadata` names it."""
        name = self.metadata.get("model_name", self.metadata.get("model"))
        return name if isinstance(name, str) else None

    def __attrs_post_init__(self) -> None:
        _take_out(self, "finish_reason", "provider_reason")
        if self.reason is None:
            object.__setattr__(self, "reason", self.provider_reason)
        check(
            [
                text_or_none("reason", self.reason),
                text_or_none("provider_reason", self.provider_reason),
                _usage(self.usage),
                index_of("choice", self.choice),
            ]
        )

    def to_dict(self) -> Wire:
        """The protocol's wire form."""
        word = {} if self.provider_reason is None else {"finish_reason": self.provider_reason}
        metadata = thaw(self.metadata) | word
        return _wire(self, reason=self.reason, usage=usage_to_wire(self.usage), metadata=metadata)


@attrs.frozen
class StreamError:
    """The provider reports an error; the stream is over."""

    event: ClassVar[str] = "error"
    message: str = attrs.field(converter=_words)
    type: str | None = attrs.field(default=None, converter=clean)
    code: str | None = attrs.field(default=None, converter=clean)
    choice: int = attrs.field(default=0, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check(
            [
                _text("message", self.message),
                text_or_none("type", self.type),
                text_or_none("code", self.code),
                index_of("choice", self.choice),
            ]
        )

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return _wire(self, message=self.message, type=self.type, code=self.code)


@attrs.frozen
class ProviderEvent:
    """Something of the provider's own that has no standard form; it passes through and changes no message."""

    event: ClassVar[str] = "provider"
    provider: str = attrs.field(converter=_words)
    name: str = attrs.field(converter=_words)
    payload: FrozenDict[Any] = attrs.field(default=None, converter=_payload)

    def __attrs_post_init__(self) -> None:
        check([_text("provider", self.provider), _text("name", self.name)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return {
            "event": self.event,
            "provider": self.provider,
            "name": self.name,
            "payload": thaw(self.payload),
        }


@attrs.frozen
class ToolUpdate:
    """News of a call that is being run. Legal from the start of its block to the end of the stream.

    Attributes:
        call_id: The call.
        execution_status: `identified`, `executing`, `completed` or `failed`.
        display_text: A better line for people.
        result: What the tool gave back, partial until the status is terminal.
    """

    event: ClassVar[str] = "tool-update"
    call_id: str = attrs.field(converter=_words)
    execution_status: str | None = attrs.field(default=None, converter=clean)
    display_text: str | None = attrs.field(default=None, converter=clean)
    result: ToolResult | None = None

    def __attrs_post_init__(self) -> None:
        wrong = self.result is not None and not isinstance(self.result, ToolResult)
        check(
            [
                _text("call_id", self.call_id),
                text_or_none("execution_status", self.execution_status),
                text_or_none("display_text", self.display_text),
                ("result", self.result, "must be a ToolResult") if wrong else None,
            ]
        )

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return without_empty(
            {
                "event": self.event,
                "call_id": self.call_id,
                "execution_status": self.execution_status,
                "display_text": self.display_text,
                "result": None if self.result is None else self.result.to_dict(),
            }
        )


@attrs.frozen
class MessageInterrupted:
    """The reader stopped the message; what came is kept."""

    event: ClassVar[str] = "message-interrupted"
    reason: str | None = attrs.field(default=None, converter=clean)

    def __attrs_post_init__(self) -> None:
        check([text_or_none("reason", self.reason)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return without_empty({"event": self.event, "reason": self.reason})


@attrs.frozen
class AttemptReset:
    """An attempt failed and another begins: the snapshot starts afresh, the failed usage is remembered.

    Attributes:
        attempt: The number of attempts that have failed.
        error: What ended the last one.
        usage: What it cost, if known.
    """

    event: ClassVar[str] = "attempt-reset"
    attempt: int = 1
    error: str | None = attrs.field(default=None, converter=clean)
    usage: TokenUsage | None = attrs.field(default=None, converter=usage_if_said)

    def __attrs_post_init__(self) -> None:
        check([index_of("attempt", self.attempt), text_or_none("error", self.error), _usage(self.usage)])

    def to_dict(self) -> Wire:
        """The protocol\'s wire form."""
        return without_empty(
            {
                "event": self.event,
                "attempt": self.attempt,
                "error": self.error,
                "usage": usage_to_wire(self.usage),
            }
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
    | ToolUpdate
    | MessageInterrupted
    | AttemptReset
)

EVENT_TYPES: frozenset[type] = frozenset(get_args(Event))
"""The classes of `Event`, for a quick look at what something is."""

_BlankText, _BlankReasoning, _BlankArgs = blank(TextDelta), blank(ReasoningDelta), blank(ToolCallDelta)


def text_delta(index: Index, text: str, choice: int = 0) -> TextDelta:
    """`TextDelta` of fields that a decoder has checked."""
    event: Any = _BlankText()
    event.index = index
    event.text = text
    event.choice = choice
    event.__class__ = TextDelta
    made: TextDelta = event
    return made


def reasoning_delta(index: Index, reasoning: str, choice: int = 0) -> ReasoningDelta:
    """`ReasoningDelta` of fields that a decoder has checked."""
    event: Any = _BlankReasoning()
    event.index = index
    event.reasoning = reasoning
    event.choice = choice
    event.__class__ = ReasoningDelta
    made: ReasoningDelta = event
    return made


def tool_call_delta(index: Index, args: str, choice: int = 0) -> ToolCallDelta:
    """`ToolCallDelta` of fields that a decoder has checked."""
    event: Any = _BlankArgs()
    event.index = index
    event.args = args
    event.choice = choice
    event.__class__ = ToolCallDelta
    made: ToolCallDelta = event
    return made


def _wire(event: Any, **fields: Any) -> Wire:
    known = {name: value for name, value in fields.items() if value is not None and value != {}}
    return {"event": event.event, **known} | ({"choice": event.choice} if event.choice else {})


def from_dict(data: Mapping[str, Any]) -> Event:
    """Read an event from its wire form, in today's spelling or an older one.

    Older spellings: `content_block` for `content` in any block event; a delta given as a block (`content` or
    `content_block`) instead of `delta`; `responseMetadata` for `metadata`; `metadata.finish_reason` for
    `reason`. An event or delta of unknown type becomes a `ProviderEvent` that holds it whole.

    Raises:
        InvalidValueError: Not an object, or a field that cannot be what it was given.
        LimitExceededError: An index beyond `Limits.index`.

    Example:
        >>> import rxdelta as rd
        >>> rd.events.from_dict({"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "Hi"}})
        TextDelta(index=0, text='Hi', choice=0)
    """
    if not is_mapping(data):
        raise InvalidValueError.of([("event", data, "must be a mapping")])
    name = data.get("event")
    read = _READERS.get(name) if isinstance(name, str) else None
    return _unknown(data) if read is None else read(data)


def _unknown(data: Mapping[str, Any]) -> ProviderEvent:
    name = data.get("event")
    return ProviderEvent("", name if isinstance(name, str) else "", data)


def _block_content(data: Mapping[str, Any]) -> Any:
    content = data.get("content")
    return data.get("content_block") if content is None else content


def _read_metadata(data: Mapping[str, Any]) -> Wire:
    metadata: Wire = {}
    for name in ("responseMetadata", "metadata"):
        if is_mapping(data.get(name)):
            metadata.update(data[name])
    return metadata


def _read_message_start(data: Mapping[str, Any]) -> Event:
    usage, metadata = usage_from_wire(data.get("usage")), _read_metadata(data)
    return MessageStart(data.get("id"), None, usage, metadata, choice=data.get("choice", 0))


def _read_block_start(data: Mapping[str, Any]) -> Event:
    return BlockStart(data.get("index"), _block_content(data), choice=data.get("choice", 0))  # type: ignore[arg-type]


def _read_block_finish(data: Mapping[str, Any]) -> Event:
    return BlockFinish(data.get("index"), _block_content(data), choice=data.get("choice", 0))  # type: ignore[arg-type]


def _read_block_delta(data: Mapping[str, Any]) -> Event:
    delta = data.get("delta")
    if not is_mapping(delta):
        delta = _older_delta(data)
    kind = delta.get("type")
    made = _DELTAS.get(kind) if isinstance(kind, str) else None
    if made is None:
        return _unknown(data)
    event, field = made
    value = delta.get(field, "" if field != "fields" else None)
    made_event: Event = event(data.get("index"), value, choice=data.get("choice", 0))
    return made_event


def _older_delta(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """A delta written as a block: text, reasoning and data are pieces; a call's `args` under `content_block` too."""
    block = _block_content(data)
    if not is_mapping(block):
        return {}
    kind = block.get("type")
    if kind in ("text", "reasoning"):
        return {"type": f"{kind}-delta", kind: block.get(kind, "")}
    if (
        kind in ("tool_call_chunk", "server_tool_call_chunk")
        and data.get("content") is None
        and block.get("args")
    ):
        return {"type": "tool-call-delta", "args": block["args"]}
    if isinstance(block.get("data"), str):
        return {"type": "data-delta", "data": block["data"]}
    return {"type": "block-delta", "fields": block}


def _read_usage(data: Mapping[str, Any]) -> Event:
    usage = usage_from_wire(data.get("usage"))
    return _unknown(data) if usage is None else UsageUpdate(usage, choice=data.get("choice", 0))


def _read_message_finish(data: Mapping[str, Any]) -> Event:
    usage, metadata = usage_from_wire(data.get("usage")), _read_metadata(data)
    return MessageFinish(data.get("reason"), None, usage, metadata, choice=data.get("choice", 0))


def _read_error(data: Mapping[str, Any]) -> Event:
    message, code = data.get("message"), data.get("code")
    return StreamError(
        message if isinstance(message, str) else "unknown error",
        data.get("type"),
        code if code is None or isinstance(code, str) else str(code),
        choice=data.get("choice", 0),
    )


def _read_provider(data: Mapping[str, Any]) -> Event:
    payload = data.get("payload")
    return ProviderEvent(
        str(data.get("provider") or ""),
        str(data.get("name") or ""),
        payload if payload is None or is_mapping(payload) else {"value": payload},
    )


def _read_tool_update(data: Mapping[str, Any]) -> Event:
    result = data.get("result")
    return ToolUpdate(
        data.get("call_id"),  # type: ignore[arg-type]
        data.get("execution_status"),
        data.get("display_text"),
        ToolResult.from_dict(result) if is_mapping(result) else result,
    )


_DELTAS: Mapping[str, tuple[Any, str]] = {
    "text-delta": (TextDelta, "text"),
    "reasoning-delta": (ReasoningDelta, "reasoning"),
    "data-delta": (DataDelta, "data"),
    "tool-call-delta": (ToolCallDelta, "args"),
    "block-delta": (BlockDelta, "fields"),
}

_READERS: Mapping[str, Callable[[Mapping[str, Any]], Event]] = {
    "message-start": _read_message_start,
    "content-block-start": _read_block_start,
    "content-block-delta": _read_block_delta,
    "content-block-finish": _read_block_finish,
    "usage": _read_usage,
    "message-finish": _read_message_finish,
    "error": _read_error,
    "provider": _read_provider,
    "tool-update": _read_tool_update,
    "message-interrupted": lambda data: MessageInterrupted(data.get("reason")),
    "attempt-reset": lambda data: AttemptReset(
        data.get("attempt", 1), data.get("error"), usage_from_wire(data.get("usage"))
    ),
}
