"""A conversation as `messages` of Cohere's chat API, version 2.

    message   = system | user | assistant | tool
    user      = content: text | [text | image_url]*
    assistant = tool_plan? content: [text | thinking]* citations? tool_calls?
    tool      = tool_call_id content

The contents keep their order among one another; the plan and the calls have fields of their own. Citations go back
as they came, if they are Cohere's. A message without content, plan and calls is refused, so it is left out. Documents
are a field of the request and not of a message, and errors of tools have none: their text says what was wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import ContentPart, ToolCall, ToolResult, is_mapping, thaw
from rxdelta.formats.cohere.blocks import CONTENT_TYPES, FORMAT, PLAN
from rxdelta.formats.conversation import (
    Native,
    Turn,
    arguments_of,
    data_url,
    medium_of,
    messages_of,
    refuse,
    result_text,
    text_or_parts,
)
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.notes import PROVIDER_TYPE


def request(turns: Sequence[Turn | Native]) -> JsonObject:
    return {"messages": messages_of(turns, user=_user, assistant=_assistant, result=_result)}


def _user(turn: Turn) -> JsonObject:
    return {"role": turn.role, "content": text_or_parts(turn, _part)}


def _part(part: ContentPart, role: str) -> JsonObject:
    medium = medium_of(part)
    if part.type == "text":
        return {"type": "text", "text": part.text or ""}
    if part.type == "unsupported":
        return thaw(part.options)  # type: ignore[no-any-return]
    url = data_url(medium) if medium is not None and medium.kind == "image" and role == "user" else None
    if medium is None or url is None:
        raise refuse(FORMAT, part, role)
    detail = {"detail": medium.options["detail"]} if "detail" in medium.options else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _assistant(turn: Turn) -> JsonObject | None:
    plan: list[str] = []
    content: list[JsonObject] = []
    citations: list[JsonObject] = []
    for part in turn.parts:
        text = part.text
        if not text or part.type not in ("text", "refusal", "reasoning"):
            continue
        if part.options.get(PROVIDER_TYPE) == PLAN:
            plan.append(text)
        else:
            content_type = CONTENT_TYPES.get(part.type, "text")
            content.append({"type": content_type, content_type: text})
        citations += [_citation(one.raw, len(content) - 1) for one in part.citations if _is_ours(one.raw)]
    metadata: JsonObject = thaw(turn.message.metadata) if turn.message is not None else {}
    late: Any = metadata.get("citations")  # of blocks that had finished
    citations += filter(_is_ours, late if isinstance(late, list) else ())  # pyright: ignore[reportUnknownArgumentType]
    calls = [_call(call) for call in turn.calls]
    found: JsonObject = {
        PLAN: "".join(plan),
        "content": content,
        "citations": citations if content or plan else [],
        "tool_calls": calls,
    }
    written = {name: value for name, value in found.items() if value}
    return {"role": "assistant", **written} if written else None


def _result(result: ToolResult, _: ToolCall | None) -> JsonObject:
    return {"role": "tool", "tool_call_id": result.call_id or "call", "content": result_text(result)}


def _is_ours(raw: Any) -> bool:
    sources: Any = thaw(raw.get("sources")) if is_mapping(raw) else None
    return isinstance(sources, list) and all(map(is_mapping, sources))  # pyright: ignore[reportUnknownArgumentType]


def _citation(raw: Mapping[str, Any], place: int) -> JsonObject:
    """The citation unchanged, but if it has the index of its content, with the index which that has now."""
    found: JsonObject = thaw(raw)
    return (
        {**found, "content_index": place} if found.get("content_index") is not None and place >= 0 else found
    )


def _call(call: ToolCall) -> JsonObject:
    arguments = json.dumps(arguments_of(call), ensure_ascii=False)
    function = {"name": call.name or "invalid", "arguments": arguments}
    return {"id": call.call_id or "call", "type": "function", "function": function}
