"""A conversation as `input` of OpenAI Responses.

    input     = item*                            the instructions are items too, of role system, where they stood
    assistant = (reasoning | message | call | the provider's own item)*
    result    = <the call's type>_output         by call_id, behind the items of its reply

A message is what was said under one id: its texts and refusals are one item. A call and the results that came in
the same item are one again.

Reasoning has to stand directly before the item that it led to, so the items keep their order, and one that nothing
follows (as it happens where the reply was cut off) is left out: the API refuses it. The reverse holds too: an item
whose id is known is refused without its reasoning. So where reasoning is left out, ids are as well, and with them
the provider's own calls, which are nothing without.

What has no id of this provider came from another one: its texts go as plain messages, its calls as functions; its
reasoning and its own tools' calls are left out. Sound and pictures of a model's have no place, unless this
provider's own tool made the picture.
"""

# What calls and results hold is JSON that nobody has typed.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rxdelta.core import ContentPart, InvalidValueError, ToolCall, ToolResult, thaw
from rxdelta.formats.conversation import Native, Turn, refuse, result_text, text_of
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, SYNTHETIC_ID

__all__ = ["request"]

Json = dict[str, Any]
_FORMAT = "openai-responses"


def request(turns: Sequence[Turn | Native]) -> Json:
    calls = _calls_in(turns)
    items: list[Json] = []
    for turn in turns:
        if isinstance(turn, Mapping):
            items.append(thaw(turn))
            continue
        if turn.role == "assistant":
            items += _Reply(turn).items()
        elif turn.role != "tool":
            items.append({"role": turn.role, "content": _content(turn)})
        items += [_result(result, calls.get(result.call_id or "", {})) for result in turn.results]
    return {"input": items}


# What a person says.


def _content(turn: Turn) -> str | list[Json]:
    if all(part.type == "text" for part in turn.parts):
        return turn.text
    return [_asked(part, turn.role) for part in turn.parts]


def _asked(part: ContentPart, role: str) -> Json:
    options: Json = thaw(part.options)
    url = options.get("url") or (part.text if part.type.endswith("_url") else None)
    kind = part.type.removesuffix("_url")
    if kind == "text":
        return {"type": "input_text", "text": part.text or ""}
    if kind == "unsupported":
        return options
    if kind == "image" and (url or part.text or "file_id" in options):
        source: Json = {"image_url": url or _data_url(part, "image/png")}
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


def _data_url(part: ContentPart, usual: str) -> str:
    return f"data:{part.options.get('mime_type') or usual};base64,{part.text}"


# What a model said.


class _Reply:
    """The items of one reply. Those that are still growing are the newest message, and calls until their results."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._items: list[Json] = []
        self._message: object = None  # whose item is the newest: an id, or the phase of what has none
        self._calls: dict[str, Json] = {}  # by the id of the item
        before: Sequence[Any] = turn.message.blocks if turn.message is not None else ()
        self._bare = not _has_reasoning(turn.blocks) and _has_reasoning(before)

    def items(self) -> list[Json]:
        for block in self._turn.blocks:
            if isinstance(block, ToolCall):
                self._call(block)
            elif block.type in ("text", "refusal") or _is_in_a_message(block):
                self._say(block)
            elif block.type == "unsupported":
                self._add(_unknown(block))
            elif not self._bare:
                self._add_own(block)
        while self._items and self._items[-1].get("type") == "reasoning":
            self._items.pop()
        # Fields that go back as they came may have gone through a browser: nobody else speaks in here.
        return [item for item in self._items if item.get("role", "assistant") == "assistant"]

    def _add(self, item: Json | None) -> None:
        if item is not None:
            self._items.append(item)
            self._message = None

    def _call(self, call: ToolCall) -> None:
        own = call.type == "server_tool_call"
        item = None if own and self._bare else _server_call(call) if own else _call(call)
        if item is not None and own:
            self._calls[item["id"]] = item
        elif item is not None and self._bare and item["type"] not in _NEEDS_ID:
            item.pop("id", None)
        self._add(item)

    def _add_own(self, block: ContentPart) -> None:
        """Reasoning, and what the provider's own tools made."""
        if block.type == "server_tool_result":
            self._give_back(block)
        elif block.type == "reasoning":
            self._add(_reasoning(block))
        elif block.type == "image":
            self._add(_picture(block))

    def _say(self, block: ContentPart) -> None:
        options: Json = thaw(block.options)
        item_id = None if self._bare else options.get(ITEM_ID)
        text = block.text or ""
        if item_id is None:
            self._say_plainly(text if block.type != "unsupported" else "", options.get("phase"))
            return
        if self._message != ("id", item_id):
            named = {"type": "message", "id": item_id, "role": "assistant", "content": []}
            self._add({"status": "completed", **_own(options), **named})
            self._message = ("id", item_id)
        content = self._items[-1]["content"]
        if block.type == "text":
            annotations = [thaw(citation.raw) for citation in block.citations if "type" in citation.raw]
            logprobs = {"logprobs": options["logprobs"]} if "logprobs" in options else {}
            content.append({"type": "output_text", "text": text, "annotations": annotations, **logprobs})
        elif block.type == "refusal":
            content.append({"type": "refusal", "refusal": text})
        else:
            content.append({name: value for name, value in options.items() if name not in _OF_A_MESSAGE})

    def _say_plainly(self, text: str, phase: object) -> None:
        if not text:
            return
        if self._message == ("phase", phase):
            self._items[-1]["content"] += text
            return
        self._add({"role": "assistant", "content": text, **({"phase": phase} if phase else {})})
        self._message = ("phase", phase)

    def _give_back(self, block: ContentPart) -> None:
        """What the provider's own tool gave back: in its call's item, or as an item of its own."""
        options: Json = thaw(block.options)
        kind, item_id, output = options.get(PROVIDER_TYPE), options.get(ITEM_ID), options.get("output")
        if not isinstance(kind, str) or not isinstance(item_id, str):
            return
        call = self._calls.get(item_id)
        if call is not None and call["type"] == kind:
            error = options.get("item_error")
            if error is not None:
                call["error"] = error
            if output is not None and output != error:
                call[_RESULTS.get(kind, "output")] = output
            return
        if not kind.endswith("_output"):  # part of a call that isn't there
            return
        item: Json = {"type": kind, "id": item_id}
        call_id = options.get("tool_call_id")
        if isinstance(call_id, str) and call_id not in self._calls and call_id != item_id:
            item["call_id"] = call_id
        if output is None:
            output = "" if kind == "program_output" else []
        own = {**_own(options), "status": options.get("item_status", "completed")}
        self._add({**item, _RESULTS.get(kind, "output"): output, **own})


def _is_in_a_message(block: ContentPart) -> bool:
    """A part of a message of a kind that isn't known has the message's id beside its own fields."""
    return block.type == "unsupported" and ITEM_ID in block.options


def _has_reasoning(blocks: Sequence[ContentPart | ToolCall]) -> bool:
    return any(block.type == "reasoning" for block in blocks)


def _reasoning(block: ContentPart) -> Json | None:
    options: Json = thaw(block.options)
    if ITEM_ID not in options:
        return None
    item: Json = {"type": "reasoning", "id": options[ITEM_ID], "summary": []}
    raw = options.get(PROVIDER_TYPE) == "reasoning_text"
    texts = _split(block.text or "", options.get("part_lengths"), "" if raw else "\n\n")
    kind = "reasoning_text" if raw else "summary_text"
    item["content" if raw else "summary"] = [{"type": kind, "text": text} for text in texts]
    if "signature" in options:
        item["encrypted_content"] = options["signature"]
    return item | _own(options)


def _split(text: str, found: Any, between: str) -> list[str]:
    """The parts that were joined, if their lengths are known and still right."""
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


def _picture(block: ContentPart) -> Json | None:
    """What the provider's own tool drew."""
    options: Json = thaw(block.options)
    if options.get(PROVIDER_TYPE) != "image_generation_call" or ITEM_ID not in options:
        return None
    named = {"type": "image_generation_call", "id": options[ITEM_ID]}
    return {**named, "status": "completed", "result": block.text, **_own(options, "mime_type")}


def _unknown(block: ContentPart) -> Json | None:
    """An item of a kind that isn't known, or that is nothing but the provider's own, such as a compaction.

    None that refers to what the provider has stored, as one of no type does: that might be somebody else's.
    """
    options: Json = thaw(block.options)
    known = options.get("type") not in (None, "item_reference") and "id" in options
    return options if known else None


# Calls.


def _kind(call: ToolCall) -> str:
    """The type of the item. A special tool's call that could not be read has no place but as a function's."""
    kind = str(call.metadata.get(PROVIDER_TYPE, "function_call"))
    kind = "custom_tool_call" if kind == "custom" else kind
    if kind not in _CLIENTS or (call.type == "invalid_tool_call" and kind != "custom_tool_call"):
        return "function_call"
    return kind


def _call(call: ToolCall) -> Json:
    kind = _kind(call)
    item: Json = {"type": kind, "call_id": _id(call.call_id)}
    metadata: Json = thaw(call.metadata)
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
    if ITEM_ID not in metadata:  # what else there is, is another provider's
        return {"id": item["call_id"], **item} if kind in _NEEDS_ID else item
    own = _own(metadata)
    if call.type == "invalid_tool_call":
        own.pop("status", None)
        if call.metadata.get(PROVIDER_TYPE) not in (None, kind):
            return item  # its id is that of an item of another type
    if kind == "custom_tool_call":
        own.pop("status", None)  # is told, but not taken
    return {**item, "id": metadata[ITEM_ID], **own}


def _server_call(call: ToolCall) -> Json | None:
    """A call of a tool that the provider ran."""
    metadata: Json = thaw(call.metadata)
    kind = metadata.get(PROVIDER_TYPE)
    if not isinstance(metadata.get(ITEM_ID), str) or not isinstance(kind, str):
        return None
    item: Json = {"type": kind, "id": metadata[ITEM_ID]}
    if call.call_id not in (None, metadata[ITEM_ID]) and not metadata.get(SYNTHETIC_ID):
        item["call_id"] = call.call_id
    item |= {"status": "completed"} if kind not in _HAS_NO_STATUS else {}
    arguments: Any = thaw(call.arguments)
    if kind in _NAMED:
        item["name"] = call.name or "invalid"
    if kind in _GIVES_JSON:
        item["arguments"] = text_of({} if arguments is None else arguments)
    elif kind == "tool_search_call":
        item["arguments"] = {} if arguments is None else arguments
    elif isinstance(arguments, dict):
        item |= {name: value for name, value in _DEFAULTS.get(kind, {}).items() if name not in arguments}
        item |= {name: value for name, value in arguments.items() if name not in ("type", "id", "call_id")}
    return item | _own(metadata)


def _own(options: Json, *but: str) -> Json:
    """What the item said besides, under its own names again."""
    return {
        name.removeprefix("item_"): value
        for name, value in options.items()
        if name not in _OURS and name not in but and name not in _NEVER_OWN
    }


# Results.


def _calls_in(turns: Sequence[Turn | Native]) -> dict[str, Json]:
    """The calls' items by the id that results name, also of replies in the provider's own form."""
    found: dict[str, Json] = {}
    for turn in turns:
        if isinstance(turn, Mapping):
            if str(turn.get("type")).endswith("_call") and isinstance(turn.get("call_id"), str):
                found[turn["call_id"]] = thaw(turn)
            continue
        for call in turn.calls:
            found[call.call_id or ""] = _call(call)
    return found


def _result(result: ToolResult, call: Json) -> Json:
    kind = str(call.get("type", "function_call"))
    kind = kind if kind in _CLIENTS else "function_call"
    content: Any = thaw(result.content)
    named = {"call_id": _id(result.call_id)} | ({"caller": call["caller"]} if "caller" in call else {})
    if isinstance(content, dict) and str(content.get("type")).endswith("_output"):
        return {**content, **named}  # the whole item, as the tool made it
    return {"type": _OUTPUTS.get(kind, f"{kind}_output"), **named, **_WRITE[kind](result, content)}


def _text_output(result: ToolResult, content: Any) -> Json:
    """A text; or texts, images and files, if the tool gave these in the provider's words."""
    if isinstance(content, list) and content and all(_is_part(part) for part in content):
        return {"output": content}
    return {"output": result_text(result)}


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("input_text", "input_image", "input_file")


def _local_shell_output(result: ToolResult, _content: Any) -> Json:
    # Its types call it `id`, the guide `call_id`.
    return {"id": _id(result.call_id), "output": result_text(result)}


def _shell_output(result: ToolResult, content: Any) -> Json:
    if isinstance(content, dict) and isinstance(content.get("output"), list):
        return content
    if isinstance(content, list) and all(isinstance(one, dict) and "outcome" in one for one in content):
        return {"output": content}
    text, failed = result_text(result), result.is_error
    outcome = {"type": "exit", "exit_code": 1 if failed else 0}
    return {
        "output": [{"stdout": "" if failed else text, "stderr": text if failed else "", "outcome": outcome}]
    }


def _patch_output(result: ToolResult, _content: Any) -> Json:
    text = result_text(result)
    return {"status": "failed" if result.is_error else "completed", **({"output": text} if text else {})}


def _screenshot(result: ToolResult, content: Any) -> Json:
    if isinstance(content, str) and content.startswith(("data:", "https://", "http://")):
        content = {"image_url": content}
    if isinstance(content, dict) and isinstance(content.get("output"), dict):
        return content
    if isinstance(content, dict) and content.keys() & {"image_url", "file_id"}:
        return {"output": {"type": "computer_screenshot", **content}}
    wanted = "must be a screenshot, its address or {'image_url': …} or {'file_id': …}, as it answers a computer call"
    raise InvalidValueError.of([("result", result, wanted)])


def _found_tools(_result: ToolResult, content: Any) -> Json:
    tools: Any = content.get("tools") if isinstance(content, dict) else content
    return {"execution": "client", "status": "completed", "tools": tools if isinstance(tools, list) else []}


def _id(call_id: str | None) -> str:
    """The API takes no more than 64 characters. What tells two ids apart stands at their end."""
    return (call_id or "call")[-64:]


_WRITE: Mapping[str, Callable[[ToolResult, Any], Json]] = {
    "function_call": _text_output,
    "custom_tool_call": _text_output,
    "local_shell_call": _local_shell_output,
    "shell_call": _shell_output,
    "apply_patch_call": _patch_output,
    "computer_call": _screenshot,
    "tool_search_call": _found_tools,
}
"""The calls that a client may have to run, and how their results are written."""
_CLIENTS = frozenset(_WRITE)
_OUTPUTS: Mapping[str, str] = {"tool_search_call": "tool_search_output"}

_RESULTS: Mapping[str, str] = {
    "code_interpreter_call": "outputs",
    "file_search_call": "results",
    "tool_search_output": "tools",
    "program_output": "result",
}
"""Where an item has its results, if not as `output`."""

_DEFAULTS: Mapping[str, Json] = {
    "code_interpreter_call": {"code": None, "outputs": None},
    "computer_call": {"pending_safety_checks": [], "status": "completed"},
    "file_search_call": {"queries": []},
    "local_shell_call": {"status": "completed"},
    "apply_patch_call": {"status": "completed"},
}
"""What has to be there, though it says nothing."""

_NEEDS_ID = frozenset(["computer_call", "local_shell_call"])
_NAMED = frozenset(["mcp_call", "mcp_approval_request", "custom_tool_call", "function_call"])
_GIVES_JSON = frozenset(["mcp_call", "mcp_approval_request", "function_call"])
_HAS_NO_STATUS = frozenset(["program", "mcp_approval_request", "custom_tool_call"])
_OF_A_MESSAGE = frozenset([ITEM_ID, "phase", "status"])

# What the library says of a block, and what of it is written by hand.
_OURS = frozenset([
    PROVIDER_TYPE, ITEM_ID, SYNTHETIC_ID, "execution_status", "signature", "part_lengths",
    "tool_call_id", "output", "item_status", "logprobs",
])  # fmt: skip
_NEVER_OWN = frozenset(["type", "item_type", "role", "item_role", "id", "call_id", "item_call_id"])
"""What says which item it is, and whose."""
