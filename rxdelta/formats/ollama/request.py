"""A conversation as `messages` of Ollama's `/api/chat`.

    message   = system | user | assistant | tool
    user      = content images?                  a text, and images as base64
    assistant = thinking? content images? tool_calls?
    tool      = content tool_name? tool_call_id?

A message has one text, one thinking and lists of images and calls, so their order is lost. The server sends none
either. A call's arguments are the object. An id that the decoder made up, because older servers give none, is
left out: results are in the order of their calls and name the tool. Nothing is fetched from an address.

Ollama's Python package takes an image for the name of a file, and sends that file's content, if there is one of this
name: `//etc/passwd` is valid base64. So an image ends with a line end, which base64 allows and no such name has.
"""

from __future__ import annotations

from collections.abc import Sequence

from rxdelta.core import ToolCall, ToolResult
from rxdelta.formats.conversation import (
    Native,
    Turn,
    arguments_of,
    medium_of,
    messages_of,
    refuse,
    result_text,
)
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.notes import SYNTHETIC_ID

_FORMAT = "ollama"


def request(turns: Sequence[Turn | Native]) -> JsonObject:
    return {"messages": messages_of(turns, user=_input, assistant=_reply, result=_result)}


def _input(turn: Turn) -> JsonObject:
    images: list[str] = []
    for part in turn.parts:
        medium = medium_of(part)
        if medium is not None and medium.kind == "image" and medium.data:
            images.append(written_image(medium.data))
        elif part.type != "text":
            raise refuse(_FORMAT, part, turn.role)
    return {"role": turn.role, "content": turn.text, **({"images": images} if images else {})}


def written_image(data: str) -> str:
    """An image of base64, as it can be sent safely."""
    return f"{data}\n"


def _reply(turn: Turn) -> JsonObject:
    texts = [part.text or "" for part in turn.parts if part.type in ("text", "refusal")]
    found: JsonObject = {
        "thinking": "".join(part.text or "" for part in turn.parts if part.type == "reasoning"),
        "images": [written_image(part.text) for part in turn.parts if part.type == "image" and part.text],
        "tool_calls": [_call(call) for call in turn.calls],
    }
    more = {name: value for name, value in found.items() if value}
    return {"role": "assistant", "content": "".join(texts), **more}


def _call(call: ToolCall) -> JsonObject:
    function = {"name": call.name or "invalid", "arguments": arguments_of(call)}
    return {**({"id": call.call_id} if _has_id(call) else {}), "function": function}


def _result(result: ToolResult, call: ToolCall | None) -> JsonObject:
    found: JsonObject = {"role": "tool", "content": result_text(result)}
    if call is not None and call.name:
        found["tool_name"] = call.name
    if result.call_id and (call is None or _has_id(call)):
        found["tool_call_id"] = result.call_id
    return found


def _has_id(call: ToolCall) -> bool:
    return bool(call.call_id) and not call.metadata.get(SYNTHETIC_ID)
