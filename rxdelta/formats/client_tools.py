"""The tools in the body of a client's request → definitions, by which a model of any provider calls them.

    Anthropic   {name, description, input_schema}                     those with another type are Anthropic's own
    chat        {type: function, function} | {type: custom, custom}
    Responses   {type: function, …} | {type: custom, …} | {type: namespace, tools}       all others are OpenAI's own

Codex sends some of its tools as an item of `input`, `additional_tools`. What only OpenAI's models can call is left out,
even where the client runs it, as its `tool_search` and `local_shell`: the calls have types of their own.
"""

# Tools are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from rxdelta.core import InvalidValueError, is_list, is_mapping
from rxdelta.formats.json_values import word
from rxdelta.formats.said import body_of, items_of
from rxdelta.formats.tool_definitions import ToolDefinition

__all__ = [
    "custom_tools_from_openai_responses",
    "tools_from_anthropic_messages",
    "tools_from_openai_chat",
    "tools_from_openai_responses",
]

Json: TypeAlias = Mapping[str, Any]


def tools_from_openai_responses(body: Mapping[str, Any]) -> list[ToolDefinition]:
    """The tools in the body of a request to OpenAI's Responses API, for the `tools` of `to_request`.

    These are the client's functions, those in a namespace too, and its custom tools: as functions with one text, `input`,
    whose description tells the grammar. Left out are the tools that OpenAI runs, such as `web_search`, and those that only
    its models can call, such as `tool_search`. Of two tools with one name the later counts. A request that goes on to
    OpenAI can have the tools as they came: `tools=body["tools"]`.

    Args:
        body: The body of the client's request, as object.

    Raises:
        InvalidValueError: A tool has no name, or its parameters are no schema of an object. The error names the path.

    Example:
        >>> import rxdelta as rd
        >>> patch = {"type": "custom", "name": "apply_patch", "description": "Changes files."}
        >>> body = {"model": "m", "input": "Hi", "tools": [patch, {"type": "web_search"}]}
        >>> (tool,) = rd.requests.tools_from_openai_responses(body)
        >>> tool.name, [*tool.parameters["properties"]]
        ('apply_patch', ['input'])
    """
    return _definitions(_of_responses(body))


def custom_tools_from_openai_responses(body: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The tools in the body of a request to OpenAI's Responses API that aren't plain functions, for `to_openai_responses`.

    Another provider's model calls all tools as functions, by their names alone. The client wants the calls of its custom tools
    as such, and finds a tool in a namespace by both names:
    `to_openai_responses(custom=custom_tools_from_openai_responses(body))`.

    Returns:
        By the tool's name, its `type`, `custom` or `function`, and its `namespace` if it has one.

    Raises:
        InvalidValueError: The tools are no list of objects.

    Example:
        >>> import rxdelta as rd
        >>> agents = {"type": "namespace", "name": "agents", "tools": [{"type": "function", "name": "spawn"}]}
        >>> body = {"model": "m", "input": "Hi", "tools": [{"type": "custom", "name": "apply_patch"}, agents]}
        >>> rd.requests.custom_tools_from_openai_responses(body)
        {'apply_patch': {'type': 'custom'}, 'spawn': {'type': 'function', 'namespace': 'agents'}}
    """
    found = {word(tool.fields.get("name")): tool for tool in _of_responses(body)}
    return {
        name: {"type": _CUSTOM if tool.is_custom else _FUNCTION}
        | ({"namespace": tool.namespace} if tool.namespace else {})
        for name, tool in found.items()
        if name is not None and (tool.is_custom or tool.namespace)
    }


def tools_from_openai_chat(body: Mapping[str, Any]) -> list[ToolDefinition]:
    """The tools in the body of a request for a chat completion, for the `tools` of `to_request`.

    These are functions, and custom tools: as functions with one text, `input`, whose description tells the grammar. Others
    are left out. Of two tools with one name the later counts.

    Args:
        body: The body of the client's request, as object.

    Raises:
        InvalidValueError: A tool has no name, or its parameters are no schema of an object. The error names the path.

    Example:
        >>> import rxdelta as rd
        >>> tool = {"type": "function", "function": {"name": "now", "description": "The time."}}
        >>> rd.requests.tools_from_openai_chat({"messages": [], "tools": [tool]})[0].description
        'The time.'
    """
    return _definitions(
        _Tool(tool.get(kind), f"{path}.{kind}", kind == _CUSTOM)
        for tool, path in _tools_in(body)
        if (kind := tool.get("type")) in (_FUNCTION, _CUSTOM)
    )


def tools_from_anthropic_messages(body: Mapping[str, Any]) -> list[ToolDefinition]:
    """The tools in the body of a request to Anthropic's Messages API, for the `tools` of `to_request`.

    These are the client's own. Left out are those whose type is Anthropic's, such as `web_search_20250305`: it runs them,
    or only its models can call them. Of two tools with one name the later counts. A request that goes on to Anthropic can
    have the tools as they came: `tools=body["tools"]`.

    Args:
        body: The body of the client's request, as object.

    Raises:
        InvalidValueError: A tool has no name, or its `input_schema` is no schema of an object. The error names the path.

    Example:
        >>> import rxdelta as rd
        >>> tool = {"name": "now", "description": "The time.", "input_schema": {"type": "object"}}
        >>> rd.requests.tools_from_anthropic_messages({"messages": [], "tools": [tool]})[0].name
        'now'
    """
    return _definitions(
        _Tool(tool, path, is_custom=False, schema="input_schema")
        for tool, path in _tools_in(body)
        if tool.get("type") in (None, _CUSTOM)
    )


class _Tool(NamedTuple):
    """A tool in the form of its API."""

    fields: Any
    path: str
    is_custom: bool
    schema: str = "parameters"
    namespace: str | None = None


def _definitions(tools: Iterable[_Tool]) -> list[ToolDefinition]:
    return [*{made.name: made for made in map(_definition, tools)}.values()]


def _definition(tool: _Tool) -> ToolDefinition:
    fields, path = tool.fields, tool.path
    if not is_mapping(fields):
        raise InvalidValueError.of([(path, fields, "must be an object with the tool's name")])
    name, description, schema = word(fields.get("name")), fields.get("description"), fields.get(tool.schema)
    if name is None:
        wanted = "must be a string that says something"
        raise InvalidValueError.of([(f"{path}.name", fields.get("name"), wanted)])
    if not isinstance(description, (str, type(None))):
        raise InvalidValueError.of([(f"{path}.description", description, "must be a string")])
    if tool.is_custom:
        return ToolDefinition(name, _described(description or "", fields.get("format")), _TEXT)
    if not (schema is None or (is_mapping(schema) and (not schema or schema.get("type") == "object"))):
        wanted = 'must be a JSON Schema of type "object"'
        raise InvalidValueError.of([(f"{path}.{tool.schema}", schema, wanted)])
    return ToolDefinition(name, description or "", schema or None)


def _described(description: str, form: Any) -> str:
    """The description of a custom tool, with the grammar of its text, which other providers' models aren't held to."""
    form = form.get("grammar", form) if is_mapping(form) else {}
    form = form if is_mapping(form) else {}
    syntax, grammar = word(form.get("syntax")), word(form.get("definition"))
    rule = f"`input` must be a text of this grammar{f' ({syntax})' if syntax else ''}:\n{grammar}"
    return "\n\n".join(filter(None, [description, rule if grammar else ""]))


def _of_responses(body: Any) -> Iterator[_Tool]:
    given = body_of(body, _BODY)
    yield from _flat(_tools_in(given))
    items = given.get("input")
    for place, item in enumerate(items if is_list(items) else ()):
        if is_mapping(item) and item.get("type") == "additional_tools":
            yield from _flat(_tools_in(item, f"body.input[{place}]"))


def _flat(tools: Iterable[tuple[Json, str]]) -> Iterator[_Tool]:
    for tool, path in tools:
        kind = tool.get("type")
        if kind in (_FUNCTION, _CUSTOM):
            yield _Tool(tool, path, kind == _CUSTOM)
        elif kind == "namespace":
            name = word(tool.get("name"))
            namespace = None if name == _NO_NAMESPACE else name
            for inner, at in _tools_in(tool, path):
                if (kind := inner.get("type")) in (_FUNCTION, _CUSTOM):
                    yield _Tool(inner, at, kind == _CUSTOM, namespace=namespace)


def _tools_in(body: Any, path: str = "body") -> list[tuple[Json, str]]:
    found = body_of(body, _BODY).get("tools")
    return [] if found is None else items_of(found, f"{path}.tools", "a tool")


_BODY: Final = "the body of a request"
_FUNCTION: Final = "function"
_CUSTOM: Final = "custom"
_NO_NAMESPACE: Final = "functions"
"""The namespace of tools that clients find by their own names alone."""
_TEXT: Final[Json] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
"""The arguments of a function that stands for a custom tool."""
