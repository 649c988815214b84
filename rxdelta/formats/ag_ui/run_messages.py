"""One run of the stream within the AG-UI run: its messages, one after the other, and whose they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from rxdelta.core import Block, BlockFold, Change, ChangeReader, Event, ToolCall, Walk
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
)
from rxdelta.formats.ag_ui.blocks import AgUiBlock, ClientMessages, EncodedReply
from rxdelta.formats.ag_ui.calls import ActivityBlock, CallBlock
from rxdelta.formats.ag_ui.marks import (
    FINISH_REASON,
    FIRST,
    INTERRUPTED,
    MESSAGE_ID,
    MODEL,
    PARENT_RUN_ID,
    RUN,
    RUN_ID,
    SHOWN_REASON,
    SYNTHETIC,
    USAGE,
    marked,
)
from rxdelta.formats.ag_ui.run import Lane, Run
from rxdelta.formats.ag_ui.tables import UsageByModel, counts_of
from rxdelta.formats.ag_ui.texts import ReasoningBlock, TextBlock

if TYPE_CHECKING:
    from ag_ui.core import BaseEvent

    from rxdelta.formats.ag_ui.data import ApplicationData


_SHOWN_FIELDS: Final = frozenset(
    ["text", "reasoning", "thinking", "refusal", "id", "call_id", "name", "args", "input", "arguments"]
)
"""The fields of an open block that the client sees."""


class _Note(NamedTuple):
    """A frame about a message as a whole."""

    reply: EncodedReply
    frame: BaseEvent
    ends: bool  # the message has ended, so that no other frame of it follows
    ends_subagent: bool = False


class RunMessages(Lane, ChangeReader):
    """One run of the stream, and its state at the client.

    Args:
        run: The AG-UI run.
        client: The messages that the client has.
        data: The application's own data in the run.
        walk: Follows the run's messages. It steps when an event arrives, also if the block has to wait for an open call
            to end. So a waiting block takes no more memory than the limits allow, and the client gets what has become of
            it, in one piece.
        first: The first run of the stream, which is the agent's own; `None` if this is the first.

    Attributes:
        reply: The message that the walk is in.
    """

    def __init__(
        self, run: Run, client: ClientMessages, data: ApplicationData, walk: Walk, first: RunMessages | None
    ) -> None:
        super().__init__(run, first)
        self.walk = walk
        self.reply = client.begin_reply(self)
        self.past_usage: UsageByModel = UsageByModel() if first is None else first.past_usage
        self._client = client
        self._data = data
        self._first = first
        self._lanes: list[RunMessages] = [] if first is None else first._lanes  # shared
        self._lanes.append(self)
        self._subagents: set[str] = (
            set() if first is None else first._subagents
        )  # shared: those that the client knows
        self._notes: deque[_Note] = deque()
        self._subagent_is_open = False

    def begin(self, event: Event, /) -> None:
        """The run begins with this event."""
        first = self._first
        self.identity.begin(self.run.run_name(event.run_id))
        if first is not None:
            if not first.identity.noted:
                first.note()
            self.name = self.identity.name

    def _begin_subagent(self) -> None:
        """Announce a sub-agent to a client that knows sub-agents."""
        run, name = self.run, self.subagent
        if name is not None and run.speaks_1_0:
            self._subagent_is_open = True
            parent = self.identity.parent
            within = parent if parent in self._subagents else None
            self._subagents.add(name)
            run.send(
                run.ag.SubagentStartedEvent(subagent_run_id=name, name=name, parent_subagent_run_id=within)
            )

    def note(self) -> None:
        """From now on, send notes of the run's messages, beginning with the one that it is in."""
        self.identity.noted = True
        if self.walk.started or self.walk.count:
            self._send_note(self.reply, {})
            if self.walk.over:
                self._send_note(self.reply, self._end_marks())

    def _end_marks(self) -> dict[str, Any]:
        """How the message has ended."""
        return {INTERRUPTED: True} if self.cancelled else self.reply.finish_marks()

    def _send_note(self, reply: EncodedReply, end: dict[str, Any]) -> None:
        """Send a note that a message has begun, or how it has ended.

        Blocks that wait for a call of another run are sent before the end of their message, and before the next one.
        """
        if not self.identity.noted:
            return
        facts = self.identity.facts(RUN_ID, FIRST, PARENT_RUN_ID)
        known: dict[str, Any] = {**facts, MESSAGE_ID: reply.ids.reply_id, MODEL: reply.model, **end}
        if end and reply.usage is not None:
            known[USAGE] = counts_of(reply.usage) or None
        value = {name: one for name, one in known.items() if one is not None}
        # After calls, and after a pause, another message of the run follows.
        ends_subagent = bool(end) and end.get(FINISH_REASON) not in ("tool_use", "pause")
        frame = self.run.ag.CustomEvent(name=RUN, value=value)
        self._notes.append(_Note(reply, frame, bool(end), ends_subagent))
        self.send_notes()

    def _begin_step(self) -> None:
        """Send the beginning of the model's turn, unless the client has it."""
        reply, run = self.reply, self.run
        if reply.step is None:
            reply.step = self._data.turn_name(self)
            frame = run.ag.StepStartedEvent(step_name=reply.step, metadata=marked({SYNTHETIC: True}))
            self._notes.append(_Note(reply, frame, ends=False))
            self.send_notes()

    def _end_step(self) -> None:
        reply = self.reply
        if reply.step is not None:
            reason = reply.shown_reason()
            metadata = {**({SHOWN_REASON: reason} if reason else {}), **(marked({SYNTHETIC: True}) or {})}
            frame = self.run.ag.StepFinishedEvent(step_name=reply.step, metadata=metadata)
            reply.step = None
            self._notes.append(_Note(reply, frame, ends=True))
            self.send_notes()

    def send_notes(self, before: EncodedReply | None = None) -> None:
        """Send the notes that needn't wait any more.

        Args:
            before: The reply whose block is sent next.
        """
        while self._notes:
            reply, frame, ends, ends_subagent = self._notes[0]
            if ends and (reply is before or self.run.floor.is_awaited_by(reply)):
                return
            self._notes.popleft()
            if ends:
                self.open_texts.end_complete()
            self.send(frame)
            if ends_subagent:
                self.end_subagent()

    # The end of the stream.

    def end_subagent(self, error: str | None = None) -> None:
        """Send the end of the sub-agent.

        Args:
            error: The text for the client of the error that ended it.
        """
        if not self._subagent_is_open:
            return
        self._subagent_is_open = False
        run, ag = self.run, self.run.ag
        if error is None:
            waiting = [call.id for call in run.unanswered if call.waits and call.lane is self]
            outcome = ag.SubagentFinishedSuspendedOutcome(interrupt_ids=waiting) if waiting else None
            metadata = marked({INTERRUPTED: True} if self.cancelled else {})
            run.send(ag.SubagentFinishedEvent(subagent_run_id=self.name, outcome=outcome, metadata=metadata))
        else:
            run.send(ag.SubagentErrorEvent(subagent_run_id=self.name, message=error))

    def close_message(self) -> None:
        """Close what is open of a message that has no end of its own."""
        self._apply(self.walk.break_off(), MessageInterrupted())

    # Events.

    def send_piece(self, fold: BlockFold, piece: str) -> None:
        """Send the piece by which a block has grown."""
        block: AgUiBlock = fold.place
        floor = self.run.floor
        if floor.call is None or floor.call is block:
            block.grow(piece)
        else:
            floor.wait(block, self.show_late)

    def encode(self, event: Event) -> None:
        """Send what another event of this run, or of every run, changes."""
        if self.identity.read_parent(event):
            self._begin_subagent()
        if isinstance(event, MessageInterrupted):  # after the end, too: it stops the tools
            self.cancelled = self.cancelled or event.choice in (None, self.walk.choice)
        elif isinstance(event, MessageStart) and self.walk.begins_another(event):
            self.close_message()
        self._apply(self.walk.step(event), event)

    def _apply(self, changes: Sequence[Change], event: Event) -> None:
        self.read_changes(changes, event)
        if self.run.floor.is_awaited:
            self._release()
        self._data.release()

    # Messages.

    def on_another(self, _change: Change, _event: Any, /) -> None:
        """Another message of the conversation begins."""
        self.past_usage.add(self.reply.model, self.reply.usage)
        self.reply.reusable_reasoning_id = None
        self._client.keep_stale()
        self._begin_reply(None)

    def on_started(self, _change: Change, event: Any, /) -> None:
        self.reply.start(event)
        self._begin_step()
        self._send_note(self.reply, {})

    def on_usage(self, _change: Change, event: Any, /) -> None:
        self.reply.usage = event.usage

    def on_ended(self, _change: Change, event: Any, /) -> None:
        self._release()
        if isinstance(event, MessageFinish):
            self.reply.finish(event)
        self.open_texts.end_all()
        self._end_step()
        if isinstance(event, MessageFinish) or self.cancelled:  # else it was broken off
            self._send_note(self.reply, self._end_marks())

    def on_reset(self, _change: Change, event: Any, /) -> None:
        """Take the failed attempt back."""
        failed = self.reply
        self.past_usage.add(failed.model, event.usage or failed.usage)
        seen = [block.take_back() for block in [*failed.blocks]]
        failed.ids.give_back()
        self._begin_reply(failed)
        self.reply.reusable_reasoning_id = failed.reusable_reasoning_id
        self.reply.step = failed.step
        if any(seen):
            self._client.correct(self.name)

    def _begin_reply(self, instead_of: EncodedReply | None) -> None:
        self.reply = self._client.begin_reply(self, instead_of=instead_of)
        self.cancelled = False

    # Blocks.

    def on_opened(self, change: Change, event: Any, /) -> None:
        self._begin_step()
        block = self._begin_block(change.fold)
        self.reply.count += type(block) is not AgUiBlock
        if block.fold.block.open:  # else it is closed by the next change
            self.show(block, event)

    def on_restarted(self, change: Change, event: Any, /) -> None:
        block: AgUiBlock = change.fold.place
        continues = type(block) is self._class_for(change.fold.block) and block.begin_again()
        self.show(block if continues else self._replace(block), event)

    def on_changed(self, change: Change, event: Any, /) -> None:
        block: AgUiBlock = change.fold.place
        block.repeated = change.repeated
        self.show(block, event)

    on_closed = on_overruled = on_changed

    def _begin_block(self, fold: BlockFold) -> AgUiBlock:
        block = fold.place = self._class_for(fold.block)(self.reply, fold)
        self.reply.blocks[block] = None
        return block

    def _class_for(self, block: Block) -> type[AgUiBlock]:
        if isinstance(block, ToolCall):
            return CallBlock
        if block.type == "unsupported" and not self.run.provider_items:
            return AgUiBlock
        if block.type == "reasoning":
            return ReasoningBlock if self.run.show_reasoning else AgUiBlock
        return TextBlock if block.type in ("text", "refusal") else ActivityBlock

    def _replace(self, block: AgUiBlock) -> AgUiBlock:
        """The client needs another block than the one that it has."""
        if block.take_back():
            self._client.correct(self.name)
        another = self._begin_block(block.fold)
        another.repeated = block.repeated
        return another

    def show(self, block: AgUiBlock, event: Event | None = None) -> None:
        """Send what the client lacks of a block, or let the block wait for an open call to end.

        Args:
            block: The block.
            event: The event that has changed the block; `None` if there were several.
        """
        floor, fold = self.run.floor, block.fold
        if floor.call is not block and (floor.call is not None or (floor.is_awaited and event is not None)):
            floor.wait(block, self.show_late)  # also where the call has just ended: others have waited longer
            return
        if fold.block.open:
            block.catch_up(
                changed=not isinstance(event, BlockDelta) or not _SHOWN_FIELDS.isdisjoint(event.fields)
            )
            return
        changed = event is None or (isinstance(event, BlockFinish) and event.content is not None)
        if type(block) is not self._class_for(fold.block) or block.differs():
            block, changed = self._replace(block), True
        contradicted = block.catch_up(changed=changed, final=True)
        block.finish()
        if contradicted:
            self._client.correct(self.name)

    def _release(self) -> None:
        """Show the blocks that waited for a call to end, and send the notes that waited for them."""
        self.run.floor.release()
        for lane in self._lanes:
            lane.send_notes()

    def show_late(self, block: AgUiBlock, /) -> None:
        """The call has ended that a block waited for."""
        self.send_notes(before=block.reply)
        self.show(block)

    # Updates of calls.

    def on_noted(self, change: Change, event: Any, /) -> None:
        for call in [*self.calls.get(event.call_id, ())]:
            if call.fold is change.fold and self.run.floor.call is None:
                call.send_news()
            elif call.fold is change.fold:
                self.run.floor.wait(call, self.show_late)
