"""A conversation as `contents` and `systemInstruction` of Gemini's generateContent.

    contents  = content*           content = {role: user | model, parts: part*}
    model     = (text | thought | functionCall | executableCode | codeExecutionResult | toolCall | toolResponse
                | inlineData | fileData)*           each with the thoughtSignature that hung on it
    user      = functionResponse+ | (text | inlineData | fileData)*

Parts keep their order, since the API checks that a signature comes back on its own part. Roles take turns: successive
parts of one role are one content. Only results have a content of their own, since the API counts the parts behind the
calls. A result names its function; it has an id only if the provider gave the call one.

The names are the wire's, which the SDK accepts too: `contents=…, config={"system_instruction": …}`. Reasoning that
another provider gave is left out, and so are the calls and results of that provider's own tools.
"""

# The provider's own items hold untyped JSON.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rxdelta.core import ContentPart, ToolCall, ToolResult, thaw
from rxdelta.formats.conversation import (
    Defined,
    Native,
    ToolDefinition,
    Turn,
    arguments_of,
    function_object,
    refuse,
    result_parts,
    text_of,
)
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.gemini.tables import (
    CODE_RESULT,
    EXECUTABLE_CODE,
    FORMAT,
    TOOL_CALL,
    TOOL_RESPONSE,
)
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, REDACTED, SENT_AS, SYNTHETIC_ID, THOUGHT


def request(turns: Sequence[Turn | Native]) -> JsonObject:
    calls = _calls_in(turns)
    system: list[JsonObject] = []
    contents = _Contents()
    for turn in turns:
        if isinstance(turn, Mapping):
            contents.add_native(thaw(turn))
            continue
        if turn.role == "system":
            system += [part for part in map(_instruction, turn.parts) if part["text"]]
        elif turn.role == "user":
            contents.add("user", [_asked(part) for part in turn.parts])
        elif turn.role == "assistant":
            contents.add("model", _said(turn))
        responses = [_response(result, calls) for result in turn.results]
        contents.add("user", responses, apart=True)
    written: JsonObject = {"contents": contents.written}
    return {"systemInstruction": {"parts": system}, **written} if system else written


def tools(definitions: Sequence[Defined]) -> JsonObject:
    """The functions are one tool, beside the provider's own. A function without arguments has no schema."""
    functions = [_declaration(tool) for tool in definitions if isinstance(tool, ToolDefinition)]
    own: list[JsonObject] = [thaw(tool) for tool in definitions if not isinstance(tool, ToolDefinition)]
    return {"tools": [*([{"functionDeclarations": functions}] if functions else []), *own]}


def _declaration(tool: ToolDefinition) -> JsonObject:
    written = function_object(tool, _SCHEMA)
    return (
        written if written[_SCHEMA].get("properties") else {k: v for k, v in written.items() if k != _SCHEMA}
    )


_SCHEMA = "parametersJsonSchema"
"""`parameters` would take a part of JSON Schema only."""


class _Contents:
    """The contents so far; consecutive turns of one role extend the last one."""

    def __init__(self) -> None:
        self.written: list[JsonObject] = []
        self._goes_on: tuple[str, bool] | None = None

    def add_native(self, content: JsonObject) -> None:
        self.written.append(content)
        self._goes_on = None

    def add(self, role: str, parts: list[JsonObject], *, apart: bool = False) -> None:
        if not parts:
            return
        if self._goes_on == (role, apart):
            self.written[-1]["parts"] += parts
        else:
            self.written.append({"role": role, "parts": parts})
            self._goes_on = role, apart


# Messages of people.


def _instruction(part: ContentPart) -> JsonObject:
    if part.type != "text":
        raise refuse(FORMAT, part, "system")
    return {"text": part.text or ""}


def _asked(part: ContentPart) -> JsonObject:
    if part.type == "text":
        return {"text": part.text or "", **_of_the_part(part.options)}
    if part.type == "unsupported":
        whole: JsonObject = thaw(part.options)
        return whole
    written = _medium(part)
    if written is None:
        raise refuse(FORMAT, part, "user")
    return written


def _medium(part: ContentPart) -> JsonObject | None:
    """A picture and the like: its data, or where it lies. `None` if the part has neither."""
    kind, is_url = part.type.removesuffix("_url"), part.type.endswith("_url")
    if kind not in _USUAL:
        return None
    options: JsonObject = thaw(part.options)
    url, mime_type = options.get("url"), options.get("mime_type")
    named = {"displayName": options["displayName"]} if "displayName" in options else {}
    if part.text and not is_url:
        written: JsonObject = {
            "inlineData": {"mimeType": mime_type or _USUAL[kind], "data": part.text, **named}
        }
    elif url or (is_url and part.text):
        address = str(url or part.text)
        head, comma, data = address.partition(";base64,")
        if comma and head.startswith("data:"):
            written = {"inlineData": {"mimeType": head[5:] or _USUAL[kind], "data": data}}
        else:
            known = {"mimeType": mime_type} if mime_type else {}
            written = {"fileData": {**known, "fileUri": address, **named}}
    else:
        return None
    return {**written, **_of_the_part(options)}


# Messages of the model.


def _said(turn: Turn) -> list[JsonObject]:
    made_up = [call.call_id for call in turn.blocks if isinstance(call, ToolCall) and _is_made_up(call)]
    parts: list[JsonObject] = []
    for block in turn.blocks:
        if isinstance(block, ToolCall):
            part = _server_call(block) if block.type == "server_tool_call" else _call(block)
        elif block.type == "server_tool_result":
            part = _server_result(block, made_up)
        else:
            part = _SAID.get(block.type, _medium)(block)
        if part is not None:
            parts.append({**part, **_signature(block)})
    return parts


def _text(block: ContentPart) -> JsonObject | None:
    """An empty text is sent only to carry a signature, as the provider does."""
    if not block.text and "signature" not in block.options:
        return None
    return {"text": block.text or "", **_of_the_part(block.options)}


def _thought(block: ContentPart) -> JsonObject | None:
    if _ANOTHERS & block.options.keys():
        return None
    part = _text(block)
    return None if part is None else {**part, "thought": True}


def _unknown(block: ContentPart) -> JsonObject | None:
    """A part of an unknown kind. Another provider's has a type."""
    part: JsonObject = thaw(block.options)
    return part if part and "type" not in part else None


_SAID: Mapping[str, Callable[[ContentPart], JsonObject | None]] = {
    "text": _text,
    "refusal": _text,
    "reasoning": _thought,
    "unsupported": _unknown,
    # all else is a medium
}


def _signature(block: ContentPart | ToolCall) -> JsonObject:
    """The signature and the mark of a thought, which a part may have."""
    found = block.metadata if isinstance(block, ToolCall) else block.options
    thought = {"thought": True} if found.get(THOUGHT) is True else {}
    return thought | ({"thoughtSignature": found["signature"]} if "signature" in found else {})


def _of_the_part(options: Mapping[str, Any]) -> JsonObject:
    return {name: thaw(options[name]) for name in _PART if name in options}


# Calls.


def _is_made_up(call: ToolCall) -> bool:
    """Whether the provider gave the call no id."""
    return call.call_id is None or call.metadata.get(SYNTHETIC_ID) is True


def _named(call: ToolCall) -> JsonObject:
    return {} if _is_made_up(call) else {"id": call.call_id}


def _call(call: ToolCall) -> JsonObject:
    function = {**_named(call), "name": call.name or "invalid", "args": arguments_of(call)}
    return {"functionCall": function, **_of_the_part(call.metadata)}


def _server_call(call: ToolCall) -> JsonObject | None:
    """A call of a tool that the provider runs itself."""
    kind = call.metadata.get(PROVIDER_TYPE)
    arguments = arguments_of(call)
    own = _of_the_part(call.metadata)
    if kind == EXECUTABLE_CODE:
        return {kind: {"language": "LANGUAGE_UNSPECIFIED", "code": "", **arguments, **_named(call)}, **own}
    if kind != TOOL_CALL:
        return None
    more = {
        name: value for name, value in thaw(call.metadata).items() if name not in _OURS and name not in _PART
    }
    return {kind: {"toolType": call.name, "args": arguments, **more, **_named(call)}, **own}


def _server_result(block: ContentPart, made_up: list[str | None]) -> JsonObject | None:
    options: JsonObject = thaw(block.options)
    kind, call_id, output = options.get(PROVIDER_TYPE), options.get("tool_call_id"), options.get("output")
    named = {} if call_id is None or call_id in made_up else {"id": call_id}
    own = _of_the_part(options)
    if kind == CODE_RESULT:
        said = output if isinstance(output, dict) else {"output": text_of(output)}
        return {kind: {"outcome": "OUTCOME_UNSPECIFIED", **said, **named}, **own}
    if kind != TOOL_RESPONSE:
        return None
    more = {name: value for name, value in options.items() if name not in _OURS and name not in _PART}
    given = {} if output is None else {"response": output}
    return {kind: {**more, **given, **named}, **own}


# Results.


def _calls_in(turns: Sequence[Turn | Native]) -> dict[str, JsonObject]:
    """The calls' names and ids by the id that results name, also of replies in the provider's own form."""
    found: dict[str, JsonObject] = {}
    for turn in turns:
        if isinstance(turn, Mapping):
            parts: Any = turn.get("parts")
            for part in parts if isinstance(parts, Sequence) else ():
                call: Any = part.get("functionCall") if isinstance(part, Mapping) else None
                if isinstance(call, Mapping) and "id" in call:
                    found[str(call["id"])] = {"id": call["id"], "name": call.get("name")}
            continue
        for made in turn.calls:
            found[made.call_id or ""] = {**_named(made), "name": made.name or "invalid"}
    return found


def _response(result: ToolResult, calls: Mapping[str, JsonObject]) -> JsonObject:
    call_id = result.call_id or ""
    named = calls.get(call_id, {"id": call_id, "name": call_id})
    content: Any = thaw(result.content)
    parts = result_parts(content)
    media = [written for part in parts if (written := _medium(part)) is not None]
    texts = [part.text or "" for part in parts if part.type == "text"]
    if media and len(media) + len(texts) == len(parts):
        content = "".join(texts)
    else:
        media = []
    if result.is_error:
        content = {"error": content}
    elif not isinstance(content, dict):
        content = {"output": "" if content is None else content}
    return {"functionResponse": {**named, "response": content, **({"parts": media} if media else {})}}


_USUAL: Mapping[str, str] = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "file": "application/pdf",
}
"""The media, and what each is taken for where nobody says."""

_PART = (
    "partMetadata",
    "mediaResolution",
    "mediaProcessing",
    "videoMetadata",
    "audioMetadata",
    "documentMetadata",
    "spreadsheetMetadata",
    "speechMetadata",
)
"""The fields that a request's part may have beside its content."""

_OURS = frozenset([
    PROVIDER_TYPE, SYNTHETIC_ID, "execution_status", "signature", THOUGHT, "tool_call_id", "output",
    "status",
])  # fmt: skip
_ANOTHERS = frozenset([ITEM_ID, SENT_AS, REDACTED, "data"])
"""The notes by which another provider's reasoning is recognised."""
