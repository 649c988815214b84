"""Events → AG-UI: one run, in which a reply is one or more messages.

    run       = RUN_STARTED (text | reasoning | call | result | snapshot | …)* (RUN_FINISHED | RUN_ERROR)
    text      = TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT* TEXT_MESSAGE_END
    reasoning = REASONING_START [REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT* REASONING_MESSAGE_END
                REASONING_ENCRYPTED_VALUE?] REASONING_END
    call      = TOOL_CALL_START TOOL_CALL_ARGS* TOOL_CALL_END REASONING_ENCRYPTED_VALUE?
    result    = TOOL_CALL_RESULT

In AG-UI an assistant's message is one text followed by calls. A reply whose blocks alternate becomes several messages,
so that the order of the blocks survives. A text continues the message before it, unless that message has calls or
another text that is still open, or a reasoning stands between them. A call belongs to the message before it. The ids
of the messages are the reply's id with `~1`, `~2`, … appended, so `from_ag_ui` knows which of them were one reply.

A block that is neither text, reasoning nor call is an activity. `marks.py` has what AG-UI has no field for,
`retraction.py` how the client is corrected after a retry, a block that begins again, or a finish that contradicts what
was sent.

What AG-UI 1.0 added (`protocolVersion`, the outcome `cancelled`, `pendingToolCallIds`) is fatal to older clients, so it
is sent only where the request declares 1.0. To older clients a stopped run is one that succeeded: a mark says that it
was stopped, and its calls are answered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rxdelta.core import (
    DEFAULT_LIMITS,
    PIECE_FIELDS,
    Block,
    BlockFold,
    Change,
    Event,
    InvalidValueError,
    Limits,
    ProviderError,
    TokenUsage,
    ToolCall,
    Walk,
    thaw,
)
from rxdelta.core.events import (
    EVENT_TYPES,
    BlockDelta,
    BlockFinish,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
)
from rxdelta.formats.ag_ui.blocks import ActivityBlock, AgUiBlock
from rxdelta.formats.ag_ui.calls import CallBlock
from rxdelta.formats.ag_ui.marks import INTERRUPTED, marked
from rxdelta.formats.ag_ui.reasoning import ReasoningBlock
from rxdelta.formats.ag_ui.reply import EncodedReply
from rxdelta.formats.ag_ui.retraction import replace_messages, send_snapshot
from rxdelta.formats.ag_ui.run import Run, load_ag_ui
from rxdelta.formats.ag_ui.run_input import RunInput, ids_of
from rxdelta.formats.ag_ui.texts import TextBlock
from rxdelta.formats.ag_ui.usage import add_counts, counts_of
from rxdelta.formats.encoding import (
    Masked,
    cut_off,
    masked,
    not_an_event,
    number_problems,
    shown_error,
)
from rxdelta.framing import SSE_HEADERS

if TYPE_CHECKING:
    from ag_ui.core import BaseEvent

__all__ = ["AG_UI_HEADERS", "AgUiEncoder"]

AG_UI_HEADERS: Final[Mapping[str, str]] = SSE_HEADERS
"""Headers of a response that an AG-UI client reads."""

_SHOWN_FIELDS: Final = frozenset(
    ["text", "reasoning", "thinking", "refusal", "id", "call_id", "name", "args", "input", "arguments"]
)
"""The fields of an open block that the client sees."""


class AgUiEncoder:
    """The AG-UI events of one run.

    Args:
        run_input: The request, as object or as JSON: the run's ids, the messages before it, and the version that the
            client speaks.
        thread_id, run_id: The run's ids, instead of the request's.
        new_id: Makes an id where there is neither a request nor an argument for it.
        choice: The alternative reply to show, if there are several.
        serialize_tool_calls: Send nothing else while a call is open, for clients that take one call at a time.
        on_error: The text of an error for the client; by default only that there was one.
        reasoning: `False` keeps reasoning back, and signatures.
        provider_events: Send the provider's own events, as RAW.
        limits: Bounds on the size of each message.

    Raises:
        ImportError: `ag-ui-protocol` isn't installed.
        InvalidValueError: An argument is invalid.

    Example:
        >>> import rxdelta as rd
        >>> encoder = AgUiEncoder(thread_id="t1", run_id="r1")
        >>> events = [rd.events.MessageStart(), rd.events.BlockStart(0, {"text": "Hi"}), rd.events.MessageFinish()]
        >>> frames = [frame for event in events for frame in encoder.encode(event)] + [*encoder.close()]
        >>> [frame.type.value for frame in frames]
        ['RUN_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'RUN_FINISHED']
    """

    def __init__(
        self,
        run_input: object = None,
        *,
        thread_id: str | None = None,
        run_id: str | None = None,
        new_id: Callable[[], str] | None = None,
        choice: int = 0,
        serialize_tool_calls: bool = False,
        on_error: Masked = masked,
        reasoning: bool = True,
        provider_events: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._limits = limits
        if problems := number_problems("choice", choice):
            raise InvalidValueError.of(problems)
        ag = load_ag_ui()
        request = RunInput(run_input)
        self._thread_id = request.id("thread_id", thread_id, new_id)
        own_id = request.id("run_id", run_id, new_id)
        messages = request.messages()
        self._run = Run(
            ag,
            own_id,
            (used for message in messages or () for used in ids_of(message)),
            speaks_1_0=request.declares_1_0(),
            serialize_calls=serialize_tool_calls,
            show_reasoning=reasoning,
        )
        self._history = None if messages is None else _as_in_snapshot(ag, messages)
        # The walk steps when an event arrives, also if its block has to wait for an open call to end. So a waiting block
        # takes no more memory than the limits allow, and the client gets what has become of it, in one piece.
        self._walk = Walk(choice, limits=limits, keep_calls=True)
        self._on_error = on_error
        self._provider_events = provider_events
        self._started = self._over = self._cancelled = False
        self._past: list[EncodedReply] = []
        self._reply_count = 1
        self._reply = EncodedReply(self._run, 1)
        self._usage: dict[
            str | None, dict[str, int]
        ] = {}  # of the messages and attempts that have ended, by model

    # The run.

    def encode(self, event: Event, /) -> Sequence[BaseEvent]:
        """The frames of one event; none after the end."""
        if self._over:
            return ()
        run, field = self._run, PIECE_FIELDS.get(type(event))
        if field is None and type(event) not in EVENT_TYPES:
            raise not_an_event(event)
        if not self._started:
            self._start()
        if field is None:
            try:
                self._encode(event)
            except ProviderError as error:
                self._break_off(error)
        elif (fold := self._walk.grow(event)) is not None:
            block = self._reply.blocks[fold]
            if run.open_call is None or run.open_call is block:
                block.grow(getattr(event, field))
            else:
                run.waiting[block] = None
        return run.take_frames()

    def fail(self, error: Exception, /) -> Sequence[BaseEvent]:
        """The stream ended with an error: close the open blocks, then send RUN_ERROR."""
        if self._over:
            return ()
        if not self._started:
            self._start()
        self._break_off(error)
        return self._run.take_frames()

    def close(self) -> Sequence[BaseEvent]:
        """The stream completed. If its message hadn't ended, it was cut off, and ends as by `fail`."""
        if self._over:
            return ()
        if not self._walk.over:
            return self.fail(cut_off())
        self._answer_calls()
        self._over = True
        run, outcome = self._run, None
        marks = {INTERRUPTED: True} if self._cancelled else self._reply.finish_marks()
        if run.speaks_1_0 and self._cancelled:
            outcome, marks = run.ag.RunFinishedCancelledOutcome(), {}
        elif run.speaks_1_0 and run.unanswered:
            outcome = run.ag.RunFinishedSuccessOutcome(pending_tool_call_ids=[*run.unanswered])
        run.send(
            run.ag.RunFinishedEvent(
                thread_id=self._thread_id,
                run_id=run.id,
                outcome=outcome,
                usage=self._total_usage(),
                metadata=marked(marks),
            )
        )
        return run.take_frames()

    def _start(self) -> None:
        self._started = True
        run = self._run
        version = run.ag.PROTOCOL_VERSION if run.speaks_1_0 else None
        run.send(run.ag.RunStartedEvent(thread_id=self._thread_id, run_id=run.id, protocol_version=version))

    def _break_off(self, error: Exception) -> None:
        self._close_message()
        self._answer_calls()
        self._over = True
        text = shown_error(self._on_error, error)
        self._run.send(self._run.ag.RunErrorEvent(message=text, usage=self._total_usage()))

    def _answer_calls(self) -> None:
        """Answer the calls that the client must not run."""
        stopped = self._cancelled and not self._run.speaks_1_0
        for call in [*self._run.unanswered.values()]:
            call.answer_unless_it_may_run(stopped=stopped)

    # Events.

    def _encode(self, event: Event) -> None:
        if isinstance(event, ProviderEvent):
            self._provider_event(event)
        elif isinstance(event, MessageInterrupted):  # after the end, too: it stops the tools
            self._cancelled = self._cancelled or event.choice in (None, self._walk.choice)
        elif isinstance(event, MessageStart) and self._walk.begins_another(event):
            self._close_message()
        self._apply(self._walk.step(event), event)

    def _close_message(self) -> None:
        """Close what is open of a message that has no end of its own."""
        self._apply(self._walk.break_off(), MessageInterrupted())

    def _apply(self, changes: Sequence[Change], event: Event) -> None:
        for change in changes:
            self._CHANGES[change.kind](self, change, event)
        if self._run.waiting:
            self._release()

    # Messages.

    def _another(self, _: Change, __: Event) -> None:
        """Another message of the conversation begins."""
        self._add_usage(self._reply.usage, self._reply.model)
        self._past.append(self._reply)
        self._run.stale_ids.clear()
        self._begin_reply()

    def _message_started(self, _: Change, event: Any) -> None:
        self._reply.start(event)

    def _usage_updated(self, _: Change, event: Any) -> None:
        self._reply.usage = event.usage

    def _message_ended(self, _: Change, event: Event) -> None:
        self._release()
        self._run.open_texts.end_all()
        if isinstance(event, MessageFinish):
            self._reply.finish(event)

    def _message_reset(self, _: Change, event: Any) -> None:
        """Take the failed attempt back."""
        failed = self._reply
        self._add_usage(event.usage or failed.usage, failed.model)
        seen = [block.take_back() for block in [*failed.blocks.values()]]
        failed.ids.give_back()
        self._begin_reply()
        self._reply.reusable_reasoning_id = failed.reusable_reasoning_id
        if any(seen):
            self._correct_client()

    def _begin_reply(self) -> None:
        self._reply_count += 1
        self._reply = EncodedReply(self._run, self._reply_count)
        self._cancelled = False

    def _provider_event(self, event: ProviderEvent) -> None:
        if self._provider_events:
            content = {"name": event.name, "payload": thaw(event.payload)}
            self._run.send(self._run.ag.RawEvent(event=content, source=event.provider or None))

    def _add_usage(self, usage: TokenUsage | None, model: str | None) -> None:
        if usage is not None and (counts := counts_of(usage)):
            add_counts(self._usage.setdefault(model, {}), counts)

    def _total_usage(self) -> list[Any] | None:
        self._add_usage(self._reply.usage, self._reply.model)
        found = [self._run.ag.TokenUsage(model=model, **counts) for model, counts in self._usage.items()]
        return found or None

    # Blocks.

    def _block_opened(self, change: Change, event: Event) -> None:
        block = self._begin_block(change.fold)
        if block.fold.block.open:  # else it is closed by the next change
            self._show(block, event)

    def _block_restarted(self, change: Change, event: Event) -> None:
        block = self._reply.blocks[change.fold]
        self._show(block if block.begin_again() else self._replace(block), event)

    def _block_changed(self, change: Change, event: Event) -> None:
        block = self._reply.blocks[change.fold]
        block.repeated = change.repeated
        self._show(block, event)

    def _begin_block(self, fold: BlockFold) -> AgUiBlock:
        block = self._reply.blocks[fold] = self._class_for(fold.block)(self._reply, fold)
        return block

    def _class_for(self, block: Block) -> type[AgUiBlock]:
        if isinstance(block, ToolCall):
            return CallBlock
        if block.type == "reasoning":
            return ReasoningBlock if self._run.show_reasoning else AgUiBlock
        return TextBlock if block.type in ("text", "refusal") else ActivityBlock

    def _replace(self, block: AgUiBlock) -> AgUiBlock:
        """The client needs another block than the one that it has."""
        if block.take_back():
            self._correct_client()
        another = self._begin_block(block.fold)
        another.repeated = block.repeated
        return another

    def _show(self, block: AgUiBlock, event: Event | None = None) -> None:
        """Send what the client lacks of a block, or let the block wait for an open call to end.

        Args:
            block: The block.
            event: The event that has changed the block; `None` if there were several.
        """
        run, fold = self._run, block.fold
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
            self._correct_client()

    def _release(self) -> None:
        """Show the blocks that waited for a call to end, up to the next call that is open."""
        waiting = self._run.waiting
        while waiting and self._run.open_call is None:
            block = next(iter(waiting))
            del waiting[block]
            self._show(block)

    def _correct_client(self) -> None:
        """The client has seen what no longer holds: send it the messages that do."""
        replies = [*self._past, self._reply]
        if self._history is None:
            replace_messages(self._run, replies)
        else:
            send_snapshot(self._run, self._history, replies)

    # Updates of calls.

    def _noted(self, change: Change, event: Any) -> None:
        for call in [*self._run.calls.get(event.call_id, ())]:
            if call.fold is change.fold and self._run.open_call is None:
                call.send_news()
            elif call.fold is change.fold:
                self._run.waiting[call] = None

    _CHANGES: ClassVar[dict[str, Callable[[AgUiEncoder, Change, Event], None]]] = {
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


def _as_in_snapshot(ag: Any, messages: list[Any]) -> list[Any] | None:
    """The messages in the form of a snapshot; `None` if an older client's messages don't fit the snapshot."""
    try:
        return list(ag.MessagesSnapshotEvent(messages=messages).messages)
    except ValueError:
        return None
