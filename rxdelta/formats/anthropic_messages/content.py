"""The content of a block: from Anthropic's words to the protocol's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rxdelta.core import block_from_wire, events, real_id
from rxdelta.formats.anthropic_messages.reading import READ, others
from rxdelta.formats.anthropic_messages.tables import RESULT_SUFFIX, SERVER_CALLS
from rxdelta.formats.decoding import Chunk
from rxdelta.formats.json_values import NOTHING
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED

__all__ = ["citation_of", "content_of", "whole_content_of"]

Content = dict[str, Any]


def content_of(kind: str, block: Chunk, path: str) -> Content:
    """What a block's start has, for the protocol's start."""
    if kind in _CONTENTS:
        return _CONTENTS[kind](block, path)
    if kind.endswith(RESULT_SUFFIX):
        return _tool_result(block, path)
    # A type that the protocol has too would be read as the protocol's.
    unknown = block_from_wire(events.BlockStart(0, block).content, 0).type == "unsupported"
    return dict(block) if unknown else {"type": "non_standard", "value": block}


def whole_content_of(kind: str, block: Chunk, path: str) -> Content:
    """What a block has that came whole, so that no delta can bring what it lacks."""
    field = _REQUIRED.get(kind)
    if field is not None and field not in block:
        raise READ.fail(f"{path}.{field}", "a string", None)
    return content_of(kind, block, path)


_REQUIRED: Mapping[str, str] = {"text": "text", "thinking": "thinking", "redacted_thinking": "data"}


def _text(block: Chunk, path: str) -> Content:
    citations = [
        citation_of(READ.mapping(citation, f"{path}.citations[{n}]"))
        for n, citation in enumerate(READ.items(block.get("citations"), f"{path}.citations"))
    ]
    text = READ.text(block.get("text"), f"{path}.text")
    content = others(block, "type", "text", "citations") | {"type": "text", "text": text}
    return content | {"citations": citations} if citations else content


def _thinking(block: Chunk, path: str) -> Content:
    thinking = READ.text(block.get("thinking"), f"{path}.thinking")
    signature = READ.text(block.get("signature"), f"{path}.signature")
    content = others(block, "type", "thinking", "signature") | {"type": "reasoning", "reasoning": thinking}
    return content | {"signature": signature} if signature else content


def _redacted_thinking(block: Chunk, path: str) -> Content:
    READ.text(block.get("data"), f"{path}.data")
    return others(block, "type") | {"type": "reasoning", "reasoning": "", REDACTED: True}


def _tool_use(block: Chunk, path: str) -> Content:
    """An `input` that isn't empty is all of the arguments; else their text may follow."""
    whole = block.get("input")
    if "input" not in block and any(block.get(name) not in _NO_INPUT for name in _INPUT_ELSEWHERE):
        raise READ.fail(f"{path}.input", "the arguments", None)  # the call would be run without them
    args = whole if isinstance(whole, str) else READ.mapping(whole, f"{path}.input") or ""
    return others(block, "type", "input", *_NOT_A_CALLS_OWN) | {
        "type": "tool_call_chunk",
        "id": real_id(READ.text(block.get("id"), f"{path}.id")),
        "name": READ.text(block.get("name"), f"{path}.name"),
        "args": args,
    }


def _server_tool_use(block: Chunk, path: str) -> Content:
    return _tool_use(block, path) | {"type": "server_tool_call_chunk", PROVIDER_TYPE: block["type"]}


def _tool_result(block: Chunk, path: str) -> Content:
    output = block.get("content")
    failed = block.get("is_error") is True or (
        isinstance(output, Mapping) and str(output.get("type")).endswith("_error")  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    )
    return others(block, "type", "tool_use_id", "content") | {
        "type": "server_tool_result",
        "tool_call_id": real_id(READ.text(block.get("tool_use_id"), f"{path}.tool_use_id")),
        "output": output,
        PROVIDER_TYPE: block["type"],
        "status": "error" if failed else "success",
    }


def citation_of(citation: Chunk) -> Content:
    """A citation in the protocol's words. Its positions are in the source, not in the reply: they stay in `raw`."""
    title = citation.get("title") or citation.get("document_title")
    known = {"cited_text": citation.get("cited_text"), "title": title, "url": citation.get("url")}
    return {name: value for name, value in known.items() if isinstance(value, str)} | {"raw": citation}


_CONTENTS: Mapping[str, Callable[[Chunk, str], Content]] = {
    "text": _text,
    "thinking": _thinking,
    "redacted_thinking": _redacted_thinking,
    "tool_use": _tool_use,
    **dict.fromkeys(SERVER_CALLS, _server_tool_use),
    # results: _tool_result; any other is kept whole
}

_INPUT_ELSEWHERE = ("args", "arguments", "parameters", "partial_json")
_NO_INPUT = (*NOTHING, "{}")

# The protocol's own words, which as fields of a call would mean what Anthropic doesn't.
_NOT_A_CALLS_OWN = ("args", "arguments", "call_id", "error", "execution_status", "index")
