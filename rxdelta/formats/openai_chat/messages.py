"""The messages that a client of chat completions sends with each request → messages for the next request.

An assistant's message is read as the body of a reply, so there is one reading of both.
"""

# Messages are JSON without types; every value is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from rxdelta.core import Block, ContentPart, InvalidValueError, Message, ToolResult, is_mapping
from rxdelta.formats.client_requests import Conversation, blocks_of, items_of, parts_of, result_content
from rxdelta.formats.conversation import sound
from rxdelta.formats.decoding import Json, word
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder
from rxdelta.formats.openai_chat.tables import REASONING_NAMES

_ROLES: Final = "developer, system, user, assistant or tool"


def from_openai_chat(
    messages: Iterable[Mapping[str, Any]], *, system: bool = False, allow: Collection[str] = ()
) -> list[Message]:
    """The `messages` of a request for a chat completion, for `to_request`.

    Calls have their results. A call whose arguments can't be read is an invalid call. Reasoning comes back if the client
    sends it, as few do. Left out are the names of persons, and fields that chat completions don't have.

    The client sends all messages, also the assistant's and the tools', and may have changed them. Where that matters,
    take only the last message from the client and the others from your own storage. A client can't make the provider
    read what the server's key may read: an address with a scheme other than `https`, `http` and `data`, or the id of a
    file, is refused in a person's message or a tool's result; in an assistant's message the part with it is left out.

    Args:
        messages: The messages of the client's request.
        system: Whether to accept messages of the roles `system` and `developer`. Anybody who can send a request can add
            them.
        allow: What the client may name nevertheless: schemes of addresses, such as `s3` and `gs`; `file_id`, the
            files that are stored with the provider.

    Raises:
        InvalidValueError: A message is no message of a chat completion, names what isn't allowed, or is a system message
            without `system=True`. The error names the message.
        LimitExceededError: An assistant's message has too many parts.

    Example:
        >>> import rxdelta as rd
        >>> messages = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
        >>> rd.to_request(rd.requests.from_openai_chat(messages), "anthropic-messages")
        {'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'Hi'}]}]}
    """
    said = Conversation(system, allow)
    if is_mapping(messages) or isinstance(messages, (str, bytes)) or not isinstance(messages, Iterable):
        raise InvalidValueError.of([("messages", messages, "must be a list of messages")])
    for message, path in items_of([*messages], "messages", "a message of a chat completion"):
        role, content = message.get("role"), message.get("content")
        if role in ("system", "developer"):
            said.instruct(_parts(content, path), f"{path}.role", role)
        elif role == "user":
            said.ask(_parts(content, path), path)
        elif role == "assistant":
            said.reply(_reply(message, path), path)
        elif role == "tool":
            said.answer(_result(message, path), path)
        else:
            raise InvalidValueError.of([(f"{path}.role", role, f"must be {_ROLES}")])
    return said.messages()


def _parts(content: Any, path: str) -> list[Block]:
    return parts_of(content, f"{path}.content", _part, _PARTS)


def _reply(message: Json, path: str) -> list[Block]:
    """The blocks of an assistant's message."""
    known = {name: message[name] for name in _REPLY if name in message}
    calls = known.get("tool_calls")
    if isinstance(calls, (list, tuple)):
        known["tool_calls"] = [_only(call, _CALL) for call in calls]
    body = {"choices": [{"index": 0, "message": known}]}
    return blocks_of(OpenAIChatDecoder(), body, path, "is no message of a chat completion")


def _only(found: Any, known: Mapping[str, Any]) -> Any:
    """The known fields of an object, and those of the objects within."""
    if not is_mapping(found) or not known:
        return found
    return {name: _only(found[name], more) for name, more in known.items() if name in found}


def _result(message: Json, path: str) -> ToolResult:
    """A tool's result. Parts that are all text become one string."""
    call_id = message.get("tool_call_id")
    if not isinstance(call_id, str):
        raise InvalidValueError.of([(f"{path}.tool_call_id", call_id, "must be a string")])
    content = result_content(message.get("content"), f"{path}.content")
    parts = () if isinstance(content, str) else content
    texts = [
        part["text"]
        for part in parts
        if is_mapping(part) and part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    return ToolResult(call_id, "".join(texts) if parts and len(texts) == len(parts) else content)


def _part(part: Any) -> ContentPart | None:
    kind = word(part.get("type")) if is_mapping(part) else None
    if kind == "input_audio":
        return sound(part.get(kind))
    text = part.get("text") if kind == "text" else None
    if isinstance(text, str):
        return ContentPart("text", text)
    if kind is None or kind not in _MEDIA:
        return None
    given = part.get(kind)
    source: Json = {"url": given} if isinstance(given, str) else given if is_mapping(given) else {}
    options = {name: value for name in _FIELDS if (value := word(source.get(name))) is not None}
    data = word(source.get("data")) or word(source.get("file_data"))
    if data is not None and data.startswith("data:"):
        options["url"], data = data, None
    return ContentPart(_MEDIA[kind], data, options) if data or options.keys() & {"url", "file_id"} else None


_FIELDS: Final = ("url", "detail", "file_id", "filename")
_MEDIA: Final = {"image_url": "image", "video_url": "video", "file": "file"}
_PARTS: Final = (
    "must be a text, or one of image_url, input_audio, video_url, file, with an address, data, or a file's id"
)

_REPLY: Final = frozenset(
    ["content", "refusal", *REASONING_NAMES, "tool_calls", "function_call", "audio", "images"]
)
"""The fields of an assistant's message that are read."""

_CALL: Final[Mapping[str, Any]] = {
    "id": {},
    "type": {},
    "function": {"name": {}, "arguments": {}},
    "custom": {"name": {}, "input": {}},
    "extra_content": {},
}
"""The fields of a call that are read."""
