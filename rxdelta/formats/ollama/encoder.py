"""Events → the stream of Ollama's `/api/chat`, which local front ends and Ollama's packages read.

    stream  = line* (last | error)
    line    = model created_at message: role content (thinking | images | tool_calls)? done: false
    last    = model created_at message: role content done: true done_reason prompt_eval_count? eval_count?
    error   = error                              a sentence

A client adds the texts of all lines, so they come in the order of their blocks. A call comes whole. A reply that has broken
off has no last line.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias, cast

from rxdelta.core import DEFAULT_LIMITS, BlockFold, ContentPart, Limits, ToolCall
from rxdelta.formats.encoding import Masked, masked
from rxdelta.formats.media import Medium, medium_of
from rxdelta.formats.ollama.request import written_image
from rxdelta.formats.ollama.tables import WORDS
from rxdelta.formats.reply import (
    CallItem,
    Counts,
    Item,
    Part,
    Reply,
    ReplyEncoder,
    Run,
    TextItem,
    Writer,
    is_whole,
)
from rxdelta.framing import NDJSON_HEADERS

__all__ = ["OllamaEncoder"]

Json: TypeAlias = dict[str, Any]

_BLANK_LINE: Final = "\n\n"
_COUNTS: Final[Mapping[str, str]] = {"prompt_eval_count": "input_tokens", "eval_count": "output_tokens"}


class Lines(Writer):
    """Writes the lines of one reply."""

    def emit(self, message: Mapping[str, Any], *, done: bool = False, **more: Any) -> None:
        said = {"role": "assistant", "content": "", **message}
        line = {"model": self.model, "created_at": self._created_at, "message": said, "done": done, **more}
        self.out.append(line)

    def end(self, reason: str, counts: Counts, /) -> None:
        found = {theirs: counts[ours] for theirs, ours in _COUNTS.items() if ours in counts}
        self.emit({}, done=True, done_reason=WORDS[reason], **found)

    def fail(self, message: str, _kind: str | None, _code: str | None, /) -> None:
        self.out.append({"error": message})

    @cached_property
    def _created_at(self) -> str:
        try:
            time = datetime.fromtimestamp(self.created, UTC)
        except (OverflowError, ValueError, OSError):  # the provider's time has no date
            time = datetime.fromtimestamp(int(self._now()), UTC)
        return time.isoformat().replace("+00:00", "Z")


class Message(Reply):
    """What the client has of the message."""

    writer: Lines

    def __init__(self, writer: Writer, index: int, limits: Limits) -> None:
        super().__init__(writer, index, limits)
        self._written: set[str] = set()  # the fields that have text
        self._breaks: set[str] = set()  # the fields whose next text is another message's

    def part_of(self, run: Run, fold: BlockFold, /) -> Part:
        block = fold.block
        if block.type in ("text", "refusal"):
            return _Text(run, fold)
        if block.type == "reasoning" and self.writer.reasoning:
            return _Thinking(run, fold)
        if isinstance(block, ToolCall) and block.type != "server_tool_call":
            return _Call(run, fold)
        return (
            _Image(run, fold)
            if isinstance(block, ContentPart) and block.type != "reasoning"
            else Part(run, fold)
        )

    def next_message(self) -> None:
        self._breaks = {*self._written}

    def say(self, field: str, piece: str) -> None:
        """Send a piece of text, behind a blank line if it begins another message's."""
        if field in self._breaks:
            self._breaks.remove(field)
            self.writer.emit({field: _BLANK_LINE})
        self._written.add(field)
        self.writer.emit({field: piece})


class _Text(TextItem):
    field: ClassVar = "content"

    def write_piece(self, piece: str, /) -> None:
        cast("Message", self.run.choice).say(self.field, piece)


class _Thinking(_Text):
    field: ClassVar = "thinking"


class _Image(Item):
    """Another content. Of all media, the protocol has images only, as data."""

    def _medium(self) -> Medium | None:
        medium = medium_of(cast("ContentPart", self.fold.block))
        return medium if medium is not None and medium.kind == "image" and medium.data else None

    def is_shown(self) -> bool:
        return self._medium() is not None

    def write_end(self) -> None:
        if (medium := self._medium()) is not None and medium.data:
            cast("Message", self.run.choice).writer.emit({"images": [written_image(medium.data)]})


class _Call(CallItem):
    """A call, which has its arguments as an object. There is no place for arguments that can't be read."""

    def comes_whole(self) -> bool:
        return True

    def write_end(self) -> None:
        function: Json = {
            "index": self.number,
            "name": self.call.name,
            "arguments": self.arguments_as_object(),
        }
        written = {"id": self.call_id, "function": function}
        cast("Message", self.run.choice).writer.emit({"tool_calls": [written]})

    def send_whole(self) -> None:
        """The call is the client's for certain, but it can't be written: the client must not take the reply for whole."""
        run = self.run
        if run.choice.writer.streams(self.call) and not (is_whole(self.call) or run.reason == "length"):
            run.take_back()
        super().send_whole()


class OllamaEncoder(ReplyEncoder[Json]):
    """The lines of one reply of Ollama's `/api/chat`, as JSON objects.

    Args:
        now: The time, in seconds since 1970, of a reply that has none.
        model, tools, on_error, reasoning, limits: As for `rxdelta.to_ollama`.
        choice: Which of several alternative replies is written.

    Raises:
        InvalidValueError: An argument that makes no sense.

    Example:
        >>> import rxdelta as rd
        >>> encoder = rd.wire.OllamaEncoder(now=lambda: 1.5, model="house")
        >>> lines = [line for event in rd.to_events(rd.Message.of("assistant", "Hi")) for line in encoder.encode(event)]
        >>> [line["message"] for line in lines]
        [{'role': 'assistant', 'content': 'Hi'}]
        >>> [(line["done"], line["done_reason"], line["created_at"]) for line in encoder.close()]
        [(True, 'stop', '1970-01-01T00:00:01Z')]
    """

    headers: ClassVar[Mapping[str, str]] = NDJSON_HEADERS

    def __init__(
        self,
        *,
        now: Callable[[], float],
        model: str | None = None,
        tools: Collection[str] | None = None,
        on_error: Masked = masked,
        reasoning: bool = True,
        choice: int = 0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        writer = Lines(now=now, new_id=str, model=model, tools=tools, reasoning=reasoning)
        super().__init__(writer, Message, on_error=on_error, limits=limits, choice=choice)
