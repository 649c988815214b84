"""How the events convert and check their fields.

Converters let a value of the wrong type pass: the check that follows reports it with the field's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.core._block_wire import block_to_wire
from rxdelta.core._blocks import Block
from rxdelta.core._content_part import ContentPart
from rxdelta.core._errors import InvalidValueError
from rxdelta.core._frozen import FrozenDict, freeze, freeze_mapping
from rxdelta.core._literals import ExecutionStatus, FinishReason
from rxdelta.core._strict_json import clean_text
from rxdelta.core._tool_call import ToolCall
from rxdelta.core._values import Problem, TokenUsage, clean, index_of

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
