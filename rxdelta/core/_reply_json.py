"""Snapshots and messages as JSON, both ways. The JSON that is read is untrusted input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rxdelta.core._blocks import Block
from rxdelta.core._content_part import PART_TYPES, ContentPart, part_type
from rxdelta.core._custom import custom_from_json, custom_to_json
from rxdelta.core._errors import InvalidValueError
from rxdelta.core._frozen import is_list, is_mapping, thaw
from rxdelta.core._literals import CALL_TYPES
from rxdelta.core._stored_form import check_format, check_mapping, unknown_fields
from rxdelta.core._tool_call import ToolCall
from rxdelta.core._values import TokenUsage, whole_number, without_empty

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rxdelta.core._message import Message
    from rxdelta.core._snapshot import Snapshot

__all__ = [
    "call_from_json",
    "content_from_json",
    "content_to_json",
    "listed",
    "part_from_json",
    "reply_fields",
    "reply_to_dict",
]


def reply_to_dict(reply: Snapshot | Message) -> dict[str, Any]:
    """The JSON object of the fields that snapshots and messages share."""
    failed = reply.failed_usage
    known = without_empty(
        {
            "role": reply.role,
            "status": reply.status,
            "choice": reply.choice,
            "id": reply.id,
            "model": reply.model,
            "blocks": [block.to_dict() for block in reply.blocks],
            "finish_reason": reply.finish_reason,
            "provider_finish_reason": reply.provider_finish_reason,
            "usage": reply.usage.to_dict() if reply.usage else None,
            "metadata": thaw(reply.metadata),
            "attempt": reply.attempt or None,
            "failed_usage": failed.to_dict() if failed else None,
            "run_id": reply.run_id,
            "parent_run_id": reply.parent_run_id,
            "custom": custom_to_json(reply._custom),
            "violations": dict(reply.violations),
        }
    )
    more: dict[str, Any] = thaw(reply.more)
    return known | more


def reply_fields(data: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The fields that the object has, as keywords for the constructor. `what` names the object in errors."""
    check_mapping(what, data)
    check_format(data)
    fields: dict[str, Any] = {name: data[name] for name in _PLAIN if name in data}
    fields["more"] = unknown_fields(data, _FIELDS)
    for name in ("usage", "failed_usage"):
        usage: Any = data.get(name)
        fields[name] = TokenUsage.from_dict(usage) if is_mapping(usage) else usage
    for name in ("choice", "attempt"):
        fields[name] = whole_number(data.get(name, 0))
    fields["custom"] = custom_from_json(data.get("custom"))
    fields["violations"] = data.get("violations")
    fields["blocks"] = tuple(_block(block) for block in listed(data.get("blocks")))
    return fields


_PLAIN = (
    "role", "status", "id", "model", "finish_reason", "provider_finish_reason", "metadata", "run_id", "parent_run_id",
)  # fmt: skip
_OF_SNAPSHOTS = ("content", "merged_content", "tool_calls", "index", "started")
_FIELDS = frozenset(
    [*_PLAIN, *_OF_SNAPSHOTS, "format", "choice", "attempt", "usage", "failed_usage", "blocks", "custom", "violations"]
)  # fmt: skip


def _block(data: Any) -> Block:
    is_call = isinstance(data, ToolCall) or (is_mapping(data) and str(data.get("type")) in CALL_TYPES)
    return call_from_json(data) if is_call else part_from_json(data, "blocks")


def content_to_json(content: Any) -> Any:
    if isinstance(content, ContentPart):
        return content.to_dict()
    return [content_to_json(item) for item in content] if is_list(content) else thaw(content)


def content_from_json(value: Any) -> Any:
    if is_mapping(value):
        return part_from_json(value, "content")
    if is_list(value):
        return [part_from_json(item, "content") if _is_part(item) else item for item in value]
    return value


def _is_part(value: Any) -> bool:
    return is_mapping(value) and part_type(str(value.get("type"))) in PART_TYPES


def listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if is_list(value) else [value]


def part_from_json(data: Any, field: str) -> ContentPart:
    if isinstance(data, ContentPart):
        return data
    if not is_mapping(data):
        raise InvalidValueError.of([(field, data, "must hold parts")])
    return ContentPart.from_dict(data)


def call_from_json(data: Any) -> ToolCall:
    if isinstance(data, ToolCall):
        return cast("ToolCall", data)
    if not is_mapping(data):
        raise InvalidValueError.of([("tool_calls", data, "must hold tool calls")])
    return ToolCall.from_dict(data)
