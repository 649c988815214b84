"""The messages that a client of chat completions sends with each request → messages for the next request.

An assistant's message is read as the body of a reply, so there is one reading of both.
"""

# Messages are JSON without types; every value is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import attrs

from rxdelta.core import (
    Block,
    ContentPart,
    InvalidValueError,
    MalformedChunkError,
    Message,
    MessageRole,
    ToolCall,
    ToolResult,
    Walk,
    freeze,
    is_mapping,
    thaw,
)
from rxdelta.formats.admission import Admission
from rxdelta.formats.json_values import word
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder
from rxdelta.formats.openai_chat.tables import REASONING_NAMES

__all__ = ["from_openai_chat"]

Json: TypeAlias = Mapping[str, Any]

_ROLES: Final = "developer, system, user, assistant or tool"
_STRING_OR_PARTS: Final = "must be a string or a list of parts"


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
    admission, conversation = Admission(allow), _Conversation(system)
    if is_mapping(messages) or isinstance(messages, (str, bytes)) or not isinstance(messages, Iterable):
        raise InvalidValueError.of([("messages", messages, "must be a list of messages")])
    for place, message in enumerate(messages):
        path = f"messages[{place}]"
        if not is_mapping(message):
            raise InvalidValueError.of([(path, message, "must be a message of a chat completion")])
        conversation.add(message, path)
    turns = conversation.turns
    return admission.messages(
        (Message(role=turn.role, blocks=turn.blocks, metadata=turn.metadata), turn.path) for turn in turns
    )


class _Turn(NamedTuple):
    """A message of ours, of which a later message may answer the calls."""

    role: MessageRole
    blocks: list[Block]
    path: str
    metadata: Json | None = None


class _Conversation:
    """The messages so far."""

    def __init__(self, system: bool) -> None:
        self.turns: list[_Turn] = []
        self._system = system
        self._calls: dict[str, tuple[list[Block], int]] = {}  # by id: where the newest call stands

    def add(self, message: Json, path: str) -> None:
        role = message.get("role")
        if role in ("system", "developer"):
            if not self._system:
                wanted = "is allowed with system=True only: anybody could have written it"
                raise InvalidValueError.of([(f"{path}.role", role, wanted)])
            self.turns.append(_Turn("system", _parts(message, path), path))
        elif role == "user":
            self.turns.append(_Turn("user", _parts(message, path), path))
        elif role == "assistant":
            blocks = _reply(message, path)
            for place, block in enumerate(blocks):
                if isinstance(block, ToolCall) and block.call_id is not None:
                    self._calls[block.call_id] = blocks, place
            self.turns.append(_Turn("assistant", blocks, path))
        elif role == "tool":
            self._result(message, path)
        else:
            raise InvalidValueError.of([(f"{path}.role", role, f"must be {_ROLES}")])

    def _result(self, message: Json, path: str) -> None:
        call_id = message.get("tool_call_id")
        if not isinstance(call_id, str):
            raise InvalidValueError.of([(f"{path}.tool_call_id", call_id, "must be a string")])
        content = _result_content(message.get("content"), f"{path}.content")
        blocks, place = self._calls.get(call_id, ([], 0))
        call = blocks[place] if blocks else None
        if isinstance(call, ToolCall):
            metadata = {**call.metadata, "execution_status": "completed"}
            blocks[place] = attrs.evolve(call, result=ToolResult(call_id, content), metadata=metadata)
            return
        text = content if isinstance(content, str) else json.dumps(thaw(content), ensure_ascii=False)
        self.turns.append(_Turn("tool", [ContentPart("text", text)], path, {"tool_call_id": call_id}))


def _reply(message: Json, path: str) -> list[Block]:
    """The blocks of an assistant's message."""
    known = {name: message[name] for name in _REPLY if name in message}
    calls = known.get("tool_calls")
    if isinstance(calls, (list, tuple)):
        known["tool_calls"] = [_only(call, _CALL) for call in calls]
    walk, decoder = Walk(), OpenAIChatDecoder()
    try:
        decoded = [*decoder.decode({"choices": [{"index": 0, "message": known}]}), *decoder.close()]
    except MalformedChunkError as error:
        raise InvalidValueError.of(
            [(path, message, f"is no message of a chat completion: {error}")]
        ) from error
    for event in decoded:
        walk.step(event)
    return [fold.block for fold in walk.blocks.values()]


def _only(found: Any, known: Mapping[str, Any]) -> Any:
    """The known fields of an object, and those of the objects within."""
    if not is_mapping(found) or not known:
        return found
    return {name: _only(found[name], more) for name, more in known.items() if name in found}


def _result_content(content: Any, path: str) -> Any:
    """The content of a tool's result. Parts that are all text become one string."""
    if isinstance(content, (str, type(None))):
        return content or ""
    if not isinstance(content, (list, tuple)):
        raise InvalidValueError.of([(path, content, _STRING_OR_PARTS)])
    texts = [
        part["text"]
        for part in content
        if is_mapping(part) and part.get("type") == "text" and isinstance(part.get("text"), str)
    ]
    if len(texts) == len(content):
        return "".join(texts)
    return freeze(content, lenient=True)


def _parts(message: Json, path: str) -> list[Block]:
    """The content of a person's message, or of the system's."""
    content, path = message.get("content"), f"{path}.content"
    if isinstance(content, str):
        return [ContentPart("text", content)]
    if not isinstance(content, (list, tuple)):
        raise InvalidValueError.of([(path, content, _STRING_OR_PARTS)])
    return [_part(part, f"{path}[{place}]") for place, part in enumerate(content)]


def _part(part: Any, path: str) -> ContentPart:
    kind = word(part.get("type")) if is_mapping(part) else None
    text = part.get("text") if kind == "text" else None
    if isinstance(text, str):
        return ContentPart("text", text)
    if not isinstance(kind, str) or kind not in _MEDIA:
        raise InvalidValueError.of([(path, part, f"must be a text, or one of {', '.join(_MEDIA)}")])
    given = part.get(kind)
    source: Json = {"url": given} if isinstance(given, str) else given if is_mapping(given) else {}
    options = {name: value for name in _FIELDS if (value := word(source.get(name))) is not None}
    data = word(source.get("data")) or word(source.get("file_data"))
    if data is not None and data.startswith("data:"):
        options["url"], data = data, None
    if not (data or options.keys() & {"url", "file_id"}):
        raise InvalidValueError.of([(f"{path}.{kind}", given, "must have an address, data, or a file's id")])
    if kind == "input_audio":
        sound = word(source.get("format")) or "wav"
        options["mime_type"] = "audio/mpeg" if sound == "mp3" else f"audio/{sound}"
    return ContentPart(_MEDIA[kind], data, options)


_FIELDS: Final = ("url", "detail", "file_id", "filename")
_MEDIA: Final = {"image_url": "image", "input_audio": "audio", "video_url": "video", "file": "file"}

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
