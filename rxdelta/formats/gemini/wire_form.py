"""A response in the wire's form, whichever form the SDK gave it."""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import base64
import datetime as dt
import enum
from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.core import DEFAULT_LIMITS
from rxdelta.formats.decoding import as_mapping
from rxdelta.formats.gemini.tables import FORMAT
from rxdelta.formats.json_values import NOTHING

__all__ = ["SDKS_OWN", "other_fields", "wire_form"]

Json: TypeAlias = Mapping[str, Any]


def wire_form(chunk: object) -> Json:
    """The response with the wire's names and values, whether it is the wire's, the SDK's object or a dump of that."""
    fields = as_mapping(chunk, FORMAT)
    if fields is not chunk or _is_dump(fields):
        fields = {name: value for name, value in fields.items() if name not in SDKS_OWN}
        translated: Json = _translated(fields, 0)
        return translated
    return fields


def _is_dump(fields: Json) -> bool:
    """Whether names are in snake case, as in dumps of the SDK's objects."""
    if _in_snake_case(fields):
        return True
    found = fields.get("candidates")
    for candidate in found if isinstance(found, (list, tuple)) else ():
        if isinstance(candidate, Mapping):
            content = candidate.get("content")
            parts = content.get("parts") if isinstance(content, Mapping) else None
            if _in_snake_case(candidate):
                return True
            if any(map(_in_snake_case, parts if isinstance(parts, (list, tuple)) else ())):
                return True
    return False


def _in_snake_case(fields: object) -> bool:
    return isinstance(fields, Mapping) and any("_" in name[1:] for name in fields if isinstance(name, str))


def _translated(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        if depth > DEFAULT_LIMITS.json_depth:
            return None
        found: dict[str, Any] = {}
        for key, item in value.items():
            name = _camel(str(key))
            if item is None and name != "nullValue":  # a dump has every field that there is
                continue
            if name in _THE_USERS:
                found[name] = item
            elif name in _BASE64 and isinstance(item, str):
                found[name] = item.translate(_STANDARD)
            else:
                found[name] = _translated(item, depth + 1)
        return found
    if isinstance(value, (list, tuple)):
        return None if depth > DEFAULT_LIMITS.json_depth else [_translated(item, depth + 1) for item in value]
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, dt.datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest) if head else name


def other_fields(source: Json, read: frozenset[str]) -> Json:
    """An object's fields beyond those that are read. Those that are objects are without their empty fields."""
    return {
        name: _not_empty(value) if isinstance(value, Mapping) else value
        for name, value in source.items()
        if name not in read
    }


def _not_empty(source: Json) -> Json:
    return {name: value for name, value in source.items() if value not in NOTHING}


SDKS_OWN = frozenset([
    "sdk_http_response", "sdkHttpResponse", "automatic_function_calling_history",
    "automaticFunctionCallingHistory", "parsed",
])  # fmt: skip
"""The fields of the SDK's objects that no provider has sent. A recording of such objects has them."""
_THE_USERS = frozenset(["args", "response", "partMetadata"])
"""The objects whose names are the user's, and are not translated."""
_BASE64 = frozenset(["thoughtSignature", "data", "continuationToken"])
_STANDARD = str.maketrans("-_", "+/")
