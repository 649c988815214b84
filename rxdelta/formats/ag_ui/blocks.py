"""The blocks of a reply on their way to the client: what all kinds have in common, and activities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import ContentPart, block_to_wire
from rxdelta.formats.ag_ui.marks import BLOCK, activity_type
from rxdelta.formats.ag_ui.results import answer_of
from rxdelta.formats.encoding import whole_characters
from rxdelta.formats.late_results import place_marks

if TYPE_CHECKING:
    from rxdelta.core import BlockFold
    from rxdelta.formats.ag_ui.reply import EncodedReply

__all__ = ["ActivityBlock", "AgUiBlock", "StreamedBlock"]


class AgUiBlock:
    """What the client has of a block. This base class is a block that the client never sees.

    Args:
        reply: The reply that the block belongs to.
        fold: The block, which grows with the walk.

    Attributes:
        id: The id that the client knows the block by; empty until it does.
        done: Whether the client has the block's end, or the block was taken back.
        repeated: Whether the block is a call that has ended before under its id.
        place: How many blocks of the reply the client can see before it.
    """

    def __init__(self, reply: EncodedReply, fold: BlockFold) -> None:
        self.reply = reply
        self.run = reply.run
        self.fold = fold
        self.id = ""
        self.done = False
        self.repeated = False
        self.place = reply.count

    @property
    def part(self) -> ContentPart:
        block = self.fold.block
        return block if isinstance(block, ContentPart) else ContentPart("unsupported")

    def grow(self, piece: str) -> None:
        """The block has grown by this piece."""

    def catch_up(self, *, changed: bool = True, final: bool = False) -> bool:  # noqa: ARG002
        """Send what the client hasn't seen of the block.

        Args:
            changed: Whether the block has changed otherwise than by pieces for `grow`.
            final: Whether the block has ended.

        Returns:
            Whether the block has ended with another content than the client has seen.
        """
        return False

    def differs(self) -> bool:
        """Whether a finished block contradicts its own start, so that the client needs another one."""
        return False

    def finish(self) -> None:
        """The block has ended, and the client has seen its content."""
        self.done = True

    def begin_again(self) -> bool:
        """The block has begun again.

        Returns:
            Whether the client keeps what it has of the block until the block has ended again.
        """
        return False

    def take_back(self) -> bool:
        """Remove the block from the reply.

        Returns:
            Whether the client has a message of it, which must be removed.
        """
        self.reply.blocks.pop(self.fold, None)
        self.run.waiting.pop(self, None)
        seen = self._retract()
        self.done = True
        return seen

    def _retract(self) -> bool:
        return False


class StreamedBlock(AgUiBlock):
    """A block whose text the client sees while it grows.

    Attributes:
        pieces: The pieces of the text that the client has.
        contradicted: Whether the text has become another than the client has. It may change once more, so nothing is
            sent before the end.
    """

    def __init__(self, reply: EncodedReply, fold: BlockFold) -> None:
        super().__init__(reply, fold)
        self.pieces: list[str] = []
        self.contradicted = False
        self._half = ""  # the first half of a character

    def grow(self, piece: str) -> None:
        if self.contradicted or not self.announce():
            return
        if self._half or not piece.isascii():
            piece, self._half = whole_characters(self._half, piece)
        if piece:
            self._send(piece)
            self.pieces.append(piece)

    def catch_up(self, *, changed: bool = True, final: bool = False) -> bool:
        if not self.announce(force=final):
            return False
        if not changed and self.pieces and not (final and (self._half or self.contradicted)):
            return False
        seen = "".join(self.pieces)
        text = self.text(seen, final=final)
        self._half = "" if final else self.fold.half
        if text.startswith(seen):
            self.contradicted = False
            if rest := text[len(seen) :]:
                self._send(rest)
                self.pieces.append(rest)
            return False
        self.contradicted = not final
        if final:
            self.pieces = [text]
        return final

    def announce(self, *, force: bool = False) -> bool:  # noqa: ARG002
        """Whether text can be sent: the client may have to know the block first.

        Args:
            force: Announce the block even if it lacks something, because it has ended.
        """
        return True

    def text(self, _seen: str, /, *, final: bool) -> str:  # noqa: ARG002
        """The block's text, where the client has seen `_seen` of it."""
        return self.part.text or ""

    def _send(self, piece: str) -> None:
        """Send one more piece of the text."""
        raise NotImplementedError


class ActivityBlock(AgUiBlock):
    """A block that is neither text, reasoning nor call. The client sees it when it is complete."""

    _answered = False

    def finish(self) -> None:
        self.done = True
        block = self.part
        call_id = block.options.get("tool_call_id")
        calls = self.reply.lane.calls.get(call_id) if isinstance(call_id, str) else None
        if block.type == "server_tool_result" and calls:
            self._retract()
            if not self._answered:
                self._answered = True
                content = block_to_wire(block)
                output, _ = content.pop("output", None), content.pop("tool_call_id")
                marks = {BLOCK: content, **place_marks(calls[-1].place, self.place)}
                calls[-1].answer(answer_of(output, marks))
            return
        self.reply.lane.open_texts.end_complete()
        self.run.pause_for_call()
        self.id = self.id or self.reply.ids.next()
        self.reply.entries.setdefault(self)
        self.send()

    def send(self) -> None:
        content, kind = block_to_wire(self.part), activity_type(self.part.type)
        self.reply.send(
            self.run.ag.ActivitySnapshotEvent(message_id=self.id, activity_type=kind, content=content)
        )

    def pause(self) -> list[str]:
        return [self.id]

    def send_again(self) -> None:
        self.send()

    def messages(self) -> list[Any]:
        content, kind = block_to_wire(self.part), activity_type(self.part.type)
        return [self.run.ag.ActivityMessage(id=self.id, activity_type=kind, content=content)]

    def _retract(self) -> bool:
        if self in self.reply.entries:
            del self.reply.entries[self]
            self.run.discard_message(self.id)
        return False
