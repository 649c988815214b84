"""The messages that an AG-UI client sends with each run, as those that the next request is made of."""

# Messages are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import attrs

from rxdelta.core import (
    Block,
    ContentPart,
    InvalidJson,
    InvalidValueError,
    Message,
    ToolCall,
    ToolResult,
    block_from_wire,
    freeze,
    is_mapping,
    parse_json,
    parse_object,
)
from rxdelta.formats.admission import Admission
from rxdelta.formats.ag_ui.decoder import base_of, facts_of, fields_of
from rxdelta.formats.decoding import kept, word

__all__ = ["from_ag_ui"]

Json: TypeAlias = Mapping[str, Any]

_MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
_ROLES = "user, assistant, tool, reasoning, activity, system or developer"


def from_ag_ui(run_input: object, *, system: bool = False, allow: Collection[str] = ()) -> list[Message]:
    """The messages of an AG-UI request, for `to_request`.

    What an assistant said in one go is one message, with its reasoning, and its calls have their results. What
    `to_ag_ui` couldn't tell otherwise comes back: signatures, encrypted reasoning, citations, what the provider's
    own tools gave. A call whose arguments can't be read is an invalid one. Activities of others are left out.

    The client says what all of them said, the assistant and the tools too. Where that matters, take only the
    last message from it and the others from where you stored them. It can't have the provider read what the
    server's key may read: an address of another scheme than `https`, `http` and `data`, or the id of a file, is
    refused in what a person or a tool says, and left out with its part in what a model is said to have said. Of a
    reply's items in the provider's own form only those come back that models make.

    Args:
        run_input: The `RunAgentInput`, as object or as JSON; or its messages alone.
        system: Whether to take messages of the roles `system` and `developer`, which whoever writes requests
            may add.
        allow: What the client may name nevertheless: schemes of addresses, such as `s3` and `gs`; `file_id`, the
            files that are stored with the provider; `tool_definitions`, tools of the provider's that a client's
            tool search found.

    Raises:
        InvalidValueError: Something is no AG-UI message, names what isn't allowed, or is a system message that
            isn't allowed; names it.

    Example:
        >>> import rxdelta as rd
        >>> run_input = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "Hi"}]}
        >>> rd.to_request(rd.from_ag_ui(run_input), "openai-chat")
        {'messages': [{'role': 'user', 'content': 'Hi'}]}
    """
    admission, reading = Admission(allow), _Reading(system)
    for place, message in enumerate(_messages_in(run_input)):
        path = f"messages[{place}]"
        reading.take(_as_json(message, path), path)
    return admission.messages((turn.message(), turn.path) for turn in reading.turns)


def _messages_in(run_input: Any) -> Iterable[Any]:
    if is_mapping(run_input):
        run_input = run_input.get("messages")
    messages = getattr(run_input, "messages", run_input)
    if isinstance(messages, (list, tuple)):
        return messages
    raise InvalidValueError.of([("messages", messages, "must be a RunAgentInput, or a list of messages")])


def _as_json(message: Any, path: str) -> Json:
    if is_mapping(message):
        return message
    dump = getattr(message, "model_dump", None)
    found = dump(by_alias=True) if callable(dump) and not isinstance(message, type) else None
    if is_mapping(found):
        return found
    raise InvalidValueError.of([(path, message, "must be an AG-UI message")])


class _Turn:
    """A message that is being put together."""

    def __init__(self, role: str, id: str | None, path: str, metadata: Json | None = None) -> None:
        self.role, self.id = role, id
        self.path = path  # of the first message that it is
        self.metadata = metadata
        self.blocks: list[Block] = []
        self.only_thinks = True
        self.calls: dict[str, int] = {}  # where each is
        self._outputs: dict[int, list[Block]] = {}  # what stands behind a call, once all is known

    def add(self, *blocks: Block) -> None:
        for block in blocks:
            if isinstance(block, ToolCall):
                self.calls.setdefault(block.call_id or "", len(self.blocks))
            self.only_thinks = self.only_thinks and block.type == "reasoning"
            self.blocks.append(block)

    def give_back(self, call_id: str, output: Block) -> None:
        self._outputs.setdefault(self.calls[call_id], []).append(output)

    def message(self) -> Message:
        blocks = [one for n, block in enumerate(self.blocks) for one in (block, *self._outputs.get(n, ()))]
        return Message(role=self.role, id=self.id, blocks=blocks, metadata=self.metadata)


class _Reading:
    def __init__(self, system: bool) -> None:
        self._system = system
        self.turns: list[_Turn] = []
        self._calls: dict[str, tuple[_Turn, str]] = {}

    def take(self, message: Json, path: str) -> None:
        role = message.get("role")
        if role in ("system", "developer"):
            if not self._system:
                wanted = "is allowed with system=True only: anybody could have written it"
                raise InvalidValueError.of([(f"{path}.role", role, wanted)])
            self._said(message, "system", path)
        elif role == "user":
            self._said(message, "user", path)
        elif role == "assistant":
            self._assistant(message, path)
        elif role == "reasoning":
            self._reasoning(message, path)
        elif role == "tool":
            self._result(message, path)
        elif role == "activity":
            self._activity(message, path)
        else:
            raise InvalidValueError.of([(f"{path}.role", role, f"must be {_ROLES}")])

    def _said(self, message: Json, role: str, path: str) -> None:
        turn = _Turn(role, word(message.get("id")), path)
        content = message.get("content")
        if isinstance(content, str):
            turn.add(ContentPart("text", content))
        elif isinstance(content, (list, tuple)):
            turn.add(*(_part(one, f"{path}.content[{n}]") for n, one in enumerate(content)))
        else:
            raise InvalidValueError.of([(f"{path}.content", content, "must be a string or a list of parts")])
        self.turns.append(turn)

    def _turn(self, message: Json, path: str) -> _Turn:
        """The assistant's message that this is of: one goes on under numbered ids, and behind its reasoning."""
        base = base_of(word(message.get("id")) or "")
        last = self.turns[-1] if self.turns else None
        if last is not None and last.role == "assistant":
            if last.id == base:
                return last
            if last.only_thinks:
                last.id = base or None
                return last
        turn = _Turn("assistant", base or None, path)
        self.turns.append(turn)
        return turn

    def _assistant(self, message: Json, path: str) -> None:
        content, calls = message.get("content"), message.get("toolCalls")
        if not isinstance(content, (str, type(None))):
            raise InvalidValueError.of([(f"{path}.content", content, "must be a string")])
        if not isinstance(calls, (list, tuple, type(None))):
            raise InvalidValueError.of([(f"{path}.toolCalls", calls, "must be a list")])
        turn = self._turn(message, path)
        turn.add(*_texts(content or "", message))
        for n, call in enumerate(calls or ()):
            block = _call(call, f"{path}.toolCalls[{n}]")
            turn.add(block)
            self._calls[block.call_id or ""] = (turn, block.type)

    def _reasoning(self, message: Json, path: str) -> None:
        content = message.get("content")
        if not isinstance(content, (str, type(None))):
            raise InvalidValueError.of([(f"{path}.content", content, "must be a string")])
        facts, secret = facts_of(message), word(message.get("encryptedValue"))
        options = fields_of("reasoning", facts)
        if secret is not None:
            options[word(facts.get("encrypted")) or "signature"] = secret
        if content or options:
            self._turn(message, path).add(ContentPart("reasoning", content or "", options))

    def _activity(self, message: Json, path: str) -> None:
        kind, content = message.get("activityType"), message.get("content")
        if not isinstance(kind, str) or not kind.startswith("rxdelta.") or kind == "rxdelta.discarded":
            return
        if not is_mapping(content):
            raise InvalidValueError.of([(f"{path}.content", content, "must be an object")])
        self._turn(message, path).add(_from_wire(content))

    def _result(self, message: Json, path: str) -> None:
        call_id, facts = message.get("toolCallId"), facts_of(message)
        if not isinstance(call_id, str):
            raise InvalidValueError.of([(f"{path}.toolCallId", call_id, "must be a string")])
        if facts.get("unrun"):
            return
        content = _given(message.get("content"), facts, f"{path}.content")
        turn, kind = self._calls.get(call_id, (None, ""))
        own = facts.get("block")
        if is_mapping(own) and turn is not None:
            output = {} if content in (None, "") else {"output": content}
            block = _from_wire({**own, "type": "server_tool_result", "tool_call_id": call_id, **output})
            turn.give_back(call_id, block)
            return
        failed = facts.get("is_error") is True or word(message.get("error")) is not None
        if failed and content in (None, ""):
            content = word(message.get("error")) or ""
        if turn is None or kind == "server_tool_call":
            said = content if isinstance(content, str) else str(message.get("content") or "")
            more = {"tool_call_id": call_id} | ({"is_error": True} if failed else {})
            stray = _Turn("tool", word(message.get("id")), path, more)
            stray.add(ContentPart("text", said))
            self.turns.append(stray)
            return
        place = turn.calls[call_id]
        call = turn.blocks[place]
        status = {"execution_status": "failed" if failed else "completed"}
        if isinstance(call, ToolCall):
            turn.blocks[place] = attrs.evolve(
                call,
                result=ToolResult(call_id, content, failed),
                metadata={**call.metadata, **status},
            )


def _from_wire(content: Json) -> Block:
    block = block_from_wire(kept(content), None)
    return attrs.evolve(block, open=False)


def _texts(content: str, message: Json) -> list[ContentPart]:
    """The parts that a text was made of, as far as its metadata tells them and still fits."""
    facts, secret = facts_of(message), word(message.get("encryptedValue"))
    parts = facts.get("parts")
    known = [part for part in parts if is_mapping(part)] if isinstance(parts, (list, tuple)) else []
    lengths: list[Any] = [part.get("length") for part in known]
    blocks: list[ContentPart] = []
    if not all(type(length) is int and length >= 0 for length in lengths) or sum(lengths) != len(content):
        if content:
            blocks.append(ContentPart("text", content))
    else:
        at = 0
        for part, length in zip(known, lengths):
            blocks.append(_text(content[at : at + length], part))
            at += length
    if secret is not None:
        last = blocks.pop() if blocks else ContentPart("text", "")
        blocks.append(attrs.evolve(last, options={**last.options, "signature": secret}))
    return blocks


def _text(said: str, part: Json) -> ContentPart:
    fields = fields_of("text", {"parts": [part]})
    citations = fields.pop("citations", None)
    kind = "refusal" if part.get("type") == "refusal" else "text"
    return ContentPart(kind, said, fields, citations)


def _call(found: Any, path: str) -> ToolCall:
    call = found if is_mapping(found) else _as_json(found, path)
    function = call.get("function")
    if not is_mapping(function):
        raise InvalidValueError.of([(f"{path}.function", function, "must be an object")])
    call_id, name, text = call.get("id"), function.get("name"), function.get("arguments")
    for field, value in (("id", call_id), ("function.name", name)):
        if not isinstance(value, str):
            raise InvalidValueError.of([(f"{path}.{field}", value, "must be a string")])
    if not isinstance(text, (str, type(None))):
        raise InvalidValueError.of([(f"{path}.function.arguments", text, "must be a string")])
    facts, secret = facts_of(call), word(call.get("encryptedValue"))
    metadata = fields_of("call", facts)
    if secret is not None:
        metadata["signature"] = secret
    kind, wrong = facts.get("type"), word(facts.get("error"))
    kind = kind if kind in ("server_tool_call", "invalid_tool_call") else "tool_call"
    arguments: Any = text or ""
    try:
        if kind != "invalid_tool_call":
            arguments = parse_object(arguments) if arguments else {}
    except InvalidJson as error:
        wrong = error.reason
    if kind == "tool_call" and (wrong or not call_id or not name):
        kind, wrong = "invalid_tool_call", wrong or "the call has no id or no name"
    whole = kind != "invalid_tool_call" and not isinstance(arguments, str)
    return ToolCall(
        call_id=call_id,
        name=name,
        arguments=arguments,
        status="complete" if whole else "incomplete",
        metadata=metadata,
        type=kind,
        error=wrong or ("marked invalid by its source" if kind == "invalid_tool_call" else None),
    )


def _given(content: Any, facts: Json, path: str) -> Any:
    """What a tool gave back; parts that are all text are one."""
    if isinstance(content, str):
        if facts.get("json"):
            with suppress(InvalidJson):
                return parse_json(content)
        return content
    if isinstance(content, (list, tuple)):
        parts = [_as_json(part, f"{path}[{n}]") for n, part in enumerate(content)]
        if all(part.get("type") == "text" and isinstance(part.get("text"), str) for part in parts):
            return "".join(part["text"] for part in parts)
        return freeze(parts, lenient=True)
    if content is None:
        return ""
    raise InvalidValueError.of([(path, content, "must be a string or a list of parts")])


def _part(found: Any, path: str) -> ContentPart:
    part = _as_json(found, path)
    kind, text = part.get("type"), part.get("text")
    if kind == "text" and isinstance(text, str):
        return ContentPart("text", text)
    if kind == "binary":  # before 1.0
        return _medium(_KIND_OF.get(str(part.get("mimeType")).partition("/")[0], "file"), part)
    source = part.get("source")
    own = _MEDIA.get(kind) if isinstance(kind, str) else None
    if own is None or not is_mapping(source):
        raise InvalidValueError.of([(path, found, "must be a text, or an image, audio, video or document")])
    where = {"data": "data", "url": "url", "file": "id"}.get(str(source.get("type")))
    value = source.get("value")
    if where is None or not isinstance(value, str):
        raise InvalidValueError.of([(f"{path}.source", source, "must have a type and a value")])
    more = part.get("metadata")
    filename = more.get("filename") if is_mapping(more) else None
    return _medium(own, {where: value, "mimeType": source.get("mimeType"), "filename": filename})


def _medium(kind: str, known: Json) -> ContentPart:
    names = {"mime_type": "mimeType", "url": "url", "file_id": "id", "filename": "filename"}
    options = {own: said for own, name in names.items() if (said := word(known.get(name))) is not None}
    return ContentPart(kind, word(known.get("data")), options)


_KIND_OF = {"image": "image", "audio": "audio", "video": "video"}
