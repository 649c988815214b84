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
    Event,
    InvalidValueError,
    LimitExceededError,
    Limits,
    ProviderError,
    TokenUsage,
    ToolCall,
    thaw,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
    UsageUpdate,
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

    from rxdelta.formats.ag_ui.reply import BlockEvent

__all__ = ["AG_UI_HEADERS", "AgUiEncoder"]

AG_UI_HEADERS: Final[Mapping[str, str]] = SSE_HEADERS
"""Headers of a response that an AG-UI client reads."""

_CUT_BY_LENGTH: Final = "the message was cut short by the token limit while the call was open"
_STOPPED: Final = "the message was interrupted while the call was open"
_BROKEN_OFF: Final = "the message broke off while the call was open"


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
        self._choice = choice
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
        step = self._STEPS.get(type(event))
        if step is None:
            raise not_an_event(event)
        self._start()
        if type(event) is StreamError or getattr(event, "choice", None) in (None, self._choice):
            step(self, event)
        return self._run.take_frames()

    def fail(self, error: Exception, /) -> Sequence[BaseEvent]:
        """The stream ended with an error: close the open blocks, then send RUN_ERROR."""
        if self._over:
            return ()
        self._start()
        self._break_off(error)
        return self._run.take_frames()

    def close(self) -> Sequence[BaseEvent]:
        """The stream completed. If its message hadn't ended, it was cut off, and ends as by `fail`."""
        if self._over:
            return ()
        if not self._reply.over:
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
        if not self._started:
            self._started = True
            run = self._run
            version = run.ag.PROTOCOL_VERSION if run.speaks_1_0 else None
            run.send(
                run.ag.RunStartedEvent(thread_id=self._thread_id, run_id=run.id, protocol_version=version)
            )

    def _break_off(self, error: Exception) -> None:
        self._close_all(_BROKEN_OFF)
        self._answer_calls()
        self._over = True
        text = shown_error(self._on_error, error)
        self._run.send(self._run.ag.RunErrorEvent(message=text, usage=self._total_usage()))

    def _answer_calls(self) -> None:
        """Answer the calls that the client must not run."""
        stopped = self._cancelled and not self._run.speaks_1_0
        for call in [*self._run.unanswered.values()]:
            call.answer_unless_it_may_run(stopped=stopped)

    # Messages.

    def _message_start(self, event: MessageStart) -> None:
        if self._reply.is_followed_by(event):
            self._next_reply()
        self._reply.start(event)

    def _usage_update(self, event: UsageUpdate) -> None:
        if not self._reply.over:
            self._reply.usage = event.usage

    def _message_finish(self, event: MessageFinish) -> None:
        if not self._reply.over:
            self._close_all(_CUT_BY_LENGTH if event.reason == "length" else None)
            self._reply.finish(event)

    def _interrupted(self, _: MessageInterrupted) -> None:
        self._close_all(_STOPPED)
        self._reply.over = self._cancelled = True

    def _stream_error(self, event: StreamError) -> None:
        self._break_off(ProviderError(event.message, type=event.type, code=event.code))

    def _attempt_reset(self, event: AttemptReset) -> None:
        """Take the failed attempt back. After the end of a message the attempt is the next message's."""
        if self._reply.over:
            self._next_reply()
            self._add_usage(event.usage, None)
            return
        self._close_all(_BROKEN_OFF)
        failed = self._reply
        self._add_usage(event.usage or failed.usage, failed.model)
        seen = [block.take_back() for block in [*failed.blocks.values()]]
        self._run.free_id(failed.ids.base)
        self._begin_reply()
        self._reply.reusable_reasoning_id = failed.reusable_reasoning_id
        if any(seen):
            self._correct_client()

    def _next_reply(self) -> None:
        """Another message of the conversation begins."""
        if not self._reply.over:
            self._close_all(_BROKEN_OFF)
        self._add_usage(self._reply.usage, self._reply.model)
        self._past.append(self._reply)
        self._run.stale_ids.clear()
        self._begin_reply()
        self._cancelled = False

    def _begin_reply(self) -> None:
        self._reply_count += 1
        self._reply = EncodedReply(self._run, self._reply_count)

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

    def _block_event(self, event: BlockEvent) -> None:
        reply = self._reply
        if reply.over:
            return
        order = reply.order
        if order.open_call is not None and order.open_call.index != event.index:
            order.events.setdefault(event.index, []).append(event)
            return
        block = reply.blocks.get(event.index)
        if isinstance(event, BlockStart):
            self._block_start(event, block)
        elif isinstance(event, BlockFinish):
            self._block_finish(event, block)
        elif block is None:
            return
        elif isinstance(event, BlockDelta):
            block.change(event)
        elif type(event) is block.fold.grows:
            block.grow(getattr(event, PIECE_FIELDS[type(event)]))
        if order.open_call is None and (order.events or order.updates):
            self._release_waiting()

    def _release_waiting(self) -> None:
        """The open call has ended: encode the events that waited for it, up to the next call that is open."""
        order = self._reply.order
        if order.releasing:
            return
        order.releasing = True
        while order.events and order.open_call is None:
            for event in order.events.pop(next(iter(order.events))):
                self._block_event(event)
        order.releasing = False
        if order.open_call is None:
            updates, order.updates = order.updates, []
            for update in updates:
                self._tool_update(update)

    def _block_start(self, event: BlockStart, known: AgUiBlock | None) -> None:
        fold = BlockFold(event, limits=self._limits)
        if known is not None and known.take_back():
            self._correct_client()
        self._open(event.index, fold)

    def _open(self, index: int | str, fold: BlockFold) -> AgUiBlock:
        blocks = self._reply.blocks
        if len(blocks) >= self._limits.blocks:
            raise LimitExceededError.of("blocks", self._limits.blocks, "the number of blocks in one message")
        block = blocks[index] = self._class_for(fold.block)(self._reply, index, fold)
        block.open()
        block.catch_up()
        return block

    def _class_for(self, block: Block) -> type[AgUiBlock]:
        if isinstance(block, ToolCall):
            return CallBlock
        if block.type == "reasoning":
            return ReasoningBlock if self._run.show_reasoning else AgUiBlock
        return TextBlock if block.type in ("text", "refusal") else ActivityBlock

    def _block_finish(self, event: BlockFinish, block: AgUiBlock | None) -> None:
        if block is None:
            if event.content is None:
                return
            block = self._open(
                event.index, BlockFold(BlockStart(event.index, event.content), limits=self._limits)
            )
        elif block.done and event.content is None:
            return
        block.fold.step(event)
        self._finish(block, changed=event.content is not None)

    def _close_all(self, cut: str | None) -> None:
        """Finish the open blocks, also those whose events wait for an open call."""
        reply = self._reply
        while True:
            for block in [block for block in reply.blocks.values() if not block.done]:
                if not block.done:
                    block.fold.finish(cut=cut)
                    self._finish(block)
            if not reply.order.events and not reply.order.updates:
                break
            self._release_waiting()
        reply.open_texts.end_all()

    def _finish(self, block: AgUiBlock, *, changed: bool = False) -> None:
        """The block has ended.

        Args:
            block: The block, as it ended.
            changed: Whether its end may have replaced what the client has seen.
        """
        block_class = self._class_for(block.fold.block)
        if type(block) is not block_class or block.differs():
            if block.take_back():
                self._correct_client()
            block = block_class(self._reply, block.index, BlockFold(block.fold.block, limits=self._limits))
            self._reply.blocks[block.index] = block
            changed = True
        contradicted = block.catch_up(changed=changed, final=True)
        block.finish()
        if contradicted:
            self._correct_client()

    def _correct_client(self) -> None:
        """The client has seen what no longer holds: send it the messages that do."""
        replies = [*self._past, self._reply]
        if self._history is None:
            replace_messages(self._run, replies)
        else:
            send_snapshot(self._run, self._history, replies)

    # Updates of calls.

    def _tool_update(self, event: ToolUpdate) -> None:
        reply = self._reply
        calls = self._run.calls.get(event.call_id)
        if reply.order.open_call is not None:
            reply.order.updates.append(event)
        elif calls:
            reply.pause_for_call()
            for call in [*calls]:
                call.update(event)
        elif not reply.over:
            reply.early_updates.setdefault(event.call_id, []).append(event)

    _STEPS: ClassVar[dict[type, Callable[[AgUiEncoder, Any], None]]] = {
        TextDelta: _block_event,
        ReasoningDelta: _block_event,
        ToolCallDelta: _block_event,
        DataDelta: _block_event,
        BlockStart: _block_event,
        BlockDelta: _block_event,
        BlockFinish: _block_event,
        MessageStart: _message_start,
        MessageFinish: _message_finish,
        MessageInterrupted: _interrupted,
        AttemptReset: _attempt_reset,
        UsageUpdate: _usage_update,
        ToolUpdate: _tool_update,
        ProviderEvent: _provider_event,
        StreamError: _stream_error,
    }


def _as_in_snapshot(ag: Any, messages: list[Any]) -> list[Any] | None:
    """The messages in the form of a snapshot; `None` if an older client's messages don't fit the snapshot."""
    try:
        return list(ag.MessagesSnapshotEvent(messages=messages).messages)
    except ValueError:
        return None
