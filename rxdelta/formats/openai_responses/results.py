"""The results of the client's tools as items of OpenAI Responses."""

# The content of results is untyped JSON.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rxdelta.core import ContentPart, InvalidValueError, ToolResult, thaw
from rxdelta.formats.conversation import result_media, result_text

__all__ = ["CLIENT_CALLS", "result_item", "short_id"]

Json = dict[str, Any]


def result_item(result: ToolResult, call: Json, part: Callable[[ContentPart], Json]) -> Json:
    """The item of a result.

    Args:
        result: The result.
        call: The item of its call.
        part: Writes a text or medium of a text's result.
    """
    kind = str(call.get("type", "function_call"))
    kind = kind if kind in CLIENT_CALLS else "function_call"
    content: Any = thaw(result.content)
    named = {"call_id": short_id(result.call_id)} | ({"caller": call["caller"]} if "caller" in call else {})
    if isinstance(content, dict) and str(content.get("type")).endswith("_output"):
        return {**content, **named}  # the whole item, as the tool made it
    return {"type": _OUTPUTS.get(kind, f"{kind}_output"), **named, **_write(kind, result, content, part)}


def _write(kind: str, result: ToolResult, content: Any, part: Callable[[ContentPart], Json]) -> Json:
    if kind in _WRITE:
        return _WRITE[kind](result, content)
    if isinstance(content, list) and content and all(_is_part(one) for one in content):
        return {"output": content}  # the tool returned texts, images and files in the provider's form
    media = result_media(result, part)
    return {"output": result_text(result) if media is None else media}


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("input_text", "input_image", "input_file")


def _local_shell_output(result: ToolResult, _content: Any) -> Json:
    # The API's types name it `id`, its guide `call_id`.
    return {"id": short_id(result.call_id), "output": result_text(result)}


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


def short_id(call_id: str | None) -> str:
    """The end of an id, which tells it from others. The API takes no more than 64 characters."""
    return (call_id or "call")[-64:]


_WRITE: Mapping[str, Callable[[ToolResult, Any], Json]] = {
    "local_shell_call": _local_shell_output,
    "shell_call": _shell_output,
    "apply_patch_call": _patch_output,
    "computer_call": _screenshot,
    "tool_search_call": _found_tools,
}
CLIENT_CALLS = frozenset([*_WRITE, "function_call", "custom_tool_call"])
"""The calls that a client may have to run."""

_OUTPUTS: Mapping[str, str] = {"tool_search_call": "tool_search_output"}
