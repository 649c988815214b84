"""One message of the conversation, which the client sees as several messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core import ToolCall, begins_another
from rxdelta.formats.ag_ui.marks import FINISH_REASON, PROVIDER_FINISH_REASON, numbered_id
from rxdelta.formats.ag_ui.texts import OpenTexts, TextBlock, TextMessage

if TYPE_CHECKING:
    from rxdelta.core import TokenUsage
    from rxdelta.core.events import (
        BlockDelta,
        BlockFinish,
        BlockStart,
        DataDelta,
        MessageFinish,
        MessageStart,
        ReasoningDelta,
        TextDelta,
        ToolCallDelta,
        ToolUpdate,
    )
    from rxdelta.formats.ag_ui.blocks import ActivityBlock, AgUiBlock
    from rxdelta.formats.ag_ui.calls import CallBlock
    from rxdelta.formats.ag_ui.reasoning import ReasoningBlock
    from rxdelta.formats.ag_ui.run import Run

    Entry: TypeAlias = TextMessage | ReasoningBlock | ActivityBlock
    """One message in the client's list, or a text message with the results of its calls."""

    BlockEvent: TypeAlias = (
        BlockStart | BlockDelta | BlockFinish | TextDelta | ReasoningDelta | DataDelta | ToolCallDelta
    )

__all__ = ["EncodedReply"]

Index: TypeAlias = int | str

_REASONS = (None, "stop", "length", "tool_use", "content_filter")


class EncodedReply:
    """One message of the conversation, and what the client has of it.

    Args:
        run: The run that the reply belongs to.
        number: The reply's place in the run, from 1.

    Attributes:
        blocks: The blocks by index, in the order in which they began.
        entries: The messages that the client has, in its order.
        open_texts: The text messages without TEXT_MESSAGE_END.
        open_reasoning: The reasoning blocks without REASONING_END.
        reusable_reasoning_id: The id of a reasoning that was taken back. The next reasoning takes it.
        early_updates: The updates of calls that the client doesn't have yet, by the call's id.
        order: The events that wait for an open call to end.
    """

    def __init__(self, run: Run, number: int) -> None:
        self.run = run
        self.id: str | None = None
        self.model: str | None = None
        self.usage: TokenUsage | None = None
        self.reason: str | None = None
        self.provider_reason: str | None = None
        self.started = self.over = False
        self.ids = MessageIds(run, number)
        self.blocks: dict[Index, AgUiBlock] = {}
        self.entries: dict[Entry, None] = {}
        self.open_texts = OpenTexts()
        self.open_reasoning: dict[ReasoningBlock, None] = {}
        self.reusable_reasoning_id: str | None = None
        self.early_updates: dict[str, list[ToolUpdate]] = {}
        self.order = CallOrder()

    def is_followed_by(self, event: MessageStart) -> bool:
        """Whether the event begins another message."""
        return begins_another(event, id=self.id, begun=self.started and bool(self.blocks), over=self.over)

    def start(self, event: MessageStart) -> None:
        """Read the message's start, which may come in several events."""
        self.started = self.started or not event.assumed
        self.id = self.ids.reply_id = self.id or event.id
        self.model = self.model or event.model
        self.usage = self.usage or event.usage

    def finish(self, event: MessageFinish) -> None:
        self.model = self.model or event.model
        self.usage = event.usage or self.usage
        self.reason, self.provider_reason = event.reason, event.provider_reason
        self.over = True

    def finish_marks(self) -> dict[str, Any]:
        """Why the message ended, in our words and in the provider's."""
        asked = any(
            isinstance(block := one.fold.block, ToolCall) and block.type != "server_tool_call"
            for one in self.blocks.values()
        )
        known = self.reason in ("length", "content_filter")
        marks: dict[str, Any] = {FINISH_REASON: self.reason if known else "tool_use" if asked else "stop"}
        if self.provider_reason is not None:
            marks[PROVIDER_FINISH_REASON] = self.provider_reason
        elif self.reason not in _REASONS:
            marks[PROVIDER_FINISH_REASON] = self.reason
        return marks

    def text_message(self, block: TextBlock | None = None) -> TextMessage:
        """The message that a text continues, or a call belongs to; a new one where the last entry can't take it."""
        last = next(reversed(self.entries), None)
        if isinstance(last, TextMessage) and (block is None or last.can_take(block)):
            return last
        self.open_texts.end_complete()
        message = TextMessage(self, self.ids.first_or_next())
        self.entries[message] = None
        return message

    def pause_for_call(self) -> None:
        """Where calls are serialized, end the open messages. A block that continues is opened again."""
        if self.run.serialize_calls:
            self.open_texts.end_all()
            for block in [*self.open_reasoning]:
                block.pause()


class MessageIds:
    """The ids of the messages that a reply becomes: the reply's own, then the same with `~1`, `~2`, … appended.

    Attributes:
        reply_id: The reply's own id, once it is known.
        base: The id that the others begin with; empty until the first one is needed.
    """

    def __init__(self, run: Run, number: int) -> None:
        self.reply_id: str | None = None
        self.base = ""
        self._run = run
        self._fallback = f"{run.id}-{number}"
        self._first_taken = False
        self._count = 0

    def first(self) -> str:
        if not self.base:
            self.base = self._run.new_id(self.reply_id or self._fallback)
        return self.base

    def next(self) -> str:
        self._count += 1
        return self._run.new_id(numbered_id(self.first(), self._count))

    def first_or_next(self) -> str:
        """The id of a text message. The first one has the reply's own."""
        found = self.next() if self._first_taken else self.first()
        self._first_taken = True
        return found


class CallOrder:
    """The events that wait for an open call to end, for clients that accept nothing else meanwhile.

    Attributes:
        open_call: The call that the others wait for; always `None` unless calls are serialized.
        events: The waiting events of other blocks, by their index.
        updates: The waiting updates of calls.
        releasing: Whether the waiting events are just being encoded.
    """

    def __init__(self) -> None:
        self.open_call: CallBlock | None = None
        self.events: dict[Index, list[BlockEvent]] = {}
        self.updates: list[ToolUpdate] = []
        self.releasing = False
