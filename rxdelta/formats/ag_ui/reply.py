"""One message of the conversation, which the client sees as several messages."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core import ToolCall, both_finish_reasons
from rxdelta.formats.ag_ui.marks import FINISH_REASON, PROVIDER_FINISH_REASON, numbered_id
from rxdelta.formats.ag_ui.texts import TextBlock, TextMessage

if TYPE_CHECKING:
    from rxdelta.core import BlockFold, TokenUsage
    from rxdelta.core.events import MessageFinish, MessageStart
    from rxdelta.formats.ag_ui.blocks import ActivityBlock, AgUiBlock
    from rxdelta.formats.ag_ui.reasoning import ReasoningBlock
    from rxdelta.formats.ag_ui.run_messages import RunMessages

    Entry: TypeAlias = TextMessage | ReasoningBlock | ActivityBlock
    """One message in the client's list, or a text message with the results of its calls."""

__all__ = ["EncodedReply"]


class EncodedReply:
    """One message of the conversation, and what the client has of it.

    Args:
        lane: The run of the stream that the reply belongs to.
        number: The reply's place in the AG-UI run, from 1.

    Attributes:
        send: Sends a frame, which says whose it is.
        blocks: What the client has of each block of the walk.
        count: How many of them the client can see.
        entries: The messages that the client has, in its order.
        reusable_reasoning_id: The id of a reasoning that was taken back. The next reasoning takes it.
        finished: Whether the message has ended with a `MessageFinish`.
        step: The name of the step that the client has open for the message; `None` without one.
    """

    def __init__(self, lane: RunMessages, number: int) -> None:
        self.lane = lane
        self.run = lane.run
        self.send = lane.send
        self.model: str | None = None
        self.usage: TokenUsage | None = None
        self.reason: str | None = None
        self.provider_reason: str | None = None
        self.finished = False
        self.step: str | None = None
        self.ids = MessageIds(lane, number)
        self.blocks: dict[BlockFold, AgUiBlock] = {}
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
            isinstance(fold.block, ToolCall) and fold.block.type != "server_tool_call" for fold in self.blocks
        )
        ours, theirs = both_finish_reasons(self.reason, self.provider_reason, asked=asked)
        return {FINISH_REASON: ours} | ({} if theirs is None else {PROVIDER_FINISH_REASON: theirs})

    def text_message(self, block: TextBlock | None = None) -> TextMessage:
        """The message that a text continues, or a call belongs to; a new one where the last entry can't take it."""
        last = next(reversed(self.entries), None)
        if isinstance(last, TextMessage) and (block is None or last.can_take(block)):
            return last
        self.lane.open_texts.end_complete()
        message = TextMessage(self, self.ids.first_or_next())
        self.entries[message] = None
        return message


class MessageIds:
    """The ids of the messages that a reply becomes: the reply's own, then the same with `~1`, `~2`, … appended.

    Attributes:
        reply_id: The reply's own id, once it is known.
        base: The id that the others begin with; empty until the first one is needed.
    """

    def __init__(self, lane: RunMessages, number: int) -> None:
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
            self._lane.free_id(self.base)

    def next(self) -> str:
        """The next number whose id is free: of an id with a suffix behind the number, nobody knows the reply."""
        while True:
            self._count += 1
            wanted = numbered_id(self.first(), self._count)
            found = self._lane.new_id(wanted)
            if found == wanted:
                return found
            self._lane.free_id(found)

    def first_or_next(self) -> str:
        """The id of a text message. The first one has the reply's own."""
        found = self.next() if self._first_taken else self.first()
        self._first_taken = True
        return found
