"""The text or the reasoning of a message: as pieces, and as one document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from rxdelta.core import BlockFold, ContentPart, Event, Limits, check_place, freeze
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    Index,
    MessageFinish,
    MessageInterrupted,
    ReasoningDelta,
    TextDelta,
)
from rxdelta.operators.projections.projection import ChangeKind, names_any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["JsonText", "Prose", "Unfenced"]

Change: TypeAlias = "tuple[Index, ChangeKind, str]"

_FIELDS = {"text": ("text",), "reasoning": ("reasoning", "thinking")}


class Prose:
    """The growth of all blocks of one type. The text of an ended block is dropped."""

    def __init__(self, type: Literal["text", "reasoning"], limits: Limits) -> None:
        self._type = type
        self._delta = TextDelta if type == "text" else ReasoningDelta
        self._limits = limits
        self._open: dict[Index, _Block] = {}
        self._closed: set[Index] = set()

    def is_open(self, index: Index) -> bool:
        return index in self._open

    def step(self, event: Event) -> Sequence[Change]:
        """Return an event's changes, block by block. A start and a finish are changes also without text.

        Raises:
            LimitExceededError: An index is too large, there are too many blocks, or a block is too large.
        """
        if isinstance(event, (TextDelta, ReasoningDelta)):
            block = self._open.get(event.index)
            if block is None or type(event) is not self._delta:
                return ()
            piece = block.grow(event.text if isinstance(event, TextDelta) else event.reasoning)
            return ((event.index, "more", piece),) if piece else ()
        if isinstance(event, BlockStart):
            return self._start(event)
        if isinstance(event, BlockDelta):
            return self._change(event)
        if isinstance(event, BlockFinish):
            return self._finish(event)
        if isinstance(event, (MessageFinish, MessageInterrupted)):
            return [change for index in [*self._open] for change in self._finish(BlockFinish(index))]
        return ()

    def _start(self, event: BlockStart) -> Sequence[Change]:
        fold = BlockFold(event, limits=self._limits)
        index = event.index
        known = index in self._open or index in self._closed
        self._open.pop(index, None)
        self._closed.discard(index)
        if not self._is_ours(fold):
            return ((index, "replaced", ""),) if known else ()
        check_place(index, len(self._open) + len(self._closed), self._limits)
        self._open[index] = _Block(fold)
        return ((index, "begun", _text(fold)),)

    def _change(self, event: BlockDelta) -> Sequence[Change]:
        block = self._open.get(event.index)
        if block is None or not names_any(event.fields, _FIELDS[self._type]):
            return ()
        before = _text(block.fold)
        block.fold.step(event)
        block.half = ""
        return (_compare(event.index, before, _text(block.fold)),)

    def _finish(self, event: BlockFinish) -> Sequence[Change]:
        index = event.index
        block = self._open.pop(index, None)
        if block is None:
            return self._finish_without_start(event)
        self._closed.add(index)
        before = _text(block.fold)
        block.fold.step(event)
        return (_compare(index, before, _text(block.fold) if self._is_ours(block.fold) else ""),)

    def _finish_without_start(self, event: BlockFinish) -> Sequence[Change]:
        """A finish with content is a whole block, unless the block is known."""
        if event.content is None or event.index in self._closed:
            return ()
        fold = BlockFold(BlockStart(event.index, event.content), limits=self._limits)
        if not self._is_ours(fold):
            return ()
        check_place(event.index, len(self._open) + len(self._closed), self._limits)
        self._closed.add(event.index)
        return ((event.index, "begun", _text(fold)),)

    def _is_ours(self, fold: BlockFold) -> bool:
        return isinstance(fold.block, ContentPart) and fold.block.type == self._type


class _Block:
    """An open block, and the first half of a surrogate pair that waits for its second half."""

    __slots__ = ("fold", "half")

    def __init__(self, fold: BlockFold) -> None:
        self.fold = fold
        self.half = ""

    def grow(self, piece: str) -> str:
        """Append a piece, and return the whole characters that it completes."""
        self.fold.grow(piece)
        if not self.half and piece.isascii():
            return piece
        piece = self.half + piece
        self.half = ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self.half = piece[:-1], piece[-1]
        whole: str = freeze(piece)
        return whole


def _text(fold: BlockFold) -> str:
    block = fold.block
    return (block.text or "") if isinstance(block, ContentPart) else ""


def _compare(index: Index, before: str, after: str) -> Change:
    if after.startswith(before):
        return (index, "more", after[len(before) :])
    return (index, "replaced", after)


class JsonText:
    """The text blocks of a message as one document, in their order.

    A block is read when the block before it has ended. A change before the reading position restarts the reading.
    """

    def __init__(self, limits: Limits) -> None:
        self._prose = Prose("text", limits)
        self._order: list[Index] = []
        self._pieces: dict[Index, list[str]] = {}
        self._reached = 0  # the number of blocks that have been read; all but the last of them have ended

    def step(self, event: Event) -> Iterator[tuple[ChangeKind, str]]:
        """Return more text of the document, or the beginning of a new one."""
        for index, how, text in self._prose.step(event):
            if index not in self._pieces:
                self._insert(index)
            reached = self._reached - 1
            here = reached >= 0 and self._order[reached] == index
            place = reached if here else self._order.index(index)
            if how == "more":
                self._pieces[index].append(text)
            else:
                self._pieces[index] = [text]
            if here and how == "more":
                yield "more", text
            elif place <= reached:
                self._reached = 0
            yield from self._read_on()

    def _insert(self, index: Index) -> None:
        """Insert a block: numbered blocks in the order of their numbers, others at the end."""
        place = len(self._order)
        if isinstance(index, int):
            while place and isinstance(before := self._order[place - 1], int) and before > index:
                place -= 1
        self._order.insert(place, index)
        self._pieces[index] = []

    def _read_on(self) -> Iterator[tuple[ChangeKind, str]]:
        while self._reached < len(self._order):
            if self._reached and self._prose.is_open(self._order[self._reached - 1]):
                return
            self._reached += 1
            how: ChangeKind = "more" if self._reached > 1 else "begun"
            yield how, "".join(self._pieces[self._order[self._reached - 1]])


class Unfenced:
    """A document without the markdown fence that models often put around it.

    The opening fence and the rest of its line become spaces, so that characters keep their positions. The closing
    fence and all text after it are left out.
    """

    def __init__(self) -> None:
        self._read: Callable[[str, Callable[[], bool]], Iterator[str]] = self._read_start
        self._ticks = ""

    def pieces(self, text: str, is_whole: Callable[[], bool]) -> Iterator[str]:
        """Split the text into pieces. Each must be parsed before the next is requested.

        Args:
            text: The new text.
            is_whole: Whether the parsed pieces are a whole document: then a backtick ends it.
        """
        return self._read(text, is_whole)

    def rest(self) -> str:
        """The held text, at the end of the text."""
        return self._ticks

    def _read_start(self, text: str, is_whole: Callable[[], bool]) -> Iterator[str]:
        if not self._ticks:
            rest = text.lstrip(" \t\r\n")
            yield text[: len(text) - len(rest)]
            text = rest
        text = self._ticks + text
        if len(text) < 3 and text == "`" * len(text):
            self._ticks = text
            return
        self._ticks = ""
        fenced = text.startswith("```")
        self._read = self._read_first_line if fenced else self._read_plain
        yield from self._read(text, is_whole)

    def _read_first_line(self, text: str, is_whole: Callable[[], bool]) -> Iterator[str]:
        line, end, rest = text.partition("\n")
        yield " " * len(line) + end
        if end:
            self._read = self._read_fenced
            yield from self._read(rest, is_whole)

    def _read_fenced(self, text: str, is_whole: Callable[[], bool]) -> Iterator[str]:
        """Pass backticks on until the document is whole: before that they can only be part of a string."""
        at = 0
        while (tick := text.find("`", at)) >= 0:
            yield text[at:tick]
            if is_whole():
                self._read = self._read_nothing
                return
            yield "`"
            at = tick + 1
        yield text[at:]

    def _read_plain(self, text: str, _: Callable[[], bool]) -> Iterator[str]:
        yield text

    def _read_nothing(self, _: str, __: Callable[[], bool]) -> Iterator[str]:
        yield from ()
