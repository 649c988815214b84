"""Events as those of AG-UI: one run, in which a reply is a few messages.

    run       = RUN_STARTED (text | reasoning | call | result | snapshot | …)* (RUN_FINISHED | RUN_ERROR)
    text      = TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT* TEXT_MESSAGE_END
    reasoning = REASONING_START [REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT* REASONING_MESSAGE_END
                REASONING_ENCRYPTED_VALUE?] REASONING_END
    call      = TOOL_CALL_START TOOL_CALL_ARGS* TOOL_CALL_END REASONING_ENCRYPTED_VALUE?
    result    = TOOL_CALL_RESULT

To AG-UI an assistant's message is one text with calls behind it. A reply whose blocks alternate becomes several: a
text goes on in the message before it unless that has calls, a reasoning between them, or another text that is still
open; a call belongs to the message before it. So their order survives. Their ids are the reply's with `~1`, `~2`, …
behind it, by which `from_ag_ui` knows what was one reply.

What AG-UI can't say stands as `rxdelta` in the `metadata` of the last event of a message or call, which clients keep
and send back: the parts of a text with their citations, what a provider wants to have back with a call or a
reasoning. A block that is neither text, reasoning nor call is an activity of type `rxdelta.<its type>`.

Nothing can be taken back piece by piece. Where it must be (a retry, a block that begins again, a finish that
contradicts what was streamed) and the request's messages are known, the client is told all messages anew, in a
MESSAGES_SNAPSHOT. It forgets what isn't among them; so where they aren't known, those of the run are replaced one by
one: an activity takes the place of whatever message has its id, a front end shows no activity of a type that it
doesn't know, and no client sends one back. What still holds is told again behind it, under other ids.

What came with 1.0 (`protocolVersion`, the outcome `cancelled`, `pendingToolCallIds`) is fatal to clients before it,
so it is sent only to those that say in the request that they speak 1.0. Others learn of a stop by the metadata, and
its calls are answered, since to them the run is one that succeeded.

No call may stay that somebody would run by mistake: clients take every call of a run that has no result for theirs
to run. One that can't be read, and one that the provider ran without saying what came of it, is therefore answered
before the run ends.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, TypeAlias

from rxdelta.core import (
    DEFAULT_LIMITS,
    Block,
    BlockFold,
    ContentPart,
    Event,
    InvalidJson,
    InvalidValueError,
    LimitExceededError,
    ProviderError,
    TokenUsage,
    ToolCall,
    ToolResult,
    begins_another,
    block_to_wire,
    clean_text,
    parse_object,
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
from rxdelta.formats.ag_ui.run_input import RunInput, ids_of
from rxdelta.formats.ag_ui.usage import add_counts, counts_of
from rxdelta.formats.encoding import Masked, cut_off, masked, whole_characters
from rxdelta.framing import SSE_HEADERS

if TYPE_CHECKING:
    from types import ModuleType

    from ag_ui.core import BaseEvent

__all__ = ["AG_UI_HEADERS", "AgUiEncoder", "load_ag_ui"]

Json: TypeAlias = dict[str, Any]
Index: TypeAlias = int | str
Delta: TypeAlias = TextDelta | ReasoningDelta | DataDelta | ToolCallDelta
OfABlock: TypeAlias = BlockStart | BlockDelta | BlockFinish | Delta

AG_UI_HEADERS: Final[Mapping[str, str]] = SSE_HEADERS
"""Headers of a response that an AG-UI client reads."""

_OURS: Final = "rxdelta"
_LENGTH: Final = "the message was cut short by the token limit while the call was open"
_STOPPED: Final = "the message was interrupted while the call was open"
_BROKEN: Final = "the message broke off while the call was open"
_TERMINAL: Final = frozenset(["completed", "failed"])
_log = logging.getLogger("rxdelta.wire")


def load_ag_ui() -> ModuleType:
    """The classes of AG-UI's events, which only those need who write them.

    Raises:
        ImportError: They are not installed, or are those of a version before 1.0.
    """
    try:
        import ag_ui.core as ag_ui
    except ImportError as error:
        raise ImportError(_MISSING) from error
    if not hasattr(ag_ui, "RunFinishedCancelledOutcome"):
        raise ImportError(_MISSING)
    return ag_ui


_MISSING = "to_ag_ui() needs the package ag-ui-protocol, 1.0 or later: pip install 'rxdelta[ag-ui]'"


class AgUiEncoder:
    """The AG-UI events of one run.

    Args:
        run_input: The request, as object or as JSON: whose ids the run has, what was said before it, and which
            version the client speaks.
        thread_id, run_id: The run's ids, instead of the request's.
        new_id: An id where neither says one.
        choice: Which of several alternative replies to show.
        serialize_tool_calls: Let nothing else come while a call is open: for clients that take one at a time.
        on_error: What the client may be told of an error; by default nothing but that there was one.
        reasoning: `False` keeps reasoning back, and signatures.
        provider_events: Pass the provider's own events on, as RAW.

    Raises:
        ImportError: `ag-ui-protocol` isn't installed.
        InvalidValueError: An argument makes no sense.

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
    ) -> None:
        if isinstance(choice, bool) or not isinstance(choice, int) or choice < 0:
            raise InvalidValueError.of([("choice", choice, "must be a whole number from 0")])
        self._ag = load_ag_ui()
        request = RunInput(run_input)
        self._thread_id = request.id("thread_id", thread_id, new_id)
        self._run_id = request.id("run_id", run_id, new_id)
        self._declared = request.declares_1_0()
        self._choice = choice
        self._serialize = serialize_tool_calls
        self._on_error = on_error
        said = request.messages()
        self._history = None if said is None else self._read(said)
        self._reasoning = reasoning
        self._provider_events = provider_events
        self._out: list[BaseEvent] = []
        self._begun = self._over = self._cancelled = False
        self._ids = {name for message in said or () for name in ids_of(message)}
        self._replies = 1
        self._past: list[_Reply] = []
        self._reply = _Reply(1)
        self._gone: list[str] = []  # messages that the client has, and that no longer hold
        self._calls: dict[str, list[_Call]] = {}  # by the id that a result names
        self._unanswered: dict[str, _Call] = {}  # by the id that the client knows
        self._late: list[ToolUpdate] = []  # news that wait for the call that has the floor
        self._early: dict[str, list[ToolUpdate]] = {}  # news of calls that haven't been told yet
        self._usage: dict[str | None, dict[str, int]] = {}  # of what has ended, by model

    def _read(self, messages: list[Any]) -> list[Any] | None:
        """The messages as a snapshot repeats them; `None` if it can't, since they are of an older client."""
        try:
            return list(self._ag.MessagesSnapshotEvent(messages=messages).messages)
        except ValueError:
            return None

    # The run.

    def encode(self, event: Event, /) -> Sequence[BaseEvent]:
        """The frames of one event; none after the end."""
        if self._over:
            return ()
        step = self._STEPS.get(type(event))
        if step is None:
            raise InvalidValueError.of(
                [("event", event, "must be an event; chunks go through decode() first")]
            )
        self._begin()
        step(self, event)
        return self._told()

    def fail(self, error: Exception, /) -> Sequence[BaseEvent]:
        """The stream ended with an error: what is open is closed, then RUN_ERROR."""
        if self._over:
            return ()
        self._begin()
        self._break_off(error)
        return self._told()

    def close(self) -> Sequence[BaseEvent]:
        """The stream completed. If its message hadn't, it was cut off, and ends as by `fail`."""
        if self._over:
            return ()
        if not self._reply.over:
            return self.fail(cut_off())
        self._answer_what_nobody_will()
        outcome = None
        ending: Json | None = {_OURS: {"interrupted": True} if self._cancelled else self._reply.ending()}
        if self._declared and self._cancelled:
            outcome, ending = self._ag.RunFinishedCancelledOutcome(), None
        elif self._declared and self._unanswered:
            outcome = self._ag.RunFinishedSuccessOutcome(pending_tool_call_ids=[*self._unanswered])
        self._over = True
        self._tell(
            self._ag.RunFinishedEvent(
                thread_id=self._thread_id,
                run_id=self._run_id,
                outcome=outcome,
                usage=self._whole_usage(),
                metadata=ending,
            )
        )
        return self._told()

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            version = self._ag.PROTOCOL_VERSION if self._declared else None
            self._tell(
                self._ag.RunStartedEvent(
                    thread_id=self._thread_id, run_id=self._run_id, protocol_version=version
                )
            )

    def _tell(self, frame: BaseEvent) -> None:
        self._out.append(frame)

    def _told(self) -> Sequence[BaseEvent]:
        """What is to be sent; what a step said before its fault comes out with the end."""
        out, self._out = self._out, []
        return out

    def _break_off(self, error: Exception) -> None:
        self._close_all(_BROKEN)
        self._answer_what_nobody_will()
        self._over = True
        try:
            said = clean_text(str(self._on_error(error)))
        except Exception as fault:
            _log.error("what a front end may be told of an error couldn't be found out", exc_info=fault)
            said = masked(error)
        self._tell(self._ag.RunErrorEvent(message=said, usage=self._whole_usage()))

    # The messages.

    def _next_reply(self) -> None:
        """The conversation goes on."""
        if not self._reply.over:
            self._close_all(_BROKEN)
        self._count(self._reply.usage, self._reply.model)
        self._past.append(self._reply)
        self._gone.clear()
        self._begin_anew()
        self._cancelled = False

    def _begin_anew(self) -> None:
        self._replies += 1
        self._reply = _Reply(self._replies)
        self._early.clear()

    def _message_start(self, event: MessageStart) -> None:
        if event.choice != self._choice:
            return
        reply = self._reply
        if begins_another(event, id=reply.id, begun=reply.started and bool(reply.lanes), over=reply.over):
            self._next_reply()
            reply = self._reply
        reply.started = reply.started or not event.assumed
        reply.id = reply.id or event.id
        reply.model = reply.model or event.model
        reply.usage = reply.usage or event.usage

    def _usage_update(self, event: UsageUpdate) -> None:
        if event.choice == self._choice and not self._reply.over:
            self._reply.usage = event.usage

    def _message_finish(self, event: MessageFinish) -> None:
        reply = self._reply
        if event.choice != self._choice or reply.over:
            return
        self._close_all(_LENGTH if event.reason == "length" else None)
        reply.model = reply.model or event.model
        reply.usage = event.usage or reply.usage
        reply.reason, reply.word = event.reason, event.provider_reason
        reply.over = True

    def _interrupted(self, _: MessageInterrupted) -> None:
        self._close_all(_STOPPED)
        self._reply.over = self._cancelled = True

    def _stream_error(self, event: StreamError) -> None:
        self._break_off(ProviderError(event.message, type=event.type, code=event.code))

    def _attempt_reset(self, event: AttemptReset) -> None:
        """What the failed attempt said is taken back. After a message that is over it is the next one's."""
        if self._reply.over:
            self._next_reply()
            self._count(event.usage, None)
            return
        self._close_all(_BROKEN)
        failed = self._reply
        self._count(event.usage or failed.usage, failed.model)
        shown = [self._take_back(failed, lane) for lane in [*failed.lanes.values()]]
        self._ids.discard(failed.base)
        self._begin_anew()
        self._reply.spare = failed.spare
        if any(shown):
            self._show_all()

    def _provider_event(self, event: ProviderEvent) -> None:
        if self._provider_events:
            whole = {"name": event.name, "payload": thaw(event.payload)}
            self._tell(self._ag.RawEvent(event=whole, source=event.provider or None))

    def _count(self, usage: TokenUsage | None, model: str | None) -> None:
        if usage is not None and (counts := counts_of(usage)):
            add_counts(self._usage.setdefault(model, {}), counts)

    def _whole_usage(self) -> list[Any] | None:
        self._count(self._reply.usage, self._reply.model)
        found = [self._ag.TokenUsage(model=model, **counts) for model, counts in self._usage.items()]
        return found or None

    # The blocks.

    def _of_a_block(self, event: OfABlock) -> None:
        reply = self._reply
        if event.choice != self._choice or reply.over:
            return
        floor = reply.floor
        if floor is not None and floor.index != event.index:
            reply.waiting.setdefault(event.index, []).append(event)
            return
        lane = reply.lanes.get(event.index)
        if isinstance(event, BlockStart):
            self._block_start(event, lane)
        elif isinstance(event, BlockFinish):
            self._block_finish(event, lane)
        elif lane is None:
            return
        elif isinstance(event, BlockDelta):
            if not lane.done:
                lane.fold.step(event)
                self._catch_up(lane, told=_SHOWN.isdisjoint(event.fields))
        elif type(event) is lane.fold.grows:
            piece = _piece(event)
            lane.fold.grow(piece)
            self._grow(lane, piece)
        if reply.floor is None and (reply.waiting or self._late):
            self._give_the_floor()

    def _give_the_floor(self) -> None:
        """Where the call that had it is closed, the others take their turn, up to the next call that is open."""
        reply = self._reply
        if reply.taking_turns:
            return
        reply.taking_turns = True
        while reply.waiting and reply.floor is None:
            for event in reply.waiting.pop(next(iter(reply.waiting))):
                self._of_a_block(event)
        reply.taking_turns = False
        if reply.floor is None:
            news, self._late = self._late, []
            for one in news:
                self._tool_update(one)

    def _clear_the_floor(self) -> None:
        """For clients before 1.0: pause what is open. It goes on when more of it comes."""
        if self._serialize:
            self._settle(every=True)
            for lane in [*self._reply.thoughts]:
                self._pause_thought(lane)

    def _block_start(self, event: BlockStart, known: _Lane | None) -> None:
        fold = BlockFold(event)
        if known is not None and self._take_back(self._reply, known):
            self._show_all()
        self._open(event.index, fold)

    def _open(self, index: Index, fold: BlockFold) -> _Lane:
        reply = self._reply
        if len(reply.lanes) >= DEFAULT_LIMITS.blocks:
            raise LimitExceededError.of(
                "blocks", DEFAULT_LIMITS.blocks, "the number of blocks in one message"
            )
        lane = reply.lanes[index] = self._lane_for(index, fold)
        if isinstance(lane, _Call) and self._serialize:
            reply.floor = lane
        elif isinstance(lane, _Thought):
            self._open_thought(lane)
        self._catch_up(lane)
        return lane

    def _lane_for(self, index: Index, fold: BlockFold) -> _Lane:
        lane = self._kind_of(fold.block)(index, fold)
        lane.discreet = not self._reasoning
        return lane

    def _kind_of(self, block: Block) -> type[_Lane]:
        if isinstance(block, ToolCall):
            return _Call
        if block.type == "reasoning":
            return _Thought if self._reasoning else _Lane
        return _Prose if block.type in ("text", "refusal") else _Whole

    def _block_finish(self, event: BlockFinish, lane: _Lane | None) -> None:
        if lane is None:
            if event.content is None:
                return
            lane = self._open(event.index, BlockFold(BlockStart(event.index, event.content)))
        elif lane.done and event.content is None:
            return
        lane.fold.step(event)
        self._finish(lane, told=event.content is None)

    def _close_all(self, cut: str | None) -> None:
        """Finish what is open, those that wait for their turn among them."""
        reply = self._reply
        while True:
            for lane in [lane for lane in reply.lanes.values() if not lane.done]:
                if not lane.done:
                    lane.fold.finish(cut=cut)
                    self._finish(lane)
            if not reply.waiting and not self._late:
                break
            self._give_the_floor()
        self._settle(every=True)

    def _finish(self, lane: _Lane, *, told: bool = True) -> None:
        """The block is closed. `told` is whether all that it says has been shown, as far as is known."""
        reply = self._reply
        if type(lane) is not self._kind_of(lane.fold.block) or lane.is_another():
            if self._take_back(reply, lane):
                self._show_all()
            lane = reply.lanes[lane.index] = self._lane_for(lane.index, BlockFold(lane.fold.block))
            told = False
        contradicted = self._catch_up(lane, told=told, final=True)
        if isinstance(lane, _Prose):
            if lane.part.citations or ("signature" in lane.part.options and not lane.discreet):
                self._enter(lane)
            if not lane.done and lane.message is not None:
                self._expect(lane.message, -1)
            lane.done = True
        elif isinstance(lane, _Thought):
            self._finish_thought(lane)
        elif isinstance(lane, _Call):
            self._finish_call(lane)
        elif isinstance(lane, _Whole):
            self._finish_whole(lane)
        else:
            lane.done = True
        if contradicted:
            self._show_all()

    def _take_back(self, reply: _Reply, lane: _Lane) -> bool:
        """Forget a block. Gives whether the client has seen something of it, and must be told all anew."""
        reply.lanes.pop(lane.index, None)
        if isinstance(lane, _Prose):
            shown = self._take_back_prose(reply, lane)
        elif isinstance(lane, _Thought):
            shown = self._take_back_thought(reply, lane)
        elif isinstance(lane, _Call):
            shown = self._take_back_call(reply, lane)
        else:
            shown = False
            if isinstance(lane, _Whole) and lane in reply.entries:
                del reply.entries[lane]
                self._discard(lane.id)
        lane.done = True
        return shown

    def _take_back_prose(self, reply: _Reply, lane: _Prose) -> bool:
        message = lane.message
        if message is None:
            return False
        self._expect(message, 0 if lane.done else -1)
        del message.texts[lane]
        self._drop_if_empty(reply, message)
        return True

    def _take_back_thought(self, reply: _Reply, lane: _Thought) -> bool:
        self._pause_thought(lane)
        self._ids.discard(lane.id)
        if lane not in reply.entries:
            return False
        del reply.entries[lane]
        self._gone.append(lane.id)
        reply.spare = reply.spare or lane.id
        return True

    def _take_back_call(self, reply: _Reply, call: _Call) -> bool:
        if reply.floor is call:
            reply.floor = None
        message = call.message
        if message is None:
            return False
        if not call.ended:
            self._tell(self._ag.ToolCallEndEvent(tool_call_id=call.id))
        if call.id in self._unanswered:
            self._answer(call, _Answer("This call was given up.", {"unrun": True}))
        for name in call.names:
            self._calls[name].remove(call)
        if self._declared:  # others count by themselves which calls have been answered
            self._ids.discard(call.id)
        self._gone += [answer.id for answer in call.answers]
        del message.calls[call]
        self._drop_if_empty(reply, message)
        return True

    def _drop_if_empty(self, reply: _Reply, message: _Text) -> None:
        if not message.texts and not message.calls:
            self._end_text(reply, message)
            del reply.entries[message]
            self._gone.append(message.id)
            self._ids.discard(message.id)

    # What a block shows.

    def _grow(self, lane: _Lane, piece: str) -> None:
        """A delta's piece, which the fold has taken."""
        if lane.contradicted or (isinstance(lane, _Call) and not self._ask(lane)):
            return
        self._show(lane, lane.whole_characters(piece))

    def _show(self, lane: _Lane, piece: str) -> None:
        if not piece:
            return
        if isinstance(lane, _Prose):
            message_id = self._enter(lane).id
            self._tell(self._ag.TextMessageContentEvent(message_id=message_id, delta=piece))
        elif isinstance(lane, _Thought):
            self._think(lane)
            self._tell(self._ag.ReasoningMessageContentEvent(message_id=lane.id, delta=piece))
        elif isinstance(lane, _Call):
            self._tell(self._ag.ToolCallArgsEvent(tool_call_id=lane.id, delta=piece))
        else:
            return
        lane.pieces.append(piece)

    def _catch_up(self, lane: _Lane, *, told: bool = False, final: bool = False) -> bool:
        """Show what came otherwise than piece by piece. Gives whether it contradicts what has been shown.

        What contradicts it before the block is final isn't told: it may change once more.
        """
        if type(lane) in (_Whole, _Lane) or (isinstance(lane, _Call) and not self._ask(lane, force=final)):
            return False
        if told and lane.pieces and not (final and (lane.half or lane.contradicted)):
            return False
        shown = "".join(lane.pieces)
        text = lane.text(shown, final=final)
        if text.startswith(shown) or (text == "" and not final):
            lane.contradicted = False
            if final:
                lane.half = ""
            self._show(lane, text[len(shown) :])
            return False
        lane.contradicted = not final
        if final:
            lane.pieces, lane.half = [text], ""
        return final

    def _base(self, reply: _Reply | None = None) -> str:
        reply = reply or self._reply
        if not reply.base:
            reply.base = self._unused(reply.id or f"{self._run_id}-{reply.number}")
        return reply.base

    def _next_id(self, reply: _Reply | None = None) -> str:
        reply = reply or self._reply
        reply.count += 1
        return self._unused(f"{self._base(reply)}~{reply.count}")

    def _unused(self, wanted: str) -> str:
        """No id twice: a client would take the second for more of the first."""
        found, number = wanted, 1
        while found in self._ids:
            number += 1
            found = f"{wanted}-{number}"
        self._ids.add(found)
        return found

    # Texts.

    def _message_for(self, lane: _Prose | None = None) -> _Text:
        """The message that a text, or else a call, belongs to."""
        reply = self._reply
        last = next(reversed(reply.entries), None)
        if isinstance(last, _Text) and (lane is None or last.takes(lane)):
            return last
        self._settle()
        message = _Text(self._next_id() if reply.base_taken else self._base())
        reply.base_taken = True
        reply.entries[message] = None
        return message

    def _settle(self, *, every: bool = False) -> None:
        """End the texts that can't go on; with `every`, those too that can."""
        reply = self._reply
        for message in [*(reply.open if every else reply.idle)]:
            self._end_text(reply, message)

    def _expect(self, message: _Text, texts: int) -> None:
        """So many more of a message's texts can go on."""
        message.busy += texts
        self._note(message)

    def _note(self, message: _Text) -> None:
        reply = self._reply
        if message in reply.open and not message.busy:
            reply.idle[message] = None
        else:
            reply.idle.pop(message, None)

    def _enter(self, lane: _Prose) -> _Text:
        """The lane's message, which is open then."""
        message = lane.message
        if message is None:
            message = lane.message = self._message_for(lane)
            message.texts[lane] = None
            self._expect(message, 0 if lane.done else 1)
        self._open_text(message, lane.part.type)
        return message

    def _open_text(self, message: _Text, kind: str) -> None:
        if message in self._reply.open:
            return
        self._reply.open[message] = None
        self._note(message)
        metadata = _metadata({} if kind == "text" else {"type": kind})
        self._tell(self._ag.TextMessageStartEvent(message_id=message.id, role="assistant", metadata=metadata))

    def _end_text(self, reply: _Reply, message: _Text) -> None:
        if message in reply.open:
            del reply.open[message]
            reply.idle.pop(message, None)
            self._tell(
                self._ag.TextMessageEndEvent(message_id=message.id, metadata=_metadata(message.facts()))
            )

    # Reasoning.

    def _open_thought(self, lane: _Thought) -> None:
        """The span at once, for a client to show that there is one; its message with its first words."""
        reply = self._reply
        if lane.span:
            return
        self._settle()
        if not lane.id:
            spare, reply.spare = reply.spare, None
            lane.id = self._next_id() if spare is None else spare
            self._ids.add(lane.id)
        lane.span = True
        reply.thoughts[lane] = None
        self._tell(self._ag.ReasoningStartEvent(message_id=lane.id))

    def _think(self, lane: _Thought, *, again: bool = False) -> None:
        self._open_thought(lane)
        if not lane.speaks:
            lane.speaks = True
            if not again:  # an earlier reply's reasoning stays that reply's
                self._reply.entries.setdefault(lane)
            self._tell(self._ag.ReasoningMessageStartEvent(message_id=lane.id, role="reasoning"))

    def _finish_thought(self, lane: _Thought) -> None:
        if lane.facts() or lane.secret():
            self._think(lane)
        self._pause_thought(lane, whole=True)
        lane.done = True

    def _pause_thought(self, lane: _Thought, *, whole: bool = False) -> None:
        secret = lane.secret() if whole else None
        if lane.speaks:
            metadata = _metadata(lane.facts()) if whole else None
            self._tell(self._ag.ReasoningMessageEndEvent(message_id=lane.id, metadata=metadata))
        if secret is not None:
            self._tell(
                self._ag.ReasoningEncryptedValueEvent(
                    subtype="message", entity_id=lane.id, encrypted_value=secret
                )
            )
        if lane.span:
            self._tell(self._ag.ReasoningEndEvent(message_id=lane.id))
        lane.span = lane.speaks = False
        self._reply.thoughts.pop(lane, None)

    # Calls.

    def _ask(self, call: _Call, *, force: bool = False) -> bool:
        """Whether the client knows of the call. It is told as soon as there is an id and a name."""
        if call.message is not None:
            return True
        block = call.fold.block
        call_id, name = (block.call_id, block.name) if isinstance(block, ToolCall) else (None, None)
        if not force and not (call_id and name):
            return False
        self._settle()
        self._clear_the_floor()
        message = call.message = self._message_for()
        call.id = self._unused(call_id or f"call-{self._base()}-{call.index}")
        call.told = (call_id, name)
        message.calls[call] = None
        self._unanswered[call.id] = call
        self._tell_start(call, message)
        for known in {call_id or call.id, call.id}:
            self._calls.setdefault(known, []).append(call)
            call.names.append(known)
        for news in self._early.pop(call_id or call.id, ()):
            if self._serialize:
                self._late.append(news)
            else:
                self._news(call, news)
        return True

    def _tell_start(self, call: _Call, message: _Text) -> None:
        kind = call.fold.block.type
        self._tell(
            self._ag.ToolCallStartEvent(
                tool_call_id=call.id,
                tool_call_name=call.name,
                parent_message_id=message.id,
                metadata=_metadata({} if kind == "tool_call" else {"type": kind}),
            )
        )

    def _tell_end(self, call: _Call) -> None:
        self._tell(self._ag.ToolCallEndEvent(tool_call_id=call.id, metadata=_metadata(call.facts())))
        if (secret := call.secret()) is not None:
            self._tell(
                self._ag.ReasoningEncryptedValueEvent(
                    subtype="tool-call", entity_id=call.id, encrypted_value=secret
                )
            )

    def _finish_call(self, call: _Call) -> None:
        call.done = True
        if not call.ended:
            call.ended, call.finished = True, call.fold.block
            self._tell_end(call)
            held, call.held = call.held, []
            for answer in held:
                self._answer(call, answer)
        if self._reply.floor is call:
            self._reply.floor = None

    def _tool_update(self, event: ToolUpdate) -> None:
        calls = self._calls.get(event.call_id)
        if self._reply.floor is not None:
            self._late.append(event)
        elif calls:
            self._clear_the_floor()
            for call in [*calls]:
                self._news(call, event)
        elif not self._reply.over:
            self._early.setdefault(event.call_id, []).append(event)

    def _news(self, call: _Call, event: ToolUpdate) -> None:
        if call.settled:
            return
        status, result = event.execution_status, event.result
        call.partial = result or call.partial
        terminal = status in _TERMINAL
        if event.display_text or (not terminal and (status != "identified" or result is not None)):
            value = {**event.to_dict(), "call_id": call.id}
            self._tell(self._ag.CustomEvent(name=f"{_OURS}.{value.pop('event')}", value=value))
        if terminal:
            call.settled = True
            result = call.partial or ToolResult(call.id)
            failed = status == "failed" or result.is_error
            self._answer(call, _answer_of(result.content, {"is_error": True} if failed else {}))

    def _answer(self, call: _Call, answer: _Answer) -> None:
        """The result of a call, once its arguments are complete."""
        if not call.ended and "unrun" not in answer.facts:
            call.held.append(answer)
            return
        self._unanswered.pop(call.id, None)
        message = self._ag.ToolMessage(
            id=self._unused(f"{call.id}-result"),
            tool_call_id=call.id,
            content=answer.text,
            metadata=_metadata(answer.facts),
        )
        call.answers.append(message)
        self._tell_result(message)

    def _tell_result(self, message: Any) -> None:
        self._tell(
            self._ag.ToolCallResultEvent(
                message_id=message.id,
                tool_call_id=message.tool_call_id,
                content=message.content,
                role="tool",
                metadata=message.metadata,
            )
        )

    def _answer_what_nobody_will(self) -> None:
        for call in [*self._unanswered.values()]:
            block = call.fold.block
            if block.type == "invalid_tool_call" and isinstance(block, ToolCall):
                said = f"This call could not be read: {block.error}"
                self._answer(call, _Answer(said, {"unrun": True, "is_error": True}))
            elif block.type != "tool_call":
                self._answer(call, _Answer("", {"unrun": True}))
            elif self._cancelled and not self._declared:
                self._answer(call, _Answer("The run was stopped.", {"unrun": True}))

    # All else.

    def _finish_whole(self, lane: _Whole) -> None:
        block = lane.part
        call_id = block.options.get("tool_call_id")
        calls = self._calls.get(call_id) if isinstance(call_id, str) else None
        lane.done = True
        if block.type == "server_tool_result" and calls:
            if not lane.answered:
                lane.answered = True
                said = block_to_wire(block)
                output, _ = said.pop("output", None), said.pop("tool_call_id")
                self._answer(calls[-1], _answer_of(output, {"block": said}))
            return
        self._settle()
        self._clear_the_floor()
        lane.id = lane.id or self._next_id()
        self._reply.entries.setdefault(lane)
        self._tell_whole(lane)

    def _tell_whole(self, lane: _Whole) -> None:
        content, kind = block_to_wire(lane.part), f"{_OURS}.{lane.part.type}"
        self._tell(self._ag.ActivitySnapshotEvent(message_id=lane.id, activity_type=kind, content=content))

    def _discard(self, message_id: str, *, again: bool = False) -> None:
        """Replace a message, whatever it is, by one that says nothing. Its id is of no more use.

        `again` says that what still holds of the run is told once more behind it.
        """
        self._ids.add(message_id)
        kind, content = f"{_OURS}.discarded", {"again": True} if again else {}
        self._tell(self._ag.ActivitySnapshotEvent(message_id=message_id, activity_type=kind, content=content))

    def _show_all(self) -> None:
        """Something has been taken back, or is another: let the client have what holds, and nothing else."""
        if self._history is None:
            self._replace()
            return
        ag, reply = self._ag, self._reply
        self._gone.clear()
        messages = [*self._history]
        for one in (*self._past, reply):
            messages += [message for entry in one.entries for message in entry.messages(ag)]
        if not self._declared:  # they stay; one among the messages would drop the client's own
            messages = [message for message in messages if message.role != "activity"]
        if any(message.role == "reasoning" for message in messages):
            reply.spare = None
        elif reply.spare is not None:  # where there is no reasoning at all, clients keep what they have
            messages.append(ag.ReasoningMessage(id=reply.spare, content=""))
        # A client may have activities of its own: those that are not among the messages stay.
        keep: Json = {"@ag-ui/client": {"authoritativeActivityTypes": []}}
        self._tell(ag.MessagesSnapshotEvent(messages=messages, metadata=keep))

    def _replace(self) -> None:
        """Discard the run's messages one by one, and tell those that hold again, in their order."""
        gone, self._gone, self._reply.spare = self._gone, [], None
        entries = [(reply, entry) for reply in (*self._past, self._reply) for entry in reply.entries]
        for _, entry in entries:
            gone += self._pause(entry)
        for message_id in gone:
            self._discard(message_id, again=True)
        for reply, entry in entries:
            entry.id = self._next_id(reply)
            self._tell_again(entry)

    def _pause(self, entry: _Text | _Thought | _Whole) -> list[str]:
        """Close what is open of an entry. Gives the ids of the messages that it is to the client."""
        if isinstance(entry, _Thought):
            self._pause_thought(entry)
        elif isinstance(entry, _Text):
            self._end_text(self._reply, entry)
            for call in entry.calls:
                if not call.ended:
                    self._tell(self._ag.ToolCallEndEvent(tool_call_id=call.id))
            return [entry.id, *(answer.id for call in entry.calls for answer in call.answers)]
        return [entry.id]

    def _tell_again(self, entry: _Text | _Thought | _Whole) -> None:
        if isinstance(entry, _Whole):
            self._tell_whole(entry)
        elif isinstance(entry, _Thought):
            self._think(entry, again=True)
            if said := "".join(entry.pieces):
                self._tell(self._ag.ReasoningMessageContentEvent(message_id=entry.id, delta=said))
            if entry.done:
                self._pause_thought(entry, whole=True)
        else:
            self._tell_text_again(entry)
            for call in entry.calls:
                self._tell_call_again(call, entry)

    def _tell_text_again(self, message: _Text) -> None:
        for lane in itertools.islice(message.texts, 1):  # all are of one kind
            self._open_text(message, lane.part.type)
        if said := message.said():
            self._tell(self._ag.TextMessageContentEvent(message_id=message.id, delta=said))
        if not message.busy:
            self._end_text(self._reply, message)

    def _tell_call_again(self, call: _Call, message: _Text) -> None:
        self._tell_start(call, message)
        if said := "".join(call.pieces):
            self._tell(self._ag.ToolCallArgsEvent(tool_call_id=call.id, delta=said))
        if call.ended:
            self._tell_end(call)
        answers = [one.model_copy(update={"id": self._unused(f"{call.id}-result")}) for one in call.answers]
        call.answers = answers
        for one in answers:
            self._tell_result(one)

    _STEPS: ClassVar[dict[type, Callable[[AgUiEncoder, Any], None]]] = {
        TextDelta: _of_a_block,
        ReasoningDelta: _of_a_block,
        ToolCallDelta: _of_a_block,
        DataDelta: _of_a_block,
        BlockStart: _of_a_block,
        BlockDelta: _of_a_block,
        BlockFinish: _of_a_block,
        MessageStart: _message_start,
        MessageFinish: _message_finish,
        MessageInterrupted: _interrupted,
        AttemptReset: _attempt_reset,
        UsageUpdate: _usage_update,
        ToolUpdate: _tool_update,
        ProviderEvent: _provider_event,
        StreamError: _stream_error,
    }


class _Reply:
    """One message of the conversation, and what the client was told of it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.id: str | None = None
        self.model: str | None = None
        self.usage: TokenUsage | None = None
        self.reason: str | None = None
        self.word: str | None = None
        self.started = self.over = False
        self.base = ""  # of its messages' ids
        self.base_taken = False
        self.count = 0
        self.lanes: dict[Index, _Lane] = {}
        self.entries: dict[_Text | _Thought | _Whole, None] = {}  # as they stand in the client's list
        self.open: dict[_Text, None] = {}
        self.idle: dict[_Text, None] = {}  # the open ones that nothing is known to go on with
        self.thoughts: dict[_Thought, None] = {}  # that are open
        self.spare: str | None = None  # the id of a reasoning that was taken back
        self.floor: _Call | None = None  # the call during which all else waits
        self.waiting: dict[Index, list[OfABlock]] = {}
        self.taking_turns = False

    def ending(self) -> Json:
        """Why the message ended, in our words and in the provider's."""
        asked = any(
            isinstance(block := lane.fold.block, ToolCall) and block.type != "server_tool_call"
            for lane in self.lanes.values()
        )
        known = self.reason in ("length", "content_filter")
        reason = self.reason if known else "tool_use" if asked else "stop"
        word = self.word if self.word is not None or self.reason in _REASONS else self.reason
        return {"finish_reason": reason} | ({} if word is None else {"provider_finish_reason": word})


class _Lane:
    """A block on its way to the client; in itself one that isn't shown."""

    discreet = False  # signatures stay here

    def __init__(self, index: Index, fold: BlockFold) -> None:
        self.index = index
        self.fold = fold
        self.id = ""  # to the client
        self.done = False
        self.pieces: list[str] = []  # as they were shown
        self.half = ""  # the first half of a character
        self.contradicted = False

    def is_another(self) -> bool:
        """Whether the block has become one that what was shown can't be continued to."""
        return False

    @property
    def part(self) -> ContentPart:
        block = self.fold.block
        return block if isinstance(block, ContentPart) else ContentPart("unsupported")

    def text(self, _shown: str, /, *, final: bool) -> str:  # noqa: ARG002
        """All that there is to show, given what has been shown."""
        return self.part.text or ""

    def whole_characters(self, piece: str) -> str:
        """The piece as it can be written: a character that came in halves is whole then."""
        if self.half or not piece.isascii():
            piece, self.half = whole_characters(self.half, piece)
        return piece


class _Text:
    """An assistant's message: texts that follow each other, and the calls behind them."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.texts: dict[_Prose, None] = {}
        self.busy = 0  # of the texts, how many are open
        self.calls: dict[_Call, None] = {}

    def takes(self, lane: _Prose) -> bool:
        """Whether a text may go on in here."""
        kinds = {one.part.type for one in itertools.islice(self.texts, 1)}
        return not self.calls and not self.busy and kinds <= {lane.part.type}

    def said(self) -> str:
        return "".join(piece for lane in self.texts for piece in lane.pieces)

    def facts(self) -> Json:
        """What its texts have beside their words, and where each of them ends."""
        parts = [lane.fact() for lane in self.texts]
        return {"parts": parts} if any(len(part) > 1 for part in parts) else {}

    def messages(self, ag: Any) -> list[Any]:
        said = self.said()
        calls = [
            ag.ToolCall(
                id=call.id,
                function=ag.FunctionCall(name=call.name, arguments="".join(call.pieces)),
                encrypted_value=call.secret(),
                metadata=_metadata(call.facts()),
            )
            for call in self.calls
        ]
        message = ag.AssistantMessage(
            id=self.id, content=said or None, tool_calls=calls or None, metadata=_metadata(self.facts())
        )
        return [message, *(answer for call in self.calls for answer in call.answers)]


class _Prose(_Lane):
    """A text, or a refusal."""

    message: _Text | None = None

    def fact(self) -> Json:
        part = self.part
        fact: Json = {"length": sum(map(len, self.pieces))}
        if part.type != "text":
            fact["type"] = part.type
        options = {
            name: thaw(part.options[name])
            for name in part.options
            if name != "signature" or not self.discreet
        }
        if options:
            fact["options"] = options
        if part.citations:
            fact["citations"] = [citation.to_dict() for citation in part.citations]
        return fact


class _Thought(_Lane):
    """A reasoning."""

    span = speaks = False

    def _secret(self) -> tuple[str, str] | None:
        options = self.part.options
        for name in _SECRETS:
            value = options.get(name)
            if isinstance(value, str) and value:
                return name, value
        return None

    def secret(self) -> str | None:
        """What only its provider can read."""
        found = self._secret()
        return None if found is None else found[1]

    def facts(self) -> Json:
        found = self._secret()
        name = None if found is None else found[0]
        options = {key: thaw(value) for key, value in self.part.options.items() if key != name}
        facts: Json = {"options": options} if options else {}
        return facts | ({"encrypted": name} if name not in (None, "signature") else {})

    def messages(self, ag: Any) -> list[Any]:
        facts = _metadata(self.facts()) if self.done else None
        secret = self.secret() if self.done else None
        said = "".join(self.pieces)
        return [ag.ReasoningMessage(id=self.id, content=said, encrypted_value=secret, metadata=facts)]


class _Call(_Lane):
    """A call, whoever runs it."""

    message: _Text | None = None
    ended = settled = False
    partial: ToolResult | None = None
    told: tuple[str | None, str | None] = (None, None)  # its id and name
    finished: Block | None = None

    def __init__(self, index: Index, fold: BlockFold) -> None:
        super().__init__(index, fold)
        self.names: list[str] = []
        self.held: list[_Answer] = []
        self.answers: list[Any] = []

    def is_another(self) -> bool:
        block = self.fold.block
        if self.message is None or not isinstance(block, ToolCall):
            return False
        return (block.call_id, block.name) != self.told or (self.ended and block != self.finished)

    @property
    def name(self) -> str:
        block = self.fold.block
        return (block.name or "") if isinstance(block, ToolCall) else ""

    def text(self, shown: str, /, *, final: bool) -> str:
        """The arguments as text. An object that came whole waits for the end, where it may yet be another."""
        block = self.fold.block
        if not isinstance(block, ToolCall):
            return ""
        arguments = block.arguments
        if arguments is None or isinstance(arguments, str):
            return arguments or ""
        if not final or (shown and _is_object(shown, arguments)):
            return shown
        return json.dumps(thaw(arguments), ensure_ascii=False)

    def secret(self) -> str | None:
        block = self.fold.block
        if self.discreet or not self.ended or not isinstance(block, ToolCall):
            return None
        value = block.metadata.get("signature")
        return value if isinstance(value, str) and value else None

    def facts(self) -> Json:
        """What the call is beside its arguments, once it is closed."""
        block = self.fold.block
        if not isinstance(block, ToolCall):
            return {}
        facts: Json = {} if block.type == "tool_call" else {"type": block.type}
        if not self.ended:
            return facts
        if block.error is not None:
            facts["error"] = block.error
        kept = [name for name in block.metadata if name != "execution_status"]
        if "signature" in kept and (self.discreet or self.secret() is not None):
            kept.remove("signature")
        metadata = {name: thaw(block.metadata[name]) for name in kept}
        return facts | ({"metadata": metadata} if metadata else {})


class _Whole(_Lane):
    """A block that is shown when it is finished, and not before."""

    answered = False

    def messages(self, ag: Any) -> list[Any]:
        content, kind = block_to_wire(self.part), f"{_OURS}.{self.part.type}"
        return [ag.ActivityMessage(id=self.id, activity_type=kind, content=content)]


class _Answer(NamedTuple):
    """What came of a call."""

    text: str
    facts: Json


_REASONS = (None, "stop", "length", "tool_use", "content_filter")
_SECRETS = ("signature", "encrypted_content", "data")
_SHOWN = frozenset(
    ["text", "reasoning", "thinking", "refusal", "id", "call_id", "name", "args", "input", "arguments"]
)
"""The fields of a block that change what a client sees of it while it is open."""


def _piece(event: Delta) -> str:
    if isinstance(event, TextDelta):
        return event.text
    if isinstance(event, ToolCallDelta):
        return event.args
    return event.reasoning if isinstance(event, ReasoningDelta) else event.data


def _is_object(text: str, arguments: Mapping[str, Any]) -> bool:
    try:
        return parse_object(text) == arguments
    except InvalidJson:
        return False


def _answer_of(content: Any, facts: Json) -> _Answer:
    if content is None or isinstance(content, str):
        return _Answer(content or "", facts)
    return _Answer(json.dumps(thaw(content), ensure_ascii=False), {**facts, "json": True})


def _metadata(facts: Json) -> Json | None:
    return {_OURS: facts} if facts else None
