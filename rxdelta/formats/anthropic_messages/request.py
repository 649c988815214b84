"""A conversation as `system` and `messages` of the Anthropic Messages API.

    message   = user | assistant, whose content is a list of blocks
    assistant = text | thinking | redacted_thinking | tool_use | the provider's own calls and their results | …
    user      = tool_result* (text | image | document)*

Blocks keep their order: the API checks that signed thinking stands where it stood. Reasoning without a signature
isn't Anthropic's, so it is left out. `formats/conversation.py` has the other rules of the API.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import ContentPart, ToolCall, ToolResult, is_mapping, thaw
from rxdelta.formats.anthropic_messages.blocks import FORMAT, RESULT_SUFFIX, SERVER_CALLS
from rxdelta.formats.calls import plain_id
from rxdelta.formats.conversation import (
    Defined,
    Medium,
    Native,
    Turn,
    accepted,
    arguments_of,
    function_object,
    medium_of,
    refuse,
    result_media,
    result_text,
    tool_list,
)
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED


def request(turns: Sequence[Turn | Native]) -> JsonObject:
    system: list[JsonObject] = []
    messages: list[JsonObject] = []
    for turn in turns:
        if isinstance(turn, Mapping):
            messages.append(thaw(turn))
        elif turn.role == "system":
            system += accepted([_asked(part, turn.role) for part in turn.parts])
        elif turn.role == "user":
            if asked := accepted([_asked(part, turn.role) for part in turn.parts]):
                messages.append({"role": "user", "content": asked})
        elif said := _said(turn):
            messages.append({"role": "assistant", "content": said})
        if not isinstance(turn, Mapping) and turn.results:
            messages.append({"role": "user", "content": [_result(result) for result in turn.results]})
    return {"system": system, "messages": messages} if system else {"messages": messages}


def tools(definitions: Sequence[Defined]) -> JsonObject:
    return {"tools": tool_list(definitions, lambda tool: function_object(tool, "input_schema"))}


def _asked(part: ContentPart, role: str) -> JsonObject:
    options: JsonObject = thaw(part.options)
    if part.type == "text":
        return {"type": "text", "text": part.text or "", **_also(options, "cache_control")}
    medium = medium_of(part)
    if medium is None and part.type == "unsupported":
        return options
    if medium is None or medium.kind not in ("image", "file") or role == "system":
        raise refuse(FORMAT, part, role)
    if medium.url is not None:
        source: JsonObject = {"type": "url", "url": medium.url}
    elif medium.file_id is not None:
        source = {"type": "file", "file_id": medium.file_id}
    else:
        source = _data(medium)
    kind = "image" if medium.kind == "image" else "document"
    return {
        "type": kind,
        "source": source,
        **_also(options, "cache_control", "title", "context", "citations"),
    }


def _data(medium: Medium) -> JsonObject:
    """The data of a medium. A plain text isn't taken in base64."""
    data = medium.data or ""
    if medium.kind == "file" and medium.mime_type.partition(";")[0] == "text/plain":
        try:
            text = base64.b64decode(data, validate=True).decode()
        except ValueError:
            pass
        else:
            return {"type": "text", "media_type": "text/plain", "data": text}
    return {"type": "base64", "media_type": medium.mime_type, "data": data}


def _said(turn: Turn) -> list[JsonObject]:
    blocks = [written for block in turn.blocks if (written := written_block(block)) is not None]
    return accepted(blocks, lambda block: block["type"] in ("thinking", "redacted_thinking"))


def written_block(block: ContentPart | ToolCall) -> JsonObject | None:
    """A block of the assistant's; `None` for one that the API doesn't take."""
    if isinstance(block, ToolCall):
        return _call(block)
    options: JsonObject = thaw(block.options)
    if block.type == "text" and block.text:
        citations = [
            thaw(citation.raw) for citation in block.citations if citation.raw.get("type") in CITATIONS
        ]
        cited = {"citations": citations} if citations else {}
        return {"type": "text", "text": block.text, **cited, **_also(options, "cache_control")}
    if block.type == "refusal" and block.text:
        return {"type": "text", "text": block.text}
    if block.type == "reasoning" and options.get(REDACTED) and "data" in options:
        return {"type": "redacted_thinking", "data": options["data"]}
    if block.type == "reasoning" and options.get("signature"):
        return {"type": "thinking", "thinking": block.text or "", "signature": options["signature"]}
    kind = options.get(PROVIDER_TYPE)
    if block.type == "server_tool_result" and isinstance(kind, str) and kind.endswith(RESULT_SUFFIX):
        return {
            "type": kind,
            "tool_use_id": options.get("tool_call_id"),
            "content": options.get("output"),
            **{name: value for name, value in options.items() if name not in _OF_A_RESULT},
        }
    return options if block.type == "unsupported" and options.get("type") in _BLOCKS else None


def _call(call: ToolCall) -> JsonObject | None:
    metadata = thaw(call.metadata)
    kind = metadata.get(PROVIDER_TYPE, "tool_use")
    if call.type == "server_tool_call" and not _is_its_own(call, kind):
        return None
    own = {name: value for name, value in metadata.items() if name in _OF_A_CALL}
    caller = own.get("caller")
    if not isinstance(caller, dict) or not str(caller.get("type")).startswith(("direct", "code_execution")):  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        own.pop("caller", None)  # OpenAI calls something else so
    kind = kind if kind in SERVER_CALLS else "tool_use"
    return {
        "type": kind,
        "id": plain_id(call.call_id),
        "name": call.name or "invalid",
        "input": arguments_of(call),
        **own,
    }


def _is_its_own(call: ToolCall, kind: object) -> bool:
    """Bedrock has the same name for its models' tools, but no such ids."""
    return kind == "mcp_tool_use" or (
        kind == "server_tool_use" and (call.call_id or "").startswith("srvtoolu_")
    )


def _result(result: ToolResult) -> JsonObject:
    failed = {"is_error": True} if result.is_error else {}
    content: Any = thaw(result.content)
    if not _is_native(content):
        media = result_media(result, lambda part: _asked(part, "tool"))
        content = result_text(result) if media is None else media
    return {
        "type": "tool_result",
        "tool_use_id": plain_id(result.call_id),
        "content": content,
        **failed,
        **_also(thaw(result.metadata), "cache_control"),
    }


def _is_native(content: Any) -> bool:
    """Whether a tool returned parts in Anthropic's form."""
    return isinstance(content, list) and all(map(_is_result_part, content)) and content != []  # pyright: ignore[reportUnknownArgumentType]


def _is_result_part(part: Any) -> bool:
    kind: Any = part.get("type") if is_mapping(part) else None
    field, wanted = _IN_A_RESULT.get(kind, ("", str)) if isinstance(kind, str) else ("", str)
    return is_mapping(part) and isinstance(part.get(field), wanted)


def _also(options: JsonObject, *names: str) -> JsonObject:
    return {name: options[name] for name in names if name in options}


_IN_A_RESULT: Mapping[str, tuple[str, type]] = {
    "text": ("text", str),
    "image": ("source", dict),
    "document": ("source", dict),
    "search_result": ("content", list),
    "tool_reference": ("tool_name", str),
}
"""The parts that the result of a tool may have, each with the field that makes it one."""

_OF_A_CALL = frozenset(["caller", "server_name", "toolset_name", "cache_control"])
_OF_A_RESULT = frozenset([PROVIDER_TYPE, "tool_call_id", "output", "status"])

# The citations that the API takes back. Others are another provider's, and aren't sent.
CITATIONS = (
    "char_location",
    "page_location",
    "content_block_location",
    "web_search_result_location",
    "search_result_location",
)
_BLOCKS = (
    "compaction",
    "container_upload",
    "document",
    "fallback",
    "image",
    "mcp_tool_listing",
    "search_result",
    "tool_addition",
    "tool_removal",
)
