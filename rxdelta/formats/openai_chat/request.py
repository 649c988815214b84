"""A conversation as `messages` of OpenAI chat completions, and of the vendors that speak it.

    message   = system | user | assistant | tool
    assistant = content? refusal? tool_calls? audio? reasoning?

An assistant's message has one content and one list of calls, so the order among these is lost; the provider doesn't
give it either. Reasoning goes back under its own name: `reasoning_details` or LiteLLM's `thinking_blocks`, whose entries
are signed or encrypted, Copilot's `reasoning_text` with its `reasoning_opaque`, `reasoning`, or `reasoning_content`.
OpenAI itself gives no reasoning.

The result of a tool is text. Its images and files follow the results in a message of the user's, who alone may send them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from rxdelta.core import ContentPart, ToolCall, ToolResult, thaw
from rxdelta.formats.conversation import (
    Native,
    Turn,
    data_url,
    medium_of,
    messages_of,
    refuse,
    result_media,
    result_parts,
    result_text,
    text_of,
    text_or_parts,
)
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED, SENT_AS
from rxdelta.formats.openai_chat.tables import (
    CUSTOM_CALL,
    FORMAT,
    REASONING_DETAILS,
    REASONING_ENCRYPTED,
    REASONING_NAMES,
    REASONING_OPAQUE,
    REASONING_SUMMARY,
    REASONING_TEXT,
    THINKING,
    THINKING_BLOCKS,
)


def request(turns: Sequence[Turn | Native]) -> JsonObject:
    return {"messages": messages_of(turns, user=_user, assistant=_assistant, result=_result, media=_media)}


def _user(turn: Turn) -> JsonObject:
    return {"role": turn.role, "content": text_or_parts(turn, _part)}


def _part(part: ContentPart, role: str) -> JsonObject:
    if part.type == "text":
        return {"type": "text", "text": part.text or ""}
    if part.type == "unsupported":
        return {**thaw(part.options)}
    medium = medium_of(part)
    address = None if medium is None else data_url(medium)
    if medium is not None and medium.kind == "image" and address is not None:
        detail = {"detail": medium.options["detail"]} if "detail" in medium.options else {}
        return {"type": "image_url", "image_url": {"url": address, **detail}}
    if medium is not None and medium.kind == "audio" and medium.data is not None:
        name = {"audio/mpeg": "mp3", "audio/x-wav": "wav"}.get(
            medium.mime_type, medium.mime_type.partition("/")[2]
        )
        return {"type": "input_audio", "input_audio": {"data": medium.data, "format": name}}
    if medium is not None and medium.kind == "file" and medium.file_id is not None:
        return {"type": "file", "file": {"file_id": medium.file_id}}
    if medium is not None and medium.kind == "file" and medium.data is not None:
        name = medium.options.get("filename") or "file"
        return {"type": "file", "file": {"filename": name, "file_data": address}}
    raise refuse(FORMAT, part, role)


def _assistant(turn: Turn) -> JsonObject:
    thoughts = [part for part in turn.parts if part.type == "reasoning"]
    content: str | list[JsonObject] | None = turn.text or None
    message: JsonObject = {"role": "assistant", "content": content}
    if any(part.options.get(SENT_AS) == THINKING for part in thoughts):
        message["content"] = [_thinking(part) for part in turn.parts if part.type in ("reasoning", "text")]
    else:
        message |= _reasoning(thoughts)
    refusal = "".join(part.text or "" for part in turn.parts if part.type == "refusal")
    if refusal:
        message["refusal"] = refusal
    for part in turn.parts:
        if part.type == "audio" and "id" in part.options:  # by which the provider still has it
            message["audio"] = {"id": part.options["id"]}
    calls = [written_call(call) for call in turn.calls]
    if calls:
        message["tool_calls"] = calls
    elif not message["content"] and not refusal and "audio" not in message:
        message["content"] = ""  # one of the four has to be there
    return message


def _thinking(part: ContentPart) -> JsonObject:
    """Mistral's way."""
    said = {"type": "text", "text": part.text or ""}
    signed = {name: part.options[name] for name in ("signature",) if name in part.options}
    return said if part.type == "text" else {"type": "thinking", "thinking": [said], **signed}


def _reasoning(parts: Sequence[ContentPart]) -> JsonObject:
    if any(part.options.get(SENT_AS) == THINKING_BLOCKS for part in parts):
        return {THINKING_BLOCKS: [_block(part) for part in parts]}
    if any(part.options.get(SENT_AS) == "reasoning_text" for part in parts):
        return _copilot(parts)
    if any([*part.options] != [SENT_AS] or part.options[SENT_AS] not in REASONING_NAMES for part in parts):
        return {REASONING_DETAILS: [_detail(part) for part in parts]}
    found: JsonObject = {}
    for part in parts:
        name = part.options[SENT_AS]
        found[name] = found.get(name, "") + (part.text or "")
    return found


def _copilot(parts: Sequence[ContentPart]) -> JsonObject:
    """GitHub Copilot's way: one text, and what signs it."""
    text = "".join(part.text or "" for part in parts)
    signatures = [part.options["signature"] for part in parts if "signature" in part.options]
    opaque = {REASONING_OPAQUE: signatures[-1]} if signatures else {}
    return {**({"reasoning_text": text} if text else {}), **opaque}


def _block(part: ContentPart) -> JsonObject:
    """LiteLLM's way, which is Anthropic's."""
    if part.options.get(REDACTED):
        return {"type": "redacted_thinking", "data": part.options.get("data")}
    signed = {name: part.options[name] for name in ("signature",) if name in part.options}
    return {"type": "thinking", "thinking": part.text or "", **signed}


def _detail(part: ContentPart) -> JsonObject:
    options = thaw(part.options)
    kind = options.pop(PROVIDER_TYPE, None)
    options.pop(SENT_AS, None)
    if options.pop(REDACTED, False):
        return {"type": kind or REASONING_ENCRYPTED, **options}
    if kind == REASONING_SUMMARY:
        return {"type": kind, "summary": part.text or "", **options}
    return {"type": kind or REASONING_TEXT, "text": part.text or "", **options}


def written_call(call: ToolCall) -> JsonObject:
    """A call as an entry of `tool_calls`."""
    metadata = thaw(call.metadata)
    arguments = "{}" if call.arguments is None else text_of(call.arguments)
    if call.metadata.get(PROVIDER_TYPE) == CUSTOM_CALL:
        given = call.arguments
        text = given.get("input", "") if isinstance(given, Mapping) else given or ""
        return {"type": CUSTOM_CALL, "id": call.call_id, "custom": {"name": call.name, "input": text}}
    if call.type == "invalid_tool_call":
        arguments = json.dumps({"invalid_arguments": call.arguments or ""})
    extra = {name: metadata[name] for name in _BACK if name in metadata}
    function = {"name": call.name or "invalid", "arguments": arguments}
    return {"id": call.call_id, "type": "function", "function": function, **extra}


def _result(result: ToolResult, _: ToolCall | None) -> JsonObject:
    content = result_text(result) if _media(result) is None else f"{_texts(result)}{_FOLLOW}".strip()
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def _texts(result: ToolResult) -> str:
    return "".join(f"{part.text}\n" for part in result_parts(result.content) if part.type == "text")


def _media(result: ToolResult) -> list[JsonObject] | None:
    """The images and files of a result. Only a user may send them: they follow the results, after a text that says whose."""
    parts = result_media(result, lambda part: _part(part, "tool"))
    if parts is None:
        return None
    media = [part for part in parts if part["type"] != "text"]
    return [{"type": "text", "text": f"Of the result of {result.call_id}:"}, *media]


_FOLLOW = "What this result shows follows in a message of its own."

_BACK = ("extra_content",)
"""Other fields that a call must bring back, such as the signature that Gemini's compatible endpoint puts there."""
