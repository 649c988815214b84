"""A conversation as turns, from which every format writes its request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, TypeAlias

import attrs

from rxdelta.core import ContentPart, InvalidValueError, Message, Snapshot, ToolCall, ToolResult, thaw
from rxdelta.formats.given_parts import result_parts
from rxdelta.formats.signatures import readable, unsigned

__all__ = [
    "Native",
    "Said",
    "Turn",
    "arguments_of",
    "conversation",
    "messages_of",
    "refuse",
    "result_media",
    "result_text",
    "text_of",
    "text_or_parts",
]

Native: TypeAlias = Mapping[str, Any]
"""An item that is already in the provider's own form; it passes through as it is."""

Said: TypeAlias = Message | ToolResult | str | Mapping[str, Any]
"""One item of a conversation."""


@attrs.frozen
class Turn:
    """A message of one side, with the results of its calls.

    Attributes:
        role: `system`, `user`, `assistant`, or `tool` for results whose calls are not in the conversation.
        blocks: The content, in order. Of an assistant's message only the blocks that may be sent back.
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
