"""A conversation as the fields of the next request, by the name of its format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

from rxdelta.core import InvalidValueError, UnknownWireFormatError, alternatives, quote
from rxdelta.formats import registry
from rxdelta.formats.conversation import Said, conversation
from rxdelta.formats.meant import meant_formats
from rxdelta.requests._tools import Tools, definitions

__all__ = ["RequestFormat", "request_formats", "to_request"]

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

    What came from a provider goes back to it as it was: blocks in their order, ids, signatures, encrypted
    reasoning, the provider's own tool calls and their results. A call whose arguments could not be read goes
    back with its text and, where it has no result, with one that says what was wrong, because providers
    refuse a call that nobody answered. For the same reason a call without a result, behind which the
    conversation goes on because somebody stopped the reply, is answered as stopped. What a model said and the format has no place for is left out; what a
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
