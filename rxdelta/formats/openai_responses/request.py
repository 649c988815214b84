"""A conversation as `input` of OpenAI Responses.

    input     = item*                            instructions are items of role system, in their places
    assistant = (reasoning | message | call | the provider's own item)*
    result    = <the call's type>_output         by call_id, after the items of its reply
    decision  = mcp_approval_response            by the id of the request's item, there too

Texts and refusals with one item id are one message. A call and results that came in the same item are one item again.

Reasoning must stand directly before the item that it led to, so items keep their order. The API refuses
reasoning without a following item, so the reasoning at the end of a reply that was cut off is left out. The API also
refuses an item with its id but without its reasoning. So a reply without its reasoning goes without ids, and without
the provider's own calls, which need one.

Blocks without an item id came from another provider: texts become plain messages and calls become functions, while
reasoning and calls of that provider's own tools are left out. Only reasoning of OpenAI's may have none: some clients send
it back so, encrypted. Audio and images of a model have no place, except for
an image that this provider's own tool made.
"""

# The content of calls is untyped JSON.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Any, Final

from rxdelta.core import Approval, ContentPart, ToolCall, decision_of, thaw
from rxdelta.formats.conversation import (
    Defined,
    Native,
    Turn,
    function_object,
    refuse,
    text_of,
    text_or_parts,
    tool_list,
)
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, SYNTHETIC_ID
from rxdelta.formats.openai_responses.calls import (
    APPROVAL_REQUEST,
    CALLS,
    CLIENT_CALLS,
    NAMED_CALLS,
    result_field,
    result_item,
    short_id,
)
from rxdelta.formats.openai_responses.notes import (
    ITEM_ERROR,
    ITEM_STATUS,
    PARAGRAPH,
    PART_LENGTHS,
    REASONING,
    REASONING_TEXT,
    is_made,
    item_fields,
)

_FORMAT = "openai-responses"


def request(turns: Sequence[Turn | Native]) -> JsonObject:
    calls, allowed = _calls_in(turns), _allowed_in(turns)
    items: list[JsonObject] = []
    for place, turn in enumerate(turns):
        if isinstance(turn, Mapping):
            items.append(thaw(turn))
            continue
        if turn.role == "assistant":
            continued = place + 1 < len(turns) and isinstance(turns[place + 1], Turn)
            reply = ReplyItems(turn)
            items += [*reply.items(), *reply.decisions(allowed, continued=continued)]
        elif turn.role != "tool":
            items.append({"role": turn.role, "content": text_or_parts(turn, _input_part)})
        for result in turn.results:
            call = calls.get(result.call_id or "", {})
            items.append(result_item(result, call, lambda part: _input_part(part, "tool")))
    return {"input": items}


def tools(definitions: Sequence[Defined]) -> JsonObject:
    """Not strict, which would be the default here: that takes a part of JSON Schema only."""
    written = tool_list(
        definitions, lambda tool: {"type": "function", **function_object(tool), "strict": False}
    )
    return {"tools": written}


# System and user.


def _input_part(part: ContentPart, role: str) -> JsonObject:
    options: JsonObject = thaw(part.options)
    url = options.get("url") or (part.text if part.type.endswith("_url") else None)
    kind = part.type.removesuffix("_url")
    if kind == "text":
        return {"type": "input_text", "text": part.text or ""}
    if kind == "unsupported":
        return options
    if kind == "image" and (url or part.text or "file_id" in options):
        source: JsonObject = {"image_url": url or _data_url(part, "image/png")}
        if "file_id" in options:
            source = {"file_id": options["file_id"]}
        return {"type": "input_image", "detail": options.get("detail", "auto"), **source}
    if kind == "file" and (url or part.text or "file_id" in options):
        if "file_id" in options:
            return {"type": "input_file", "file_id": options["file_id"]}
        if url:
            return {"type": "input_file", "file_url": url}
        name = options.get("filename") or "file"
        return {"type": "input_file", "filename": name, "file_data": _data_url(part, "application/pdf")}
    raise refuse(_FORMAT, part, role)


def _data_url(part: ContentPart, default: str) -> str:
    return f"data:{part.options.get('mime_type') or default};base64,{part.text}"


# Assistant.


class ReplyItems:
    """The items of one reply. The newest message may get more parts, and each call its results."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._items: list[JsonObject] = []
        self._message: object = None  # the newest item, if it is a message: its id, or its phase
        self._calls: dict[str, JsonObject] = {}  # by the id of the item
        before: Sequence[Any] = turn.message.blocks if turn.message is not None else ()
        self._without_ids = not _has_reasoning(turn.blocks) and _has_reasoning(before)

    def items(self) -> list[JsonObject]:
        for block in self._turn.blocks:
            if isinstance(block, ToolCall):
                self._add_call(block)
            elif block.type in ("text", "refusal") or _is_in_a_message(block):
                self._add_part(block)
            elif block.type == "unsupported":
                self._add(_unknown(block))
            elif not self._without_ids:
                self._add_own(block)
        while self._items and self._items[-1].get("type") == "reasoning":
            self._items.pop()
        # Options may have come through a browser: they must not add an item of another role.
        return [
            item
            for item in self._items
            if item.get("role", "assistant") == "assistant" or item.get("type") == _ADDITIONAL_TOOLS
        ]

    def decisions(self, allowed: Collection[object], *, continued: bool) -> list[JsonObject]:
        """The decisions of a person about calls that the provider asked for.

        If the conversation continues, a call without a decision is refused: the API refuses a request without one.

        Args:
            allowed: The requests whose calls the provider has made since, so a person has allowed them.
            continued: Whether more turns follow.
        """
        found: list[JsonObject] = []
        for block in self._turn.blocks:
            if not isinstance(block, ToolCall) or not self._asks(block):
                continue
            decision = decision_of(block.result)
            if decision is None and block.metadata[ITEM_ID] in allowed:
                decision = Approval(True)
            if decision is None and (continued or block.result is not None):
                decision = Approval(False, _STOPPED)
            if decision is not None:
                reason = {"reason": decision.reason} if decision.reason else {}
                asked = {"approval_request_id": block.metadata[ITEM_ID], "approve": decision.approved}
                found.append({"type": "mcp_approval_response", **asked, **reason})
        return found

    def _asks(self, call: ToolCall) -> bool:
        """Whether the provider asks for the call, in an item that is written."""
        item = self._calls.get(str(call.metadata.get(ITEM_ID)))
        return item is not None and item["type"] == APPROVAL_REQUEST

    def _add(self, item: JsonObject | None) -> None:
        if item is not None:
            self._items.append(item)
            self._message = None

    def _add_call(self, call: ToolCall) -> None:
        own = call.type == "server_tool_call"
        item = None if own and self._without_ids else _server_call(call) if own else written_call(call)
        if item is not None and own:
            self._calls[item["id"]] = item
        elif item is not None and self._without_ids and item["type"] not in _NEEDS_ID:
            item.pop("id", None)
        self._add(item)

    def _add_own(self, block: ContentPart) -> None:
        """Add reasoning, or a result or image of one of the provider's own tools."""
        if block.type == "server_tool_result":
            self._add_result(block)
        elif block.type == "reasoning":
            self._add(_reasoning(block))
        elif block.type == "image":
            self._add(_image(block))

    def _add_part(self, block: ContentPart) -> None:
        options: JsonObject = thaw(block.options)
        item_id = None if self._without_ids else options.get(ITEM_ID)
        text = block.text or ""
        if item_id is None:
            self._add_text(text if block.type != "unsupported" else "", options.get("phase"))
            return
        if self._message != ("id", item_id):
            named = {"type": "message", **_named(options), "role": "assistant", "content": []}
            self._add({"status": "completed", **item_fields(options), **named})
            self._message = ("id", item_id)
        content = self._items[-1]["content"]
        if block.type == "text":
            annotations = [
                thaw(citation.raw) for citation in block.citations if citation.raw.get("type") in ANNOTATIONS
            ]
            logprobs = {"logprobs": options["logprobs"]} if "logprobs" in options else {}
            content.append({"type": "output_text", "text": text, "annotations": annotations, **logprobs})
        elif block.type == "refusal":
            content.append({"type": "refusal", "refusal": text})
        else:
            content.append({name: value for name, value in options.items() if name not in _OF_A_MESSAGE})

    def _add_text(self, text: str, phase: object) -> None:
        if not text:
            return
        if self._message == ("phase", phase):
            self._items[-1]["content"] += text
            return
        self._add({"role": "assistant", "content": text, **({"phase": phase} if phase else {})})
        self._message = ("phase", phase)

    def _add_result(self, block: ContentPart) -> None:
        """Add the result of one of the provider's own tools: to its call's item, or as an item of its own."""
        options: JsonObject = thaw(block.options)
        kind, item_id, output = options.get(PROVIDER_TYPE), options.get(ITEM_ID), options.get("output")
        if not isinstance(kind, str) or not isinstance(item_id, str):
            return
        call = self._calls.get(item_id)
        if call is not None and call["type"] == kind:
            error = options.get(ITEM_ERROR)
            if error is not None:
                call["error"] = error
            if output is not None and output != error:
                call[result_field(kind)] = output
            return
        if not kind.endswith("_output"):  # it belongs in the item of a call that is missing
            return
        item: JsonObject = {"type": kind, "id": item_id}
        call_id = options.get("tool_call_id")
        if isinstance(call_id, str) and call_id not in self._calls and call_id != item_id:
            item["call_id"] = call_id
        if output is None:
            output = "" if kind == "program_output" else []
        own = {**item_fields(options), "status": options.get(ITEM_STATUS, "completed")}
        self._add({**item, result_field(kind): output, **own})


def _is_in_a_message(block: ContentPart) -> bool:
    """Whether an unknown block is a part of a message: then it has the message's id beside its own fields."""
    return block.type == "unsupported" and ITEM_ID in block.options


def _has_reasoning(blocks: Sequence[ContentPart | ToolCall]) -> bool:
    return any(block.type == "reasoning" for block in blocks)


def _reasoning(block: ContentPart) -> JsonObject | None:
    options: JsonObject = thaw(block.options)
    if ITEM_ID not in options and not ("signature" in options and options.get(PROVIDER_TYPE) in _REASONING):
        return None
    item: JsonObject = {"type": "reasoning", **_named(options), "summary": []}
    raw = options.get(PROVIDER_TYPE) == REASONING_TEXT
    texts = _split(block.text or "", options.get(PART_LENGTHS), "" if raw else PARAGRAPH)
    kind = "reasoning_text" if raw else "summary_text"
    item["content" if raw else "summary"] = [{"type": kind, "text": text} for text in texts]
    if "signature" in options:
        item["encrypted_content"] = options["signature"]
    return item | item_fields(options)


def _named(options: JsonObject) -> JsonObject:
    """The id of an item, if it has one that OpenAI knows."""
    return {"id": options[ITEM_ID]} if ITEM_ID in options and not is_made(options[ITEM_ID]) else {}


def _split(text: str, found: Any, between: str) -> list[str]:
    """The parts of a joined text, if their lengths are known and still add up."""
    lengths = (
        [length for length in found if type(length) is int and length > 0] if isinstance(found, list) else []
    )
    if sum(lengths) + len(between) * (len(lengths) - 1) != len(text):
        return [text] if text else []
    parts, at = list[str](), 0
    for length in lengths:
        parts.append(text[at : at + length])
        at += length + len(between)
    return parts


def _image(block: ContentPart) -> JsonObject | None:
    """An image that the provider's own tool made."""
    options: JsonObject = thaw(block.options)
    if options.get(PROVIDER_TYPE) != "image_generation_call" or ITEM_ID not in options:
        return None
    named = {"type": "image_generation_call", "id": options[ITEM_ID]}
    return {**named, "status": "completed", "result": block.text, **item_fields(options, "mime_type")}


def _unknown(block: ContentPart) -> JsonObject | None:
    """An item of an unknown type, such as a compaction.

    A reference to a stored item is left out, since it could be somebody else's. An item without a type is one.
    """
    options: JsonObject = thaw(block.options)
    kind = options.get("type")
    if kind in (None, "item_reference") or "id" not in options:
        return None
    return {**options, "role": "developer"} if kind == _ADDITIONAL_TOOLS else options


# Calls.


def call_type(call: ToolCall) -> str:
    """The type of a call's item. An unreadable call of a special tool can only be written as a function's."""
    kind = str(call.metadata.get(PROVIDER_TYPE, "function_call"))
    kind = "custom_tool_call" if kind == "custom" else kind
    if kind not in CLIENT_CALLS or (call.type == "invalid_tool_call" and kind != "custom_tool_call"):
        return "function_call"
    return kind


def written_call(call: ToolCall) -> JsonObject:
    """The item of a call that the client runs."""
    kind = call_type(call)
    item: JsonObject = {"type": kind, "call_id": short_id(call.call_id)}
    metadata: JsonObject = thaw(call.metadata)
    arguments: Any = thaw(call.arguments)
    if kind == "function_call":
        if call.type == "invalid_tool_call":
            arguments = {"invalid_arguments": arguments or ""}
        item |= {"name": call.name or "invalid", "arguments": text_of({} if arguments is None else arguments)}
    elif kind == "custom_tool_call":
        text = arguments.get("input", "") if isinstance(arguments, dict) else arguments or ""
        item |= {"name": call.name or "invalid", "input": text_of(text)}
    elif kind == "tool_search_call":
        item |= {"execution": "client", "arguments": {} if arguments is None else arguments}
    else:
        item = {**_DEFAULTS.get(kind, {}), **(arguments if isinstance(arguments, dict) else {}), **item}
    if "namespace" in metadata:
        item["namespace"] = metadata["namespace"]
    if kind in _NEEDS_ID and not _named(metadata):
        item = {"id": item["call_id"], **item}
    if ITEM_ID not in metadata:  # its metadata are another provider's
        return item
    own = item_fields(metadata)
    if call.type == "invalid_tool_call":
        own.pop("status", None)
        if call.metadata.get(PROVIDER_TYPE) not in (None, kind):
            return item  # the id belongs to an item of another type
    if kind == "custom_tool_call":
        own.pop("status", None)  # the API sends it but refuses it
    return {**item, **_named(metadata), **own}


def _server_call(call: ToolCall) -> JsonObject | None:
    """A call of a tool that the provider ran."""
    metadata: JsonObject = thaw(call.metadata)
    kind = metadata.get(PROVIDER_TYPE)
    if not isinstance(metadata.get(ITEM_ID), str) or not isinstance(kind, str):
        return None
    item: JsonObject = {"type": kind, "id": metadata[ITEM_ID]}
    if call.call_id not in (None, metadata[ITEM_ID]) and not metadata.get(SYNTHETIC_ID):
        item["call_id"] = call.call_id
    item |= {"status": "completed"} if kind not in _HAS_NO_STATUS else {}
    arguments: Any = thaw(call.arguments)
    if kind in NAMED_CALLS:
        item["name"] = call.name or "invalid"
    if kind == "tool_search_call":
        item["arguments"] = {} if arguments is None else arguments
    elif kind in CALLS and CALLS[kind].payload is None:
        item["arguments"] = text_of({} if arguments is None else arguments)
    elif isinstance(arguments, dict):
        item |= {name: value for name, value in _DEFAULTS.get(kind, {}).items() if name not in arguments}
        item |= {name: value for name, value in arguments.items() if name not in ("type", "id", "call_id")}
    return item | item_fields(metadata)


def _allowed_in(turns: Sequence[Turn | Native]) -> set[str]:
    """The requests for approval whose calls the provider has made."""
    found: list[object] = []
    for turn in turns:
        if isinstance(turn, Mapping):
            found += [turn.get("approval_request_id")] if turn.get("type") == "mcp_call" else []
        else:
            calls = [block.metadata for block in turn.blocks if isinstance(block, ToolCall)]
            found += [
                call.get("approval_request_id") for call in calls if call.get(PROVIDER_TYPE) == "mcp_call"
            ]
    return {name for name in found if isinstance(name, str)}


def _calls_in(turns: Sequence[Turn | Native]) -> dict[str, JsonObject]:
    """The items of calls by `call_id`, also of replies in the provider's own form."""
    found: dict[str, JsonObject] = {}
    for turn in turns:
        if isinstance(turn, Mapping):
            if str(turn.get("type")).endswith("_call") and isinstance(turn.get("call_id"), str):
                found[turn["call_id"]] = thaw(turn)
            continue
        for call in turn.calls:
            found[call.call_id or ""] = written_call(call)
    return found


_DEFAULTS: Mapping[str, JsonObject] = {
    "code_interpreter_call": {"code": None, "outputs": None},
    "computer_call": {"pending_safety_checks": [], "status": "completed"},
    "file_search_call": {"queries": []},
    "local_shell_call": {"status": "completed"},
    "apply_patch_call": {"status": "completed"},
}
"""Fields that the API requires, though they say nothing."""

_ADDITIONAL_TOOLS = "additional_tools"
"""An item with tools that the model has from there on. The API sends it with several roles, and takes it with one.

https://github.com/openai/openai-python/blob/main/src/openai/types/responses/response_input_item.py
"""

_REASONING = (REASONING, REASONING_TEXT)
_NEEDS_ID = frozenset(["computer_call", "local_shell_call"])
_HAS_NO_STATUS = frozenset(["program", APPROVAL_REQUEST, "custom_tool_call"])
_STOPPED = "This call was stopped before it was decided."
_OF_A_MESSAGE = frozenset([ITEM_ID, "phase", "status"])

ANNOTATIONS: Final[Mapping[str, Set[str]]] = {
    "url_citation": frozenset(["url", "title", "start_index", "end_index"]),
    "file_citation": frozenset(["file_id", "filename", "index"]),
    "container_file_citation": frozenset(["container_id", "file_id", "filename", "start_index", "end_index"]),
    "file_path": frozenset(["file_id", "index"]),
}
"""The annotations that the API has, each with the fields that OpenAI's types require of it."""
