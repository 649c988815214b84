"""A conversation as `input`, a list of steps, and `system_instruction` of Google's Interactions API.

    input     = step*
    user      = user_input: (text | image | audio | video | document)*
    assistant = (thought | model_output | function_call | <a tool>_call | <a tool>_result)*
    result    = function_result             by call_id

Consecutive contents of a model are one step, and so are a thought's texts and images. All steps go back in their
order, thoughts above all: their signatures restore the model's train of thought. Every call has an id here, so a
made-up id goes back with its result. This is for requests with the whole conversation (`store=False`); with
`previous_interaction_id` the provider has it already.

A step or content of an unknown type is left out, since a block does not show which of the two it was. Reasoning
with another provider's notes is left out too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rxdelta.core import ContentPart, ToolCall, ToolResult, thaw
from rxdelta.formats.conversation import (
    Defined,
    Native,
    Turn,
    arguments_of,
    function_object,
    refuse,
    result_media,
    result_text,
    tool_list,
)
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.gemini_interactions.tables import MEDIA, default_tool_name
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, REDACTED, SENT_AS, SYNTHETIC_ID, THOUGHT

_FORMAT = "gemini-interactions"


def request(turns: Sequence[Turn | Native]) -> JsonObject:
    names = {call.call_id: call.name for turn in turns if isinstance(turn, Turn) for call in turn.calls}
    system: list[str] = []
    steps: list[JsonObject] = []
    for turn in turns:
        if isinstance(turn, Mapping):
            steps.append(thaw(turn))
            continue
        if turn.role == "system":
            system += filter(None, map(_instruction, turn.parts))
        elif turn.role == "user":
            steps.append({"type": "user_input", "content": [_input(part) for part in turn.parts]})
        elif turn.role == "assistant":
            steps += _Reply().steps(turn)
        steps += [_result(result, names) for result in turn.results]
    written: JsonObject = {"input": steps}
    return {"system_instruction": "\n\n".join(system), **written} if system else written


def tools(definitions: Sequence[Defined]) -> JsonObject:
    return {"tools": tool_list(definitions, lambda tool: {"type": "function", **function_object(tool)})}


# System and user.


def _instruction(part: ContentPart) -> str:
    if part.type != "text":
        raise refuse(_FORMAT, part, "system")
    return part.text or ""


def _input(part: ContentPart) -> JsonObject:
    if part.type == "text":
        return {"type": "text", "text": part.text or ""}
    if part.type == "unsupported":
        whole: JsonObject = thaw(part.options)
        return whole
    written = _medium(part)
    if written is None:
        raise refuse(_FORMAT, part, "user")
    return written


def _medium(part: ContentPart) -> JsonObject | None:
    """A medium: its data or its address. `None` if the part is none or has neither."""
    kind, is_url = part.type.removesuffix("_url"), part.type.endswith("_url")
    if kind not in _WIRE_TYPES:
        return None
    options: JsonObject = thaw(part.options)
    mime_type, address = options.get("mime_type"), options.get("url") or (part.text if is_url else None)
    written: JsonObject = {"type": _WIRE_TYPES[kind]}
    if part.text and not is_url:
        written |= {"data": part.text, "mime_type": mime_type or _MIME_TYPES[kind]}
    elif address:
        head, comma, data = str(address).partition(";base64,")
        if comma and head.startswith("data:"):
            written |= {"data": data, "mime_type": head[5:] or _MIME_TYPES[kind]}
        else:
            written |= {"uri": address, **({"mime_type": mime_type} if mime_type else {})}
    else:
        return None
    return {**written, **{name: options[name] for name in _OF_A_MEDIUM if name in options}}


# Assistant.


class _Reply:
    """The steps of one reply. The newest may continue: an output with more contents, a thought after an image."""

    def __init__(self) -> None:
        self._steps: list[JsonObject] = []
        self._calls: set[str | None] = set()  # of the provider's own tools
        self._ends_with_image = False  # the newest step is a thought, and its last content an image

    def steps(self, turn: Turn) -> list[JsonObject]:
        for block in turn.blocks:
            if isinstance(block, ToolCall):
                self._add_call(block)
            elif block.type == "reasoning":
                self._add_reasoning(block)
            elif block.type == "server_tool_result":
                self._add_result(block)
            elif block.type in ("text", "refusal"):
                if block.text:
                    self._add_content(_text(block))
            elif block.type != "unsupported":
                self._add_medium(block)
            elif block.options.get("type") == "model_output":  # the error that ended one
                self._steps.append(thaw(block.options))
        return self._steps

    def _add_content(self, content: JsonObject) -> None:
        if not self._steps or self._steps[-1].keys() != {"type", "content"}:
            self._steps.append({"type": "model_output", "content": []})
        self._steps[-1]["content"].append(content)

    def _add_medium(self, block: ContentPart) -> None:
        content = _medium(block)
        if content is None:
            return
        if block.options.get(THOUGHT) is not True:
            self._add_content(content)
        elif self._steps and self._steps[-1]["type"] == "thought":
            self._steps[-1].setdefault("summary", []).append(content)
            self._ends_with_image = True

    def _add_reasoning(self, block: ContentPart) -> None:
        if _OTHER_PROVIDERS & block.options.keys():
            return
        if not (self._ends_with_image and self._steps[-1]["type"] == "thought"):
            self._steps.append({"type": "thought"})
        self._ends_with_image = False
        step = self._steps[-1]
        if block.text:
            step.setdefault("summary", []).append({"type": "text", "text": block.text})
        if "signature" in block.options:
            step["signature"] = block.options["signature"]

    def _add_call(self, call: ToolCall) -> None:
        metadata: JsonObject = thaw(call.metadata)
        signed = {"signature": metadata["signature"]} if "signature" in metadata else {}
        step: JsonObject = {
            "type": "function_call",
            "id": call.call_id or "call",
            "name": call.name or "invalid",
        }
        if call.type != "server_tool_call":
            self._steps.append({**step, "arguments": arguments_of(call), **signed})
            return
        kind = metadata.get(PROVIDER_TYPE)
        if not isinstance(kind, str) or not kind.endswith("_call") or ITEM_ID in metadata:
            return
        step["type"] = kind
        if call.name == default_tool_name(kind):
            del step["name"]  # the step had none
        arguments = arguments_of(call)
        if arguments or kind != "processing_call":
            step["arguments"] = arguments
        self._steps.append(step | {name: value for name, value in metadata.items() if name not in _READ})
        self._calls.add(call.call_id)

    def _add_result(self, block: ContentPart) -> None:
        """Add the result of one of the provider's own tools. The API refuses it without its call."""
        options: JsonObject = thaw(block.options)
        call_id, status = options.get("tool_call_id"), options.get("status")
        if not isinstance(call_id, str) or call_id not in self._calls:
            return
        step: JsonObject = {"type": options.get(PROVIDER_TYPE), "call_id": call_id}
        if options.get("output") is not None:
            step["result"] = options["output"]
        if status in ("error", "success"):
            step["is_error"] = status == "error"
        self._steps.append(step | {name: value for name, value in options.items() if name not in _READ})


def _text(block: ContentPart) -> JsonObject:
    written: JsonObject = {"type": "text", "text": block.text}
    found = [thaw(citation.raw) for citation in block.citations if citation.raw.get("type") in _ANNOTATIONS]
    return {**written, "annotations": found} if found and ITEM_ID not in block.options else written


# Results.


def _result(result: ToolResult, names: Mapping[str | None, str | None]) -> JsonObject:
    content: Any = thaw(result.content)
    if not isinstance(content, dict) and not _is_content(content):
        media = result_media(result, _input)
        content = result_text(result) if media is None else media
    name = names.get(result.call_id)
    return {
        "type": "function_result",
        "call_id": result.call_id or "call",
        **({"name": name} if name else {}),
        "result": content,
        **({"is_error": True} if result.is_error else {}),
    }


def _is_content(found: Any) -> bool:
    """Whether a tool returned texts, images and so on in the provider's form."""
    return isinstance(found, list) and all(
        isinstance(one, dict)
        and one.get("type") in ("text", *MEDIA)  # pyright: ignore[reportUnknownMemberType]
        and _ANOTHERS_MEDIA.isdisjoint(one)  # pyright: ignore[reportUnknownArgumentType]
        for one in found  # pyright: ignore[reportUnknownVariableType]
    )


_ANOTHERS_MEDIA = frozenset(["source", "mimeType"])
"""Fields that the media of Anthropic's and MCP's results have, whose types have the same names."""

_WIRE_TYPES = {block_type: kind for kind, block_type in MEDIA.items()}

_MIME_TYPES: Mapping[str, str] = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "file": "application/pdf",
}
"""The kind that is assumed of a medium without a type."""

_OF_A_MEDIUM = ("resolution", "processing", "channels", "sample_rate", "name")
_ANNOTATIONS = ("url_citation", "file_citation", "place_citation")
_READ = frozenset([
    PROVIDER_TYPE, SYNTHETIC_ID, "execution_status", "tool_call_id", "output", "status",
])  # fmt: skip
_OTHER_PROVIDERS = frozenset([ITEM_ID, SENT_AS, REDACTED, "data"])
"""Notes that only other providers' reasoning has."""
