"""Events → chunks of a streamed chat completion, which every client of OpenAI's Chat Completions reads.

    stream = chunk* error? DONE
    chunk  = id object created model choices: [choice?] usage?
    choice = index delta finish_reason
    delta  = role? content? reasoning_content? refusal? tool_calls? annotations? images? audio?

A completion is one message: texts without a mark of their start or end, and calls for the client to run. A client runs all
calls that it sees. So it sees only those of the last message, without those that somebody has begun to run or that are known
to be invalid; unless `tools` names the tools of the server, they wait for the end of the stream, when that is certain. Messages
before the last, such as an agent's turns, are texts in front of its own.

Nothing can be taken back. If a reply that the client has text of begins again, the stream ends with the error. A text that its end
corrects stays as it was said.

The finish reasons, the usage of all messages and `DONE` come at the end of the source. A reply that has broken off has
neither reason nor usage, but the error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

from rxdelta.core import (
    DEFAULT_LIMITS,
    PIECE_FIELDS,
    ByChoice,
    Event,
    InvalidValueError,
    Limits,
    ProviderError,
    StreamInterrupted,
    ToolCall,
    clean_text,
)
from rxdelta.core.events import (
    EVENT_TYPES,
    Custom,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    ToolUpdate,
)
from rxdelta.formats.encoding import Masked, cut_off, masked, not_an_event, shown_error
from rxdelta.formats.openai_chat.chunks import ErrorText, OpenAiChatFrame
from rxdelta.formats.openai_chat.run_chunks import ChoiceChunks
from rxdelta.formats.openai_chat.usage import most_of, sum_of, written_usage
from rxdelta.framing import DONE, Done

__all__ = ["Chunks", "OpenAiChatEncoder"]

Frame: TypeAlias = OpenAiChatFrame | Done

_piece_field = PIECE_FIELDS.get  # bound once, because it runs for every event


class Chunks:
    """Writes the chunks of one completion, which all have its head.

    Args:
        now: The time, in seconds since 1970.
        new_id: An id for a reply that has none.
        model: The model's name for the client; `None` for the reply's own.
        tools: The names of the tools that the server runs; `None` if they aren't known.
        reasoning: Whether reasoning is sent.

    Attributes:
        out: The chunks that are yet to be taken.
        reasoning: Whether reasoning is sent.
    """

    def __init__(
        self,
        now: Callable[[], float],
        new_id: Callable[[], str],
        model: str | None,
        tools: Collection[str] | None,
        reasoning: bool,
    ) -> None:
        self.out: list[Any] = []
        self.reasoning = reasoning
        self._now = now
        self._new_id = new_id
        self._model = model
        self._tools = None if tools is None else frozenset(tools)
        self._head: dict[str, Any] = {}

    def streams(self, call: ToolCall) -> bool:
        """Whether it is certain already that the call is the client's to run."""
        return self._tools is not None and bool(call.name) and call.name not in self._tools

    def keeps(self, call: ToolCall) -> bool:
        """Whether the call is the server's, whether or not it has been run."""
        return self._tools is not None and call.name in self._tools

    def know(self, event: MessageStart | MessageFinish) -> None:
        """Read what an event says of the whole reply. What the first chunk said counts."""
        head, created = self._head, event.metadata.get("created")
        if event.id is not None:
            head.setdefault("id", clean_text(event.id))
        if type(created) is int:
            head.setdefault("created", created)
        if event.model is not None and not head.get("model"):
            head["model"] = clean_text(event.model)

    def write(self, choice: int, delta: Any, finish_reason: str | None) -> None:
        self.append([{"index": choice, "delta": delta, "finish_reason": finish_reason}])

    def append(self, choices: list[Any], **more: Any) -> None:
        """Append a chunk with these choices."""
        head = self._head
        if "created" not in head or "id" not in head:
            head = self._head = {"id": clean_text(self._new_id()), "created": int(self._now()), **head}
        self.out.append(
            {
                "id": head["id"],
                "object": "chat.completion.chunk",
                "created": head["created"],
                "model": head.get("model", "") if self._model is None else self._model,
                "choices": choices,
                **more,
            }
        )

    def take(self) -> Sequence[Frame]:
        out, self.out = self.out, []
        return out


class OpenAiChatEncoder:
    """The chunks of one chat completion.

    Args:
        now: The time, in seconds since 1970.
        new_id: An id for a reply that has none.
        model, tools, include_usage, on_error, reasoning, limits: As for `rxdelta.to_openai_chat`.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.OpenAiChatEncoder(now=lambda: 1.5, new_id=lambda: "c1")
        >>> (chunk,) = encoder.encode(rd.events.MessageStart())
        >>> chunk["id"], chunk["choices"]
        ('c1', [{'index': 0, 'delta': {'role': 'assistant', 'content': ''}, 'finish_reason': None}])
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        model: str | None = None,
        tools: Collection[str] | None = None,
        include_usage: bool = True,
        on_error: Masked = masked,
        reasoning: bool = True,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        _check_options(model, tools)
        self._chunks = Chunks(now, new_id, None if model is None else clean_text(model), tools, reasoning)
        self._include_usage = include_usage
        self._on_error = on_error
        self._limits = limits
        self._choices: dict[int, ChoiceChunks] = ByChoice(limits)
        self._over = False

    def encode(self, event: Event, /) -> Sequence[Frame]:
        """The chunks of one event; none after the end.

        Raises:
            InvalidValueError: It is no event.
            LimitExceededError: A block, its index or their number is too large, or there are too many choices or runs.
        """
        if self._over:
            return ()
        given: Any = event
        kind: Any = type(event)
        field = _piece_field(kind)
        if field is not None:
            choice = self._choices.get(given.choice)
            runs = None if choice is None else choice.runs
            if runs is not None and (given.run_id == runs.newest_id or runs.turn_to(given.run_id)):
                if (fold := runs.grow(event)) is not None:
                    fold.place.grow(getattr(given, field))
                return self._chunks.take()
        if kind not in EVENT_TYPES:
            raise not_an_event(event)
        if kind is ProviderEvent or kind is Custom:
            return ()
        try:
            for choice in self._concerned(event):
                for run in choice.runs.of(event):
                    run.encode(event)
        except (ProviderError, StreamInterrupted) as error:
            return self.fail(error)
        return self._chunks.take()

    def _concerned(self, event: Any) -> Sequence[ChoiceChunks]:
        """The choices that an event concerns."""
        index = getattr(event, "choice", None)
        if index is None and (self._choices or isinstance(event, ToolUpdate)):
            return [*self._choices.values()]
        index = index or 0
        choice = self._choices.get(index)
        if choice is None:
            choice = self._choices[index] = ChoiceChunks(self._chunks, index, self._limits)
        return [choice]

    def fail(self, error: Exception, /) -> Sequence[Frame]:
        """The stream ended with an error: send what waits, the masked error, and `DONE`."""
        if self._over:
            return ()
        for choice in self._choices.values():
            choice.break_off()
        return self._end({"message": shown_error(self._on_error, error), "type": "server_error"})

    def close(self) -> Sequence[Frame]:
        """The stream completed: send why each choice ended, the usage, and `DONE`. If one hadn't, it was cut off."""
        if self._over:
            return ()
        choices = self._choices.values()
        if not choices or not all(choice.runs.over for choice in choices):
            return self.fail(cut_off())
        try:
            reasons = [choice.finish() for choice in choices]
        except StreamInterrupted as error:
            return self.fail(error)
        interrupted = next((reason for reason in reasons if reason is not None), None)
        if interrupted is not None:
            return self._end({"message": clean_text(interrupted), "type": "interrupted"})
        counts = most_of(sum_of(run.usage() for run in choice.runs) for choice in choices)
        usage = written_usage(counts) if self._include_usage else None
        if usage is not None:
            self._chunks.append([], usage=usage)
        return self._end(None)

    def _end(self, error: ErrorText | None) -> Sequence[Frame]:
        self._over = True
        if error is not None:
            self._chunks.out.append({"error": error})
        return [*self._chunks.take(), DONE]


def _check_options(model: object, tools: object) -> None:
    """Refuse options that make no sense.

    Raises:
        InvalidValueError: Naming the first that is wrong.
    """
    if not isinstance(model, (str, type(None))):
        raise InvalidValueError.of([("model", model, "must be a string")])
    if isinstance(tools, (str, bytes)) or not isinstance(tools, (Collection, type(None))):
        raise InvalidValueError.of(
            [("tools", tools, "must be the names of tools, such as those that run_tools has")]
        )
