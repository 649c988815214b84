"""The names of generateContent, and the wire's form of a response, whichever form the SDK gave it.

Sets of fields and `Fields` are in the file that calls their methods for every chunk: CPython is slower at methods of imported
names.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import base64
import datetime as dt
import enum
from collections.abc import Mapping
from typing import Any, Final

from rxdelta.core import DEFAULT_LIMITS
from rxdelta.formats.decoding import NOTHING, Json, as_mapping, by_word
from rxdelta.formats.endings import Broken

FORMAT: Final = "gemini"

# The parts of a tool that the provider runs itself. A block notes its own as PROVIDER_TYPE.
EXECUTABLE_CODE: Final = "executableCode"
CODE_RESULT: Final = "codeExecutionResult"
TOOL_CALL: Final = "toolCall"
TOOL_RESPONSE: Final = "toolResponse"
SERVER_TOOLS: Final = (EXECUTABLE_CODE, CODE_RESULT, TOOL_CALL, TOOL_RESPONSE)

REASONS: Mapping[str, str] = by_word(
    {
        "stop": "STOP",
        "length": "MAX_TOKENS",
        "content_filter": "SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII MODEL_ARMOR ESCALATION"
        " IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT IMAGE_RECITATION",
        "pause": "CONTINUATION",
    }
)

BROKEN: Mapping[str, Broken] = {
    "MALFORMED_FUNCTION_CALL": Broken("the model's function call could not be read", True),
    "MALFORMED_RESPONSE": Broken("the model's response could not be read", True),
    "UNEXPECTED_TOOL_CALL": Broken("the model called a function that the request doesn't have", True),
    "TOO_MANY_TOOL_CALLS": Broken("the model called too many of the provider's tools", False),
    "MISSING_THOUGHT_SIGNATURE": Broken("a thought signature is missing in the request", False),
    "PUP_LIMITED_DISABLED": Broken("the account is limited by the Prohibited Use Policy", False),
    "NO_IMAGE": Broken("the model made no image", True),
    "IMAGE_OTHER": Broken("the image broke off for an unknown reason", True),
    "OTHER": Broken("the reply broke off for an unknown reason", True),
}
"""The reasons that say that the model or Google failed. The provider's `finishMessage` wins over these.

https://ai.google.dev/api/generate-content#FinishReason and
https://docs.cloud.google.com/vertex-ai/generative-ai/docs/reference/rest/v1/GenerateContentResponse#FinishReason
"""

_IN_ORDER = "STOP MAX_TOKENS SAFETY RECITATION OTHER BLOCKLIST PROHIBITED_CONTENT SPII MALFORMED_FUNCTION_CALL MODEL_ARMOR"
NUMBERED_REASONS: Mapping[int, str] = {0: "", **dict(enumerate(_IN_ORDER.split(), 1))}
"""The finish reasons by Vertex's numbers. AI Studio, whose numbers differ from 6 on, sends none."""

UNSPECIFIED: Final = (
    None,
    "",
    0,
    "FINISH_REASON_UNSPECIFIED",
    "BLOCKED_REASON_UNSPECIFIED",
    "OUTCOME_UNSPECIFIED",
)
"""The values of an enum that say nothing."""


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
