"""The parts of a UI message that are no calls: texts, and blocks that are sent whole.

A part remembers what the client has of its block, whose life `Walk` follows. A piece of text is sent as it comes. After
any other change of the block the part sends what the client lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

import attrs

from rxdelta.core import Block, BlockFold, ContentPart, ToolCall
from rxdelta.formats.ai_sdk.marks import TEXT, TYPE, marks_for
from rxdelta.formats.ai_sdk.stream import Part, Step
from rxdelta.formats.ai_sdk.tables import MEDIA_TYPES
from rxdelta.formats.encoding import whole_characters

Kind: TypeAlias = Literal["text", "reasoning", "call", "output", "whole"]

_TEXT_FIELDS = frozenset(["text", "reasoning", "thinking", "refusal"])


def kind_of(block: ContentPart | ToolCall) -> Kind:
    """Which kind of part shows a block."""
    if isinstance(block, ToolCall):
        return "call"
    if block.type == "reasoning":
        return "reasoning"
    if block.type in ("text", "refusal"):
        return "text"
    return "output" if block.type == "server_tool_result" else "whole"


class TextPart(Part):
    """A text, a refusal, or a reasoning.

    Some providers begin a block with each token. So a text that carries nothing but text goes on with the client's part
    of such a text before it, whose end waits until something else comes. Whether it does is decided when its text
    begins, because citations come in front of that.
    """

    def __init__(
        self, step: Step, fold: BlockFold, kind: Literal["text", "reasoning"], texts: RunTexts
    ) -> None:
        super().__init__(step, fold)
        self._texts = texts
        self._kind = kind
        self._delta_type = f"{kind}-delta"
        self._id: str | None = None  # until the client has its start
        self._before = 0  # how much text of other blocks the client's part has before this one's
        self._half = ""  # the first half of a character
        self._cited = 0  # how many of the citations have been looked at

    @property
    def _block(self) -> ContentPart:
        return cast("ContentPart", self.fold.block)

    @property
    def has_begun(self) -> bool:
        """Whether the client has the start of the part."""
        return self._id is not None

    @property
    def _is_plain(self) -> bool:
        block = self._block
        return block.type == "text" and not block.citations and not block.options

    def begin(self) -> None:
        self._id, self._half, self._cited, self._before = None, "", 0, 0
        if self._texts.waiting is None or not self._is_plain:
            self._start()
        self.grow(self._block.text or "")
        self._send_sources()

    def _start(self) -> None:
        """Begin a part, or go on with the one that waits."""
        waiting, texts = self._texts.waiting, self._texts
        if waiting is not None and self._is_plain:
            self._id, self._before = waiting._id, waiting._before + len(waiting._block.text or "")
            self.step.count -= 1
            texts.waiting = None
        else:
            texts.end()
            self._id = self.stream.new_id()
            marks = {TYPE: "refusal"} if self._block.type == "refusal" else {}
            self.stream.out.append({"type": f"{self._kind}-start", "id": self._id, **self.run.marked(marks)})
        texts.newest = self

    def grow(self, piece: str, /) -> None:
        if self._half or not piece.isascii():
            piece, self._half = whole_characters(self._half, piece)
        if piece:
            if self._id is None:
                self._start()
            self.stream.out.append({"type": self._delta_type, "id": self._id, "delta": piece})

    def _send_sources(self) -> None:
        citations = self._block.citations
        if self._id is None and not self._is_plain:
            self._start()
        for citation in citations[self._cited :]:
            self.run.sources.send(self.step, citation)
        self._cited = len(citations)

    def follow(self, before: Block, fields: Mapping[str, Any], /) -> bool:
        if not _TEXT_FIELDS.isdisjoint(fields):
            sent, text = cast("ContentPart", before).text or "", self._block.text or ""
            if self.ended:
                return text == sent
            sent = sent[:-1] if self._half else sent
            if not text.startswith(sent):
                return False
            self._half = ""
            self.grow(text[len(sent) :])
        if not self.ended:
            self._send_sources()
        return True

    def restart(self) -> None:
        if not self.ended:
            self._drop()
        self.send_again()

    def send_again(self) -> None:
        self.begin()
        super().send_again()

    def _close(self, _cut: str | None, /) -> None:
        if self._half:
            half, self._half = "\ufffd", ""
            self.grow(half)
        self._cited = 0  # the citations may have been replaced; a source that the client has isn't sent again
        self._send_sources()
        if self._id is not None and self._is_plain and self._texts.newest is self:
            self._texts.waiting = self
        elif self._id is not None:
            self.send_end()

    def send_end(self) -> None:
        """Send the end of the part, with what it carries beside text."""
        block, sources = self._moved(), self.run.sources
        citations = [cited for one in block.citations if (cited := sources.cite(self.step, one)) is not None]
        frame: dict[str, Any] = {"type": f"{self._kind}-end", "id": self._id}
        if citations and self.stream.has_citations:
            frame["citations"] = citations
        self.stream.out.append(
            frame | self.run.marked(marks_for(block) if block.type == self._kind else marks_for(block, TYPE))
        )

    def _moved(self) -> ContentPart:
        """The block, whose citations name places in the client's part."""
        block, before = self._block, self._before
        if not before or not block.citations:
            return block
        moved = [
            attrs.evolve(
                one,
                start_index=None if one.start_index is None else one.start_index + before,
                end_index=None if one.end_index is None else one.end_index + before,
            )
            for one in block.citations
        ]
        return attrs.evolve(block, citations=moved)

    def _drop(self) -> None:
        if self._id is not None:
            self.stream.out.append({"type": f"{self._kind}-end", "id": self._id})


class RunTexts:
    """The texts of a run.

    Attributes:
        newest: The text whose part began last.
        waiting: This text, if it has ended, and its part waits for a text that continues it.
    """

    def __init__(self) -> None:
        self.newest: TextPart | None = None
        self.waiting: TextPart | None = None

    def end(self) -> None:
        """End the part of a text that waits: something else comes."""
        if self.waiting is not None:
            waiting, self.waiting = self.waiting, None
            waiting.send_end()


class WholePart(Part):
    """A file, or a block that no chunk of the protocol fits: sent when it is complete, or not at all."""

    def _close(self, cut: str | None, /) -> None:
        block = self.fold.block
        if cut is not None or not isinstance(block, ContentPart):
            return
        url, media_type = _file_address(block)
        if url is None:
            self.stream.out.append(self.run.whole_block(marks_for(block, TYPE, TEXT)))
        else:
            file = {"type": "file", "url": url, "mediaType": media_type}
            self.stream.out.append(file | self.run.marked(marks_for(block, TYPE)))


def _file_address(block: ContentPart) -> tuple[str | None, str]:
    """The address of a file, which may be a `data:` address with its content; and its media type."""
    default = MEDIA_TYPES.get(block.type)
    if default is None:
        return None, ""
    given = block.options.get("mime_type")
    media_type = given if isinstance(given, str) and given else default
    url = block.options.get("url")
    if isinstance(url, str) and url:
        return url, media_type
    if not block.text:
        return None, media_type
    is_address = block.type.endswith("_url")
    return block.text if is_address else f"data:{media_type};base64,{block.text}", media_type
