"""What a request says of the tools that a model may call, and how most formats say it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from rxdelta.core import InvalidValueError, is_mapping, thaw
from rxdelta.core import freeze as frozen

__all__ = ["Defined", "ToolDefinition", "function_object", "functions", "tool_list"]

Json: TypeAlias = dict[str, Any]

_ANY_OBJECT: Json = {"type": "object", "properties": {}}


def _object_schema(parameters: Any) -> Any:
    return frozen(_ANY_OBJECT if parameters is None else parameters, "parameters")


@attrs.frozen
class ToolDefinition:
    """A tool as the model gets to know it.

    Attributes:
        name: The name by which the model calls it, most providers' `[a-zA-Z0-9_-]{1,64}`.
        description: What it does, and when to call it.
        parameters: The JSON Schema of its arguments, an object; `None` for a tool without any.

    Raises:
        InvalidValueError: There is no name, or the schema isn't that of an object.

    Example:
        >>> import rxdelta as rd
        >>> port = {"type": "object", "properties": {"port": {"type": "string"}}, "required": ["port"]}
        >>> tides = rd.ToolDefinition("tides", "The next high tide of a port.", port)
        >>> request = rd.to_request("When is high tide in Brest?", "anthropic-messages", tools=[tides])
        >>> request["tools"][0]["name"], request["tools"][0]["input_schema"]["required"]
        ('tides', ['port'])
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = attrs.field(default=None, converter=_object_schema)

    def __attrs_post_init__(self) -> None:
        wrong: list[tuple[str, object, str]] = []
        name: object = self.name
        if not isinstance(name, str) or not name:
            wrong.append(("name", name, "must be a string that says something"))
        if not isinstance(self.description, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            wrong.append(("description", self.description, "must be a string"))
        if not is_mapping(self.parameters) or self.parameters.get("type") != "object":
            wrong.append(("parameters", self.parameters, 'must be a JSON Schema of type "object"'))
        if wrong:
            raise InvalidValueError.of(wrong)


Defined: TypeAlias = ToolDefinition | Mapping[str, Any]
"""A tool of a request: a definition, or a tool in the provider's own form, which stays as it is."""


def function_object(tool: ToolDefinition, schema: str = "parameters") -> Json:
    """Name, description and schema, which has this name. Some APIs refuse an empty description."""
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, schema: thaw(tool.parameters)}


def tool_list(tools: Sequence[Defined], write: Callable[[ToolDefinition], Json]) -> list[Json]:
    """The tools in their order, those in the provider's own form as they are."""
    return [write(tool) if isinstance(tool, ToolDefinition) else thaw(tool) for tool in tools]


def functions(tools: Sequence[Defined]) -> Json:
    """The tools as OpenAI's chat completions have them, and the many that follow them.

    Example:
        >>> functions([ToolDefinition("now")])["tools"]
        [{'type': 'function', 'function': {'name': 'now', 'parameters': {'type': 'object', 'properties': {}}}}]
    """
    return {"tools": tool_list(tools, lambda tool: {"type": "function", "function": function_object(tool)})}
