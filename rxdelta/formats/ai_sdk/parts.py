"""The parts of a UI message: what all kinds have in common, texts, and blocks that are sent whole.

A part remembers what the client has of its block, whose life `Walk` follows. A piece of text is sent as it comes. After
any other change of the block the part sends what the client lacks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

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
        """Whether the part can't be reset and sent again, as its tool would run again."""
        return False

    def begin(self, _out: Out, /) -> None:
        """Send the block so far."""

    def grow(self, _out: Out, piece: str, /) -> None:
        """Append a delta's piece, of the kind that the block grows by."""
        self.fold.grow(piece)

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
    """A text, a refusal, or a reasoning."""

    def __init__(self, step: Step, fold: BlockFold, kind: Literal["text", "reasoning"]) -> None:
        super().__init__(step, fold)
        self._kind = kind
        self._delta_type = f"{kind}-delta"
        self._id: str | None = None
        self._half = ""  # the first half of a character
        self._cited = 0  # how many of the citations have been looked at

    @property
    def _block(self) -> ContentPart:
        return cast("ContentPart", self.fold.block)

    def begin(self, out: Out, /) -> None:
        self._id, self._half, self._cited = self.stream.new_id(), "", 0
        marks = {TYPE: "refusal"} if self._block.type == "refusal" else {}
        out.append({"type": f"{self._kind}-start", "id": self._id, **self.run.marked(marks)})
        self._send(out, self._block.text or "")
        self._send_sources(out)

    def grow(self, out: Out, piece: str, /) -> None:
        self.fold.grow(piece)
        self._send(out, piece)

    def _send(self, out: Out, piece: str) -> None:
        if self._half or not piece.isascii():
            piece, self._half = whole_characters(self._half, piece)
        if piece:
            out.append({"type": self._delta_type, "id": self._id, "delta": piece})

    def _send_sources(self, out: Out) -> None:
        citations = self._block.citations
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
            self._send(out, text[len(sent) :])
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
            self._half = ""
            out.append({"type": self._delta_type, "id": self._id, "delta": "\ufffd"})
        block, sources = self._block, self.run.sources
        self._cited = 0  # the citations may have been replaced; a source that the client has isn't sent again
        self._send_sources(out)
        citations = [
            cited for one in block.citations if (cited := sources.cite(out, self.step, one)) is not None
        ]
        frame: dict[str, Any] = {"type": f"{self._kind}-end", "id": self._id}
        if citations and self.stream.has_citations:
            frame["citations"] = citations
        out.append(
            frame | self.run.marked(marks_for(block) if block.type == self._kind else marks_for(block, TYPE))
        )

    def _drop(self, out: Out, /) -> None:
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
