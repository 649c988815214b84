"""The messages that a client of Ollama's API sends with each request → messages for the next request.

message = system | user | assistant | tool, as `request` writes them. An assistant's message is read as the body of a reply.
"""

# Messages are JSON without types; every value is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from rxdelta.core import (
    Block,
    ContentPart,
    InvalidValueError,
    Message,
    ToolCall,
    ToolResult,
    is_list,
    is_mapping,
)
from rxdelta.formats.client_requests import Conversation, blocks_of, items_of, result_content
from rxdelta.formats.decoding import Json, word
from rxdelta.formats.ollama.decoder import OllamaDecoder

_is_base64 = re.compile(r"[A-Za-z0-9+/]+={0,2}").fullmatch


def from_ollama(
    messages: Iterable[Mapping[str, Any]], *, system: bool = False, allow: Collection[str] = ()
) -> list[Message]:
    """The `messages` of a request to Ollama's `/api/chat`, for `to_request`.

    Calls have their results. A result without the id of its call belongs to the first call of the last reply that has
    none yet: of those with its `tool_name`, if it names one. An image's type is read from its first bytes. Fields that
    Ollama doesn't have are left out. The tools of such a request are read by `tools_from_openai_chat`.

    The client sends all messages, also the assistant's and the tools', and may have changed them. Where that matters,
    take only the last message from the client and the others from your own storage.

    Args:
        messages: The messages of the client's request.
        system: Whether to accept messages of the role `system`. Anybody who can send a request can add them.
        allow: As for the other readers. Ollama's messages have no addresses and no ids of files, except in results whose
            content is a list.

    Raises:
        InvalidValueError: A message is no message of Ollama's, answers no call, or is a system message without
            `system=True`. The error names the message.
        LimitExceededError: An assistant's message has too many parts.

    Example:
        >>> import rxdelta as rd
        >>> messages = [{"role": "user", "content": "Hi", "images": ["iVBORw0KGgo="]}]
        >>> (message,) = rd.requests.from_ollama(messages)
        >>> message.blocks[1]
        ContentPart('image', 'iVBORw0KGgo=', options={'mime_type': 'image/png'})
    """
    said = Conversation(system, allow)
    open_calls: list[ToolCall] = []  # of the last reply, in their order
    if is_mapping(messages) or isinstance(messages, (str, bytes)) or not isinstance(messages, Iterable):
        raise InvalidValueError.of([("messages", messages, "must be a list of messages")])
    for place, (message, path) in enumerate(items_of([*messages], "messages", "a message of Ollama's")):
        role = message.get("role")
        if role == "system":
            said.instruct(_parts(message, path), f"{path}.role", role)
        elif role == "user":
            said.ask(_parts(message, path), path)
        elif role == "assistant":
            blocks = _reply(message, place, path)
            said.reply(blocks, path)
            open_calls = [block for block in blocks if isinstance(block, ToolCall)]
        elif role == "tool":
            said.answer(_result(message, open_calls, path), path)
        else:
            raise InvalidValueError.of([(f"{path}.role", role, "must be system, user, assistant or tool")])
    return said.messages()


def _parts(message: Json, path: str) -> list[Block]:
    """The text and the images of a message. Either may be missing, but not both."""
    content, images = message.get("content"), message.get("images")
    found: list[Block] = []
    if images is not None and not is_list(images):
        raise InvalidValueError.of([(f"{path}.images", images, "must be a list of images as base64")])
    if not isinstance(content, str) and not (content is None and images):
        raise InvalidValueError.of([(f"{path}.content", content, "must be a string")])
    if content or not images:
        found.append(ContentPart("text", content or ""))
    for place, image in enumerate(images or ()):
        data = image.strip() if isinstance(image, str) else ""
        if not _is_base64(data):
            raise InvalidValueError.of([(f"{path}.images[{place}]", image, "must be an image as base64")])
        found.append(ContentPart("image", data, {"mime_type": _IMAGES.get(data[:4], "image/jpeg")}))
    return found


_IMAGES: Final = {"iVBO": "image/png", "R0lG": "image/gif", "UklG": "image/webp"}
"""The types of images by their first three bytes, as base64."""


def _reply(message: Json, place: int, path: str) -> list[Block]:
    """The blocks of an assistant's message. Ids of calls are made up from the message's place, where there are none."""
    known = {name: message[name] for name in _REPLY if message.get(name) is not None}
    body = {"created_at": str(place), "message": {"role": "assistant", "content": "", **known}, "done": True}
    return blocks_of(OllamaDecoder(), body, path, "is no message of Ollama's")


_REPLY: Final = ("content", "thinking", "images", "tool_calls")


def _result(message: Json, open_calls: list[ToolCall], path: str) -> ToolResult:
    """A tool's result. Its call leaves the list of open calls."""
    content = result_content(message.get("content"), f"{path}.content")
    call_id, name = word(message.get("tool_call_id")), word(message.get("tool_name"))
    wanted = ((call_id, [one.call_id for one in open_calls]), (name, [one.name for one in open_calls]))
    at = next((among.index(one) for one, among in wanted if one is not None and one in among), 0)
    if not open_calls and call_id is None:
        raise InvalidValueError.of([(path, message, "must be the result of a call before it")])
    if call_id is None or (at < len(open_calls) and open_calls[at].call_id == call_id):
        call_id = open_calls.pop(at).call_id
    return ToolResult(call_id, content)
