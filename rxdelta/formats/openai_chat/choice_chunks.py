"""One choice of a chat completion, as chunks that all have the completion's head."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from rxdelta.core import BlockFold, Limits, ToolCall
from rxdelta.formats.openai_chat.block_chunks import FIELDS, CallChunks, MediumChunks, TextChunks
from rxdelta.formats.openai_chat.chunks import ErrorText
from rxdelta.formats.reply import Choice, Part, Run, Writer
from rxdelta.framing import DONE

__all__ = ["ChoiceChunks", "Chunks"]

_BLANK_LINE: Final = "\n\n"


class Chunks(Writer):
    """Writes the chunks of one completion."""

    def write(self, choice: int, delta: Any, finish_reason: str | None) -> None:
        self.append([{"index": choice, "delta": delta, "finish_reason": finish_reason}])

    def append(self, choices: list[Any], **more: Any) -> None:
        """Append a chunk with these choices."""
        self.out.append(
            {
                "id": self.id,
                "object": "chat.completion.chunk",
                "created": self.created,
                "model": self.model,
                "choices": choices,
                **more,
            }
        )

    def fail(self, message: str, kind: str | None, code: str | None, /) -> None:
        error: ErrorText = {"message": message, "type": kind if kind == "interrupted" else "server_error"}
        own = {"message": message, "type": kind, "param": None, "code": code}
        self.out += [{"error": own if self.is_provider else error}, DONE]


class ChoiceChunks(Choice):
    """What the client has of one choice."""

    writer: Chunks

    def __init__(self, writer: Writer, index: int, limits: Limits) -> None:
        super().__init__(writer, index, limits)
        self._lengths: dict[str, int] = {}  # of the fields that have text
        self._breaks: set[str] = set()  # the fields whose next text is another message's
        self._listed = Counter[str]()  # how many entries the other lists have
        self._held: Part | None = None  # the call whose end the other calls wait for
        self._is_awaited = False  # whether others wait
        self._is_catching_up = False

    def open(self, _: Run, /) -> None:
        self.write({"role": "assistant", "content": ""})

    def next_message(self) -> None:
        self._breaks = {*self._lengths}

    def end_reply(self, _: Run, reason: str, /) -> None:
        self.write({}, "tool_calls" if reason == "tool_use" else reason)

    def part_of(self, run: Run, fold: BlockFold, /) -> Part:
        block = fold.block
        if block.type == "server_tool_call" or (block.type == "reasoning" and not self.writer.reasoning):
            return Part(run, fold)
        if isinstance(block, ToolCall):
            return CallChunks(run, fold)
        return TextChunks(run, fold) if block.type in FIELDS else MediumChunks(run, fold)

    # A call that comes whole keeps its place: calls behind it wait.

    def turn(self, part: Any, /) -> bool:
        if self._held is None and part.comes_whole():
            self._held = part
        if self._held in (None, part):
            return True
        self._is_awaited = True
        return False

    def release(self, part: Part, /) -> None:
        if self._held is not part:
            return
        self._held = None
        if not self._is_awaited or self._is_catching_up:  # not from within itself, since thousands may wait
            return
        self._is_awaited, self._is_catching_up = False, True
        try:
            part.run.catch_up()
        finally:
            self._is_catching_up = False

    def forget(self, parts: Sequence[Part], /) -> None:
        if self._held in parts:
            self._held = None

    # Pieces of the message.

    def write(self, delta: Any, finish_reason: str | None = None) -> None:
        self.writer.write(self.index, delta, finish_reason)

    def say(self, field: str, piece: str) -> int:
        """Send a piece of text, behind a blank line if it begins another message's. Return the field's length."""
        if field in self._breaks:
            self._breaks.remove(field)
            self._lengths[field] += len(_BLANK_LINE)
            self.write({field: _BLANK_LINE})
        end = self._lengths[field] = self._lengths.get(field, 0) + len(piece)
        self.write({field: piece})
        return end

    def length(self, field: str) -> int:
        """The length of what the client has in a field."""
        return self._lengths.get(field, 0)

    def add(self, field: str, entries: Iterable[Any]) -> None:
        """Send entries of a list with their numbers, without which OpenAI's helper for streams can't add them up."""
        numbered = [{"index": place, **entry} for place, entry in enumerate(entries, self._listed[field])]
        self._listed[field] += len(numbered)
        self.write({field: numbered})
