"""The frames of a message's blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from rxdelta.core import Block, BlockFold, ContentPart, ToolCall, grows_by
from rxdelta.core.events import (
    BlockDelta,
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
Growth: TypeAlias = TextDelta | ReasoningDelta | DataDelta | ToolCallDelta

_CUT = "The call was cut off before it ended."

DELTAS: Mapping[type, tuple[str, str, Mapping[str, str]]] = {
    TextDelta: ("text", "text-delta", {}),
    ReasoningDelta: ("reasoning", "reasoning-delta", {}),
    DataDelta: ("data", "data-delta", {"encoding": "base64"}),
    ToolCallDelta: ("args", "tool-call-delta", {}),
}
"""By the event: the field of its text, which the protocol names alike, the protocol's type and further fields."""


class BlockFrames:
    """Writes the blocks of one message. What it starts, it finishes."""

    def __init__(self, frames: FrameWriter, tools: ToolRuns) -> None:
        self._frames = frames
        self._tools = tools
        self._started: dict[BlockFold, None] = {}  # and not finished
        self._indexes: set[int] = set()
        self._free = 0  # no index from here on is taken

    def start(self, key: Index, fold: BlockFold, begun: Block) -> Iterator[LangChainFrame]:
        block = fold.place = _Block(self._new_index(key))
        self._started[fold] = None
        self._tools.note(begun, self)
        content, block.has_a_form = write_content(begun, with_text=False)
        mark = {} if block.index == key else {SOURCE_INDEX: key}
        yield self._frames.message("content-block-start", index=block.index, content=content, **mark)
        text = begun.text if isinstance(begun, ContentPart) else begun.arguments if block.has_a_form else None
        if text and isinstance(text, str):  # readers look for text only in deltas
            yield from self._write_text(block, grows_by(begun)(key, text), text)

    def _new_index(self, wanted: Index) -> int:
        """The source's own index, by which readers sort the blocks, or the next one if that is not allowed."""
        index = (
            wanted if isinstance(wanted, int) and wanted >= 0 and wanted not in self._indexes else self._free
        )
        self._indexes.add(index)
        self._free = max(self._free, index + 1)
        return index

    def grow(self, fold: BlockFold, event: Growth) -> Frames:
        piece: str = getattr(event, DELTAS[type(event)][0])
        if not piece:
            return ()
        if type(event) is DataDelta and fold.block.type == "server_tool_result":
            fold.place.has_a_form = False  # a result of the protocol's has no text
        return self._write_text(fold.place, event, piece)

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

    def change(self, fold: BlockFold, event: BlockDelta) -> Iterator[LangChainFrame]:
        block: _Block = fold.place
        self._tools.note(fold.block, self)
        fields = write_fields(fold.block, event) if block.has_a_form else None
        if fields is None:
            yield self._frames.custom(event)
        else:
            delta = {"type": "block-delta", "fields": fields}
            yield self._frames.message("content-block-delta", index=block.index, delta=delta)

    def finish(
        self, fold: BlockFold, finished: Block, *, as_folded: bool = False, synthetic: bool = False
    ) -> Iterator[LangChainFrame]:
        """Finish a block.

        Args:
            fold: The block.
            finished: The content that it ends with.
            as_folded: Whether the source's finish had no content.
            synthetic: Whether there is no finish of the source.
        """
        block: _Block = fold.place
        content, has_a_form = write_content(finished)
        if block.half and block.has_a_form:  # the other half of the character never came
            block.half = ""
            yield from self._write_text(block, block.delta(block.index, "\ufffd"), "\ufffd")
        mark: dict[str, Any] = {}
        if synthetic:
            mark[SYNTHETIC] = True
        elif as_folded and not has_a_form and not block.half:
            mark[FOLDED] = True
        self._tools.note(finished, self)
        del self._started[fold]
        yield self._frames.message("content-block-finish", index=block.index, content=content, **mark)

    def cut(self, fold: BlockFold, block: Block) -> Iterator[LangChainFrame]:
        """Finish a block that has not ended. To our reader, what follows finishes it."""
        if fold in self._started:
            cut: dict[str, Any] = {"_open": False}
            if isinstance(block, ToolCall):
                kind = "invalid_tool_call" if block.type == "tool_call" else block.type
                cut |= {"type": kind, "error": _CUT}
            yield from self.finish(fold, attrs.evolve(block, **cut), synthetic=True)

    def close(self) -> Iterator[LangChainFrame]:
        """Cut the blocks that are open."""
        for fold in tuple(self._started):
            yield from self.cut(fold, fold.block)


class _Block:
    """What the client has of a block.

    Attributes:
        delta: The type of its last delta.
        half: The first half of a character with which its text ends so far.
        has_a_form: Whether the protocol has a form for it.
    """

    __slots__ = ("delta", "half", "has_a_form", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.delta: type[Growth] = TextDelta
        self.half = ""
        self.has_a_form = True
