"""Events → AG-UI: one run, in which a reply is one or more messages.

    run       = RUN_STARTED result* turn* (RUN_FINISHED | RUN_ERROR)
    turn      = STEP_STARTED (text | reasoning | call | snapshot | …)* STEP_FINISHED result*
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
`blocks.py` how the client is corrected after a retry, a block that begins again, or a finish that contradicts what
was sent.

Several runs of the stream are one run of AG-UI. Those of sub-agents are AG-UI's own sub-agents; the messages of another
run are the agent's, with a mark. CUSTOM events named `rxdelta.run` list the messages of a run.

What AG-UI 1.0 added (`protocolVersion`, the outcome `cancelled`, `pendingToolCallIds`) is fatal to older clients, so it
is sent only where the request declares 1.0. To older clients a stopped run is one that succeeded: a mark says that it
was stopped, and its calls are answered. The outcome `interrupt` is older than 1.0, and clients that don't know it pass over
it, so every client gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rxdelta.core import (
    DEFAULT_LIMITS,
    PIECE_FIELDS,
    Event,
    InvalidValueError,
    Limits,
    ProviderError,
    Walk,
    thaw,
)
from rxdelta.core.events import EVENT_TYPES, Custom, ProviderEvent, ToolUpdate
from rxdelta.formats.ag_ui.blocks import ClientMessages
from rxdelta.formats.ag_ui.calls import EarlierCalls
from rxdelta.formats.ag_ui.data import ApplicationData
from rxdelta.formats.ag_ui.marks import INTERRUPTED, SHOWN_REASON, marked
from rxdelta.formats.ag_ui.run import Run, load_ag_ui
from rxdelta.formats.ag_ui.run_input import Answers, RunInput, ids_of, interrupt_of
from rxdelta.formats.ag_ui.run_messages import RunMessages
from rxdelta.formats.encoding import (
    Masked,
    cut_off,
    masked,
    not_an_event,
    number_problems,
    shown_error,
    word_of,
)
from rxdelta.formats.format import Endpoint, plain_error
from rxdelta.formats.runs import Lanes
from rxdelta.framing import SSE_HEADERS

if TYPE_CHECKING:
    from ag_ui.core import BaseEvent

AG_UI_HEADERS: Final[Mapping[str, str]] = SSE_HEADERS
"""Headers of a response that an AG-UI client reads."""


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
        provider_items: Send blocks that only the provider knows, as activities.
        limits: Bounds on the number of runs, and on the size of each message.

    Raises:
        ImportError: `ag-ui-protocol` isn't installed.
        InvalidValueError: An argument is invalid.

    Example:
        >>> import rxdelta as rd
        >>> encoder = AgUiEncoder(thread_id="t1", run_id="r1")
        >>> events = [rd.events.MessageStart(), rd.events.BlockStart(0, {"text": "Hi"}), rd.events.MessageFinish()]
        >>> frames = [frame for event in events for frame in encoder.encode(event)] + [*encoder.close()]
        >>> [frame.type.value for frame in frames]
        ['RUN_STARTED', 'STEP_STARTED', 'TEXT_MESSAGE_START', 'TEXT_MESSAGE_CONTENT', 'TEXT_MESSAGE_END', 'STEP_FINISHED', 'RUN_FINISHED']
    """

    headers: ClassVar[Mapping[str, str]] = AG_UI_HEADERS

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
        provider_items: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        if problems := number_problems("choice", choice):
            raise InvalidValueError.of(problems)
        ag = load_ag_ui()
        request = RunInput(run_input)
        self._thread_id = request.id("thread_id", thread_id, new_id)
        own_id = request.id("run_id", run_id, new_id)
        messages = request.messages()
        self._run = run = Run(
            ag,
            own_id,
            (used for message in messages or () for used in ids_of(message)),
            speaks_1_0=request.declares_1_0(),
            serialize_calls=serialize_tool_calls,
            show_reasoning=reasoning,
            provider_items=provider_items,
        )
        client = ClientMessages(run, None if messages is None else _as_in_snapshot(ag, messages))
        self._data = data = ApplicationData(run)
        self._earlier = EarlierCalls(run, client, messages or (), Answers(run_input))

        def make(walk: Walk, first: RunMessages | None) -> RunMessages:
            return RunMessages(run, client, data, walk, first)

        self._lanes = Lanes(make, choice, limits)
        self._last = (
            self._lanes.first
        )  # of the runs that aren't sub-agents', the one whose message ended last
        self._on_error = on_error
        self._provider_events = provider_events
        self._started = self._over = False

    def encode(self, event: Event, /) -> Sequence[BaseEvent]:
        """The frames of one event; none after the end."""
        if self._over:
            return ()
        given: Any = event
        kind: Any = type(event)
        field = PIECE_FIELDS.get(kind)
        if field is None and kind not in EVENT_TYPES:
            raise not_an_event(event)
        if not self._started:
            self._start()
        lanes = self._lanes
        if field is not None and (given.run_id == lanes.newest_id or lanes.turn_to(given.run_id)):
            if (fold := lanes.grow(event)) is not None:
                lanes.newest.send_piece(fold, getattr(given, field))
        elif isinstance(event, ProviderEvent):
            self._provider_event(event)
        elif isinstance(event, Custom):
            lanes = self._lanes
            self._data.say(lanes.find(event.run_id) or lanes.first, event)
        else:
            try:
                self._encode(event)
            except ProviderError as error:
                self._break_off(error)
        return self._run.take_frames()

    def fail(self, error: Exception, /) -> Sequence[BaseEvent]:
        """The stream ended with an error: close the open blocks, then send RUN_ERROR."""
        if self._over:
            return ()
        if not self._started:
            self._start()
        self._break_off(error)
        return self._run.take_frames()

    def close(self) -> Sequence[BaseEvent]:
        """The stream completed. If a message hadn't ended, it was cut off, and ends as by `fail`."""
        if self._over:
            return ()
        nothing_began = not len(self._lanes) and self._earlier.were_updated
        if not self._lanes.over and not nothing_began:
            return self.fail(cut_off())
        self._answer_calls(may_wait=True)
        self._over = True
        self._data.close()
        for lane in self._lanes:
            lane.end_subagent()
        run, last, outcome = self._run, self._last, None
        marks = {INTERRUPTED: True} if last.cancelled else {} if nothing_began else last.reply.finish_marks()
        if last.cancelled:
            if run.speaks_1_0:
                outcome, marks = run.ag.RunFinishedCancelledOutcome(), {}
        elif interrupts := self._interrupts():
            outcome = run.ag.RunFinishedInterruptOutcome(interrupts=interrupts)
        elif run.speaks_1_0 and (pending := run.unanswered.ids):
            outcome = run.ag.RunFinishedSuccessOutcome(pending_tool_call_ids=pending)
        reason = None if last.cancelled else last.reply.shown_reason()
        shown = {SHOWN_REASON: reason} if reason else {}
        run.send(
            run.ag.RunFinishedEvent(
                thread_id=self._thread_id,
                run_id=run.id,
                outcome=outcome,
                usage=self._total_usage(),
                metadata={**shown, **(marked(marks) or {})} or None,
            )
        )
        return run.take_frames()

    def _interrupts(self) -> list[Any]:
        """The questions of the run: a decision about each call that waits."""
        ag, run = self._run.ag, self._run
        found = [interrupt_of(ag, own_id, call) for own_id, call in self._earlier.waiting()]
        waiting = [known for known in run.unanswered if known.waits]
        return found + [interrupt_of(ag, one.id, one.call, one.lane.subagent) for one in waiting]

    def _start(self) -> None:
        self._started = True
        run = self._run
        version = run.ag.PROTOCOL_VERSION if run.speaks_1_0 else None
        run.send(run.ag.RunStartedEvent(thread_id=self._thread_id, run_id=run.id, protocol_version=version))

    def _encode(self, event: Event) -> None:
        if isinstance(event, ToolUpdate) and not any(
            lane.walk.has_call(event.call_id) for lane in self._lanes
        ):
            self._earlier.update(event)
            return
        for lane in self._lanes.of(event):
            was_over = lane.walk.over
            lane.encode(event)
            if lane.walk.over and not was_over and not lane.identity.subagent:
                self._last = lane
        self._earlier.release()

    def _provider_event(self, event: ProviderEvent) -> None:
        if self._provider_events:
            content = {"name": event.name, "payload": thaw(event.payload)}
            lane = self._lanes.find(event.run_id) or self._lanes.first
            lane.send(self._run.ag.RawEvent(event=content, source=event.provider or None))

    def _break_off(self, error: Exception) -> None:
        for lane in self._lanes:
            lane.close_message()
        self._earlier.release()
        self._answer_calls(may_wait=False)
        self._over = True
        self._data.close()
        text = shown_error(self._on_error, error)
        for lane in self._lanes:
            lane.end_subagent(text)
        code = self._code_of(error)
        self._run.send(self._run.ag.RunErrorEvent(message=text, code=code, usage=self._total_usage()))

    def _code_of(self, _: Exception, /) -> str | None:
        """The code of an error for the client, which the public encoder hides as it hides the text."""
        return None

    def _answer_calls(self, *, may_wait: bool) -> None:
        """Answer the calls that the client must not run."""
        says_so = self._run.speaks_1_0 and self._last.cancelled
        for call in self._run.unanswered:
            stopped = call.lane.cancelled and not says_so
            call.answer_unless_it_may_run(stopped=stopped, may_wait=may_wait)

    def _total_usage(self) -> list[Any] | None:
        total = self._lanes.first.past_usage.copy()
        for lane in self._lanes:
            total.add(lane.reply.model, lane.reply.usage)
        return [self._run.ag.TokenUsage(model=model, **counts) for model, counts in total.items()] or None


def _as_in_snapshot(ag: Any, messages: list[Any]) -> list[Any] | None:
    """The messages in the form of a snapshot; `None` if an older client's messages don't fit the snapshot."""
    try:
        return list(ag.MessagesSnapshotEvent(messages=messages).messages)
    except ValueError:
        return None


ENDPOINT: Final = Endpoint(error=plain_error)


class _Writer(AgUiEncoder):
    def _code_of(self, error: Exception, /) -> str | None:
        return word_of(error)


def writer(on_error: Masked) -> AgUiEncoder:
    return _Writer(
        thread_id="thread-1", run_id="run-1", on_error=on_error, provider_events=True, provider_items=True
    )
