"""A conversation and its tools as the fields of the next request, by the name of the format."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any, Final, Literal, TypeAlias

import attrs

from rxdelta.core import InvalidValueError, UnknownWireFormatError, alternatives, described, is_mapping, quote
from rxdelta.formats import registry
from rxdelta.formats.conversation import Defined, Said, ToolDefinition, conversation
from rxdelta.formats.registry import meant_formats

# A tool may be anything that a program passes: each is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false


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


RequestFormat: TypeAlias = Literal[
    "anthropic-messages", "bedrock-converse", "gemini", "gemini-interactions", "cohere", "langchain", "openai-responses",
    "ollama", "mistral", "openai-chat",
]  # fmt: skip
"""The names of the library's own formats in which a request can be written."""


def request_formats() -> tuple[str, ...]:
    """The names of the formats in which a request can be written."""
    return tuple(one.name for one in registry.formats() if one.request is not None)


def to_request(
    messages: Iterable[Said] | Said,
    wire_format: RequestFormat | str,
    *,
    reasoning: bool = True,
    tools: Tools | None = None,
) -> dict[str, Any]:
    """A conversation as the fields of the provider's next request, plain JSON to be spread into its call.

    A provider's own content goes back to it as it was: blocks in their order, ids, signatures, encrypted reasoning, the
    provider's own tool calls and their results. A call whose arguments could not be read goes
    back with its text and, where it has no result, with one that says what was wrong, because providers
    refuse a call that nobody answered. For the same reason a call without a result, behind which the
    conversation continues because somebody stopped the reply, is answered as stopped. What a model said and the format has no place for is left out; what a
    person said is not, but refused. No block of a reply can make a message of another role, so replies may
    have gone through a browser.

    Args:
        messages: In order: a `Message`, whose calls' results come along; a `ToolResult` for a call of an
            earlier message; a string, which is what the user says; or an item in the provider's own form,
            which stays as it is.
        wire_format: One of `rxdelta.requests.REQUEST_FORMATS`.
        reasoning: `False` leaves out all reasoning and signatures. Those that only another vendor can read are
            left out anyway.
        tools: The tools that the model may call: functions by their names, as `run_tools` takes them, or a list of
            functions, definitions, and tools in the provider's own form. The first paragraph of a function's docstring
            is the description; of its type hints pydantic makes the schema.

    Returns:
        `{"messages": […]}` for most; `{"system": …, "messages": […]}`, `{"input": […]}`, `{"contents": […]}`
        where the provider calls it so. In `bedrock-converse` media are bytes, as boto3 takes them. With tools
        also `"tools"`, or `"toolConfig"` in `bedrock-converse`; without any, neither.

    Raises:
        UnknownWireFormatError: There is no such format; the error lists those there are.
        InvalidValueError: An item is none of these, or a person's content has no place in the format; one of the
            tools is none, or the format takes none.
        ImportError: A function is among the tools, and pydantic isn't installed.

    Example:
        >>> import rxdelta as rd
        >>> call = rd.ToolCall(call_id="c1", name="add", arguments={"a": 1}, status="complete")
        >>> reply = rd.Message(blocks=[rd.ContentPart("text", "Let me see."), call])
        >>> request = rd.to_request(["1 + 1?", reply, rd.ToolResult("c1", 2)], "anthropic-messages")
        >>> [message["role"] for message in request["messages"]]
        ['user', 'assistant', 'user']
        >>> request["messages"][2]["content"]
        [{'type': 'tool_result', 'tool_use_id': 'c1', 'content': '2'}]
    """
    if not isinstance(wire_format, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValueError.of([("wire_format", wire_format, "must be the name of a format")])
    known = registry.find(wire_format)
    if known is None or known.request is None:
        reason = f", because {known.why_no_request}" if known is not None and known.why_no_request else ""
        wrong = f"no request can be written as {quote(repr(wire_format))}{reason}"
        advise = meant_formats if known is None else alternatives
        raise UnknownWireFormatError(f"{wrong}; {advise(wire_format, request_formats())}")
    defined = [] if tools is None else definitions(tools)
    if defined and known.tools is None:
        raise InvalidValueError.of([("tools", tools, f"must be left out, because {known.name} takes none")])
    readers = {known.name, *known.vendors}
    written = known.request(conversation(messages, reasoning=reasoning, readers=readers))
    return {**written, **known.tools(defined)} if defined and known.tools is not None else written
