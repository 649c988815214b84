"""Blocks as pieces of a chat completion's message: what the client has of each.

Each piece of a text is sent at once. All other blocks are sent when they have ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from rxdelta.core import (
    Block,
    BlockFold,
    Citation,
    ContentPart,
    InvalidJson,
    ToolCall,
    parse_arguments,
    parse_json,
)
from rxdelta.formats.encoding import whole_characters
from rxdelta.formats.media import data_url, medium_of
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.openai_chat.request import written_call
from rxdelta.formats.openai_chat.tables import CUSTOM_CALL

if TYPE_CHECKING:
    from rxdelta.formats.openai_chat.run_chunks import RunChunks

__all__ = ["CallPart", "MediumPart", "Part", "TextPart", "part_of"]

_FIELDS: Final = {"text": "content", "refusal": "refusal", "reasoning": "reasoning_content"}
_AUDIO: Final = ("id", "transcript", "expires_at")


class Part:
    """A block and what the client has of it. This base class is a block that the client never sees.

    Args:
        run: The run that the block belongs to.
        fold: The block's content so far.

    Attributes:
        told: Whether the client has anything of it that can't be taken back, which is all but reasoning.
    """

    def __init__(self, run: RunChunks, fold: BlockFold) -> None:
        self.run = run
        self.fold = fold
        self.told = False

    def grow(self, _piece: str, /) -> None:
        """Send the piece of a delta that continues the block, which needn't have it yet."""

    def follow(self, _before: Block, /) -> None:
        """The block has changed otherwise than by a piece."""

    def catch_up(self) -> None:
        """Send what the client lacks of the block."""


class TextPart(Part):
    """A text, a refusal, or a reasoning."""

    def __init__(self, run: RunChunks, fold: BlockFold) -> None:
        super().__init__(run, fold)
        self._field = _FIELDS[cast("ContentPart", fold.block).type]
        self._sent = 0  # characters of the block that the client has
        self._half = ""  # the first half of a character
        self._cited = 0
        self._start = self._end = run.choice.length(
            self._field
        )  # the range of what the client has, in its content

    def grow(self, piece: str, /) -> None:
        if self.run.speaks:
            if self._half or not piece.isascii():
                piece, self._half = whole_characters(self._half, piece)
            self._send(piece)

    def _send(self, piece: str) -> None:
        if not piece:
            return
        self._end = self.run.choice.say(self._field, piece)
        if not self._sent:
            self._start = self._end - len(piece)
        self._sent += len(piece)
        self.told = self._field != "reasoning_content"

    def follow(self, before: Block, /) -> None:
        block = cast("ContentPart", self.fold.block)
        text, sent = block.text or "", cast("ContentPart", before).text or ""
        if not self._sent:
            self._field = _FIELDS[block.type]
        if not text.startswith(sent[: self._sent]):  # the client keeps what it has
            self._sent = len(text)

    def catch_up(self) -> None:
        block = cast("ContentPart", self.fold.block)
        text = block.text or ""
        self._send(text[self._sent :])
        self._half = self.fold.half
        if block.open or self._field != "content":
            return
        cited = [
            annotation
            for one in block.citations[self._cited :]
            if (annotation := self._annotation(one)) is not None
        ]
        self._cited = len(block.citations)
        if cited:
            self.run.choice.add("annotations", cited)

    def _annotation(self, citation: Citation) -> Any:
        """A citation in OpenAI's form; `None` for a source without an address.

        Its range counts in the whole content, as OpenAI's clients require. Without a range of its own it is the block's.
        """
        if not citation.url:
            return None
        found: dict[str, Any] = {"url": citation.url, "title": citation.title or citation.url}
        if citation.cited_text:
            found["content"] = citation.cited_text
        found |= self._range(citation)
        return {"type": "url_citation", "url_citation": found}

    def _range(self, citation: Citation) -> dict[str, int]:
        start, end = self._start + (citation.start_index or 0), self._end
        if citation.end_index is not None:
            end = min(end, self._start + citation.end_index)
        return {"start_index": min(start, end), "end_index": end}


class MediumPart(Part):
    """An image or a sound, which is sent when it is complete."""

    def catch_up(self) -> None:
        block = self.fold.block
        medium = medium_of(block) if isinstance(block, ContentPart) else None
        if block.open or self.told or medium is None:
            return
        address = data_url(medium)
        if medium.kind == "image" and address is not None:
            image: Any = {"type": "image_url", "image_url": {"url": address}}
            self.told = True
            self.run.choice.add("images", [image])
        elif medium.kind == "audio" and medium.data is not None:
            known = {name: medium.options[name] for name in _AUDIO if name in medium.options}
            self.told = True
            self.run.choice.write({"audio": {**known, "data": medium.data}})


class CallPart(Part):
    """A call that the client may have to run."""

    def __init__(self, run: RunChunks, fold: BlockFold) -> None:
        super().__init__(run, fold)
        self._number = 0
        self._sent = 0
        self._half = ""

    @property
    def _call(self) -> ToolCall:
        return cast("ToolCall", self.fold.block)

    def grow(self, piece: str, /) -> None:
        if self.told:
            if self._half or not piece.isascii():
                piece, self._half = whole_characters(self._half, piece)
            self._send_arguments(piece)

    def _send_arguments(self, piece: str) -> None:
        if piece:
            self._sent += len(piece)
            self.run.choice.write({"tool_calls": [{"index": self._number, "function": {"arguments": piece}}]})

    def follow(self, before: Block, /) -> None:
        call, sent = self._call, cast("ToolCall", before).arguments
        if not self.told or not isinstance(sent, str):
            return
        if isinstance(call.arguments, str):
            if not call.arguments.startswith(sent[: self._sent]):
                self.run.take_back()
        elif _parsed(sent) != call.arguments:
            whole = _arguments(call)
            if not whole.startswith(sent):
                self.run.take_back()
            self._send_arguments(whole[len(sent) :])

    def catch_up(self) -> None:
        """Send the call piece by piece, if it is certain that the server doesn't run it."""
        call, streamed = self._call, self.run.choice.chunks.streams(self._call)
        if not streamed or call.metadata.get(PROVIDER_TYPE) == CUSTOM_CALL:
            return
        if not self.told:
            if call.type != "tool_call" or not call.name or not call.call_id:
                return
            self._begin()
            self._write(call.call_id, {**self._written(), "function": {"name": call.name, "arguments": ""}})
        text = call.arguments if isinstance(call.arguments, str) else None
        if text is not None:
            self._send_arguments(text[self._sent :])
            self._half = self.fold.half
        elif not call.open and not self._sent:
            self._send_arguments(_arguments(call))

    @property
    def is_taken(self) -> bool:
        """Whether somebody else than the client has begun to run the call, or decides whether it runs."""
        call = self._call
        return call.result is not None or call.metadata.get("execution_status") not in (None, "identified")

    def _begin(self) -> None:
        self.told, self._number = True, self.run.choice.next_call()

    def send_whole(self) -> None:
        """Send the call at the end of the stream, unless somebody has run it, or nobody must run it."""
        call, is_whole = self._call, _is_whole(self._call)
        was_cut = self.run.reason == "length"  # by which clients know that the call may be cut
        if self.told and not (is_whole or was_cut or _is_unreadable(call)):
            self.run.take_back()
        if self.told or self.is_taken or not is_whole or self.run.choice.chunks.keeps(call):
            return
        self._begin()
        self._write(call.call_id or f"call-{self.run.choice.index}-{self._number}", self._written())

    def _written(self) -> dict[str, Any]:
        written = written_call(self._call)
        if not self.run.choice.chunks.reasoning:
            written.pop("extra_content", None)  # it has the signature of a thought
        return written

    def _write(self, call_id: str, written: Mapping[str, Any]) -> None:
        self.run.choice.write({"tool_calls": [{"index": self._number, **written, "id": call_id}]})


def _is_whole(call: ToolCall) -> bool:
    return call.type == "tool_call" and call.status == "complete" and bool(call.name)


def _is_unreadable(call: ToolCall) -> bool:
    """Whether a client that has got the invalid call can't take it for a whole one, and so doesn't run it."""
    text = call.arguments
    if not isinstance(text, str) or not text.strip() or not call.name:
        return False
    try:
        parse_json(text)
    except InvalidJson:
        return True
    return False


def _arguments(call: ToolCall) -> str:
    written: str = written_call(call)["function"]["arguments"]
    return written


def _parsed(text: str) -> object:
    try:
        return parse_arguments(text)
    except InvalidJson:
        return None


def part_of(run: RunChunks, fold: BlockFold) -> Part:
    """A new part for a block."""
    block = fold.block
    is_hidden = run.hidden or (block.type == "reasoning" and not run.choice.chunks.reasoning)
    if is_hidden or block.type == "server_tool_call":
        return Part(run, fold)
    if isinstance(block, ToolCall):
        return CallPart(run, fold)
    return TextPart(run, fold) if block.type in _FIELDS else MediumPart(run, fold)
