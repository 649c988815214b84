"""A reply as a row of items, of which one is open at a time.

Clients of such a format add each piece to the newest item, and take an item that has ended for what it is: a call that has
ended is run. So an error or a cut ends nothing that is open.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from rxdelta.core import Block, BlockFold, ContentPart, Limits
from rxdelta.formats.encoding import whole_characters
from rxdelta.formats.reply.choice import CallPart, Choice, Part, Run, is_unreadable

if TYPE_CHECKING:
    from rxdelta.formats.reply.writer import Writer


class Reply(Choice):
    """The reply, and its state at the client.

    Attributes:
        items: How many items have begun.
    """

    def __init__(self, writer: Writer, index: int, limits: Limits) -> None:
        super().__init__(writer, index, limits)
        self.items = 0
        self._open: Item | None = None  # the item that has its turn
        self._queue: deque[Item] = deque()  # the items that wait for theirs, in the order in which they asked
        self._is_draining = False

    holds_interrupted = True

    def open(self, _: Run, /) -> None:
        self.writer.start(self.usage())

    def turn(self, part: Any, /) -> bool:
        self._end_waiting()
        if self._open is None:
            self._open = part
        if self._open is part:
            return True
        if not part.is_queued:
            part.is_queued = True
            self._queue.append(part)
        return False

    def release(self, part: Any, /) -> None:
        if self._open is part:
            self._open = None
            self._drain()

    def _drain(self) -> None:
        """Give the turn to those that wait for it. Not from within itself, since thousands may wait."""
        if self._is_draining:
            return
        self._is_draining = True
        while self._queue and self._open is None:
            part = self._queue.popleft()
            part.is_queued = False
            if not part.is_gone:
                part.catch_up()
        self._is_draining = False

    def _end_waiting(self) -> None:
        if self._open is not None and self._open.waits:
            self._open.end()

    def forget(self, parts: Sequence[Part], /) -> None:
        gone: Sequence[Any] = parts
        for part in gone:
            part.is_gone = True
        if self._open is not None and self._open.is_gone:
            self._open.abandon()

    def end(self) -> None:
        self._end_waiting()
        super().end()

    def break_off(self) -> None:
        """Open items stay open."""

    def end_reply(self, run: Run, reason: str, /) -> None:
        if self._queue:  # behind a call that can't be ended
            run.take_back()
        self.writer.end(reason, self.usage())


class Item(Part):
    """A block that is written whole when it has ended, or not at all.

    Attributes:
        place: Its number among the items; -1 until it has begun.
        done: Whether nothing more is written of it.
        waits: Whether it has ended but for another block, which may belong to it.
    """

    place = -1
    done = waits = is_queued = is_gone = False

    def write_start(self) -> None:
        """Write that the item begins."""

    def write_end(self) -> None:
        """Write that the item has ended; of one without pieces, all that it has."""

    def is_shown(self) -> bool:
        """Whether the client sees the block, which has ended and has no text."""
        return False

    def catch_up(self) -> None:
        if self.done or self.fold.block.open:
            return
        self.done = not self.is_shown()
        if not self.done and self.run.choice.turn(self):
            self.told = True
            self.begin()
            self.end()

    def begin(self) -> None:
        """The item's turn has come."""
        reply = cast("Reply", self.run.choice)
        self.place = reply.items
        reply.items += 1
        self.write_start()

    def end(self) -> None:
        """The item has ended."""
        self.done, self.waits = True, False
        self.write_end()
        self.run.choice.release(self)

    def abandon(self) -> None:
        """The reply has begun again while the item was open. A client may keep a thought, but nothing else."""
        self.end()


class TextItem(Item):
    """A text, a refusal or a reasoning, which is written piece by piece."""

    def __init__(self, run: Run, fold: BlockFold) -> None:
        super().__init__(run, fold)
        self._sent = 0  # characters of the block that the client has
        self._half = ""  # the first half of a character

    @property
    def block(self) -> ContentPart:
        return cast("ContentPart", self.fold.block)

    def write_piece(self, piece: str, /) -> None:
        """Write a piece of the text."""

    def grow(self, piece: str, /) -> None:
        if self.place >= 0:
            if self._half or not piece.isascii():
                piece, self._half = whole_characters(self._half, piece)
            self._send(piece)
        elif self.run.speaks and not self.is_queued:
            self.run.choice.runs.settle()
            self.catch_up()

    def _send(self, piece: str) -> None:
        if piece:
            self._sent += len(piece)
            self.write_piece(piece)

    def follow(self, before: Block, /) -> None:
        text, sent = self.block.text or "", cast("ContentPart", before).text or ""
        if not text.startswith(sent[: self._sent]):  # the client keeps what it has
            self._sent = len(text)

    def catch_up(self) -> None:
        if self.done:
            return
        block = self.block
        if not block.text and self.place < 0 and (block.open or not self.is_shown()):
            self.done = not block.open
            return
        if not self.run.choice.turn(self):
            return
        if self.place < 0:
            self.told = block.type != "reasoning"
            self.begin()
        self._send((block.text or "")[self._sent :])
        self._half = self.fold.half
        if not block.open:
            self.end()


class CallItem(CallPart, Item):
    """A call that the client may have to run."""

    takes_unreadable = True
    """Whether clients report to the model that they couldn't read the arguments. Otherwise the reply ends with an error."""

    def catch_up(self) -> None:
        if not self.done:
            super().catch_up()

    def begin(self) -> None:
        self.claim()
        Item.begin(self)

    def write_whole(self) -> None:
        self.begin()
        self._send(self.arguments())
        Item.end(self)

    def end(self) -> None:
        """End the call if that can't make a client run it by mistake.

        An invalid call may have been cut. This is known when its message has ended. If it was, a client that can't read it
        knows why. A call with readable arguments stays open.
        """
        call, run = self.call, self.run
        if call.type == "invalid_tool_call" and not run.choice.writer.is_provider:
            if run.is_open:
                return
            was_cut = run.reason == "length"
            if not is_unreadable(call):
                if was_cut:
                    return
                run.take_back()
            if not (was_cut or self.takes_unreadable):
                run.take_back()
        Item.end(self)

    def abandon(self) -> None:
        """Nothing of a call that has its turn but hasn't begun is written."""
        self.done = True
        self.run.choice.release(self)
