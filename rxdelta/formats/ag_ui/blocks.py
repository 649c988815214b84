"""A reply, its blocks, and what the client has of both: the parts that all kinds of blocks have in common."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from rxdelta.core import BlockFold, ContentPart, TokenUsage, ToolCall, both_finish_reasons
from rxdelta.formats.ag_ui.marks import (
    AGAIN,
    FINISH_REASON,
    PROVIDER_FINISH_REASON,
    RUN_ID,
    numbered_id,
    with_marks,
)
from rxdelta.formats.encoding import whole_characters

if TYPE_CHECKING:
    from rxdelta.core.events import MessageFinish, MessageStart
    from rxdelta.formats.ag_ui.run import Lane, Run


class Entry(Protocol):
    """One message in the client's list, or a text message with the results of its calls."""

    id: str

    def pause(self) -> list[str]:
        """End what is open, before the message is sent again.

        Returns:
            The ids of the messages that the client has of it.
        """
        ...

    def send_again(self) -> None:
        """Send the message under another id."""

    def messages(self) -> list[Any]:
        """The message as MESSAGES_SNAPSHOT repeats it."""
        ...


class AgUiBlock:
    """A block, and its state at the client. This base class is a block that the client never sees.

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
        self.lane = reply.lane
        self.run = reply.lane.run
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
        self.reply.blocks.pop(self, None)
        self.run.floor.forget(self)
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


class EncodedReply:
    """One message of the conversation, and what the client has of it.

    Args:
        lane: The run of the stream that the reply belongs to.
        client: The messages that the client has.
        number: The reply's place in the AG-UI run, from 1.

    Attributes:
        send: Sends a frame, which says whose it is.
        blocks: The blocks of the walk.
        count: How many of them the client can see.
        entries: The messages that the client has, in its order.
        reusable_reasoning_id: The id of a reasoning that was taken back. The next reasoning takes it.
        finished: Whether the message has ended with a `MessageFinish`.
        step: The name of the step that the client has open for the message; `None` without one.
    """

    def __init__(self, lane: Lane, client: ClientMessages, number: int) -> None:
        self.lane = lane
        self.client = client
        self.send = lane.send
        self.model: str | None = None
        self.usage: TokenUsage | None = None
        self.reason: str | None = None
        self.provider_reason: str | None = None
        self.finished = False
        self.step: str | None = None
        self.ids = MessageIds(lane, number)
        self.blocks: dict[AgUiBlock, None] = {}
        self.count = 0
        self.entries: dict[Entry, None] = {}
        self.reusable_reasoning_id: str | None = None

    def start(self, event: MessageStart) -> None:
        """Read the message's start, which may come in several events."""
        self.ids.reply_id = self.ids.reply_id or event.id
        self.model = self.model or event.model
        self.usage = self.usage or event.usage

    def finish(self, event: MessageFinish) -> None:
        self.model = self.model or event.model
        self.usage = event.usage or self.usage
        self.reason, self.provider_reason, self.finished = event.reason, event.provider_reason, True

    def shown_reason(self) -> str | None:
        """Why the message ended; `None` before its end, and of a message that was stopped or cut off."""
        return self._shown_reason if self.finished else None

    @cached_property
    def _shown_reason(self) -> str | None:  # at the end, for each text that is open
        reason: str | None = self.finish_marks()[FINISH_REASON]
        return reason

    def finish_marks(self) -> dict[str, Any]:
        """Why the message ended, in our words and in the provider's."""
        asked = any(
            isinstance(block, ToolCall) and block.type != "server_tool_call"
            for block in (shown.fold.block for shown in self.blocks)
        )
        ours, theirs = both_finish_reasons(self.reason, self.provider_reason, asked=asked)
        return {FINISH_REASON: ours} | ({} if theirs is None else {PROVIDER_FINISH_REASON: theirs})


class MessageIds:
    """The ids of the messages that a reply becomes: the reply's own, then the same with `~1`, `~2`, … appended.

    Attributes:
        reply_id: The reply's own id, once it is known.
        base: The id that the others begin with; empty until the first one is needed.
    """

    def __init__(self, lane: Lane, number: int) -> None:
        self.reply_id: str | None = None
        self.base = ""
        self._lane = lane
        self._fallback = f"{lane.run.id}-{number}"
        self._first_taken = False
        self._count = 0

    def first(self) -> str:
        if not self.base:
            self.base = self._lane.new_id(self.reply_id or self._fallback)
        return self.base

    def give_back(self) -> None:
        """Free the reply's own id, unless a text message has had it, which frees it by itself."""
        if not self._first_taken:
            self._lane.run.free_id(self.base)

    def next(self) -> str:
        """The next number whose id is free: of an id with a suffix behind the number, nobody knows the reply."""
        while True:
            self._count += 1
            wanted = numbered_id(self.first(), self._count)
            found = self._lane.new_id(wanted)
            if found == wanted:
                return found
            self._lane.run.free_id(found)

    def first_or_next(self) -> str:
        """The id of a text message. The first one has the reply's own."""
        found = self.next() if self._first_taken else self.first()
        self._first_taken = True
        return found


class ClientMessages:
    """The messages that the client has of the request and of the run, and how it is corrected.

    Nothing can be taken back piece by piece. Where the request's messages are known, one MESSAGES_SNAPSHOT repeats all
    messages that hold; the client drops the rest. Where they are not known, a snapshot would drop them too. So the
    messages of the run are replaced one by one: an activity takes the place of any message with its id, a front end
    doesn't show an activity of an unknown type, and no client sends one back. The messages that still hold follow again,
    under other ids.

    Args:
        run: The AG-UI run.
        history: The messages of the request, and the results of their calls, as a snapshot repeats them; `None` if they
            aren't known.
    """

    def __init__(self, run: Run, history: list[Any] | None) -> None:
        self._run = run
        self._history = history
        self._replies: list[EncodedReply] = []  # of all runs of the stream, in the order in which they began
        self._count = 0
        self._stale_ids: list[str] = []

    def begin_reply(self, lane: Lane, *, instead_of: EncodedReply | None = None) -> EncodedReply:
        """A reply begins, behind the others or in the place of one that was taken back."""
        self._count += 1
        reply = EncodedReply(lane, self, self._count)
        if instead_of is None:
            self._replies.append(reply)
        else:
            self._replies[self._replies.index(instead_of)] = reply
        return reply

    def add_result(self, answer: Any) -> None:
        """Put a result where the client has it: behind the message of its call, and behind the results that it has."""
        history = self._history
        if history is None:
            return
        place = 1
        for message in history:
            if any(call.id == answer.tool_call_id for call in getattr(message, "tool_calls", None) or ()):
                break
            place += 1
        while place < len(history) and history[place].role == "tool":
            place += 1
        history.insert(place, answer)

    def let_go_stale(self, *ids: str) -> None:
        """The client still has these messages although they no longer hold, until it is corrected."""
        self._stale_ids += ids

    def keep_stale(self) -> None:
        """Another message begins: what the client has by now stays."""
        self._stale_ids.clear()

    def correct(self, name: str | None) -> None:
        """The client has seen what no longer holds: send it the messages that do.

        Args:
            name: The run of the stream that something was taken back of; `None` for the first.
        """
        if self._history is None:
            self._replace_messages(name)
        else:
            self._send_snapshot(self._history, name)

    def _send_snapshot(self, history: Sequence[Any], name: str | None) -> None:
        """Repeat all messages of the request and of the run."""
        run, ag = self._run, self._run.ag
        self._stale_ids.clear()  # what the snapshot doesn't repeat is gone
        messages = [*history]
        for reply in self._replies:
            found = [message for entry in reply.entries for message in entry.messages()]
            messages += [reply.lane.signed(message) for message in found]
        if not run.speaks_1_0:  # an activity among the messages would make older clients drop their own
            messages = [message for message in messages if message.role != "activity"]
        if any(message.role == "reasoning" for message in messages):
            self._reuse_no_id()
        # Without any reasoning, clients keep what they have.
        for reply in self._replies:
            if reply.reusable_reasoning_id is not None:
                empty = ag.ReasoningMessage(id=reply.reusable_reasoning_id, content="")
                messages.append(reply.lane.signed(empty))
        # A client may have activities of its own: those that are not among the messages stay.
        metadata: dict[str, Any] = {"@ag-ui/client": {"authoritativeActivityTypes": []}}
        if name is not None:
            metadata = with_marks(metadata, {RUN_ID: name})
        run.send(ag.MessagesSnapshotEvent(messages=messages, metadata=metadata))

    def _replace_messages(self, name: str | None) -> None:
        """Discard the run's messages one by one, and send those that hold again, in their order."""
        stale_ids, self._stale_ids = self._stale_ids, []
        self._reuse_no_id()
        marks = {AGAIN: True} if name is None else {AGAIN: True, RUN_ID: name}
        entries = [(reply, entry) for reply in self._replies for entry in reply.entries]
        for _, entry in entries:
            stale_ids += entry.pause()
        for message_id in stale_ids:
            self._run.discard_message(message_id, **marks)
        for reply, entry in entries:
            entry.id = reply.ids.next()
            entry.send_again()

    def _reuse_no_id(self) -> None:
        for reply in self._replies:
            reply.reusable_reasoning_id = None
