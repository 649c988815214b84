"""A conversation as LangChain's messages, which `invoke` and `convert_to_messages` take as they are.

    message   = system | user | assistant | tool
    user      = content: text | [text | image | audio | video | file]*
    assistant = content: text | [block]* tool_calls? id? additional_kwargs? response_metadata?
    tool      = tool_call_id name? content status?

The blocks are those of LangChain's standard content, version 1, in their order, calls among them; the calls stand in
`tool_calls` too, where LangChain looks for them. `response_metadata` says that they are standard ones and, if it is
known, whose they were, because by that LangChain knows which signatures and identifiers it may put back. What a
block says beyond the standard is in its `extras`; one that the standard doesn't have is `non_standard`. A message
that is one text and calls has it as its content.

A call whose arguments could not be read goes back as one with that text, not among `invalid_tool_calls`: most of
LangChain's models leave those out, and the result that answers it would then answer nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import Citation, ContentPart, ToolCall, ToolResult, is_mapping, thaw
from rxdelta.formats.conversation import Native, Turn, arguments_of, refuse, result_text
from rxdelta.formats.media import Medium, medium_of
from rxdelta.formats.notes import PROVIDER_TYPE, REDACTED, SENT_AS, SYNTHETIC_ID

__all__ = ["request"]

Json = dict[str, Any]
_FORMAT = "langchain"


def request(turns: Sequence[Turn | Native]) -> Json:
    messages: list[Json] = []
    for turn in turns:
        if isinstance(turn, Mapping):
            messages.append(thaw(turn))
            continue
        if turn.role == "assistant":
            messages.append(_said(turn))
        elif turn.role != "tool":
            messages.append({"role": turn.role, "content": _content(turn)})
        names = {call.call_id: call.name for call in turn.calls}
        messages += [_result(result, names.get(result.call_id)) for result in turn.results]
    return {"messages": messages}


def _content(turn: Turn) -> str | list[Json]:
    """What a person says."""
    if all(part.type == "text" and not part.options for part in turn.parts):
        return turn.text
    written: list[Json] = []
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


def _medium(medium: Medium) -> Json:
    where: Json = {"file_id": medium.file_id}
    if medium.data:
        where = {"base64": medium.data, "mime_type": medium.mime_type}
    elif medium.url:
        where = {"url": medium.url}
        if "mime_type" in medium.options:
            where["mime_type"] = medium.mime_type
    return {"type": medium.kind, **where, **_beside(medium.options, "id", known=_OF_A_MEDIUM)}


# What the model said.


def _said(turn: Turn) -> Json:
    blocks = [written for block in turn.blocks if (written := _block(block)) is not None]
    metadata: Json = thaw(turn.message.metadata) if turn.message is not None else {}
    message: Json = {"role": "assistant", "content": blocks}
    said: Json = {"output_version": "v1"}
    texts = [block["text"] for block in blocks[:1] if block.keys() == {"type", "text"}]
    if all(block["type"] == "tool_call" and "extras" not in block for block in blocks[len(texts) :]):
        message["content"], said = "".join(texts), {}
    if isinstance(provider := metadata.get("model_provider"), str):
        said["model_provider"] = provider
    kwargs = metadata.get("additional_kwargs")  # there are signatures among them
    calls = [
        {"type": "tool_call", "id": call.call_id, "name": call.name or "invalid", "args": arguments_of(call)}
        for call in turn.calls
    ]
    found: Json = {
        "tool_calls": calls,
        "id": turn.message.id if turn.message is not None else None,
        "additional_kwargs": kwargs if turn.reasoning and is_mapping(kwargs) else None,
        "response_metadata": said,
    }
    return message | {name: value for name, value in found.items() if value}


def _block(block: ContentPart | ToolCall) -> Json | None:
    if isinstance(block, ToolCall):
        return _call(block)
    options: Json = thaw(block.options)
    if block.type in ("text", "refusal"):
        notes = [_annotation(one) for one in block.citations]
        if not block.text and not notes and not options:
            return None
        noted = {"annotations": notes} if notes else {}
        return {"type": "text", "text": block.text or "", **noted, **_beside(options, "id")}
    if block.type == "reasoning":
        return _reasoning(block, options)
    if block.type == "server_tool_result":
        return _own_result(options)
    if block.type == "unsupported":
        return {"type": "non_standard", "value": options}
    medium = medium_of(block)
    return _medium(medium) if medium is not None and (medium.data or medium.url or medium.file_id) else None


def _reasoning(block: ContentPart, options: Json) -> Json | None:
    """Encrypted reasoning of Anthropic's is none of the standard's; LangChain carries it as it is."""
    if options.get(REDACTED) and "data" in options:
        return {"type": "non_standard", "value": {"type": "redacted_thinking", "data": options["data"]}}
    if not block.text and not options:
        return None
    return {"type": "reasoning", "reasoning": block.text or "", **_beside(options, "id", known=_OF_REASONING)}


def _own_result(options: Json) -> Json:
    kind = options.get(PROVIDER_TYPE)
    if kind is not None:  # as LangChain itself calls it
        extras = options.get("extras")
        options = {**options, "extras": {**(extras if is_mapping(extras) else {}), "block_type": kind}}
    return {
        "type": "server_tool_result",
        "tool_call_id": options.get("tool_call_id") or "",
        "status": "error" if options.get("status") == "error" else "success",
        "output": options.get("output"),
        **_beside(options, "id", known=_OF_A_RESULT),
    }


def _call(call: ToolCall) -> Json:
    kind = "server_tool_call" if call.type == "server_tool_call" else "tool_call"
    return {
        "type": kind,
        "id": call.call_id,
        "name": call.name or "invalid",
        "args": arguments_of(call),
        **_beside(thaw(call.metadata), known=_OF_A_CALL),
    }


def _annotation(citation: Citation) -> Json:
    raw: Json = thaw(citation.raw)
    if raw.get("type") in ("citation", "non_standard_annotation"):
        return raw
    said = {name: getattr(citation, name) for name in _OF_A_CITATION}
    known = {name: value for name, value in said.items() if value is not None}
    more = {name: value for name, value in raw.items() if name not in known}
    return {"type": "citation", **known, **({"extras": more} if more else {})}


def _beside(options: Json, *own: str, known: frozenset[str] = frozenset()) -> Json:
    """What a block says besides: what the standard has by its name, all else as `extras`."""
    found = {name: options[name] for name in own if options.get(name) is not None}
    extras = options.get("extras")
    more: Json = dict(extras) if is_mapping(extras) else {}
    for name, value in options.items():
        if name != "extras" and name not in own and name not in known and value is not None:
            more[name] = value
    return {**found, **({"extras": more} if more else {})}


# What tools gave back.


def _result(result: ToolResult, name: str | None) -> Json:
    found: Json = {"role": "tool", "tool_call_id": result.call_id or "", "content": result_text(result)}
    if name:
        found["name"] = name
    if result.is_error:
        found["status"] = "error"
    return found


_OF_A_MEDIUM = frozenset(["mime_type", "url", "file_id"])
_OF_REASONING = frozenset([SENT_AS, REDACTED, "data"])
_OF_A_RESULT = frozenset(["tool_call_id", "status", "output", PROVIDER_TYPE])
_OF_A_CALL = frozenset([SYNTHETIC_ID, "execution_status"])
_OF_A_CITATION = ("url", "title", "cited_text", "start_index", "end_index")
