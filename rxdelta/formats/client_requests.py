"""A request of a client of a provider's API: the conversation that it sends back each time, and its tools.

Replies are read as the bodies of replies, by the decoder of the format, so there is one reading of both. A result belongs
to the newest call with its id. One whose call isn't there stays a message of its own.

The tools become definitions, by which a model of any provider calls them:

    Anthropic   {name, description, input_schema}                     those with another type are Anthropic's own
    chat        {type: function, function} | {type: custom, custom}
    Responses   {type: function, …} | {type: custom, …} | {type: namespace, tools}       all others are OpenAI's own

Codex sends some of its tools as an item of `input`, `additional_tools`. A tool that only OpenAI's models can call is left out,
even where the client runs it, as its `tool_search` and `local_shell`: the calls have types of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import attrs

from rxdelta.core import (
    Approval,
    Block,
    ContentPart,
    Event,
    InvalidValueError,
    MalformedChunkError,
    Message,
    MessageRole,
    ToolCall,
    ToolResult,
    Walk,
    denied_result,
    freeze,
    is_list,
    is_mapping,
    thaw,
)
from rxdelta.formats.admission import Admission
from rxdelta.formats.conversation import ToolDefinition
from rxdelta.formats.decoding import Json, word
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, REDACTED, SENT_AS

# Bodies are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false


STRING_OR_PARTS: Final = "must be a string or a list of parts"


@attrs.define
class _Turn:
    """A message of ours, of which a later message may answer the calls."""

    role: MessageRole
    blocks: list[Block]
    path: str
    metadata: Mapping[str, Any] | None = None


class Conversation:
    """The messages so far.

    Args:
        system: Whether instructions are admitted.
        allow: What the client may name, see `Admission`.
    """

    def __init__(self, system: bool, allow: Collection[str]) -> None:
        self._system = system
        self._admission = Admission(allow)
        self._turns: list[_Turn] = []
        self._calls: dict[str, tuple[list[Block], int]] = {}  # by id: where the newest call stands
        self._requests: dict[str, tuple[list[Block], int]] = {}  # for approval, by the ids of their items

    def instruct(self, blocks: Sequence[Block], path: str, role: object) -> None:
        """Add instructions.

        Raises:
            InvalidValueError: They aren't admitted.
        """
        if not self._system:
            wanted = "is allowed with system=True only: anybody could have written it"
            raise InvalidValueError.of([(path, role, wanted)])
        self._turns.append(_Turn("system", [*blocks], path))

    def ask(self, blocks: Sequence[Block], path: str) -> None:
        """Add a message of a person."""
        self._turns.append(_Turn("user", [*blocks], path))

    def reply(self, blocks: Sequence[Block], path: str) -> None:
        """Add a reply."""
        found = [one for block in blocks if (one := _as_spoken(block)) is not None]
        for place, block in enumerate(found):
            if not isinstance(block, ToolCall):
                continue
            item_id = block.metadata.get(ITEM_ID)
            if block.type != "server_tool_call":
                self._calls[block.call_id or ""] = found, place
            elif isinstance(item_id, str) and block.metadata.get(PROVIDER_TYPE) == "mcp_approval_request":
                self._requests[item_id] = found, place
        self._turns.append(_Turn("assistant", found, path))

    def answer(self, result: ToolResult, path: str) -> None:
        """Give a call its result."""
        call_id = result.call_id or ""
        if call_id in self._calls:
            self._settle(*self._calls[call_id], result)
            return
        parts = result.content
        text = parts if isinstance(parts, str) else json.dumps(thaw(parts), ensure_ascii=False)
        metadata = {"tool_call_id": result.call_id} | ({"is_error": True} if result.is_error else {})
        self._turns.append(_Turn("tool", [ContentPart("text", text)], path, metadata))

    def decide(self, request_id: str, decision: Approval, path: str) -> None:
        """Give a call that the provider asked for a person's decision. If that allows it, the call waits still.

        Raises:
            InvalidValueError: The provider hasn't asked for it.
        """
        if request_id not in self._requests:
            raise InvalidValueError.of([(path, request_id, "must name a request for approval before it")])
        if not decision.approved:
            self._settle(*self._requests[request_id], denied_result(request_id, decision.reason))

    @staticmethod
    def _settle(blocks: list[Block], place: int, result: ToolResult) -> None:
        call = blocks[place]
        if isinstance(call, ToolCall):
            metadata = {**call.metadata, "execution_status": "failed" if result.is_error else "completed"}
            blocks[place] = attrs.evolve(call, result=result, metadata=metadata)

    def messages(self) -> list[Message]:
        """The admitted part of the conversation.

        Raises:
            InvalidValueError: A person's file or a tool's result names what isn't allowed.
        """
        return self._admission.messages(
            (Message(role=turn.role, blocks=turn.blocks, metadata=turn.metadata), turn.path)
            for turn in self._turns
        )


def _as_spoken(block: Block) -> Block | None:
    """The block; of reasoning that nobody has signed or named the text alone, as of a provider that signs nothing."""
    if block.type != "reasoning" or not isinstance(block, ContentPart):
        return block
    if not block.options.keys().isdisjoint(("signature", ITEM_ID, REDACTED, SENT_AS)):
        return block
    return ContentPart("reasoning", block.text, {SENT_AS: "reasoning"}) if block.text else None


class _Decoder(Protocol):
    def decode(self, chunk: object, /) -> Sequence[Event]: ...

    def close(self) -> Sequence[Event]: ...


def blocks_of(decoder: _Decoder, body: Mapping[str, Any], path: str, wanted: str) -> list[Block]:
    """The blocks of a reply's body.

    Args:
        decoder: That of the format.
        body: The body.
        path: Where it stands in the request.
        wanted: What it isn't, if the decoder can't read it.

    Raises:
        InvalidValueError: The decoder can't read it.
        LimitExceededError: It has too many parts, or they are nested absurdly deep.
    """
    walk = Walk()
    try:
        for event in [*decoder.decode(body), *decoder.close()]:
            walk.step(event)
    except MalformedChunkError as error:
        raise InvalidValueError.of([(path, body, f"{wanted}: {error}")]) from error
    return [fold.block for fold in walk.blocks.values()]


def body_of(body: Any, wanted: str) -> Mapping[str, Any]:
    """The body of a request.

    Raises:
        InvalidValueError: It is no object.
    """
    if not is_mapping(body):
        raise InvalidValueError.of([("body", body, f"must be {wanted}, as an object")])
    return body


def items_of(found: Any, path: str, wanted: str) -> list[tuple[Mapping[str, Any], str]]:
    """The objects of a list, each with its path.

    Raises:
        InvalidValueError: It is no list of objects.
    """
    if not is_list(found):
        raise InvalidValueError.of([(path, found, f"must be a list, each {wanted}")])
    for place, item in enumerate(found):
        if not is_mapping(item):
            raise InvalidValueError.of([(f"{path}[{place}]", item, f"must be {wanted}")])
    return [(item, f"{path}[{place}]") for place, item in enumerate(found)]


def parts_of(content: Any, path: str, read: Callable[[Any], ContentPart | None], wanted: str) -> list[Block]:
    """The content of a person's message, or of the system's.

    Raises:
        InvalidValueError: It is neither a string nor a list of parts that `read` knows.
    """
    if isinstance(content, str):
        return [ContentPart("text", content)]
    if not is_list(content):
        raise InvalidValueError.of([(path, content, STRING_OR_PARTS)])
    return [part_of(part, f"{path}[{place}]", read, wanted) for place, part in enumerate(content)]


def part_of(part: Any, path: str, read: Callable[[Any], ContentPart | None], wanted: str) -> Block:
    """A part of it.

    Raises:
        InvalidValueError: `read` doesn't know the part.
    """
    block = read(part)
    if block is None:
        raise InvalidValueError.of([(path, part, wanted)])
    return block


def result_content(content: Any, path: str) -> Any:
    """The content of a tool's result.

    Raises:
        InvalidValueError: It is neither a string nor a list.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not is_list(content):
        raise InvalidValueError.of([(path, content, STRING_OR_PARTS)])
    return freeze(content, lenient=True)


# Tools are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false


def tools_from_openai_responses(body: Mapping[str, Any]) -> list[ToolDefinition]:
    """The tools in the body of a request to OpenAI's Responses API, for the `tools` of `to_request`.

    These are the client's functions, those in a namespace too, and its custom tools: as functions with one text, `input`,
    whose description tells the grammar. Left out are the tools that OpenAI runs, such as `web_search`, and those that only
    its models can call, such as `tool_search`. If two tools have one name, the later counts. A request that goes on to
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
    are left out. If two tools have one name, the later counts.

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
    or only its models can call them. If two tools have one name, the later counts. A request that goes on to Anthropic
    can have the tools as they came: `tools=body["tools"]`.

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
