"""The tools of a request: of functions, classes and definitions, as definitions."""

# A tool may be anything that a program passes: each is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any, Final, TypeAlias

import attrs

from rxdelta.core import InvalidValueError, described, is_mapping, quote
from rxdelta.formats.tool_definitions import Defined, ToolDefinition

__all__ = ["Tools", "definitions"]

Tools: TypeAlias = (
    Mapping[str, Callable[..., object] | ToolDefinition]
    | Iterable[Callable[..., object] | ToolDefinition | Mapping[str, Any]]
)
"""What `to_request` takes as tools: what `run_tools` takes, or a list of functions and definitions."""

_NAME: Final = re.compile(r"[\w.:-]+")
"""What one provider or another takes as a name. Which of these it takes is its own affair."""

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
    named: Any = tool.func if isinstance(tool, functools.partial) else tool
    name = getattr(named, "__name__", None) if name is None else name
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        advice = 'name it: tools={"get_forecast": …}'
        raise InvalidValueError.of([(path, tool, "must have a name that a model can use", advice)])
    function = _function(tool)
    return ToolDefinition(name, _summary(function), _schema(function, path))


def _function(tool: Any) -> Any:
    """The tool as pydantic takes it: of an object that can be called, the function that it wraps, or its `__call__`."""
    if isinstance(tool, functools.partial):
        return functools.partial(_function(tool.func), *tool.args, **tool.keywords)
    if inspect.isclass(tool) or isinstance(tool, (FunctionType, MethodType)):
        return tool
    return getattr(tool, "__wrapped__", tool.__call__)


def _summary(function: Any) -> str:
    """The first paragraph of its docstring. The one that a dataclass gives itself says nothing new."""
    function = function.func if isinstance(function, functools.partial) else function
    docstring = function.__doc__ or ""
    if is_dataclass(function) and docstring.startswith(f"{getattr(function, '__name__', '')}("):
        return ""
    return " ".join(inspect.cleandoc(docstring).partition("\n\n")[0].split())


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
        reason = described(error).partition("\n\n")[0]
        wrong = f"has type hints of which pydantic makes no JSON Schema: {reason}"
        raise InvalidValueError.of(
            [(path, tool, wrong, "or pass a ToolDefinition with the schema")]
        ) from error
    if schema.get("type") != "object":
        raise InvalidValueError.of([(path, tool, "must take its arguments by their names")])
    return {key: value for key, value in schema.items() if key not in ("title", "description")}
