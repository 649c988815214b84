"""A conversation as `messages` of Mistral's chat completions.

    message   = system | user | assistant | tool
    user      = content: text | [text | image_url | document_url | file | input_audio]*
    assistant = content: text | [thinking | text | reference]* tool_calls?
    tool      = tool_call_id name? content

A thinking stays in the content, at its place. A reference stands behind its text, or in the thinking that has it. The
calls have a field of their own. Unlike the dialects of `openai_chat`, this one refuses unknown fields.

The API accepts only ids of calls that are nine letters or digits. The request has a hash in place of any other id. The
API also refuses a message without content and calls, which is left out, and a user's message right behind a tool's. An
assistant's message with the text "OK" goes between those two.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import ContentPart, ToolCall, ToolResult, thaw
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
from rxdelta.formats.mistral.decoder import REFERENCE, TOOL_REFERENCE
from rxdelta.formats.notes import SENT_AS
from rxdelta.formats.openai_chat.tables import THINKING

_FORMAT = "mistral"


def request(turns: Sequence[Turn | Native]) -> JsonObject:
    return {"messages": _in_order(messages_of(turns, user=_user, assistant=_assistant, result=_result))}


def _in_order(messages: Sequence[JsonObject]) -> list[JsonObject]:
    ordered: list[JsonObject] = []
    for message in messages:
        if message.get("role") == "user" and ordered and ordered[-1].get("role") == "tool":
            ordered.append({"role": "assistant", "content": "OK"})
        ordered.append(message)
    return ordered


# Messages of people.


def _user(turn: Turn) -> JsonObject:
    return {"role": turn.role, "content": text_or_parts(turn, _part)}


def _part(part: ContentPart, role: str) -> JsonObject:
    if part.type == "text":
        return {"type": "text", "text": part.text or ""}
    if part.type == "unsupported":
        return thaw(part.options)  # type: ignore[no-any-return]
    medium = medium_of(part)
    if medium is None or role != "user":
        raise refuse(_FORMAT, part, role)
    url = data_url(medium)
    if medium.kind == "image" and url is not None:
        detail = {"detail": medium.options["detail"]} if "detail" in medium.options else {}
        return {"type": "image_url", "image_url": {"url": url, **detail}}
    if medium.kind == "audio" and (medium.url or medium.data):
        return {"type": "input_audio", "input_audio": medium.url or medium.data}
    if medium.kind == "file" and medium.file_id is not None:
        return {"type": "file", "file_id": medium.file_id}
    if medium.kind == "file" and url is not None:
        name = medium.options.get("filename")
        return {"type": "document_url", "document_url": url, **({"document_name": name} if name else {})}
    raise refuse(_FORMAT, part, role)


# Messages of the model.


def _assistant(turn: Turn) -> JsonObject | None:
    content: list[JsonObject] = []
    for part in turn.parts:
        content += _written(part)
    calls = [_call(call) for call in turn.calls]
    plain = all(part["type"] == "text" for part in content)
    written: str | list[JsonObject] = "".join(part["text"] for part in content) if plain else content
    if not (written or calls):
        return None
    return {"role": "assistant", "content": written, **({"tool_calls": calls} if calls else {})}


def _written(part: ContentPart) -> list[JsonObject]:
    references = [found for one in part.citations if (found := _reference(one.raw)) is not None]
    if part.type in ("text", "refusal"):
        text = [{"type": "text", "text": part.text}] if part.text else []
        return [*text, *(one for one in references if one["type"] == REFERENCE)]
    if part.type == "reasoning" and part.text:
        signature = part.options.get("signature") if part.options.get(SENT_AS) == THINKING else None
        signed = {"signature": signature} if signature else {}
        said = [{"type": "text", "text": part.text}, *references]
        return [{"type": "thinking", "thinking": said, "closed": True, **signed}]
    if part.type == "unsupported":
        found = _reference(part.options)
        return [found] if found is not None and found["type"] == REFERENCE else []
    return []


def _reference(raw: Mapping[str, Any]) -> JsonObject | None:
    """A reference in the form in which Mistral sent it; `None` for another provider's."""
    for kind, required, fields in _REFERENCES:
        if raw.get("type") == kind and raw.get(required) is not None:
            return {name: thaw(raw[name]) for name in ("type", *fields) if raw.get(name) is not None}
    return None


def _call(call: ToolCall) -> JsonObject:
    arguments = json.dumps(arguments_of(call), ensure_ascii=False)
    function = {"name": call.name or "invalid", "arguments": arguments}
    return {"id": _id(call.call_id), "type": "function", "function": function}


def _result(result: ToolResult, call: ToolCall | None) -> JsonObject:
    named = {"name": call.name} if call is not None and call.name else {}
    return {"role": "tool", "tool_call_id": _id(result.call_id), **named, "content": result_text(result)}


def _id(call_id: str | None) -> str:
    found = call_id or "call"
    return found if _AN_ID.fullmatch(found) else hashlib.sha256(found.encode()).hexdigest()[:9]


_AN_ID = re.compile("[a-zA-Z0-9]{9}")
_REFERENCES = (
    (REFERENCE, "reference_ids", ("reference_ids",)),
    (TOOL_REFERENCE, "tool", ("tool", "title", "url", "favicon", "description")),
)
