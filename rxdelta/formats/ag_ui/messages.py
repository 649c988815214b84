"""The messages that an AG-UI client sends with each run → messages for the next request."""

# Messages are JSON without types; every value is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Any

import attrs

from rxdelta.core import (
    Approval,
    Block,
    CallType,
    ContentPart,
    InvalidJson,
    InvalidValueError,
    Message,
    MessageRole,
    ToolCall,
    ToolResult,
    block_from_wire,
    decision_of,
    denied_result,
    freeze,
    is_mapping,
    parse_arguments,
    parse_json,
)
from rxdelta.formats.admission import Admission
from rxdelta.formats.ag_ui.marks import (
    BLOCK,
    CITATIONS,
    DISCARDED,
    ENCRYPTED,
    ERROR,
    IS_ERROR,
    JSON,
    LENGTH,
    PARTS,
    RUN_ID,
    SIGNATURE,
    TYPE,
    UNRUN,
    fields_of,
    is_ours,
    marks_of,
    reply_id,
)
from rxdelta.formats.ag_ui.run_input import Answers
from rxdelta.formats.decoding import Json, kept, word
from rxdelta.formats.front_ends import place_in, put_back

_MEDIA = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
_ROLES = "user, assistant, tool, reasoning, activity, system or developer"


def from_ag_ui(run_input: object, *, system: bool = False, allow: Collection[str] = ()) -> list[Message]:
    """The messages of an AG-UI request, for `to_request`; `decode` reads what `to_ag_ui` writes.

    The messages that one reply became are one message again, with its reasoning, and its calls have their results.
    Content for which AG-UI has no field comes back, if `to_ag_ui` sent it: signatures, encrypted reasoning, citations, the
    results of the provider's own tools. A call whose arguments can't be read is an invalid call. Left out are the messages
    of sub-agents, and activities that `to_ag_ui` didn't write.

    The calls that waited for a person's decision, and that `resume` allows, wait still (`awaiting_approval`): whether
    they run is the word of `approve` in `run_tools`, which `approvals_from_ag_ui` helps to give. Those that it refuses have
    failed, with the refusal as their result.

    The client sends all messages, also the assistant's and the tools', and may have changed them. Where that matters,
    take only the last message from the client and the others from your own storage. A client can't make the provider
    read what the server's key may read: an address with a scheme other than `https`, `http` and `data`, or the id of a
    file, is refused in a person's message or a tool's result; in an assistant's message the part with it is left out.
    Items of a reply in the provider's own form come back only if a model makes such items.

    Args:
        run_input: The `RunAgentInput`, as object or as JSON; or its messages alone.
        system: Whether to accept messages of the roles `system` and `developer`. Anybody who can send a request can add
            them.
        allow: Addresses that the client may name nevertheless: schemes of addresses, such as `s3` and `gs`; `file_id`, the
            files that are stored with the provider; `tool_definitions`, the provider's tools that a client's tool
            search found.

    Raises:
        InvalidValueError: A message is not an AG-UI message, names what isn't allowed, or is a system message without
            `system=True`; or `resume` can't be read. The error names the message or the entry.

    Example:
        >>> import rxdelta as rd
        >>> run_input = {"threadId": "t", "runId": "r", "messages": [{"id": "1", "role": "user", "content": "Hi"}]}
        >>> rd.to_request(rd.from_ag_ui(run_input), "openai-chat")
        {'messages': [{'role': 'user', 'content': 'Hi'}]}
    """
    admission, conversation = Admission(allow), _Conversation(system, Answers(run_input))
    for place, message in enumerate(_messages_in(run_input)):
        path = f"messages[{place}]"
        conversation.add(_as_json(message, path), path)
    conversation.decide()
    return admission.messages((turn.message(), turn.path) for turn in conversation.turns)


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
    """A message of ours, put together from one or more of AG-UI's."""

    def __init__(self, role: MessageRole, id: str | None, path: str, metadata: Json | None = None) -> None:
        self.role: MessageRole = role
        self.id = id
        self.path = path  # of the first AG-UI message
        self.metadata = metadata
        self.blocks: list[Block] = []
        self.only_reasoning = True
        self.calls: dict[str, int] = {}  # their places in `blocks`
        self._outputs: dict[int, list[Block]] = {}  # of the provider's tools, by the place of their call
        self._late: list[tuple[int, Block]] = []  # those that don't follow it

    def add(self, *blocks: Block) -> None:
        for block in blocks:
            if isinstance(block, ToolCall):
                self.calls.setdefault(block.call_id or "", len(self.blocks))
            self.only_reasoning = self.only_reasoning and block.type == "reasoning"
            self.blocks.append(block)

    def add_output(self, call_id: str, output: Block, place: int | None) -> None:
        if place is None:
            self._outputs.setdefault(self.calls[call_id], []).append(output)
        else:
            self._late.append((place, output))

    def settle(self, call_id: str, status: str, result: ToolResult | None = None) -> None:
        """Give a call a status and a result."""
        place = self.calls[call_id]
        call = self.blocks[place]
        if isinstance(call, ToolCall):
            metadata = {**call.metadata, "execution_status": status}
            self.blocks[place] = attrs.evolve(call, result=result, metadata=metadata)

    def decide(self, call_id: str, answer: Approval) -> None:
        """Give a call that waited the person's decision, unless it is settled. Whether it may run isn't said here."""
        call = self.blocks[self.calls[call_id]]
        if not isinstance(call, ToolCall) or call.result is not None or call.type == "invalid_tool_call":
            return
        if answer.approved:
            self.settle(call_id, "awaiting_approval")
        else:
            self.settle(call_id, "failed", denied_result(call_id, answer.reason))

    def message(self) -> Message:
        blocks = [one for n, block in enumerate(self.blocks) for one in (block, *self._outputs.get(n, ()))]
        blocks = put_back(blocks, self._late)
        return Message(role=self.role, id=self.id, blocks=blocks, metadata=self.metadata)


class _Conversation:
    """The messages so far."""

    def __init__(self, system: bool, answers: Answers) -> None:
        self._system = system
        self._answers = answers
        self.turns: list[_Turn] = []
        self._last: dict[str | None, _Turn] = {}  # by run: its last reply since something else than a reply
        self._calls: dict[str, tuple[_Turn, str]] = {}

    def add(self, message: Json, path: str) -> None:
        role = message.get("role")
        if word(message.get("subagentRunId")) is not None:
            return
        if role in ("system", "developer"):
            if not self._system:
                wanted = "is allowed with system=True only: anybody could have written it"
                raise InvalidValueError.of([(f"{path}.role", role, wanted)])
            self._prompt(message, "system", path)
        elif role == "user":
            self._prompt(message, "user", path)
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

    def _prompt(self, message: Json, role: MessageRole, path: str) -> None:
        turn = _Turn(role, word(message.get("id")), path)
        content = message.get("content")
        if isinstance(content, str):
            turn.add(ContentPart("text", content))
        elif isinstance(content, (list, tuple)):
            turn.add(*(_part(one, f"{path}.content[{n}]") for n, one in enumerate(content)))
        else:
            raise InvalidValueError.of([(f"{path}.content", content, "must be a string or a list of parts")])
        self._interpose(turn)

    def _turn(self, message: Json, path: str) -> _Turn:
        """The reply that a message belongs to. A reply continues under numbered ids, and after its reasoning."""
        base, run = reply_id(word(message.get("id")) or ""), _run_of(message)
        last = self._last.get(run)
        if last is not None:
            if last.id == base:
                return last
            if last.only_reasoning:
                last.id = base or None
                return last
        turn = self._last[run] = _Turn("assistant", base or None, path)
        self.turns.append(turn)
        return turn

    def _interpose(self, turn: _Turn) -> None:
        """Add something else than a reply: none goes on behind it."""
        self.turns.append(turn)
        self._last.clear()

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
        marks, encrypted = marks_of(message), word(message.get("encryptedValue"))
        options = fields_of("reasoning", marks)
        if encrypted is not None:
            options[word(marks.get(ENCRYPTED)) or SIGNATURE] = encrypted
        if content or options:
            self._turn(message, path).add(ContentPart("reasoning", content or "", options))

    def _activity(self, message: Json, path: str) -> None:
        kind, content = message.get("activityType"), message.get("content")
        if not is_ours(kind) or kind == DISCARDED:
            return
        if not is_mapping(content):
            raise InvalidValueError.of([(f"{path}.content", content, "must be an object")])
        self._turn(message, path).add(_from_wire(content))

    def _result(self, message: Json, path: str) -> None:
        call_id, marks = message.get("toolCallId"), marks_of(message)
        if not isinstance(call_id, str):
            raise InvalidValueError.of([(f"{path}.toolCallId", call_id, "must be a string")])
        if marks.get(UNRUN) or self._answers.are_repeated_by(call_id, message.get("content")):
            return
        content = _result_content(message.get("content"), marks, f"{path}.content")
        turn, kind = self._calls.get(call_id, (None, ""))
        own = marks.get(BLOCK)
        if is_mapping(own) and turn is not None:
            output = {} if content in (None, "") else {"output": content}
            block = _from_wire({**own, "type": "server_tool_result", "tool_call_id": call_id, **output})
            turn.add_output(call_id, block, place_in(marks))
            return
        failed = marks.get(IS_ERROR) is True or word(message.get("error")) is not None
        if failed and content in (None, ""):
            content = word(message.get("error")) or ""
        result = ToolResult(call_id, content, failed, metadata=fields_of("call", marks))
        decision = decision_of(result)
        if turn is not None and kind == "server_tool_call" and decision is not None:
            turn.decide(call_id, decision)  # what the browser says is allowed waits all the same
            return
        if turn is None or kind == "server_tool_call":
            text = content if isinstance(content, str) else str(message.get("content") or "")
            more = {"tool_call_id": call_id} | ({"is_error": True} if failed else {})
            stray = _Turn("tool", word(message.get("id")), path, more)
            stray.add(ContentPart("text", text))
            self._interpose(stray)
            return
        turn.settle(call_id, "failed" if failed else "completed", result)

    def decide(self) -> None:
        """Give the calls that waited the person's decisions."""
        for call_id, answer in self._answers.approvals.items():
            turn, _ = self._calls.get(call_id, (None, ""))
            if turn is not None:
                turn.decide(call_id, answer)


def _run_of(message: Json) -> str | None:
    """Another run than the first. A message that a call began has no marks, but the call has."""
    calls = message.get("toolCalls")
    first = calls[:1] if isinstance(calls, (list, tuple)) else ()
    found = (word(marks_of(one).get(RUN_ID)) for one in (message, *first) if is_mapping(one))
    return next(filter(None, found), None)


def _from_wire(content: Json) -> Block:
    block = block_from_wire(kept(content), None)
    return attrs.evolve(block, _open=False)


def _texts(content: str, message: Json) -> list[ContentPart]:
    """The blocks that a text message consists of, if its marks say so and still match the text."""
    marks, encrypted = marks_of(message), word(message.get("encryptedValue"))
    parts = marks.get(PARTS)
    known = [part for part in parts if is_mapping(part)] if isinstance(parts, (list, tuple)) else []
    lengths: list[Any] = [part.get(LENGTH) for part in known]
    blocks: list[ContentPart] = []
    if not all(type(length) is int and length >= 0 for length in lengths) or sum(lengths) != len(content):
        if content:
            blocks.append(ContentPart("text", content))
    else:
        at = 0
        for part, length in zip(known, lengths):
            blocks.append(_text(content[at : at + length], part))
            at += length
    if encrypted is not None:
        last = blocks.pop() if blocks else ContentPart("text", "")
        blocks.append(attrs.evolve(last, options={**last.options, SIGNATURE: encrypted}))
    return blocks


def _text(content: str, part: Json) -> ContentPart:
    fields = fields_of("text", {PARTS: [part]})
    citations = fields.pop(CITATIONS, None)
    kind = "refusal" if part.get(TYPE) == "refusal" else "text"
    return ContentPart(kind, content, fields, citations)


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
    marks, encrypted = marks_of(call), word(call.get("encryptedValue"))
    metadata = fields_of("call", marks)
    if encrypted is not None:
        metadata[SIGNATURE] = encrypted
    marked, problem = marks.get(TYPE), word(marks.get(ERROR))
    kind: CallType = marked if marked in ("server_tool_call", "invalid_tool_call") else "tool_call"
    arguments: Any = text or ""
    try:
        if kind != "invalid_tool_call":
            arguments = parse_arguments(arguments) if arguments else {}
    except InvalidJson as error:
        problem = error.reason
    if kind == "tool_call" and (problem or not call_id or not name):
        kind, problem = "invalid_tool_call", problem or "the call has no id or no name"
    whole = kind != "invalid_tool_call" and not isinstance(arguments, str)
    return ToolCall(
        call_id=call_id,
        name=name,
        arguments=arguments,
        status="complete" if whole else "incomplete",
        metadata=metadata,
        type=kind,
        error=problem or ("marked invalid by its source" if kind == "invalid_tool_call" else None),
    )


def _result_content(content: Any, marks: Json, path: str) -> Any:
    """The content of a tool's result. Parts that are all text become one string."""
    if isinstance(content, str):
        if marks.get(JSON):
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
    options = {own: value for own, name in names.items() if (value := word(known.get(name))) is not None}
    return ContentPart(kind, word(known.get("data")), options)


_KIND_OF = {"image": "image", "audio": "audio", "video": "video"}
