"""The tools of a request: of functions, classes and definitions, as definitions."""

# A tool may be anything that a program passes: each is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeAlias

import attrs

from rxdelta.core import InvalidValueError, described, is_mapping, quote
from rxdelta.formats.tool_definitions import Defined, ToolDefinition

__all__ = ["Tools", "definitions"]

Tools: TypeAlias = (
    Mapping[str, Callable[..., object] | ToolDefinition]
    | Iterable[Callable[..., object] | ToolDefinition | Mapping[str, Any]]
)
"""What `to_request` takes as tools: what `run_tools` takes, or a list of functions and definitions."""

_KINDS = "a function, a class of arguments or a ToolDefinition"


def definitions(tools: object) -> list[Defined]:
    """The tools of a request, in their order.

    Raises:
        InvalidValueError: One is no tool, has no name or no schema, or two have the same name.
        ImportError: A function's schema needs pydantic.
    """
    found = [*_definitions(tools)]
    names: set[str] = set()
    for tool in found:
        if isinstance(tool, ToolDefinition):
            if tool.name in names:
                raise InvalidValueError.of([("tools", tool.name, "must not be the name of two tools")])
            names.add(tool.name)
    return found


def _definitions(tools: Any) -> Iterator[Defined]:
    if isinstance(tools, Mapping):
        named: Mapping[Any, Any] = tools
        for name, tool in named.items():
            yield _definition(tool, f"tools[{quote(repr(name))}]", name)
    elif isinstance(tools, Iterable) and not isinstance(tools, (str, bytes)):
        items: Iterable[Any] = tools
        for place, tool in enumerate(items):
            yield tool if is_mapping(tool) else _definition(tool, f"tools[{place}]", None)
    else:
        raise InvalidValueError.of([("tools", tools, f"must be a mapping or a list, each tool {_KINDS}")])


def _definition(tool: Any, path: str, name: str | None) -> ToolDefinition:
    if isinstance(tool, ToolDefinition):
        return tool if name is None else attrs.evolve(tool, name=name)
    if not callable(tool):
        raise InvalidValueError.of([(path, tool, f"must be {_KINDS}")])
    function: Any = tool.func if isinstance(tool, functools.partial) else tool
    name = getattr(function, "__name__", None) if name is None else name
    if not isinstance(name, str) or not name.isidentifier():
        advice = 'name it: tools={"get_forecast": …}'
        raise InvalidValueError.of([(path, tool, "must have a name that a model can use", advice)])
    if function is tool and not (inspect.isroutine(tool) or inspect.isclass(tool)):
        function = tool = getattr(tool, "__call__")  # noqa: B004, B009 - of an object that can be called
    summary = inspect.cleandoc(function.__doc__ or "").partition("\n\n")[0]
    return ToolDefinition(name, " ".join(summary.split()), _schema(tool, path))


def _schema(tool: Any, path: str) -> Mapping[str, Any]:
    try:
        adapter: Any = import_module("pydantic").TypeAdapter
    except ImportError as error:
        raise ImportError(
            f"{path} needs pydantic, to make a schema of its type hints: pip install 'rxdelta[tools]';"
            " or pass a ToolDefinition with the schema"
        ) from error
    try:
        schema: dict[str, Any] = adapter(tool).json_schema()
    except Exception as error:
        wrong = f"has type hints of which pydantic makes no JSON Schema: {described(error)}"
        raise InvalidValueError.of([(path, tool, wrong)]) from error
    if schema.get("type") != "object":
        raise InvalidValueError.of([(path, tool, "must take its arguments by their names")])
    return {key: value for key, value in schema.items() if key not in ("title", "description")}
