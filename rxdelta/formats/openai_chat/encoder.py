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

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias

from rxdelta.core import DEFAULT_LIMITS, Limits
from rxdelta.core.events import ToolUpdate
from rxdelta.formats.encoding import Masked, masked
from rxdelta.formats.openai_chat.choice_chunks import ChoiceChunks, Chunks
from rxdelta.formats.openai_chat.chunks import OpenAiChatFrame
from rxdelta.formats.openai_chat.usage import written_usage
from rxdelta.formats.reply import Choice, ReplyEncoder
from rxdelta.formats.reply.usage import most_of
from rxdelta.framing import DONE, Done

__all__ = ["OpenAiChatEncoder"]

Frame: TypeAlias = OpenAiChatFrame | Done


class OpenAiChatEncoder(ReplyEncoder[Frame]):
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
        chunks = Chunks(now=now, new_id=new_id, model=model, tools=tools, reasoning=reasoning)
        super().__init__(chunks, ChoiceChunks, on_error=on_error, limits=limits)
        self._chunks = chunks
        self._include_usage = include_usage

    def _concerned(self, event: Any) -> Sequence[Choice]:
        index = getattr(event, "choice", None)
        if index is None and (self._choices or isinstance(event, ToolUpdate)):
            return [*self._choices.values()]
        return [self._choice(index or 0)]

    def _ended(self, choices: Iterable[Choice]) -> None:
        usage = written_usage(most_of(choice.usage() for choice in choices)) if self._include_usage else None
        if usage is not None:
            self._chunks.append([], usage=usage)
        self._chunks.out.append(DONE)
