"""The types of tool calls of the Responses API: who runs each, which fields of its item hold what, and results as items."""

# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rxdelta.core import ContentPart, InvalidValueError, ToolResult, thaw
from rxdelta.formats.conversation import result_media, result_text
from rxdelta.formats.decoding import Json

# Items are untyped JSON: each value is checked where it is read.


APPROVAL_REQUEST = "mcp_approval_request"
"""The type of a call that the provider makes as soon as a person has allowed it."""


class CallType(NamedTuple):
    """How a call of one type is read and written.

    Attributes:
        for_client: Whether the client has to run a call, by the tools of the request (`()` if unknown) and the item.
        payload: The fields that hold the arguments; `None` if these are the text or object in `arguments`.
        result: The field that holds the results, in the items of a tool that the provider runs.
    """

    for_client: Callable[[Sequence[Any], Json], bool]
    payload: tuple[str, ...] | None = None
    result: str | None = None

    @classmethod
    def of(cls, kind: str, item: Json) -> CallType:
        """The type of a call. The client is not asked to run a call of an unknown type."""
        known = CALLS.get(kind)
        if known is not None:
            return known
        payload = tuple(name for name in ("input", "action", "queries", "code", "query") if name in item)
        return CallType(_never, None if "arguments" in item else payload, "output")


def result_field(kind: str) -> str:
    """The field that holds the results, in an item of this type.

    Example:
        >>> result_field("file_search_call"), result_field("shell_call_output")
        ('results', 'output')
    """
    known = CALLS.get(kind)
    return (known.result if known else None) or _OUTPUTS.get(kind, "output")


def _always(_tools: Sequence[Any], _item: Json, /) -> bool:
    return True


def _never(_tools: Sequence[Any], _item: Json, /) -> bool:
    return False


def _outside_a_container(_tools: Sequence[Any], item: Json) -> bool:
    environment = item.get("environment")
    return not isinstance(environment, Mapping) or environment.get("type") in (None, "local")


def _with_client_execution(_tools: Sequence[Any], item: Json) -> bool:
    return item.get("execution") == "client"


def _of_a_requested_tool(tools: Sequence[Any], item: Json) -> bool:
    """False if the tools are known without this one, and the request has no tool that finds others."""
    name = item.get("name")
    known = list(_tools_in(tools))
    if not known or name is None:
        return True
    return any(tool.get("type") in _FINDS_TOOLS or tool.get("name") == name for tool in known)


def _tools_in(tools: Sequence[Any]) -> Iterator[Json]:
    for tool in tools:
        if isinstance(tool, Mapping):
            yield tool
            inner = tool.get("tools")
            if isinstance(inner, (list, tuple)):
                yield from (found for found in inner if isinstance(found, Mapping))


_FINDS_TOOLS = frozenset(["tool_search", "namespace"])

CALLS: Mapping[str, CallType] = {
    "function_call": CallType(_always),
    "custom_tool_call": CallType(_of_a_requested_tool, ("input",)),
    "local_shell_call": CallType(_always, ("action",)),
    "shell_call": CallType(_outside_a_container, ("action",)),
    "apply_patch_call": CallType(_always, ("operation",)),
    "computer_call": CallType(_always, ("action", "actions")),
    "tool_search_call": CallType(_with_client_execution),
    "mcp_call": CallType(_never, None, "output"),
    APPROVAL_REQUEST: CallType(_never),
    "web_search_call": CallType(_never, ("action",)),
    "file_search_call": CallType(_never, ("queries",), "results"),
    "code_interpreter_call": CallType(_never, ("code",), "outputs"),
    "program": CallType(_never, ("code",)),
}

NAMED_CALLS = frozenset(["function_call", "custom_tool_call", "mcp_call", APPROVAL_REQUEST])
"""The calls whose items have the name of the tool. Any other is named by its type."""

_OUTPUTS: Mapping[str, str] = {"tool_search_output": "tools", "program_output": "result"}


# The content of results is untyped JSON.


def result_item(
    result: ToolResult, call: dict[str, Any], part: Callable[[ContentPart], dict[str, Any]]
) -> dict[str, Any]:
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
    return {"type": _OUTPUT_TYPES.get(kind, f"{kind}_output"), **named, **_write(kind, result, content, part)}


def _write(
    kind: str, result: ToolResult, content: Any, part: Callable[[ContentPart], dict[str, Any]]
) -> dict[str, Any]:
    if kind in _WRITE:
        return _WRITE[kind](result, content)
    if isinstance(content, list) and content and all(_is_part(one) for one in content):
        return {"output": content}  # the tool returned texts, images and files in the provider's form
    media = result_media(result, part)
    return {"output": result_text(result) if media is None else media}


def _is_part(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in ("input_text", "input_image", "input_file")


def _local_shell_output(result: ToolResult, _content: Any) -> dict[str, Any]:
    # The API's types name it `id`, its guide `call_id`.
    return {"id": short_id(result.call_id), "output": result_text(result)}


def _shell_output(result: ToolResult, content: Any) -> dict[str, Any]:
    if isinstance(content, dict) and isinstance(content.get("output"), list):
        return content
    if isinstance(content, list) and all(isinstance(one, dict) and "outcome" in one for one in content):
        return {"output": content}
    text, failed = result_text(result), result.is_error
    outcome = {"type": "exit", "exit_code": 1 if failed else 0}
    return {
        "output": [{"stdout": "" if failed else text, "stderr": text if failed else "", "outcome": outcome}]
    }


def _patch_output(result: ToolResult, _content: Any) -> dict[str, Any]:
    text = result_text(result)
    return {"status": "failed" if result.is_error else "completed", **({"output": text} if text else {})}


def _screenshot(result: ToolResult, content: Any) -> dict[str, Any]:
    if isinstance(content, str) and content.startswith(("data:", "https://", "http://")):
        content = {"image_url": content}
    if isinstance(content, dict) and isinstance(content.get("output"), dict):
        return content
    if isinstance(content, dict) and content.keys() & {"image_url", "file_id"}:
        return {"output": {"type": "computer_screenshot", **content}}
    wanted = "must be a screenshot, its address or {'image_url': …} or {'file_id': …}, as it answers a computer call"
    raise InvalidValueError.of([("result", result, wanted)])


def _found_tools(_result: ToolResult, content: Any) -> dict[str, Any]:
    tools: Any = content.get("tools") if isinstance(content, dict) else content
    return {"execution": "client", "status": "completed", "tools": tools if isinstance(tools, list) else []}


def short_id(call_id: str | None) -> str:
    """The end of an id, which tells it from others. The API takes no more than 64 characters."""
    return (call_id or "call")[-64:]


_WRITE: Mapping[str, Callable[[ToolResult, Any], dict[str, Any]]] = {
    "local_shell_call": _local_shell_output,
    "shell_call": _shell_output,
    "apply_patch_call": _patch_output,
    "computer_call": _screenshot,
    "tool_search_call": _found_tools,
}
CLIENT_CALLS = frozenset([*_WRITE, "function_call", "custom_tool_call"])
"""The calls that a client may have to run."""

_OUTPUT_TYPES: Mapping[str, str] = {"tool_search_call": "tool_search_output"}
