"""A conversation as `system` and `messages` of Amazon Bedrock's Converse and ConverseStream.

    message   = user | assistant, by turns, whose content is a list of blocks
    assistant = text | citationsContent | reasoningContent | toolUse | toolResult, of the provider's own tools
    user      = toolResult* (text | image | document | video | audio)*

Bytes are bytes, as boto3 takes them: of media and of encrypted reasoning. All else is JSON.

Blocks keep their order. Bedrock refuses two messages of one role in a row, so they are written as one. It refuses a
text of nothing but space, so that is joined to the text beside it, or left out. Reasoning without a signature is
refused even by the models that gave it, and so is reasoning at the end of a message; they are left out. So are the
model's own images and sounds, since only a user may send media. A call of the provider's own tool goes back with its
result.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import ContentPart, ToolCall, ToolResult, is_mapping, thaw
from rxdelta.formats.bedrock_converse.blocks import FORMAT, decoded
from rxdelta.formats.calls import plain_id
from rxdelta.formats.conversation import (
    Defined,
    Medium,
    Native,
    ToolDefinition,
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
    ours: JsonObject | None = None  # the last message, if it may go on

    def say(role: str, blocks: list[JsonObject]) -> None:
        nonlocal ours
        if blocks and ours is not None and ours["role"] == role:
            ours["content"] += blocks
        elif blocks:
            ours = {"role": role, "content": blocks}
            messages.append(ours)

    for turn in turns:
        if isinstance(turn, Mapping):
            messages.append(thaw(turn))
            ours = None
            continue
        if turn.role == "system":
            system += accepted([_instruction(part) for part in turn.parts])
        elif turn.role == "user":
            say("user", accepted([_asked(part) for part in turn.parts]))
        elif turn.role == "assistant":
            say("assistant", _said(turn))
        say("user", [{"toolResult": _result(result)} for result in turn.results])
    return {"system": system, "messages": messages} if system else {"messages": messages}


def tools(definitions: Sequence[Defined]) -> JsonObject:
    return {"toolConfig": {"tools": tool_list(definitions, _tool_spec)}}


def _tool_spec(tool: ToolDefinition) -> JsonObject:
    fields = function_object(tool, "inputSchema")
    fields["inputSchema"] = {"json": fields["inputSchema"]}
    return {"toolSpec": fields}


# Messages of people.


def _instruction(part: ContentPart) -> JsonObject:
    if part.type == "text":
        return {"text": part.text or ""}
    if part.type == "unsupported":
        return thaw(part.options)  # type: ignore[no-any-return]
    raise refuse(FORMAT, part, "system")


def _asked(part: ContentPart) -> JsonObject:
    if part.type == "text":
        return {"text": part.text or ""}
    if part.type == "unsupported":
        return thaw(part.options)  # type: ignore[no-any-return]
    medium = medium_of(part)
    name = "document" if medium is not None and medium.kind == "file" else part.type.removesuffix("_url")
    formatted = None if medium is None else _format(medium)
    source = None if medium is None else _source(medium)
    if medium is None or formatted is None or source is None:
        raise refuse(FORMAT, part, "user")
    if name != "document":
        return {name: {"format": formatted, "source": source}}
    more = {key: medium.options[key] for key in ("context", "citations") if key in medium.options}
    return {name: {"format": formatted, "name": _document_name(medium), "source": source, **more}}


def _format(medium: Medium) -> str | None:
    said = medium.options.get("format")
    return said if isinstance(said, str) else _FORMATS[medium.kind].get(medium.mime_type.partition(";")[0])


def _source(medium: Medium) -> JsonObject | None:
    """Where it is: here or in S3, the only addresses that Bedrock fetches from."""
    found = medium.options.get("source")
    if isinstance(found, dict):
        return found  # pyright: ignore[reportUnknownVariableType]
    if medium.url is not None and medium.url.startswith("s3://"):
        owner = medium.options.get("bucket_owner")
        return {"s3Location": {"uri": medium.url, **({"bucketOwner": owner} if owner else {})}}
    data = None if medium.data is None else decoded(medium.data)
    return {"bytes": data} if data else None


def _document_name(medium: Medium) -> str:
    """A document must have a name, in which not even a full stop is allowed."""
    said = medium.options.get("name") or medium.options.get("filename") or medium.options.get("title")
    name = re.sub(r"\s+", " ", re.sub(r"[^a-zA-Z0-9\s()\[\]-]", "-", said)) if isinstance(said, str) else ""
    return name.strip()[:200] or "document"


# Messages of the model.


def _said(turn: Turn) -> list[JsonObject]:
    own = _own_tools(turn)
    blocks: list[JsonObject] = []
    for block in turn.blocks:
        if isinstance(block, ToolCall):
            if block.type != "server_tool_call":
                blocks.append({"toolUse": _call(block)})
            elif block.call_id in own:
                kind = block.metadata.get(PROVIDER_TYPE)
                blocks.append({"toolUse": {**_call(block), "type": kind}})
        elif block.type == "server_tool_result":
            if block.options.get("tool_call_id") in own:
                blocks.append({"toolResult": _own_result(block)})
        elif (written := _part(block)) is not None:
            blocks.append(written)
    return accepted(blocks, lambda block: "reasoningContent" in block)


def _part(part: ContentPart) -> JsonObject | None:
    if part.type == "text":
        citations = [cited for one in part.citations if (cited := _citation(one.raw)) is not None]
        if citations:
            content = {"content": [{"text": part.text}]} if (part.text or "").strip() else {}
            return {"citationsContent": {**content, "citations": citations}}
        return {"text": part.text or ""}
    if part.type == "refusal":
        return {"text": part.text or ""}
    if part.type == "reasoning":
        return _reasoning(part)
    if part.type == "unsupported" and len(part.options) == 1 and not _GOES_BACK.isdisjoint(part.options):
        return thaw(part.options)  # type: ignore[no-any-return]
    return None


def _reasoning(part: ContentPart) -> JsonObject | None:
    signature, data = part.options.get("signature"), part.options.get("data")
    if part.options.get(REDACTED):
        redacted = decoded(data) if isinstance(data, str) else None
        return {"reasoningContent": {"redactedContent": redacted}} if redacted else None
    if not isinstance(signature, str) or not signature:
        return None
    return {"reasoningContent": {"reasoningText": {"text": part.text or "", "signature": signature}}}


def _citation(raw: Mapping[str, Any]) -> JsonObject | None:
    """A citation as it came, if it came from here."""
    found: JsonObject = {name: thaw(raw[name]) for name in _OF_A_CITATION if name in raw}
    location, content = found.get("location"), found.get("sourceContent")
    if location is not None and not (
        is_mapping(location) and len(location) == 1 and _LOCATIONS.issuperset(location)
    ):
        return None
    if content is not None and not (isinstance(content, list) and all(map(is_mapping, content))):  # pyright: ignore[reportUnknownArgumentType]
        return None
    return found if location or content else None


def _call(call: ToolCall) -> JsonObject:
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name or "")[:64] or "invalid"
    return {"toolUseId": _id(call.call_id), "name": name, "input": arguments_of(call)}


# Results of tools.


def _result(result: ToolResult) -> JsonObject:
    """An object goes as JSON; a list or a number isn't taken as such, and goes as text."""
    content = result_media(result, _of_a_result)
    if content is None:
        said = {"json": thaw(result.content)} if is_mapping(result.content) else {"text": result_text(result)}
        content = [said]
    failed = {"status": "error"} if result.is_error else {}
    return {"toolUseId": _id(result.call_id), "content": content, **failed}


def _of_a_result(part: ContentPart) -> JsonObject:
    written = _asked(part)
    if _OF_A_RESULT.isdisjoint(written):
        raise refuse(FORMAT, part, "tool")
    return written


def _own_tools(turn: Turn) -> set[Any]:
    """The ids of those calls of a provider's own tool that were made and answered here.

    Other providers have such calls too, and name them alike; their results are of another make.
    """
    asked = {
        block.call_id
        for block in turn.blocks
        if isinstance(block, ToolCall)
        and block.type == "server_tool_call"
        and block.metadata.get(PROVIDER_TYPE) == "server_tool_use"
    }
    return {
        part.options["tool_call_id"]
        for part in turn.parts
        if part.type == "server_tool_result"
        and part.options.get("tool_call_id") in asked
        and _is_ours(thaw(part.options.get("output")))
    }


def _is_ours(output: Any) -> bool:
    return isinstance(output, list) and all(
        isinstance(item, dict) and len(item) == 1 and not _OF_A_RESULT.isdisjoint(item)  # pyright: ignore[reportUnknownArgumentType]
        for item in output  # pyright: ignore[reportUnknownVariableType]
    )


def _own_result(part: ContentPart) -> JsonObject:
    options: JsonObject = thaw(part.options)
    kind = {"type": options[PROVIDER_TYPE]} if PROVIDER_TYPE in options else {}
    status = {"status": options["status"]} if options.get("status") in ("success", "error") else {}
    content = [_with_bytes(item) for item in options["output"]]
    return {"toolUseId": _id(options["tool_call_id"]), "content": content, **status, **kind}


def _with_bytes(item: JsonObject) -> JsonObject:
    """The item, with bytes again where the decoder wrote base64."""
    for found in item.values():
        source = found.get("source") if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType]
        if isinstance(source, dict) and isinstance(source.get("bytes"), str):  # pyright: ignore[reportUnknownMemberType]
            source["bytes"] = decoded(source["bytes"]) or b""  # pyright: ignore[reportUnknownArgumentType]
    return item


# Blocks that the API would refuse.


def _id(call_id: str | None) -> str:
    """The id as Bedrock takes it. Other providers' may be longer."""
    found = plain_id(call_id)
    return found if len(found) <= _LONGEST_ID else hashlib.sha256(found.encode()).hexdigest()[:_LONGEST_ID]


_LONGEST_ID = 64
_GOES_BACK = frozenset(["cachePoint", "guardContent", "searchResult"])
_OF_A_CITATION = ("title", "source", "sourceContent", "location")
_LOCATIONS = frozenset(["web", "documentChar", "documentPage", "documentChunk", "searchResultLocation"])
_OF_A_RESULT = frozenset(["text", "json", "image", "document", "video", "searchResult"])

_FORMATS: Mapping[str, Mapping[str, str]] = {
    "image": {f"image/{name}": name for name in ("png", "jpeg", "gif", "webp")} | {"image/jpg": "jpeg"},
    "file": {
        "application/pdf": "pdf",
        "text/csv": "csv",
        "application/msword": "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
        "application/vnd.ms-excel": "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
        "text/html": "html",
        "text/plain": "txt",
        "text/markdown": "md",
    },
    "video": {
        "video/x-matroska": "mkv",
        "video/quicktime": "mov",
        "video/mp4": "mp4",
        "video/webm": "webm",
        "video/x-flv": "flv",
        "video/mpeg": "mpeg",
        "video/x-ms-wmv": "wmv",
        "video/3gpp": "three_gp",
    },
    "audio": {
        "audio/mpeg": "mp3",
        "audio/mp3": "mp3",
        "audio/opus": "opus",
        "audio/wav": "wav",
        "audio/x-wav": "wav",
        "audio/aac": "aac",
        "audio/flac": "flac",
        "audio/mp4": "mp4",
        "audio/ogg": "ogg",
        "audio/x-matroska": "mka",
        "audio/x-aac": "x-aac",
        "audio/m4a": "m4a",
        "audio/webm": "webm",
    },
}
"""Media types by their names here."""
