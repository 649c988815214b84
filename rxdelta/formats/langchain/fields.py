"""Access to the fields of a chunk, and to those that parts of a content and fragments of calls have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeGuard

from rxdelta.core import DEFAULT_LIMITS, LimitExceededError, is_mapping
from rxdelta.core import is_list as is_list
from rxdelta.formats.decoding import Fields

__all__ = [
    "READ",
    "Index",
    "Json",
    "extras_of",
    "fragment_index",
    "is_json_object",
    "is_list",
    "other_fields",
    "part_index",
    "part_type",
]

Json: TypeAlias = Mapping[str, Any]
Index: TypeAlias = int | str

READ = Fields("langchain")


def is_json_object(value: object) -> TypeGuard[Json]:
    """`is_mapping`, and faster for a dict."""
    return type(value) is dict or is_mapping(value)


def part_type(part: Json) -> str:
    kind = part.get("type")
    if isinstance(kind, str) and kind:
        return kind
    return "text" if isinstance(part.get("text"), str) else ""


def part_index(value: object, path: str) -> Index | None:
    """The index by which later parts continue this one; `None` if none can."""
    if isinstance(value, str):
        return value if value.startswith("lc_") else None
    return _whole_number(value, path)


def fragment_index(value: object, path: str) -> int | None:
    """The same of a fragment in `tool_call_chunks`, where some providers write the number as a string."""
    if isinstance(value, str):
        if len(value) >= 20 or not value.removeprefix("-").isdecimal():
            raise READ.fail(f"{path}.index", "a whole number", value)
        value = int(value)
    return _whole_number(value, path)


def _whole_number(value: object, path: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise READ.fail(f"{path}.index", 'a whole number or a string that begins with "lc_"', value)
    if abs(value) >= DEFAULT_LIMITS.index:
        raise LimitExceededError.of("index", DEFAULT_LIMITS.index, f"the index at {path}.index")
    return value


def other_fields(part: Json, *read: str) -> dict[str, Any]:
    """The fields of a part but those that are read, its type and its index."""
    return {name: value for name, value in part.items() if name not in read and name not in ("type", "index")}


def extras_of(extras: object) -> dict[str, Any]:
    """The standard's `extras` as fields of a block.

    A signature becomes a field of its own, where every other format has it: the provider wants it back.
    """
    if not is_mapping(extras):
        return {} if extras is None else {"extras": extras}
    signed = {"signature": extras["signature"]} if isinstance(extras.get("signature"), str) else {}
    more = {name: value for name, value in extras.items() if name not in signed}
    return {**signed, **({"extras": more} if more else {})}
