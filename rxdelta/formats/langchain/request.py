"""A conversation as LangChain's messages, which `invoke` and `convert_to_messages` accept unchanged.

    message   = system | user | assistant | tool
    user      = content: text | [text | image | audio | video | file]*
    assistant = content: text | [block]* tool_calls? id? additional_kwargs? response_metadata?
    tool      = tool_call_id name? content status?

The blocks are those of LangChain's standard content, version 1, in their order, calls included. The calls stand in
`tool_calls` too, where LangChain looks for them. `response_metadata` marks the content as standard and, if it is known,
names the provider of the reply: LangChain then knows which signatures and identifiers it may send back. Fields of a
block that the standard doesn't have are in its `extras`; a block of a type that it doesn't have is `non_standard`. The
content of a message with one text and calls is that text.

A call whose arguments could not be parsed is sent back as a call with that text, not in `invalid_tool_calls`: most of
LangChain's models leave those out, and the result of the call would then answer no call.
"""

from __future__ import annotations

from collections.abc import Sequence

from rxdelta.core import Citation, ContentPart, ToolCall, ToolResult, is_mapping, thaw
from rxdelta.formats.conversation import (
    Medium,
    Native,
    Turn,
    arguments_of,
    medium_of,
    messages_of,
    refuse,
    result_text,
)
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED, SENT_AS, SYNTHETIC_ID

_FORMAT = "langchain"


def request(turns: Sequence[Turn | Native]) -> JsonObject:
    return {"messages": messages_of(turns, user=_user, assistant=_assistant_message, result=_result)}


# Users and the system.


def _user(turn: Turn) -> JsonObject:
    return {"role": turn.role, "content": _user_content(turn)}


def _user_content(turn: Turn) -> str | list[JsonObject]:
    if all(part.type == "text" and not part.options for part in turn.parts):
        return turn.text
    written: list[JsonObject] = []
    for part in turn.parts:
        medium = medium_of(part)
        if part.type == "text":
            written.append({"type": "text", "text": part.text or "", **thaw(part.options)})
        elif part.type == "unsupported":
            written.append(thaw(part.options))
        elif medium is not None and (medium.data or medium.url or medium.file_id):
            written.append(_medium(medium))
        else:
            raise refuse(_FORMAT, part, turn.role)
    return written


def _medium(medium: Medium) -> JsonObject:
    where: JsonObject = {"file_id": medium.file_id}
    if medium.data:
        where = {"base64": medium.data, "mime_type": medium.mime_type}
    elif medium.url:
        where = {"url": medium.url}
        if "mime_type" in medium.options:
            where["mime_type"] = medium.mime_type
    return {"type": medium.kind, **where, **_more(medium.options, "id", known=_MEDIUM_FIELDS)}


# The model.


def _assistant_message(turn: Turn) -> JsonObject:
    blocks = [written for block in turn.blocks if (written := _block(block)) is not None]
    metadata: JsonObject = thaw(turn.message.metadata) if turn.message is not None else {}
    message: JsonObject = {"role": "assistant", "content": blocks}
    response_metadata: JsonObject = {"output_version": "v1"}
    texts = [block["text"] for block in blocks[:1] if block.keys() == {"type", "text"}]
    if all(block["type"] == "tool_call" and "extras" not in block for block in blocks[len(texts) :]):
        message["content"], response_metadata = "".join(texts), {}
    if isinstance(provider := metadata.get("model_provider"), str):
        response_metadata["model_provider"] = provider
    kwargs = metadata.get("additional_kwargs")  # they may hold signatures
    calls = [
        {"type": "tool_call", "id": call.call_id, "name": call.name or "invalid", "args": arguments_of(call)}
        for call in turn.calls
    ]
    more: JsonObject = {
        "tool_calls": calls,
        "id": turn.message.id if turn.message is not None else None,
        "additional_kwargs": kwargs if turn.reasoning and is_mapping(kwargs) else None,
        "response_metadata": response_metadata,
    }
    return message | {name: value for name, value in more.items() if value}


def _block(block: ContentPart | ToolCall) -> JsonObject | None:
    if isinstance(block, ToolCall):
        return _call(block)
    options: JsonObject = thaw(block.options)
    if block.type in ("text", "refusal"):
        notes = [_annotation(citation) for citation in block.citations]
        if not block.text and not notes and not options:
            return None
        annotations = {"annotations": notes} if notes else {}
        return {"type": "text", "text": block.text or "", **annotations, **_more(options, "id")}
    if block.type == "reasoning":
        return _reasoning(block, options)
    if block.type == "server_tool_result":
        return _server_tool_result(options)
    if block.type == "unsupported":
        return {"type": "non_standard", "value": options}
    medium = medium_of(block)
    return _medium(medium) if medium is not None and (medium.data or medium.url or medium.file_id) else None


def _reasoning(block: ContentPart, options: JsonObject) -> JsonObject | None:
    """A reasoning. The standard has no form for Anthropic's encrypted one; LangChain passes it on unchanged."""
    if options.get(REDACTED) and "data" in options:
        return {"type": "non_standard", "value": {"type": "redacted_thinking", "data": options["data"]}}
    if not block.text and not options:
        return None
    return {
        "type": "reasoning",
        "reasoning": block.text or "",
        **_more(options, "id", known=_REASONING_FIELDS),
    }


def _server_tool_result(options: JsonObject) -> JsonObject:
    kind = options.get(PROVIDER_TYPE)
    if kind is not None:  # LangChain has it as `block_type`
        extras = options.get("extras")
        options = {**options, "extras": {**(extras if is_mapping(extras) else {}), "block_type": kind}}
    return {
        "type": "server_tool_result",
        "tool_call_id": options.get("tool_call_id") or "",
        "status": "error" if options.get("status") == "error" else "success",
        "output": options.get("output"),
        **_more(options, "id", known=_RESULT_FIELDS),
    }


def _call(call: ToolCall) -> JsonObject:
    kind = "server_tool_call" if call.type == "server_tool_call" else "tool_call"
    return {
        "type": kind,
        "id": call.call_id,
        "name": call.name or "invalid",
        "args": arguments_of(call),
        **_more(thaw(call.metadata), known=_CALL_FIELDS),
    }


def _annotation(citation: Citation) -> JsonObject:
    raw: JsonObject = thaw(citation.raw)
    if raw.get("type") in ("citation", "non_standard_annotation"):
        return raw
    fields = {name: getattr(citation, name) for name in _CITATION_FIELDS}
    known = {name: value for name, value in fields.items() if value is not None}
    more = {name: value for name, value in raw.items() if name not in known}
    return {"type": "citation", **known, **({"extras": more} if more else {})}


def _more(options: JsonObject, *own: str, known: frozenset[str] = frozenset()) -> JsonObject:
    """The further fields of a block: its `own` by their names, and all but the `known` ones as `extras`."""
    found = {name: options[name] for name in own if options.get(name) is not None}
    extras = options.get("extras")
    rest: JsonObject = dict(extras) if is_mapping(extras) else {}
    for name, value in options.items():
        if name != "extras" and name not in own and name not in known and value is not None:
            rest[name] = value
    return {**found, **({"extras": rest} if rest else {})}


# Tools.


def _result(result: ToolResult, call: ToolCall | None) -> JsonObject:
    found: JsonObject = {"role": "tool", "tool_call_id": result.call_id or "", "content": result_text(result)}
    if call is not None and call.name:
        found["name"] = call.name
    if result.is_error:
        found["status"] = "error"
    return found


_MEDIUM_FIELDS = frozenset(["mime_type", "url", "file_id"])
_REASONING_FIELDS = frozenset([SENT_AS, REDACTED, "data"])
_RESULT_FIELDS = frozenset(["tool_call_id", "status", "output", PROVIDER_TYPE])
_CALL_FIELDS = frozenset([SYNTHETIC_ID, "execution_status"])
_CITATION_FIELDS = ("url", "title", "cited_text", "start_index", "end_index")
