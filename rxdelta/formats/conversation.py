"""A conversation as turns, from which every format writes its request; with its media, and the tools that the model may call.

Texts and media that clients send are read in the parts of the APIs that clients speak:

    Anthropic      text | image, document: with a source of type base64, url, file or text
    Responses      input_text, output_text, text | input_image | input_file | input_audio
    of tools       both, and image, audio, video, document with their data or address, as of MCP and Interactions

Other fields of a part aren't read here; `Admission` decides which of them may reach a provider.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, TypeAlias

import attrs

from rxdelta.core import (
    ContentPart,
    InvalidValueError,
    Message,
    Snapshot,
    ToolCall,
    ToolResult,
    freeze as frozen,
    is_list,
    is_mapping,
    thaw,
)
from rxdelta.formats.decoding import JsonObject, word
from rxdelta.formats.notes import readable, unsigned

_ANY_OBJECT: JsonObject = {"type": "object", "properties": {}}


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


def function_object(tool: ToolDefinition, schema: str = "parameters") -> JsonObject:
    """Name, description and schema, which has this name. Some APIs refuse an empty description."""
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, schema: thaw(tool.parameters)}


def tool_list(tools: Sequence[Defined], write: Callable[[ToolDefinition], JsonObject]) -> list[JsonObject]:
    """The tools in their order, those in the provider's own form as they are."""
    return [write(tool) if isinstance(tool, ToolDefinition) else thaw(tool) for tool in tools]


def functions(tools: Sequence[Defined]) -> JsonObject:
    """The tools as OpenAI's chat completions have them, and the many that follow them.

    Example:
        >>> functions([ToolDefinition("now")])["tools"]
        [{'type': 'function', 'function': {'name': 'now', 'parameters': {'type': 'object', 'properties': {}}}}]
    """
    return {"tools": tool_list(tools, lambda tool: {"type": "function", "function": function_object(tool)})}


_KINDS = {
    "image": "image",
    "image_url": "image",
    "audio": "audio",
    "video": "video",
    "file": "file",
    "file_url": "file",
}
_MIME_TYPES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}


class Medium(NamedTuple):
    """An image, a sound, a film or a file. Its content is in `data`, at the `url`, or with the provider (`file_id`)."""

    kind: str
    mime_type: str
    data: str | None
    """In base64."""
    url: str | None
    file_id: str | None
    options: dict[str, Any]


def medium_of(part: ContentPart) -> Medium | None:
    """The medium that a part holds, if any. A `data:` URL is read as the data."""
    kind = _KINDS.get(part.type)
    if kind is None:
        return None
    options: dict[str, Any] = thaw(part.options)
    mime_type = _word(options.get("mime_type")) or _MIME_TYPES[kind]
    url, file_id, data = _word(options.get("url")), _word(options.get("file_id")), part.text or None
    if part.type.endswith("_url"):
        url, data = url or data, None
    if url is not None and url.startswith("data:"):
        head, comma, found = url.removeprefix("data:").partition(",")
        if comma and head.endswith(";base64"):
            url, data, mime_type = None, found, head.partition(";")[0] or mime_type
    return Medium(kind, mime_type, data, url, file_id, options)


def data_url(medium: Medium) -> str | None:
    """The URL of a medium, or a `data:` URL of its data; `None` if only its id is known."""
    if medium.url is not None or medium.data is None:
        return medium.url
    return f"data:{medium.mime_type};base64,{medium.data}"


def _word(found: Any) -> str | None:
    return found if isinstance(found, str) and found else None


# Parts are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false


def anthropic_part(part: Any) -> ContentPart | None:
    """A text, image or document of a request to Anthropic's Messages API; `None` for anything else.

    Example:
        >>> anthropic_part({"type": "text", "text": "Hi"})
        ContentPart('text', 'Hi')
    """
    kind = part.get("type") if is_mapping(part) else None
    if kind == "text":
        return _text(part, "cache_control")
    if kind not in ("image", "document"):
        return None
    source = part.get("source")
    if not is_mapping(source) or (read := _SOURCES.get(str(source.get("type")))) is None:
        return None
    found = read(source)
    if found is None:
        return None
    data, options = found
    more = {name: part[name] for name in _OF_A_DOCUMENT if part.get(name) is not None}
    return ContentPart("image" if kind == "image" else "file", data, options | more)


def response_part(part: Any) -> ContentPart | None:
    """A text, image, file or sound of a request to OpenAI's Responses API; `None` for anything else.

    Example:
        >>> response_part({"type": "input_image", "image_url": "https://x.example/a.png"})
        ContentPart('image', options={'url': 'https://x.example/a.png'})
    """
    kind = part.get("type") if is_mapping(part) else None
    if kind in ("input_text", "output_text", "text"):
        return _text(part)
    if kind == "input_audio":
        return sound(part.get(kind))
    if kind == "input_image":
        names = {"image_url": "url", "file_id": "file_id", "detail": "detail"}
    elif kind == "input_file":
        names = {"file_url": "url", "file_id": "file_id", "filename": "filename"}
    else:
        return None
    options: dict[str, Any] = {
        ours: found for name, ours in names.items() if (found := word(part.get(name))) is not None
    }
    data = word(part.get("file_data")) if kind == "input_file" else None
    if data is not None and data.startswith("data:"):
        head, _, data = data.removeprefix("data:").partition(",")
        options["mime_type"] = head.partition(";")[0] or "application/pdf"
    if not (data or options.keys() & {"url", "file_id"}):
        return None
    return ContentPart("image" if kind == "input_image" else "file", data, options)


def sound(source: Any) -> ContentPart | None:
    """The sound of an `input_audio`, which both of OpenAI's APIs have alike; `None` if there is none.

    Example:
        >>> sound({"data": "UklGRg==", "format": "mp3"})
        ContentPart('audio', 'UklGRg==', options={'mime_type': 'audio/mpeg'})
    """
    data = word(source.get("data")) if is_mapping(source) else None
    if data is None:
        return None
    kind = word(source.get("format")) or "wav"
    return ContentPart("audio", data, {"mime_type": "audio/mpeg" if kind == "mp3" else f"audio/{kind}"})


def result_parts(content: Any) -> list[ContentPart]:
    """The texts and media of a tool's result that is a list of such parts; empty for any other result.

    Example:
        >>> result_parts([{"type": "image", "data": "aGk=", "mimeType": "image/png"}])
        [ContentPart('image', 'aGk=', options={'mime_type': 'image/png'})]
        >>> result_parts([1]), result_parts("text")
        ([], [])
    """
    parts = [_result_part(part) for part in content] if is_list(content) else []
    found = [part for part in parts if part is not None]
    return found if len(found) == len(parts) else []


def _result_part(part: Any) -> ContentPart | None:
    return anthropic_part(part) or response_part(part) or _flat_part(part)


def _flat_part(part: Any) -> ContentPart | None:
    """A medium with its data or address beside its type."""
    kind = _MEDIA.get(str(part.get("type"))) if is_mapping(part) else None
    if kind is None or "source" in part:
        return None
    data, url = word(part.get("data")), word(part.get("uri"))
    mime_type = word(part.get("mimeType")) or word(part.get("mime_type"))
    named = {"mime_type": mime_type} if mime_type else {}
    if data is not None and mime_type is not None:
        return ContentPart(kind, data, named)
    return None if url is None else ContentPart(kind, None, {**named, "url": url})


def _text(part: Mapping[str, Any], *kept: str) -> ContentPart | None:
    text = part.get("text")
    options = {name: part[name] for name in kept if part.get(name) is not None}
    return ContentPart("text", text, options) if isinstance(text, str) else None


_Found: TypeAlias = tuple[str | None, dict[str, Any]]
"""The data of a medium, and its options."""


def _base64(source: Mapping[str, Any]) -> _Found | None:
    data, mime_type = word(source.get("data")), word(source.get("media_type"))
    return None if data is None or mime_type is None else (data, {"mime_type": mime_type})


def _plain_text(source: Mapping[str, Any]) -> _Found | None:
    text = source.get("data")
    if not isinstance(text, str):
        return None
    return base64.b64encode(text.encode("utf-8", "replace")).decode(), {"mime_type": "text/plain"}


def _named(name: str) -> Callable[[Mapping[str, Any]], _Found | None]:
    def read(source: Mapping[str, Any]) -> _Found | None:
        found = word(source.get(name))
        return None if found is None else (None, {name: found})

    return read


_SOURCES: Final[Mapping[str, Callable[[Mapping[str, Any]], _Found | None]]] = {
    "base64": _base64,
    "text": _plain_text,
    "url": _named("url"),
    "file": _named("file_id"),
}

_OF_A_DOCUMENT: Final = ("title", "context", "citations", "cache_control")
_MEDIA: Final = {"image": "image", "audio": "audio", "video": "video", "document": "file"}


def accepted(
    blocks: Sequence[JsonObject], is_thought: Callable[[JsonObject], bool] | None = None
) -> list[JsonObject]:
    """The content without a text of nothing but space, and without reasoning at its end. Both are refused.

    Such a text is joined to the one before or after it, so that no space between words gets lost, or left out. A
    message whose content is empty then is left out too; both APIs take two messages of one side in a row for one, or
    are given them as one.

    Example:
        >>> accepted([{"text": "two"}, {"text": " "}, {"text": "words"}, {"toolUse": {}}, {"text": "\\n"}])
        [{'text': 'two '}, {'text': 'words'}, {'toolUse': {}}]
    """
    kept: list[JsonObject] = []
    for block in blocks:
        before, text = kept[-1].get("text") if kept else None, block.get("text")
        if isinstance(before, str) and isinstance(text, str) and not (before.strip() and text.strip()):
            blank, full = (block, kept[-1]) if before.strip() else (kept[-1], block)
            kept[-1] = {**blank, **full, "text": before + text}
        else:
            kept.append(block)
    kept = [block for block in kept if not isinstance(text := block.get("text"), str) or text.strip()]
    while is_thought is not None and kept and is_thought(kept[-1]):
        kept.pop()
    return kept


Native: TypeAlias = Mapping[str, Any]
"""An item that is already in the provider's own form; it passes through as it is."""

Said: TypeAlias = Message | ToolResult | str | Mapping[str, Any]
"""One item of a conversation."""


@attrs.frozen
class Turn:
    """A message of one side, with the results of its calls.

    Attributes:
        role: `system`, `user`, `assistant`, or `tool` for results whose calls are not in the conversation.
        blocks: The content, in order. An assistant's message has only the blocks that may be sent back.
        results: The results of tools, in the order of the calls.
        message: The message of which the turn was made; `None` for a plain text or results alone.
        reasoning: Whether reasoning and signatures may be sent back, also those in the message's metadata.
    """

    role: str
    blocks: tuple[ContentPart | ToolCall, ...] = ()
    results: tuple[ToolResult, ...] = ()
    message: Message | None = None
    reasoning: bool = True

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that a result may answer: those for the client, valid or not."""
        return tuple(
            block for block in self.blocks if isinstance(block, ToolCall) and block.type != "server_tool_call"
        )

    @property
    def parts(self) -> tuple[ContentPart, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ContentPart))

    @property
    def text(self) -> str:
        return "".join(part.text or "" for part in self.parts if part.type == "text")


def conversation(messages: Any, *, reasoning: bool, readers: Set[str]) -> list[Turn | Native]:
    """The messages as turns. Results that follow their message are attached to its turn.

    Args:
        messages: What `to_request` takes.
        reasoning: Whether reasoning and signatures may be sent back.
        readers: Those who can read the signatures that are sent back, see `signatures`.

    Raises:
        InvalidValueError: An item is of no kind that a conversation has.
    """
    items: list[Any] = [messages] if _is_one(messages) else [*messages]
    known = _Conversation()
    for place, item in enumerate(items):
        if isinstance(item, str):
            known.add(Turn("user", (ContentPart("text", item),)))
        elif isinstance(item, ToolResult):
            known.answer(item)
        elif isinstance(item, Message):
            if item.role == "tool":
                for result in _results_in(item, place):
                    known.answer(result)
            else:
                known.add(_turn(item, readers if reasoning else None))
        elif isinstance(item, Mapping):
            known.add(item)  # pyright: ignore[reportUnknownArgumentType]
        else:
            wanted = "must be a Message, a ToolResult, a string, or an object in the provider's own form"
            advice = "its to_message() makes a Message" if isinstance(item, Snapshot) else ""
            raise InvalidValueError.of([(f"messages[{place}]", item, wanted, advice)])
    return known.turns()


class _Conversation:
    """The turns so far, and for each call id the last turn that has a call of it."""

    def __init__(self) -> None:
        self._turns: list[Turn | Native] = []
        self._turn_of_call: dict[str | None, int] = {}
        self._results: dict[int, list[ToolResult]] = {}  # by their turn, in the order of the conversation

    def add(self, turn: Turn | Native) -> None:
        if isinstance(turn, Turn):
            self._turn_of_call.update((call.call_id, len(self._turns)) for call in turn.calls)
        self._turns.append(turn)

    def answer(self, result: ToolResult) -> None:
        """Attach a result to the turn whose call it answers, or to a turn of role `tool` at the end."""
        place = self._turn_of_call.get(result.call_id)
        if place is None:
            place = len(self._turns) - 1
            last = self._turns[-1] if self._turns else None
            if not isinstance(last, Turn) or last.role != "tool":
                place += 1
                self._turns.append(Turn("tool"))
        self._results.setdefault(place, []).append(result)

    def turns(self) -> list[Turn | Native]:
        for place, turn in enumerate(self._turns):
            if isinstance(turn, Turn):
                continued = place + 1 < len(self._turns) and isinstance(self._turns[place + 1], Turn)
                results = _results(turn, self._results.get(place, ()), continued=continued)
                if results != turn.results:
                    self._turns[place] = attrs.evolve(turn, results=results)
        return self._turns


def _results(turn: Turn, found: Sequence[ToolResult], *, continued: bool) -> tuple[ToolResult, ...]:
    """The results of a turn in the order of its calls; of two results for one call, the later.

    If the conversation continues, a call without a result was stopped, and gets a result that says so.
    """
    if turn.role == "tool":
        return tuple(found)
    known = {result.call_id: result for result in (*turn.results, *found)}
    if continued:
        known = {call.call_id: ToolResult(call.call_id, _STOPPED, True) for call in turn.calls} | known
    elif not found:
        return turn.results
    return tuple(known[call.call_id] for call in turn.calls if call.call_id in known)


_STOPPED = "This call was stopped before it had a result."


def _is_one(messages: Any) -> bool:
    return isinstance(messages, (Message, ToolResult, str, Mapping)) or not isinstance(messages, Iterable)


def _turn(message: Message, readers: Set[str] | None) -> Turn:
    """A message as a turn, with the signatures for these readers; with `None` without reasoning."""
    results: list[ToolResult] = []
    blocks: list[ContentPart | ToolCall] = []
    for block in message.blocks:
        said = unsigned(block) if readers is None else readable(block, readers)
        if said is not None:
            blocks.append(said)
        if isinstance(block, ContentPart) or block.type == "server_tool_call":
            continue
        if block.result is not None:
            results.append(attrs.evolve(block.result, call_id=block.call_id))
        elif block.type == "invalid_tool_call":
            results.append(ToolResult(block.call_id, f"This call could not be read: {block.error}", True))
    return Turn(message.role, tuple(blocks), tuple(results), message, readers is not None)


def _results_in(message: Message, place: int) -> tuple[ToolResult, ...]:
    """The results in a message of role `tool`: those of its calls, or its text for the call that it names."""
    results = [
        attrs.evolve(block.result, call_id=block.call_id)
        for block in message.blocks
        if isinstance(block, ToolCall) and block.result is not None
    ]
    call_id = message.metadata.get("tool_call_id")
    texts = [block.text or "" for block in message.blocks if isinstance(block, ContentPart)]
    if isinstance(call_id, str):
        results.append(ToolResult(call_id, "".join(texts), message.metadata.get("is_error") is True))
    elif texts or not results:
        wanted = "of role tool must hold calls with results, or name its call as metadata['tool_call_id']"
        raise InvalidValueError.of([(f"messages[{place}]", message, wanted)])
    return tuple(results)


def messages_of(
    turns: Sequence[Turn | Native],
    *,
    user: Callable[[Turn], dict[str, Any]],
    assistant: Callable[[Turn], dict[str, Any] | None],
    result: Callable[[ToolResult, ToolCall | None], dict[str, Any]],
    media: Callable[[ToolResult], list[dict[str, Any]] | None] = lambda _: None,
) -> list[dict[str, Any]]:
    """The messages of a request in which every result is a message of its own.

    Args:
        turns: The conversation.
        user: Writes a message of the user or the system.
        assistant: Writes a message of the assistant; `None` if nothing of it may be sent.
        result: Writes a result, with its call if that is in the same turn.
        media: The parts of a result for which `result` has no place. They follow as a message of the user's.
    """
    messages: list[dict[str, Any]] = []
    for turn in turns:
        if isinstance(turn, Mapping):
            messages.append(thaw(turn))
            continue
        if turn.role == "assistant":
            message = assistant(turn)
            messages += [] if message is None else [message]
        elif turn.role != "tool":
            messages.append(user(turn))
        calls = {call.call_id: call for call in turn.calls}
        messages += [result(found, calls.get(found.call_id)) for found in turn.results]
        shown = [part for found in turn.results for part in media(found) or ()]
        messages += [{"role": "user", "content": shown}] if shown else []
    return messages


def text_or_parts(
    turn: Turn, write: Callable[[ContentPart, str], dict[str, Any]]
) -> str | list[dict[str, Any]]:
    """The content of a turn: a string if it is only text, which every vendor takes; else the parts as written."""
    if all(part.type == "text" for part in turn.parts):
        return turn.text
    return [write(part, turn.role) for part in turn.parts]


def text_of(value: Any) -> str:
    """A JSON value as text for a model: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(thaw(value), ensure_ascii=False)


def result_text(result: ToolResult) -> str:
    """A result as text. Parts that are all text, as MCP and Anthropic have them, are one text."""
    parts = result_parts(result.content)
    if parts and all(part.type == "text" for part in parts):
        return "".join(part.text or "" for part in parts)
    return "" if result.content is None else text_of(result.content)


def result_media(
    result: ToolResult, write: Callable[[ContentPart], dict[str, Any]]
) -> list[dict[str, Any]] | None:
    """The texts and media of a result, written; `None` if text says all of it, or `write` has no place for a part."""
    parts = result_parts(result.content)
    if all(part.type == "text" for part in parts):
        return None
    try:
        return [write(part) for part in parts]
    except InvalidValueError:
        return None


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """A call's arguments as an object, for a provider that takes nothing else. It wraps an invalid call's text."""
    arguments = thaw(call.arguments)
    if isinstance(arguments, dict):
        return arguments  # pyright: ignore[reportUnknownVariableType]
    return {"invalid_arguments": arguments} if arguments else {}


def refuse(wire_format: str, block: ContentPart | ToolCall, role: str) -> InvalidValueError:
    """The error for a user's content that the format has no place for. Without it, the question would change."""
    return InvalidValueError.of(
        [("messages", block, f"holds {block.type} from the {role}, which {wire_format} has no place for")]
    )
