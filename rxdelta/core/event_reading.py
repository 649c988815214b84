"""Events read from their wire form, in today's spelling or an older one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rxdelta.core.event_classes import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
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
    to_run_id,
)
from rxdelta.core.fast_constructor import set_field
from rxdelta.core.json_values import check_format, check_mapping, is_mapping, to_more, unknown_fields
from rxdelta.core.values import ToolResult, usage_from_wire


def from_dict(data: Mapping[str, Any]) -> Event:
    """Read an event from its wire form, in today's spelling or an older one.

    A field that this version doesn't know is kept in `.more`, and `to_dict` writes it back. Older spellings: `content_block` for `content` in any block event; a delta written as a block (`content` or
    `content_block`) instead of as `delta`; `responseMetadata` for `metadata`; `metadata.finish_reason` for
    `reason`. An event or delta of unknown type becomes a `ProviderEvent` with the whole object as its payload.

    Raises:
        InvalidValueError: Not an object, or an invalid field; or the `format` is newer than this version's.
        LimitExceededError: An index beyond `Limits.index`.

    Example:
        >>> import rxdelta as rd
        >>> rd.events.from_dict({"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "Hi"}})
        TextDelta(index=0, text='Hi', choice=0)
    """
    check_mapping("event", data)
    check_format(data)
    name = data.get("event")
    read = _READERS.get(name) if isinstance(name, str) else None
    event = _unknown(data) if read is None else read(data)
    if (run_id := data.get("run_id")) is not None:
        set_field(event, "run_id", to_run_id(run_id))
    is_kept_whole = type(event) is ProviderEvent and name != ProviderEvent.event
    if not is_kept_whole and (more := unknown_fields(data, _FIELDS[type(event)])):
        set_field(event, "more", to_more(more))
    return event


def _unknown(data: Mapping[str, Any]) -> ProviderEvent:
    name = data.get("event")
    return ProviderEvent("", name if isinstance(name, str) else "", data)


def _block_content(data: Mapping[str, Any]) -> Any:
    content = data.get("content")
    return data.get("content_block") if content is None else content


def _read_metadata(data: Mapping[str, Any]) -> dict[str, Any]:
    metadata: dict[str, Any] = {}
    for name in ("responseMetadata", "metadata"):
        if is_mapping(data.get(name)):
            metadata.update(data[name])
    return metadata


def _read_message_start(data: Mapping[str, Any]) -> Event:
    usage, metadata = usage_from_wire(data.get("usage")), _read_metadata(data)
    return MessageStart(
        data.get("id"),
        None,
        usage,
        metadata,
        choice=data.get("choice", 0),
        parent_run_id=data.get("parent_run_id"),
        violations=data.get("violations"),
    )


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
    """A delta written as a block. Text, reasoning and data are pieces; so are a call's `args` in `content_block`."""
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
    message, code, transient = data.get("message"), data.get("code"), data.get("transient")
    return StreamError(
        message if isinstance(message, str) else "unknown error",
        data.get("type"),
        code if code is None or isinstance(code, str) else str(code),
        transient=transient if isinstance(transient, bool) else None,
        choice=data.get("choice", 0),
    )


def _read_provider(data: Mapping[str, Any]) -> Event:
    payload = data.get("payload")
    return ProviderEvent(
        str(data.get("provider") or ""),
        str(data.get("name") or ""),
        payload if payload is None or is_mapping(payload) else {"value": payload},
    )


def _read_custom(data: Mapping[str, Any]) -> Event:
    return Custom(data.get("name"), data.get("data"), data.get("id"), data.get("transient", False))  # type: ignore[arg-type]


def _read_tool_update(data: Mapping[str, Any]) -> Event:
    result = data.get("result")
    return ToolUpdate(
        data.get("call_id"),  # type: ignore[arg-type]
        data.get("execution_status"),
        data.get("display_text"),
        ToolResult.from_dict(result) if is_mapping(result) else result,
        choice=data.get("choice"),
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
    "custom": _read_custom,
    "tool-update": _read_tool_update,
    "message-interrupted": lambda data: MessageInterrupted(data.get("reason"), choice=data.get("choice")),
    "attempt-reset": lambda data: AttemptReset(
        data.get("attempt", 1),
        data.get("error"),
        usage_from_wire(data.get("usage")),
        choice=data.get("choice"),
    ),
}

_COMMON = ("event", "format", "choice", "run_id")
_METADATA = ("metadata", "responseMetadata")
_CONTENT = ("index", "content", "content_block")
_OF_DELTA = frozenset([*_COMMON, *_CONTENT, "delta"])

_FIELDS: Mapping[type, frozenset[str]] = {
    MessageStart: frozenset([*_COMMON, *_METADATA, "id", "role", "usage", "parent_run_id", "violations"]),
    BlockStart: frozenset([*_COMMON, *_CONTENT]),
    **{kind: _OF_DELTA for kind, _ in _DELTAS.values()},
    BlockFinish: frozenset([*_COMMON, *_CONTENT]),
    UsageUpdate: frozenset([*_COMMON, "usage"]),
    MessageFinish: frozenset([*_COMMON, *_METADATA, "reason", "usage"]),
    StreamError: frozenset([*_COMMON, "message", "type", "code", "transient"]),
    ProviderEvent: frozenset([*_COMMON, "provider", "name", "payload"]),
    Custom: frozenset(["event", "format", "run_id", "name", "data", "id", "transient"]),
    ToolUpdate: frozenset([*_COMMON, "call_id", "execution_status", "display_text", "result"]),
    MessageInterrupted: frozenset([*_COMMON, "reason"]),
    AttemptReset: frozenset([*_COMMON, "attempt", "error", "usage"]),
}
"""The fields of each event's wire form, in every spelling."""
