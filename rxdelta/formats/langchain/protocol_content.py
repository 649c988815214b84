"""The content of a block, and usage, in LangChain's protocol and in our events: written and read.

The protocol names some fields differently (`base64`, `annotations`), and has fewer types. A block that it has no form
for travels as `non_standard`, with its own content as the `value` and the mark `UNWRAP`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import (
    Block,
    Citation,
    ContentPart,
    TokenUsage,
    ToolCall,
    block_to_wire,
    is_list,
    is_mapping,
    thaw,
    usage_from_wire,
)
from rxdelta.core.events import BlockDelta
from rxdelta.formats.decoding import Json
from rxdelta.formats.langchain.tables import (
    ASSUMED,
    BLOCK_MARKS,
    CITATION_FIELDS,
    MEDIA_TYPES,
    REFUSAL,
    UNWRAP,
)

Wire: TypeAlias = dict[str, Any]

_TEXT_FIELDS = {"text": "text", "reasoning": "reasoning", "refusal": "text"} | dict.fromkeys(
    MEDIA_TYPES, "base64"
)
"""The protocol's field for the text of a part; a result has none."""

_OUR_TEXT_FIELDS = {"text": "text", "reasoning": "reasoning", "refusal": "refusal"}
"""Ours; `data` for all others."""

_STRING_FIELDS: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ["text", "refusal", "reasoning", "server_tool_result"], ("id",)
) | dict.fromkeys(MEDIA_TYPES, ("id", "file_id", "url", "mime_type"))
"""The types of parts that the protocol has, and their fields that must be strings."""

_RESERVED: Mapping[str, frozenset[str]] = {
    "text": frozenset(["text", REFUSAL, "annotations", *BLOCK_MARKS]),
    "refusal": frozenset(["text", REFUSAL, "annotations", *BLOCK_MARKS]),
    "reasoning": frozenset(["reasoning", "thinking", "annotations", *BLOCK_MARKS]),
    "server_tool_result": frozenset(["data", "annotations", *BLOCK_MARKS]),
} | dict.fromkeys(MEDIA_TYPES, frozenset(["base64", "data", "annotations", *BLOCK_MARKS]))
"""Names that the options of a part can't have, because the protocol or a mark uses them."""

_RESERVED_OF_CALLS = frozenset(["id", "name", "args", "arguments", "input", "error", *BLOCK_MARKS])


# Written.


def write_content(block: Block, *, with_text: bool = True) -> tuple[Wire, bool]:
    """The content of a block, and whether it has the protocol's form."""
    if isinstance(block, ToolCall):
        return _write_call(block, with_text)
    options: Wire = thaw(block.options)
    text = block.text if with_text or not block.text else ""
    if block.type == "unsupported":
        return {"type": "non_standard", "value": options | ({} if text is None else {"data": text})}, False
    citations = [citation.to_dict() for citation in block.citations]
    if not _has_a_form(block, options):
        more = {"citations": citations} if citations else {}
        value = {"type": block.type, **options, **more}
        if text is not None:
            value.setdefault({"text": "text", "reasoning": "reasoning"}.get(block.type, "data"), text)
        return {"type": "non_standard", "value": value, UNWRAP: True}, False
    content: Wire = {"type": "text" if block.type == "refusal" else block.type}
    assumed: list[str] = []
    if block.type in _TEXT_FIELDS:
        field = _TEXT_FIELDS[block.type]
        if text is not None:
            content[field] = text
        elif field == "text":
            content["text"] = ""
            assumed.append("text")
    elif "status" not in options:
        content["status"] = "success"
        assumed.append("status")
    content |= options
    if block.type == "refusal":
        content[REFUSAL] = True
    if citations:
        content["annotations"] = [{"type": "citation", **citation} for citation in citations]
    if assumed:
        content[ASSUMED] = assumed
    return content, True


def _has_a_form(part: ContentPart, options: Json) -> bool:
    if part.type not in _STRING_FIELDS or not _RESERVED[part.type].isdisjoint(options):
        return False
    if any(not isinstance(options.get(name, ""), str) for name in _STRING_FIELDS[part.type]):
        return False
    if part.type != "server_tool_result":
        return True
    status = options.get("status", "success")
    return (
        part.text is None
        and isinstance(options.get("tool_call_id"), str)
        and isinstance(status, str)
        and status in ("success", "error")
    )


def _write_call(call: ToolCall, with_text: bool) -> tuple[Wire, bool]:
    wire = block_to_wire(call)
    status = call.metadata.get("execution_status")
    if status is not None:
        wire["execution_status"] = status
    wire = thaw(wire)
    kind, arguments = wire["type"], wire.get("args")
    fits = _RESERVED_OF_CALLS.isdisjoint(call.metadata)
    if kind == "invalid_tool_call":
        fits = fits and not call.open  # the protocol appends no arguments to an invalid call
    elif kind == "server_tool_call":
        fits = fits and "error" not in wire and isinstance(arguments, dict)
        fits = fits and isinstance(wire.get("id"), str) and isinstance(wire.get("name"), str)
    elif kind == "server_tool_call_chunk":
        fits = fits and not isinstance(arguments, dict) and "error" not in wire
    if not fits:
        return {"type": "non_standard", "value": wire, UNWRAP: True}, False
    if kind in ("tool_call_chunk", "invalid_tool_call", "tool_call"):
        wire = {"type": kind, "id": None, "name": None, "args": None, **wire}
    if kind == "invalid_tool_call":
        wire.setdefault("error", None)
    if isinstance(arguments, str) and not with_text:
        wire["args"] = ""
    if isinstance(arguments, dict) and kind in ("tool_call_chunk", "invalid_tool_call"):
        wire |= {"args": as_json(wire["args"]) if arguments else "", "arguments": wire["args"]}
    return wire, True


def write_fields(block: Block, event: BlockDelta) -> Wire | None:
    """The fields of a delta by the protocol's names; `None` if one of them means something else there."""
    fields = {
        name: thaw(value)
        for name, value in event.fields.items()
        if value is not None and name not in ("type", "index")
    }
    if isinstance(block, ToolCall):
        kind = block.type if block.type == "invalid_tool_call" else f"{block.type}_chunk"
        return None if not BLOCK_MARKS.isdisjoint(fields) else {"type": kind, **fields}
    text = fields.pop(_OUR_TEXT_FIELDS.get(block.type, "data"), None)
    citations = fields.pop("citations", None)
    if not _RESERVED.get(block.type, BLOCK_MARKS).isdisjoint(fields):
        return None
    if text is not None:
        if block.type not in _TEXT_FIELDS or not isinstance(text, str):
            return None
        fields[_TEXT_FIELDS[block.type]] = text
    if citations is not None:
        known: Sequence[Citation] = block.citations
        fields["annotations"] = [{"type": "citation", **citation.to_dict()} for citation in known]
    return {"type": "text" if block.type == "refusal" else block.type, **fields}


def write_usage(usage: TokenUsage | None) -> Wire:
    """The field `usage` in the protocol's counts, with the provider's own object as `raw` if it differs."""
    if usage is None:
        return {}
    raw: Wire = thaw(usage.raw)
    counts = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    known = {name: count for name, count in counts.items() if count is not None}
    is_the_same = not usage.more and usage_from_wire(raw) == usage
    if is_the_same and type(raw.get("total_tokens")) is int and _details_fit(raw):
        return {"usage": {name: value for name, value in raw.items() if name not in counts} | known}
    unknown = [name for name in counts if name not in known]
    assumed = {ASSUMED: unknown} if unknown else {}
    written = dict.fromkeys(counts, 0) | usage.to_dict()
    return {"usage": written | {"total_tokens": usage.total(), "raw": raw} | assumed}


def _details_fit(raw: Wire) -> bool:
    for name, wanted in (
        ("input_token_details", ("audio", "cache_creation", "cache_read")),
        ("output_token_details", ("audio", "reasoning")),
    ):
        details: Any = raw.get(name, {})
        if not isinstance(details, dict):
            return False
        if not all(type(raw[name][one]) is int for one in wanted if one in details):
            return False
    return True


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# Read.


def read_content(content: Json) -> Json:
    """The content of a block, or some fields of one, by our names."""
    known = without_assumed(content)
    kind = known.get("type")
    if kind == "non_standard" and known.get(UNWRAP) is True and is_mapping(known.get("value")):
        unwrapped: Json = known["value"]
        return unwrapped
    if kind == "text" and known.get(REFUSAL) is True:
        known["type"] = "refusal"
        del known[REFUSAL]
    if kind in MEDIA_TYPES and isinstance(known.get("base64"), str) and "data" not in known:
        known["data"] = known.pop("base64")
    annotations = known.get("annotations")
    if is_list(annotations) and all(map(is_mapping, annotations)):
        del known["annotations"]
        if "citations" not in known:
            known["citations"] = [_read_citation(annotation) for annotation in annotations]
    return known


def without_assumed(found: Json) -> Wire:
    """A block or a usage without the fields that the source didn't give."""
    assumed = found.get(ASSUMED)
    if not is_list(assumed):
        return dict(found)
    return {name: value for name, value in found.items() if name != ASSUMED and name not in assumed}


def _read_citation(annotation: Json) -> Json:
    """Convert an annotation. If it has only citation fields, drop the type; otherwise keep it unchanged."""
    if annotation.get("type") != "citation" or not CITATION_FIELDS.issuperset(annotation):
        return annotation
    return {name: value for name, value in annotation.items() if name != "type"}
