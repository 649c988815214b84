"""The types of tool calls of the Responses API: who runs each, and which fields of its item hold what."""

# Items are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rxdelta.formats.openai_responses.reading import Json

__all__ = ["APPROVAL_REQUEST", "CALLS", "NAMED_CALLS", "CallType", "result_field"]

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
