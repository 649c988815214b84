"""The frames of a message's blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from rxdelta.core import BlockFold, ContentPart, LimitExceededError, Limits
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)
from rxdelta.formats.encoding import whole_characters
from rxdelta.formats.langchain.fields import Index
from rxdelta.formats.langchain.frames import FrameWriter, LangChainFrame
from rxdelta.formats.langchain.marks import FOLDED, SOURCE_INDEX, SYNTHETIC
from rxdelta.formats.langchain.protocol_content import write_content, write_fields
from rxdelta.formats.langchain.tool_runs import ToolRuns

__all__ = ["DELTAS", "BlockFrames"]

Frames: TypeAlias = Sequence[LangChainFrame]
Delta: TypeAlias = TextDelta | ReasoningDelta | DataDelta | ToolCallDelta

DELTAS: Mapping[type, tuple[str, str, Mapping[str, str]]] = {
    TextDelta: ("text", "text-delta", {}),
    ReasoningDelta: ("reasoning", "reasoning-delta", {}),
    DataDelta: ("data", "data-delta", {"encoding": "base64"}),
    ToolCallDelta: ("args", "tool-call-delta", {}),
}
"""By the event: the field of its text, which the protocol names alike, the protocol's type and further fields."""


class BlockFrames:
    """Writes the blocks of one message. What it starts, it finishes."""

    def __init__(self, frames: FrameWriter, tools: ToolRuns, limits: Limits) -> None:
        self._limits = limits
        self.known: dict[Index, _Block] = {}
        """By the source's index."""
        self._frames = frames
        self._tools = tools
        self._indexes: set[int] = set()
        self._free = 0  # no index from here on is taken

    def fold(self, event: BlockStart) -> BlockFold:
        """A fold for a new block, if the limits allow one more."""
        index = event.index
        if isinstance(index, int) and abs(index) >= self._limits.index:
            raise LimitExceededError.of("index", self._limits.index, "the block index")
        if len(self.known) >= self._limits.blocks and index not in self.known:
            raise LimitExceededError.of("blocks", self._limits.blocks, "the number of blocks in one message")
        return BlockFold(event, limits=self._limits)

    def start(self, source_index: Index, fold: BlockFold) -> Iterator[LangChainFrame]:
        before = self.known.get(source_index)
        if before is not None and not before.done:
            yield from self._finish(before, synthetic=True)
        block = self.known[source_index] = _Block(fold, self._new_index(source_index))
        begun = fold.block
        self._tools.note(begun)
        content, block.has_a_form = write_content(begun, with_text=False)
        mark = {} if block.index == source_index else {SOURCE_INDEX: source_index}
        yield self._frames.message("content-block-start", index=block.index, content=content, **mark)
        text = begun.text if isinstance(begun, ContentPart) else begun.arguments if block.has_a_form else None
        if text and isinstance(text, str) and fold.grows is not None:  # readers look for text only in deltas
            yield from self._write_text(block, fold.grows(source_index, text), text)

    def _new_index(self, wanted: Index) -> int:
        """The source's own index, by which readers sort the blocks, or the next one if that is not allowed."""
        index = (
            wanted if isinstance(wanted, int) and wanted >= 0 and wanted not in self._indexes else self._free
        )
        self._indexes.add(index)
        self._free = max(self._free, index + 1)
        return index

    def grow(self, event: Delta) -> Frames:
        block = self.known.get(event.index)
        if block is None or block.fold.grows is not type(event):
            return ()
        piece: str = getattr(event, DELTAS[type(event)][0])
        if not piece:
            return ()
        block.fold.grow(piece)
        return self._write_text(block, event, piece)

    def _write_text(self, block: _Block, event: Any, piece: str) -> Frames:
        if block.half or not piece.isascii():
            piece, block.half = whole_characters(block.half, piece)
        block.delta = type(event)
        if not piece:
            return ()
        field, kind, more = DELTAS[block.delta]
        if not block.has_a_form:
            return (self._frames.custom(attrs.evolve(event, **{field: piece})),)
        delta = {"type": kind, field: piece, **more}
        data = {"event": "content-block-delta", "index": block.index, "delta": delta}
        return (self._frames.frame("messages", data),)

    def change(self, event: BlockDelta) -> Iterator[LangChainFrame]:
        block = self.known.get(event.index)
        if block is None or block.done:
            return
        before = block.fold.block
        if block.fold.step(event) is before:
            return
        self._tools.note(block.fold.block)
        fields = write_fields(block.fold.block, event) if block.has_a_form else None
        if fields is None:
            yield self._frames.custom(event)
        else:
            delta = {"type": "block-delta", "fields": fields}
            yield self._frames.message("content-block-delta", index=block.index, delta=delta)

    def finish(self, event: BlockFinish) -> Iterator[LangChainFrame]:
        block = self.known[event.index]
        block.fold.finish(event.content)
        yield from self._finish(block, as_folded=event.content is None)

    def close(self) -> Iterator[LangChainFrame]:
        """Finish the blocks that are open. To our reader, the end of the message finishes them."""
        for block in self.known.values():
            if not block.done:
                yield from self._finish(block, synthetic=True)

    def _finish(
        self, block: _Block, *, as_folded: bool = False, synthetic: bool = False
    ) -> Iterator[LangChainFrame]:
        finished = block.fold.finish()
        content, has_a_form = write_content(finished)
        if block.half and block.has_a_form:  # the other half of the character never came
            block.half = ""
            yield from self._write_text(block, block.delta(block.index, "\ufffd"), "\ufffd")
        mark: dict[str, Any] = {}
        if synthetic:
            mark[SYNTHETIC] = True
        elif as_folded and not has_a_form and not block.half:
            mark[FOLDED] = True
        self._tools.note(finished)
        block.end()
        yield self._frames.message("content-block-finish", index=block.index, content=content, **mark)


class _Block:
    """A block of the message.

    Attributes:
        delta: The type of its last delta.
        half: The first half of a character with which its text ends so far.
        has_a_form: Whether the protocol has a form for it.
    """

    __slots__ = ("delta", "done", "fold", "half", "has_a_form", "index")

    def __init__(self, fold: BlockFold, index: int) -> None:
        self.fold = fold
        self.index = index
        self.delta: type[Delta] = TextDelta
        self.half = ""
        self.has_a_form = True
        self.done = False

    def end(self) -> None:
        """Forget the text of the block, but keep the block."""
        self.done = True
        self.fold = _ENDED


_ENDED = BlockFold(ContentPart())
