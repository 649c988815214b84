"""A block in the event protocol's vocabulary, both ways.

| wire type | ours |
| --- | --- |
| `text`, `reasoning` (also `thinking`), `refusal` | a part; its text under the type's own name |
| `image`, `audio`, `video`, `file`, … | a part; base64 `data` is its text |
| `server_tool_result` | a part without text |
| `tool_call`, `tool_call_chunk`, `tool_use` | a call; `args` (or `input`) text or object |
| `server_tool_call`, `server_tool_call_chunk`; `invalid_tool_call` | a call of that type |
| `non_standard`, any other | `unsupported`, whole in `options` |

Fields without a place of their own are a part's `options` or a call's `metadata`. `index` names no content.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rxdelta.core._blocks import (
    CALL_TYPES,
    PART_TYPES,
    Block,
    ContentPart,
    Key,
    ToolCall,
    change,
    change_part,
    invalid,
    make_part,
    merge_call_metadata,
    part_type,
    raw_arguments,
    raw_text,
    real_id,
)
from rxdelta.core._frozen import EMPTY, FrozenDict, freeze_mapping, is_list, is_mapping, thaw
from rxdelta.core._strict_json import InvalidJson, clean_text, parse_object
from rxdelta.core._text import finish_text, read_text
from rxdelta.core._values import Citation, without_empty

__all__ = ["block_from_wire", "block_to_wire", "finish_block", "finish_content", "update_block"]

Fields = Mapping[str, Any]

_CALLS = {
    "tool_call": "tool_call",
    "tool_call_chunk": "tool_call",
    "tool_use": "tool_call",
    "server_tool_call": "server_tool_call",
    "server_tool_call_chunk": "server_tool_call",
    "invalid_tool_call": "invalid_tool_call",
}
_TEXT_FIELDS = {"text": "text", "reasoning": "reasoning", "refusal": "refusal"}  # of any other type: data
_OWN_TEXT = frozenset(["text", "reasoning", "thinking", "refusal", "data"])
_ARGUMENTS = ("args", "input", "arguments")


def block_from_wire(content: Fields, key: Key) -> Block:
    """The open block that a start with this content begins."""
    kind = content.get("type", "text")
    if kind in _CALLS:
        call = change(_NO_CALL, type=_CALLS[kind], key=key, open=True)
        return _update_call(call, content)
    if kind == "non_standard":
        return make_part("unsupported", None, _mapping(content.get("value", content)), (), key, True)
    kind = part_type(kind)
    if kind not in PART_TYPES or kind == "unsupported":
        return make_part("unsupported", None, _mapping(content), (), key, True)
    return _update_part(make_part(kind, None, EMPTY, (), key, True), content)


def update_block(block: Block, fields: Fields) -> Block:
    """The block with these fields replaced; nulls change nothing, and it stays of its type."""
    return _update_call(block, fields) if isinstance(block, ToolCall) else _update_part(block, fields)


def _update_part(part: ContentPart, fields: Fields) -> ContentPart:
    options, text, citations = dict(part.options), raw_text(part), part.citations
    own = _TEXT_FIELDS.get(part.type, "data")
    aliases = {own, "thinking"} if own == "reasoning" else {own, "text"} if own == "refusal" else {own}
    for name, value in fields.items():
        if value is None or name in ("type", "index"):
            continue
        if name in aliases and isinstance(value, str):
            text = clean_text(value)
        elif name == "citations" and is_list(value):
            citations = tuple(Citation.from_dict(item) for item in value if is_mapping(item))
        else:
            options[name] = value
    return make_part(part.type, text, FrozenDict(options), citations, part.key, part.open)


def _update_call(call: ToolCall, fields: Fields) -> ToolCall:
    known: dict[str, Any] = {}
    metadata: dict[str, Any] = {}
    for name, value in fields.items():
        if value is None or name in ("type", "index"):
            continue
        if name in ("id", "call_id"):
            known["call_id"] = value if isinstance(real_id(value), str) else call.call_id
        elif name == "name" and isinstance(value, str):
            known["name"] = value or call.name
        elif name in _ARGUMENTS and isinstance(value, (str, Mapping)):
            known["arguments"] = clean_text(value) if isinstance(value, str) else _mapping(value)
        elif name == "error" and isinstance(value, str):
            known["error"] = value
        else:
            metadata[name] = value
    if metadata:
        known["metadata"] = merge_call_metadata(call.metadata, metadata)
    return change(call, **known)


def finish_content(block: Block | None, content: Fields, key: Key) -> Block:
    """The block that a finish with this content ends with: what it carries overrules what was folded.

    A field that it doesn't carry stays, unless the block turns out to be of another kind altogether.
    """
    kind = content.get("type", None if block is None else block.type)
    if isinstance(block, ToolCall) and kind in _CALLS:
        return change(_update_call(block, content), type=_CALLS[kind])
    if isinstance(block, ContentPart) and part_type(kind) == block.type != "unsupported":
        return _update_part(block, content)
    return block_from_wire(content, key)


def finish_block(block: Block, *, cut: str | None = None) -> Block:
    """The block closed. A call's text is parsed; one that is not a JSON object, or was cut off, becomes invalid.

    Args:
        block: The block as folded.
        cut: Why the message ended before its time; an open call is then never complete.
    """
    if isinstance(block, ContentPart):
        text = raw_text(block)
        return change_part(block, text=finish_text(text) if type(text) is tuple and len(text) == 3 else text, open=False)
    if block.type == "invalid_tool_call":
        return invalid(block, block.error or "marked invalid by its source")
    arguments = raw_arguments(block)
    wrong = cut
    if wrong is None and not isinstance(arguments, FrozenDict):
        text = "" if arguments is None else read_text(arguments)
        try:
            arguments = freeze_mapping(parse_object(text), "arguments") if text else EMPTY
        except InvalidJson as error:
            wrong = error.reason
    if wrong is None:
        return change(block, arguments=arguments, status="complete", open=False)
    if block.type == "server_tool_call":  # not ours to run, so nothing to warn of
        return change(block, error=wrong, open=False)
    return invalid(block, wrong)


def block_to_wire(block: Block) -> dict[str, Any]:
    """The block as the content of a start or finish, with all that it holds so far."""
    if isinstance(block, ToolCall):
        kind = f"{block.type}_chunk" if block.open and block.type != "invalid_tool_call" else block.type
        arguments = "" if block.arguments is None and block.open else thaw(block.arguments)
        metadata = {name: value for name, value in thaw(block.metadata).items() if name != "execution_status"}
        head = {"type": kind, "id": block.call_id, "name": block.name, "args": arguments, "error": block.error}
        return {name: value for name, value in (head | metadata).items() if value is not None}
    if block.type == "unsupported":
        whole = thaw(block.options)
        standard = whole.get("type") in PART_TYPES | CALL_TYPES or not isinstance(whole.get("type"), str)
        return {"type": "non_standard", "value": whole} if standard else whole
    text = {} if block.text is None else {_TEXT_FIELDS.get(block.type, "data"): block.text}
    citations = [thaw(citation.raw) if citation.raw else citation.to_dict() for citation in block.citations]
    return {"type": block.type, **text, **without_empty({"citations": citations}), **thaw(block.options)}


def _mapping(value: object) -> FrozenDict[Any]:
    return freeze_mapping(value if is_mapping(value) else {"value": value}, "content", lenient=True)


_NO_CALL = ToolCall()
