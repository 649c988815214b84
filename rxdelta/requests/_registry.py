"""Which formats a conversation can be written in: one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rxdelta.core import UnknownWireFormatError
from rxdelta.requests import (
    _anthropic_messages,
    _bedrock_converse,
    _cohere,
    _gemini,
    _gemini_interactions,
    _langchain,
    _mistral,
    _ollama,
    _openai_chat,
    _openai_responses,
)
from rxdelta.requests._conversation import Native, Said, Turn, conversation

__all__ = ["REQUEST_FORMATS", "to_request"]

_FORMATS: Mapping[str, Callable[[Sequence[Turn | Native]], dict[str, Any]]] = {
    "anthropic-messages": _anthropic_messages.request,
    "bedrock-converse": _bedrock_converse.request,
    "cohere": _cohere.request,
    "langchain": _langchain.request,
    "mistral": _mistral.request,
    "ollama": _ollama.request,
    "gemini": _gemini.request,
    "gemini-interactions": _gemini_interactions.request,
    "openai-chat": _openai_chat.request,
    "openai-responses": _openai_responses.request,
}

REQUEST_FORMATS: tuple[str, ...] = tuple(_FORMATS)
"""The names that `to_request` takes."""

_NOT_WRITTEN: Mapping[str, str] = {
    # A prompt is one text that goes on. How it would tell the turns of a conversation apart is a matter of each
    # model's own template, so any transcript made here would be wrong for most of them.
    "openai-completions": ", because its prompt is one text without turns",
}
"""Why there is none for a format that can be read."""


def to_request(
    messages: Iterable[Said] | Said, wire_format: str, *, reasoning: bool = True
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
        wire_format: One of `rxdelta.REQUEST_FORMATS`.
        reasoning: `False` leaves out reasoning and signatures, which another model than the one that gave
            them refuses.

    Returns:
        `{"messages": […]}` for most; `{"system": …, "messages": […]}`, `{"input": […]}`, `{"contents": […]}`
        where the provider calls it so. In `bedrock-converse` media are bytes, as boto3 takes them.

    Raises:
        UnknownWireFormatError: There is no such format; the error lists those there are.
        InvalidValueError: An item is none of these, or a person's content has no place in the format.

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
    write = _FORMATS.get(wire_format)
    if write is None:
        raise UnknownWireFormatError(
            f"no request can be written as {wire_format!r}{_NOT_WRITTEN.get(wire_format, '')}; "
            f"there are {', '.join(REQUEST_FORMATS)}"
        )
    return write(conversation(messages, reasoning=reasoning))
