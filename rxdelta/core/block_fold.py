"""How one block grows by events, and how consecutive deltas of it are joined to one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core.blocks import Block, block_from_wire, finish_block, finish_content, update_block
from rxdelta.core.content_part import ContentPart, Origin, raw_text
from rxdelta.core.errors import LimitExceededError
from rxdelta.core.event_classes import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    Event,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    reasoning_delta,
    text_delta,
    tool_call_delta,
)
from rxdelta.core.fast_constructor import blank
from rxdelta.core.json_values import FrozenDict, is_list
from rxdelta.core.options import DEFAULT_LIMITS, Limits, check_members
from rxdelta.core.text import GrowingText, extend, has_half, text_length
from rxdelta.core.tool_call import ToolCall, raw_arguments, with_arguments

if TYPE_CHECKING:
    from rxdelta.core.values import Citation

JOINABLE: Mapping[type, tuple[str, Callable[..., Event]]] = {
    TextDelta: ("text", text_delta),
    ReasoningDelta: ("reasoning", reasoning_delta),
    ToolCallDelta: ("args", tool_call_delta),
    DataDelta: ("data", DataDelta),
}
"""The deltas that can be joined: the field with the piece, and the constructor."""

PIECE_FIELDS: Mapping[type, str] = {kind: field for kind, (field, _) in JOINABLE.items()}
"""The field of each kind of delta that holds the next piece of a block."""


class Joined:
    """Collects consecutive deltas of one block."""

    __slots__ = ("first", "pieces")

    def __init__(self, first: Any, piece: str) -> None:
        self.first = first
        self.pieces = [piece]

    def takes(self, delta: Any) -> bool:
        first = self.first
        return (
            type(first) is type(delta)
            and first.index == delta.index
            and first.choice == delta.choice
            and first.run_id == delta.run_id
        )

    def event(self) -> Event:
        first = self.first
        if len(self.pieces) == 1:
            whole: Event = first
            return whole
        _, make = JOINABLE[type(first)]
        return make(first.index, "".join(self.pieces), choice=first.choice, run_id=first.run_id)


Growth: TypeAlias = TextDelta | ReasoningDelta | DataDelta | ToolCallDelta
"""The deltas whose pieces are appended to a block."""

_GROWS: dict[str, type[Growth]] = {"text": TextDelta, "refusal": TextDelta, "reasoning": ReasoningDelta}
_BlankPart = blank(ContentPart)
_Cited: TypeAlias = "tuple[Sequence[Any], tuple[Citation, ...]]"
"""What the newest delta with citations had, and the citations that were made of it."""
_NOT_CITED: _Cited = ((), ())


def grows_by(block: Block) -> type[Growth]:
    """The type of the deltas that continue this block."""
    return ToolCallDelta if isinstance(block, ToolCall) else _GROWS.get(block.type, DataDelta)


def _piece(event: Growth) -> str:
    if isinstance(event, TextDelta):
        return event.text
    if isinstance(event, ToolCallDelta):
        return event.args
    return event.reasoning if isinstance(event, ReasoningDelta) else event.data


class BlockFold:
    """Folds the events of one block. A `Fold` has one for each block of the message.

    Args:
        start: The event that begins the block, or a block to continue.
        limits: Bounds on the size of the block.
        origin: The message that the block belongs to.

    Attributes:
        block: The block so far.
        grows: The type of the deltas that continue the block; `None` once it has ended.
        place: For the owner of this object: the block's place in the message, or what else belongs to the block.

    Raises:
        LimitExceededError: The block begins with more than `Limits.block_chars` or `Limits.members`.

    Example:
        >>> import rxdelta as rd
        >>> fold = rd.core.BlockFold(rd.events.BlockStart(0, {"type": "text"}))
        >>> fold.step(rd.events.TextDelta(0, "Hi")).text
        'Hi'
    """

    __slots__ = ("_cited", "_limits", "_most", "_origin", "_size", "_text", "block", "grows", "place")

    def __init__(
        self, start: BlockStart | Block, *, limits: Limits = DEFAULT_LIMITS, origin: Origin | None = None
    ) -> None:
        self._most = limits.block_chars
        self._limits = limits
        self._origin = origin
        self.place: Any = None
        self._cited: _Cited = _NOT_CITED
        self.reset(start)

    def reset(self, start: BlockStart | Block) -> Block:
        """Replace the block by a new one: one that this start begins, or this block.

        Raises:
            LimitExceededError: It has more than `Limits.block_chars` or `Limits.members`. The block stays as it was.
        """
        block = start
        if isinstance(block, BlockStart):
            block = block_from_wire(block.content, block.index, origin=self._origin)
        raw = (raw_arguments(block) if isinstance(block, ToolCall) else raw_text(block)) or ""
        kept = block.metadata if isinstance(block, ToolCall) else block.options
        check_members(
            kept,
            self._limits,
            "the metadata of a call" if isinstance(block, ToolCall) else "the options of a part",
        )
        came_whole = isinstance(raw, FrozenDict)  # complete arguments take no more text
        text: GrowingText = "" if isinstance(raw, FrozenDict) else raw
        size = text_length(text) if text else 0
        if size > self._most:
            raise LimitExceededError.of("block_chars", self._most, "the length of one block")
        # Assigned behind all checks: a refused block keeps its old state.
        self.block: Block = block
        self.grows: type[Growth] | None = grows_by(block) if block.open and not came_whole else None
        self._text = text
        self._size = size
        return block

    @property
    def _left(self) -> int:
        """How many characters the block may still get."""
        return self._most - self._size

    @property
    def half(self) -> str:
        """The first half of a surrogate pair, which the block's text lacks until the second half has come."""
        return self._text[2] if has_half(self._text) else ""

    def step(self, event: Growth | BlockDelta | BlockFinish) -> Block:
        """The block after one of its events; the same object if nothing changed.

        Raises:
            LimitExceededError: The block grew beyond `Limits.block_chars`.
        """
        if isinstance(event, BlockFinish):
            return self.finish(event.content)
        if isinstance(event, BlockDelta):
            return self._change(event.fields) if self.block.open else self.block
        return self.grow(_piece(event)) if type(event) is self.grows else self.block

    def _change(self, fields: FrozenDict[Any]) -> Block:
        block, (cited, made) = self.block, self._cited
        is_known = isinstance(block, ContentPart) and block.citations is made
        updated = update_block(block, fields, cited if is_known else ())
        if updated is block:
            return block
        items = fields.get("citations")
        if isinstance(updated, ContentPart) and updated.citations and is_list(items):
            self._cited = items, updated.citations
        return self.reset(updated)

    def grow(self, piece: str) -> Block:
        """The block with one more piece, which must be that of a delta of the type `grows`.

        Raises:
            LimitExceededError: The block grew beyond `Limits.block_chars`.
        """
        if not piece:
            return self.block
        size = self._size + len(piece)
        if size > self._most:
            raise LimitExceededError.of("block_chars", self._most, "the length of one block")
        self._size = size
        self._text = text = extend(self._text, piece)
        block = self.block
        if type(block) is ToolCall:
            self.block = call = with_arguments(block, text)
            return call
        # `with_text(block, text)`, written out: the call would add 30 ns to 370.
        part: Any = _BlankPart()
        part.type = block.type
        part.text = text
        part.options = block.options
        part.citations = block.citations
        part.key = block.key
        part.open = True
        part.more = block.more
        part._origin = block._origin
        part.__class__ = ContentPart
        self.block = part
        return self.block

    def finish(self, content: FrozenDict[Any] | None = None, *, cut: str | None = None) -> Block:
        """Close the block. A second finish overrules the first if it has content.

        Args:
            content: The block's content by the finish; `None` leaves the block as it was folded.
            cut: Why the message was cut short, if it was; an open call then becomes invalid.

        Raises:
            LimitExceededError: The content is longer than `Limits.block_chars`.
        """
        if content is not None:
            self.reset(finish_content(self.block, content, self.block.key))
        if content is not None or self.block.open:
            self.block = finish_block(self.block, cut=cut)
        self.grows, self._cited = None, _NOT_CITED
        return self.block
