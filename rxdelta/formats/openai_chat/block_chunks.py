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
)
from rxdelta.formats.encoding import whole_characters
from rxdelta.formats.media import data_url, medium_of
from rxdelta.formats.notes import PROVIDER_TYPE
from rxdelta.formats.openai_chat.request import written_call
from rxdelta.formats.openai_chat.tables import CUSTOM_CALL
from rxdelta.formats.reply import CallPart, Part

if TYPE_CHECKING:
    from rxdelta.formats.openai_chat.choice_chunks import ChoiceChunks
    from rxdelta.formats.reply import Run

__all__ = ["FIELDS", "CallChunks", "MediumChunks", "TextChunks"]

FIELDS: Final = {"text": "content", "refusal": "refusal", "reasoning": "reasoning_content"}
_AUDIO: Final = ("id", "transcript", "expires_at")


class TextChunks(Part):
    """A text, a refusal, or a reasoning."""

    def __init__(self, run: Run, fold: BlockFold) -> None:
        super().__init__(run, fold)
        self._field = FIELDS[cast("ContentPart", fold.block).type]
        self._sent = 0  # characters of the block that the client has
        self._half = ""  # the first half of a character
        self._cited = 0
        self._start = self._end = _choice(self).length(
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
        self._end = _choice(self).say(self._field, piece)
        if not self._sent:
            self._start = self._end - len(piece)
        self._sent += len(piece)
        self.told = self._field != "reasoning_content"

    def follow(self, before: Block, /) -> None:
        block = cast("ContentPart", self.fold.block)
        text, sent = block.text or "", cast("ContentPart", before).text or ""
        if not self._sent:
            self._field = FIELDS[block.type]
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
            _choice(self).add("annotations", cited)

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


class MediumChunks(Part):
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
            _choice(self).add("images", [image])
        elif medium.kind == "audio" and medium.data is not None:
            known = {name: medium.options[name] for name in _AUDIO if name in medium.options}
            self.told = True
            _choice(self).write({"audio": {**known, "data": medium.data}})


class CallChunks(CallPart):
    """A call that the client may have to run."""

    def comes_whole(self) -> bool:
        return self.call.metadata.get(PROVIDER_TYPE) == CUSTOM_CALL

    def arguments(self) -> str:
        written: str = written_call(self.call)["function"]["arguments"]
        return written

    def write_start(self) -> None:
        self._write({**self._written(), "function": {"name": self.call.name, "arguments": ""}})

    def write_piece(self, piece: str, /) -> None:
        _choice(self).write({"tool_calls": [{"index": self.number, "function": {"arguments": piece}}]})

    def write_whole(self) -> None:
        self.claim()
        self._write(self._written())

    def _written(self) -> dict[str, Any]:
        written = written_call(self.call)
        if not self.run.choice.writer.reasoning:
            written.pop("extra_content", None)  # it has the signature of a thought
        return written

    def _write(self, written: Mapping[str, Any]) -> None:
        _choice(self).write({"tool_calls": [{"index": self.number, **written, "id": self.call_id}]})


def _choice(part: Part) -> ChoiceChunks:
    return cast("ChoiceChunks", part.run.choice)
