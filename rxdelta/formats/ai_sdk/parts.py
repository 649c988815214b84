"""The parts of a UI message: what all kinds have in common, texts, and blocks that are sent whole.

A part remembers what the client has of its block, whose life `Walk` follows. A piece of text is sent as it comes. After
any other change of the block the part sends what the client lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import attrs

from rxdelta.core import BlockFold, ContentPart, ToolCall
from rxdelta.formats.ai_sdk.marks import TEXT, TYPE, marks_for
from rxdelta.formats.ai_sdk.tables import MEDIA_TYPES
from rxdelta.formats.encoding import whole_characters

if TYPE_CHECKING:
    from rxdelta.core import Block
    from rxdelta.formats.ai_sdk.stream import Step

__all__ = ["Kind", "Out", "Part", "TextPart", "WholePart", "kind_of"]

Kind: TypeAlias = Literal["text", "reasoning", "call", "output", "whole"]

Out: TypeAlias = list[Any]
"""Frames. `chunks.py` has their types, which only readers need."""

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


class Part:
    """A block and what the client has of it. This base class is a block that the client never sees.

    Args:
        step: The message that the part belongs to.
        fold: The block's content so far.

    Attributes:
        ended: Whether the client has the end of the part.
        place: How many parts of the message, and outputs of the provider's tools, the client has before it.
    """

    def __init__(self, step: Step, fold: BlockFold) -> None:
        self.step = step
        self.run = step.run
        self.stream = step.run.stream
        self.fold = fold
        self.ended = False
        self.place = step.count

    @property
    def must_stay(self) -> bool:
        """Whether the client keeps the part when its block goes on as another one."""
        return False

    @property
    def is_acted_on(self) -> bool:
        """Whether the part can't be reset and sent again, as its tool would run, or a person be asked, again."""
        return False

    def begin(self, _out: Out, /) -> None:
        """Send the block so far."""

    def grow(self, _out: Out, _piece: str, /) -> None:
        """Send the piece of a delta that continues the block, which needn't have it yet."""

    def follow(self, _out: Out, _before: Block, _fields: Mapping[str, Any], /) -> bool:
        """Send what follows from a change of the block.

        Args:
            out: Where to append the frames.
            before: The block as it was.
            fields: The fields that were replaced.

        Returns:
            `False` if the client has text that is not the block's any more.
        """
        return True

    def restart(self, out: Out, /) -> None:
        """Send the block as another part, where the part that the client has can't be taken back."""

    def send_again(self, out: Out, /) -> None:
        """Send the whole part again, after the client has dropped it."""
        if self.ended:
            self._close(out, None)

    def release_id(self) -> None:
        """The client has dropped the part, and another attempt begins."""

    def end(self, out: Out, cut: str | None, /) -> None:
        """Nothing more of the block comes.

        Args:
            out: Where to append the frames.
            cut: Why the block was cut off; `None` if it has ended.
        """
        if not self.ended:
            self.ended = True
            self.fold.finish(cut=cut)
            self._close(out, cut)

    def _close(self, _out: Out, _cut: str | None, /) -> None: ...

    def take_back(self, out: Out, /) -> None:
        """Another end has overruled that of a call."""

    def abandon(self, out: Out, /) -> None:
        """End the part without a word about the block, which goes on as another one."""
        if not self.ended:
            self.ended = True
            self._drop(out)

    def _drop(self, _out: Out, /) -> None: ...


class TextPart(Part):
    """A text, a refusal, or a reasoning.

    Some providers begin a block with each token. So a text that carries nothing but text goes on with the client's part
    of such a text before it, whose end waits until something else comes. Whether it does is decided when its text
    begins, because citations come in front of that.
    """

    def __init__(self, step: Step, fold: BlockFold, kind: Literal["text", "reasoning"]) -> None:
        super().__init__(step, fold)
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

    def begin(self, out: Out, /) -> None:
        self._id, self._half, self._cited, self._before = None, "", 0, 0
        if self.run.waiting is None or not self._is_plain:
            self._start(out)
        self.grow(out, self._block.text or "")
        self._send_sources(out)

    def _start(self, out: Out) -> None:
        """Begin a part, or go on with the one that waits."""
        waiting, run = self.run.waiting, self.run
        if waiting is not None and self._is_plain:
            self._id, self._before = waiting._id, waiting._before + len(waiting._block.text or "")
            self.step.count -= 1
            run.waiting = None
        else:
            run.end_text(out)
            self._id = self.stream.new_id()
            marks = {TYPE: "refusal"} if self._block.type == "refusal" else {}
            out.append({"type": f"{self._kind}-start", "id": self._id, **run.marked(marks)})
        run.newest_text = self

    def grow(self, out: Out, piece: str, /) -> None:
        if self._half or not piece.isascii():
            piece, self._half = whole_characters(self._half, piece)
        if piece:
            if self._id is None:
                self._start(out)
            out.append({"type": self._delta_type, "id": self._id, "delta": piece})

    def _send_sources(self, out: Out) -> None:
        citations = self._block.citations
        if self._id is None and not self._is_plain:
            self._start(out)
        for citation in citations[self._cited :]:
            self.run.sources.send(out, self.step, citation)
        self._cited = len(citations)

    def follow(self, out: Out, before: Block, fields: Mapping[str, Any], /) -> bool:
        if not _TEXT_FIELDS.isdisjoint(fields):
            sent, text = cast("ContentPart", before).text or "", self._block.text or ""
            if self.ended:
                return text == sent
            sent = sent[:-1] if self._half else sent
            if not text.startswith(sent):
                return False
            self._half = ""
            self.grow(out, text[len(sent) :])
        if not self.ended:
            self._send_sources(out)
        return True

    def restart(self, out: Out, /) -> None:
        if not self.ended:
            self._drop(out)
        self.send_again(out)

    def send_again(self, out: Out, /) -> None:
        self.begin(out)
        super().send_again(out)

    def _close(self, out: Out, _cut: str | None, /) -> None:
        if self._half:
            half, self._half = "\ufffd", ""
            self.grow(out, half)
        self._cited = 0  # the citations may have been replaced; a source that the client has isn't sent again
        self._send_sources(out)
        if self._id is not None and self._is_plain and self.run.newest_text is self:
            self.run.waiting = self
        elif self._id is not None:
            self.send_end(out)

    def send_end(self, out: Out) -> None:
        """Send the end of the part, with what it carries beside text."""
        block, sources = self._moved(), self.run.sources
        citations = [
            cited for one in block.citations if (cited := sources.cite(out, self.step, one)) is not None
        ]
        frame: dict[str, Any] = {"type": f"{self._kind}-end", "id": self._id}
        if citations and self.stream.has_citations:
            frame["citations"] = citations
        out.append(
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

    def _drop(self, out: Out, /) -> None:
        if self._id is not None:
            out.append({"type": f"{self._kind}-end", "id": self._id})


class WholePart(Part):
    """A file, or a block that no chunk of the protocol fits: sent when it is complete, or not at all."""

    def _close(self, out: Out, cut: str | None, /) -> None:
        block = self.fold.block
        if cut is not None or not isinstance(block, ContentPart):
            return
        url, media_type = _file_address(block)
        if url is None:
            out.append(self.run.whole_block(marks_for(block, TYPE, TEXT)))
        else:
            file = {"type": "file", "url": url, "mediaType": media_type}
            out.append(file | self.run.marked(marks_for(block, TYPE)))


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
