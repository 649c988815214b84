"""One run of the stream within the AG-UI run: its messages, one after the other, and whose they are."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from rxdelta.core import Block, BlockFold, Change, Event, TokenUsage, ToolCall, Walk
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
)
from rxdelta.formats.ag_ui.blocks import ActivityBlock, AgUiBlock
from rxdelta.formats.ag_ui.calls import CallBlock
from rxdelta.formats.ag_ui.data import EVENTS
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
    with_marks,
)
from rxdelta.formats.ag_ui.reasoning import ReasoningBlock
from rxdelta.formats.ag_ui.retraction import correct_client
from rxdelta.formats.ag_ui.texts import OpenTexts, TextBlock
from rxdelta.formats.ag_ui.usage import add_counts, counts_of

if TYPE_CHECKING:
    from ag_ui.core import BaseEvent

    from rxdelta.formats.ag_ui.reply import EncodedReply
    from rxdelta.formats.ag_ui.run import Run

__all__ = ["RunMessages"]

_SHOWN_FIELDS: Final = frozenset(
    ["text", "reasoning", "thinking", "refusal", "id", "call_id", "name", "args", "input", "arguments"]
)
"""The fields of an open block that the client sees."""

_OPENERS: Final = frozenset(
    [
        "TEXT_MESSAGE_START", "REASONING_START", "REASONING_MESSAGE_START", "TOOL_CALL_START",
        "TOOL_CALL_RESULT", "ACTIVITY_SNAPSHOT", "RAW", *EVENTS,
    ]
)  # fmt: skip
"""The events that say whose a message, a call or news is. Others continue one of these."""


class _Note(NamedTuple):
    """What the client is told of a message as a whole."""

    reply: EncodedReply
    frame: BaseEvent
    ends: bool  # the message has ended, so that no other frame of it follows
    ends_subagent: bool = False


class RunMessages:
    """What the client has of one run.

    Args:
        run: The AG-UI run.
        walk: Follows the run's messages. It steps when an event arrives, also if the block has to wait for an open call
            to end. So a waiting block takes no more memory than the limits allow, and the client gets what has become of
            it, in one piece.
        first: The first run of the stream, which is the agent's own; `None` if this is the first.

    Attributes:
        send: Sends a frame of this run.
        reply: The message that the walk is in.
        calls: The calls that the client has, by the id that the provider gave them.
        open_texts: The text messages without TEXT_MESSAGE_END.
        cancelled: Whether the message was stopped.
        name: The run's name in the stream; `None` for the first run.
        subagent: Whether the run works for another one: it has a parent, and not the same as the first run.
        noted: Whether the client is told which messages the run has, since there are several runs.
    """

    def __init__(self, run: Run, walk: Walk, first: RunMessages | None) -> None:
        self.run = run
        self.walk = walk
        self.send: Callable[[BaseEvent], None] = run.send if first is None else self._send_signed
        self.calls: dict[str, list[CallBlock]] = {}
        self.open_texts = OpenTexts()
        run.lanes.append(self)
        self.cancelled = self.subagent = self.noted = self._is_new = False
        self.name: str | None = None
        self.parent: str | None = None
        self.reply = run.new_reply(self)
        self._first = first
        self._facts: dict[str, Any] = {}
        self._notes: deque[_Note] = deque()
        self._subagent_is_open = False

    def begin(self, event: Event, /) -> None:
        """The run begins with this event."""
        name, first = self.run.run_name(event.run_id), self._first
        self._is_new = True
        if first is None:
            self._facts = {RUN_ID: name, FIRST: True}
            return
        if not first.noted:
            first.note()
        self.name, self.noted, self._facts = name, True, {RUN_ID: name}

    def _read_parent(self, event: Event) -> None:
        """Read whose the run is, of the first event that the client can see something of."""
        run, first, name = self.run, self._first, self.name
        self._is_new = False
        self.parent = event.parent_run_id if isinstance(event, MessageStart) else None
        if self.parent is not None:
            self._facts[PARENT_RUN_ID] = self.parent
        self.subagent = first is not None and self.parent not in (None, first.parent)
        if name is not None and self.subagent and run.speaks_1_0:
            self._subagent_is_open = True
            within = self.parent if self.parent in run.subagents else None
            run.subagents.add(name)
            run.send(
                run.ag.SubagentStartedEvent(subagent_run_id=name, name=name, parent_subagent_run_id=within)
            )

    # Whose an id, and a frame, is.

    def new_id(self, wanted: str) -> str:
        """An id that the client doesn't have."""
        return self.run.new_id(wanted, self.name)

    def free_id(self, own_id: str) -> None:
        """The client has no message or call with this id any more."""
        self.run.free_id(own_id)

    def _send_signed(self, frame: BaseEvent) -> None:
        self.run.send(self.signed(frame))

    def signed(self, frame: Any) -> Any:
        """An event or a message of this run, which says so, unless the run is the first."""
        if self.name is None:
            return frame
        if self.subagent:
            frame.subagent_run_id = self.name
        elif frame.metadata is not None or getattr(frame, "type", None) in _OPENERS or hasattr(frame, "role"):
            frame.metadata = with_marks(frame.metadata, {RUN_ID: self.name})
        return frame

    def note(self) -> None:
        """From now on, tell the client which messages the run has, beginning with the one that it is in."""
        self.noted = True
        if self.walk.started or self.walk.count:
            self._send_note(self.reply, {})
            if self.walk.over:
                self._send_note(self.reply, self._end_marks())

    def _end_marks(self) -> dict[str, Any]:
        """How the message has ended."""
        return {INTERRUPTED: True} if self.cancelled else self.reply.finish_marks()

    def _send_note(self, reply: EncodedReply, end: dict[str, Any]) -> None:
        """Tell the client that a message has begun, or how it has ended.

        Blocks that wait for a call of another run are sent before the end of their message, and before the next one.
        """
        if not self.noted:
            return
        known: dict[str, Any] = {**self._facts, MESSAGE_ID: reply.ids.reply_id, MODEL: reply.model, **end}
        if end and reply.usage is not None:
            known[USAGE] = counts_of(reply.usage) or None
        value = {name: one for name, one in known.items() if one is not None}
        # After calls, and after a pause, another message of the run follows.
        ends_subagent = bool(end) and end.get(FINISH_REASON) not in ("tool_use", "pause")
        frame = self.run.ag.CustomEvent(name=RUN, value=value)
        self._notes.append(_Note(reply, frame, bool(end), ends_subagent))
        self.send_notes()

    def _begin_step(self) -> None:
        """Tell the client that the model's turn has begun, unless it knows."""
        reply, run = self.reply, self.run
        if reply.step is None:
            reply.step = run.data.turn_name(self)
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
            if ends and (reply is before or any(block.reply is reply for block in self.run.waiting)):
                return
            self._notes.popleft()
            if ends:
                self.open_texts.end_complete()
            self.send(frame)
            if ends_subagent:
                self.end_subagent()

    # The end of the stream.

    def end_subagent(self, error: str | None = None) -> None:
        """Tell the client that the sub-agent has ended.

        Args:
            error: What the client may know of the error that ended it.
        """
        if not self._subagent_is_open:
            return
        self._subagent_is_open = False
        run, ag = self.run, self.run.ag
        if error is None:
            waiting = [call.id for call in run.unanswered.values() if call.waits and call.reply.lane is self]
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
        run, block = self.run, self.reply.blocks[fold]
        if run.open_call is None or run.open_call is block:
            block.grow(piece)
        else:
            run.waiting[block] = None

    def encode(self, event: Event) -> None:
        """Send what another event of this run, or of every run, changes."""
        if self._is_new and not isinstance(event, AttemptReset):
            self._read_parent(event)
        if isinstance(event, MessageInterrupted):  # after the end, too: it stops the tools
            self.cancelled = self.cancelled or event.choice in (None, self.walk.choice)
        elif isinstance(event, MessageStart) and self.walk.begins_another(event):
            self.close_message()
        self._apply(self.walk.step(event), event)

    def _apply(self, changes: Sequence[Change], event: Event) -> None:
        for change in changes:
            self._CHANGES[change.kind](self, change, event)
        if self.run.waiting:
            self._release()
        self.run.data.release()

    # Messages.

    def _another(self, _: Change, __: Event) -> None:
        """Another message of the conversation begins."""
        self._add_usage(self.reply)
        self.reply.reusable_reasoning_id = None
        self.run.stale_ids.clear()
        self._begin_reply(None)

    def _message_started(self, _: Change, event: Any) -> None:
        self.reply.start(event)
        self._begin_step()
        self._send_note(self.reply, {})

    def _usage_updated(self, _: Change, event: Any) -> None:
        self.reply.usage = event.usage

    def _message_ended(self, _: Change, event: Event) -> None:
        self._release()
        if isinstance(event, MessageFinish):
            self.reply.finish(event)
        self.open_texts.end_all()
        self._end_step()
        if isinstance(event, MessageFinish) or self.cancelled:  # else it was broken off
            self._send_note(self.reply, self._end_marks())

    def _message_reset(self, _: Change, event: Any) -> None:
        """Take the failed attempt back."""
        failed = self.reply
        self._add_usage(failed, event.usage)
        seen = [block.take_back() for block in [*failed.blocks.values()]]
        failed.ids.give_back()
        self._begin_reply(failed)
        self.reply.reusable_reasoning_id = failed.reusable_reasoning_id
        self.reply.step = failed.step
        if any(seen):
            correct_client(self.run, self.name)

    def _begin_reply(self, instead_of: EncodedReply | None) -> None:
        self.reply = self.run.new_reply(self, instead_of=instead_of)
        self.cancelled = False

    def _add_usage(self, reply: EncodedReply, usage: TokenUsage | None = None) -> None:
        usage = usage or reply.usage
        if usage is not None and (counts := counts_of(usage)):
            add_counts(self.run.usage.setdefault(reply.model, {}), counts)

    # Blocks.

    def _block_opened(self, change: Change, event: Event) -> None:
        self._begin_step()
        block = self._begin_block(change.fold)
        self.reply.count += type(block) is not AgUiBlock
        if block.fold.block.open:  # else it is closed by the next change
            self.show(block, event)

    def _block_restarted(self, change: Change, event: Event) -> None:
        block = self.reply.blocks[change.fold]
        self.show(block if block.begin_again() else self._replace(block), event)

    def _block_changed(self, change: Change, event: Event) -> None:
        block = self.reply.blocks[change.fold]
        block.repeated = change.repeated
        self.show(block, event)

    def _begin_block(self, fold: BlockFold) -> AgUiBlock:
        block = self.reply.blocks[fold] = self._class_for(fold.block)(self.reply, fold)
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
            correct_client(self.run, self.name)
        another = self._begin_block(block.fold)
        another.repeated = block.repeated
        return another

    def show(self, block: AgUiBlock, event: Event | None = None) -> None:
        """Send what the client lacks of a block, or let the block wait for an open call to end.

        Args:
            block: The block.
            event: The event that has changed the block; `None` if there were several.
        """
        run, fold = self.run, block.fold
        if run.open_call is not block and (run.open_call or (run.waiting and event)):
            run.waiting[block] = None  # also where the call has just ended: others have waited longer
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
            correct_client(self.run, self.name)

    def _release(self) -> None:
        """Show the blocks that waited for a call to end, up to the next call that is open."""
        waiting = self.run.waiting
        while waiting and self.run.open_call is None:
            block = next(iter(waiting))
            block.reply.lane.send_notes(before=block.reply)
            del waiting[block]
            block.reply.lane.show(block)
        for lane in self.run.lanes:
            lane.send_notes()

    # Updates of calls.

    def _noted(self, change: Change, event: Any) -> None:
        for call in [*self.calls.get(event.call_id, ())]:
            if call.fold is change.fold and self.run.open_call is None:
                call.send_news()
            elif call.fold is change.fold:
                self.run.waiting[call] = None

    _CHANGES: ClassVar[dict[str, Callable[[RunMessages, Change, Event], None]]] = {
        "another": _another,
        "started": _message_started,
        "usage": _usage_updated,
        "ended": _message_ended,
        "reset": _message_reset,
        "opened": _block_opened,
        "restarted": _block_restarted,
        "changed": _block_changed,
        "closed": _block_changed,
        "overruled": _block_changed,
        "noted": _noted,
    }
