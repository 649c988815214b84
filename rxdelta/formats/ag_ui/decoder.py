"""AG-UI → events: the runs of an agent, as a server sends them to a front end.

    run       = RUN_STARTED (text | reasoning | call | TOOL_CALL_RESULT | …)* (RUN_FINISHED | RUN_ERROR)
    text      = TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT* TEXT_MESSAGE_END
    reasoning = REASONING_START (REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT* REASONING_MESSAGE_END
                REASONING_ENCRYPTED_VALUE?)* REASONING_END
    call      = TOOL_CALL_START TOOL_CALL_ARGS* TOOL_CALL_END REASONING_ENCRYPTED_VALUE?

A run is one message, however many model calls it took. Its texts, reasoning and calls are the message's blocks, in the
order in which they begin; the results of its tools are updates of its calls. The message's id is that of the first
message in the run. A text that continues after its end is another block.

A `…_CHUNK` stands for start, content and end: the first chunk, and each one with another id, begins a message or call;
the next event of another kind or id ends it. THINKING_… is what 0.x called reasoning.

An encrypted value follows the end of its message or call. Therefore a block is finished only with the next event that
isn't one.

A MESSAGES_SNAPSHOT replaces all messages: it is a reset, then the run's own messages in the snapshot follow. A
snapshot before the first message of a run is the history, and passes unchanged. Where `to_ag_ui` discards a message
because all that hold follow again, that is a reset too.

`marks.py` has what `to_ag_ui` writes beside the protocol.

A decoder reads the agent's own events, or those of one sub-agent or of another run (`marks.py`). A sub-agent's
message ends with SUBAGENT_FINISHED. Where `to_ag_ui` writes several runs, each message begins and ends with
`rxdelta.run`. The first run, whose events name none, stays without a name. So a reset of it would be one of every run,
and another message begins instead; and its reader doesn't learn that this run alone was interrupted.
"""

# Chunks are JSON without types; every value is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from rxdelta.core import (
    Event,
    InvalidJson,
    InvalidValueError,
    TokenUsage,
    ToolResult,
    events,
    freeze,
    is_mapping,
    parse_json,
    reasoning_delta,
    text_delta,
    tool_call_delta,
)
from rxdelta.formats.ag_ui.data import read_data
from rxdelta.formats.ag_ui.marks import (
    AGAIN,
    BLOCK,
    DATA_EVENTS,
    DISCARDED,
    ENCRYPTED,
    ERROR,
    FINISH_REASON,
    FIRST,
    INTERRUPTED,
    IS_ERROR,
    JSON,
    MESSAGE_ID,
    MODEL,
    PROVIDER_FINISH_REASON,
    RUN,
    RUN_ID,
    SYNTHETIC,
    TOOL_UPDATE,
    TYPE,
    UNRUN,
    USAGE,
    fields_of,
    is_ours,
    marks_of,
    reply_id,
)
from rxdelta.formats.ag_ui.tables import (
    AFTER_A_MESSAGE,
    CHUNKS,
    OPENERS,
    OTHERS,
    SHOWN_BY,
    OpenBlock,
    may_begin,
    model_of,
    total_usage,
)
from rxdelta.formats.calls import CUT_OFF, arguments_after_end, invalid_call
from rxdelta.formats.decoding import NOTHING, Fields, Json, as_mapping, kept, word
from rxdelta.formats.endings import assumed_finish
from rxdelta.formats.usage import AG_UI, usage_of
from rxdelta.framing import DONE

Out: TypeAlias = list[Event]

_FORMAT = "ag-ui"
_READ = Fields(_FORMAT)


class AgUiDecoder:
    """Decode the events of an agent's runs.

    Example:
        >>> decoder = AgUiDecoder()
        >>> chunks = [
        ...     {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"},
        ...     {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "assistant"},
        ...     {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": "Hi"},
        ... ]
        >>> [event.event for chunk in chunks for event in decoder.decode(chunk)]
        ['message-start', 'content-block-start', 'content-block-delta']
    """

    def __init__(self) -> None:
        self._run = _Run()
        self._out: Out = []  # kept after an error: the events before it come with the next chunk's
        self._over = False

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or an event of the package `ag-ui-protocol`.

        Raises:
            MalformedChunkError: The chunk breaks the format; the error names the path and quotes the value.

        Example:
            >>> AgUiDecoder().decode({"type": "RUN_ERROR", "message": "Oops"})
            [StreamError(message='Oops', type=None, code=None, choice=0)]
        """
        if self._over:
            return ()
        if chunk is DONE:
            out, self._out = self._out, []
            self._run.done(out)
            return out
        fields = as_mapping(chunk, _FORMAT)
        kind = fields.get("type")
        if not isinstance(kind, str):
            raise _READ.fail("type", "the type of an event", kind)
        out, run = self._out, self._run
        read = _EVENTS.get(kind)
        if (kind == "RUN_STARTED" and run.finished) or (run.ended and run.begins_another(fields, kind)):
            run = self._run = _Run()
        elif run.finished and kind != "RUN_ERROR":
            read = _Run.said if kind in DATA_EVENTS else None
        elif run.ended and kind not in AFTER_A_MESSAGE and not run.is_taken_back(fields):
            read = None
        if read not in _AFTER_THE_END:
            run.release(out)
        if kind not in CHUNKS:
            run.end_chunks(out, None)
        if read is None:
            run.pass_on(out, fields, kind)
        else:
            read(run, out, fields)
        self._over = run.broken
        self._out = []
        return out

    def close(self) -> Sequence[Event]:
        """End the input. A run without its end was cut off; the blocks that have ended are finished."""
        out, self._out = self._out, []
        if not self._over:
            self._run.end_chunks(out, None)
            self._run.release(out)
        self._over = True
        return out


class _Run:
    """A run of AG-UI becomes a message.

    The keys of blocks are a space (`text`, `reasoning` or `call`) and an id.
    """

    def __init__(self) -> None:
        self.finished = self.broken = False
        self.ended = False  # the message has ended, by a `rxdelta.run`; the run may go on
        self._noted = False  # messages begin and end with `rxdelta.run`
        self._name: str | None = None
        self._has_no_name = False  # it is one of several runs, and the first, whose events don't name it
        self._started = False
        self._metadata: dict[str, Any] = {}
        self._attempt = 0
        self._next = 0
        self._open: dict[tuple[str, str], OpenBlock] = {}
        self._ended: dict[tuple[str, str], OpenBlock] = {}  # not finished yet: an encrypted value may follow
        self._foreign: set[str] = set()  # ids of text messages that aren't the agent's
        self._known: set[str] = set()  # ids of this run's messages
        self._unanswered: dict[str, None] = {}
        self._updated: set[str] = set()  # the calls that have had news
        self._finished_calls: dict[str, OpenBlock] = {}
        self._chunk: tuple[str, str] | None = None  # the block that …_CHUNK events continue

    # The run.

    def run_started(self, _out: Out, event: Json) -> None:
        for name, own in (("threadId", "thread_id"), ("runId", "run_id")):
            if value := _READ.text_of(event, name, ""):
                self._metadata[own] = value

    def run_finished(self, out: Out, event: Json) -> None:
        if self._noted:
            self.finished = True
            return
        if self._updated and not self._started:  # of an earlier run's calls, and there is no message
            self.finished = True
            return
        self._begin(out, "")
        usage = self._usage(event)
        outcome = _READ.mapping(event.get("outcome"), "outcome")
        marks = marks_of(event)
        self._finish_blocks(out, marks.get(FINISH_REASON))
        self.finished = True
        self._interrupts(out, outcome)
        if outcome.get("type") == "cancelled" or marks.get(INTERRUPTED) is True:
            if usage is not None:
                out.append(events.UsageUpdate(usage))
            out.append(events.MessageInterrupted())
            return
        reason, native = word(marks.get(FINISH_REASON)), word(marks.get(PROVIDER_FINISH_REASON))
        if reason is None:
            pending = outcome.get("pendingToolCallIds") or self._unanswered
            reason = "tool_use" if pending else None
            native = "interrupt" if outcome.get("type") == "interrupt" else native
        metadata = kept(
            {
                name: value
                for name, value in (
                    ("result", event.get("result")),
                    ("interrupts", outcome.get("interrupts")),
                    ("model", model_of(event)),
                )
                if value not in NOTHING
            }
        )
        out.append(events.MessageFinish(reason, native, usage, metadata))

    def _interrupts(self, out: Out, outcome: Json) -> None:
        """The calls that an interrupt asks about wait, also where nothing has said so before."""
        for place, found in enumerate(_READ.items(outcome.get("interrupts"), "outcome.interrupts")):
            interrupt = _READ.mapping(found, f"outcome.interrupts[{place}]")
            own_id = word(interrupt.get("toolCallId"))
            if own_id in self._unanswered and own_id not in self._updated:
                out.append(events.ToolUpdate(own_id, "awaiting_approval"))

    def subagent_finished(self, out: Out, event: Json) -> None:
        if not self._noted and self._started:
            self._finish_blocks(out)
            out.append(events.MessageFinish("tool_use" if self._unanswered else None))
            self.ended = True
        self.pass_on(out, event, "SUBAGENT_FINISHED")

    def _message_of_run(self, out: Out, value: Json) -> None:
        """A message of this run, one of several, begins or has ended."""
        self._noted = True
        self._has_no_name = value.get(FIRST) is True
        self._name = None if self._has_no_name else word(value.get(RUN_ID))
        reason = word(value.get(FINISH_REASON))
        stopped = value.get(INTERRUPTED) is True
        model = word(value.get(MODEL))
        late = {"model": model} if self._started and model is not None else {}
        if not self._started:
            self._started = True
            out.append(events.MessageStart(word(value.get(MESSAGE_ID)), model, metadata=kept(self._metadata)))
        if reason is None and not stopped:
            return
        self.ended = True
        self._finish_blocks(out, reason)
        counts = value.get(USAGE)
        usage = usage_of(counts, AG_UI) if is_mapping(counts) else None
        if not stopped:
            native = word(value.get(PROVIDER_FINISH_REASON))
            out.append(events.MessageFinish(reason, native, usage, late))
            return
        if usage is not None:
            out.append(events.UsageUpdate(usage))
        if not self._has_no_name:
            out.append(events.MessageInterrupted())

    def done(self, out: Out) -> None:
        """Finish a run that has no RUN_FINISHED, but is whole."""
        self.end_chunks(out, None)
        self.release(out)
        if self._started and not (self.finished or self.ended):
            self._finish_blocks(out)
            self.finished = True
            out.append(assumed_finish(None, {}, asked=bool(self._unanswered)))

    def _finish_blocks(self, out: Out, reason: object = None) -> None:
        """Finish the blocks of a message that ends for this reason."""
        for block in [*self._open.values()]:
            if reason == "length" and block.is_clients and block.key not in self._ended:
                block.error = CUT_OFF
            self._finish(out, block)

    def run_error(self, out: Out, event: Json) -> None:
        usage = self._usage(event)
        if usage is not None and self._started and not self.finished:
            out.append(events.UsageUpdate(usage))
        if "message" not in event:
            self.pass_on(out, event, "RUN_ERROR")
        message = _READ.text_of(event, "message", "") or "unknown error"
        out.append(events.StreamError(message, None, word(event.get("code"))))
        self.finished = self.broken = True

    def _usage(self, event: Json) -> TokenUsage | None:
        listed = enumerate(_READ.items(event.get("usage"), "usage"))
        return total_usage([_READ.mapping(one, f"usage[{place}]") for place, one in listed])

    def _begin(self, out: Out, own_id: str) -> None:
        self._known.add(own_id)
        if not self._started:
            self._started = True
            out.append(events.MessageStart(reply_id(own_id) or None, metadata=kept(self._metadata)))

    def pass_on(self, out: Out, event: Json, kind: str) -> None:
        name = kind if type(kind) is str else str.__str__(kind)
        out.append(events.ProviderEvent(_FORMAT, name, kept(event)))

    # Texts and reasoning.

    def text_start(self, out: Out, event: Json) -> None:
        own_id = _READ.text_of(event, "messageId", "")
        if _READ.text_of(event, "role", "") not in ("", "assistant"):
            self._foreign.add(own_id)
            self.pass_on(out, event, "TEXT_MESSAGE_START")
            return
        kind = "refusal" if marks_of(event).get(TYPE) == "refusal" else "text"
        self._text_block(out, "text", own_id, kind)

    def text_content(self, out: Out, event: Json) -> None:
        own_id, piece = _READ.text_of(event, "messageId", ""), _READ.required_text(event, "delta", "")
        if own_id in self._foreign:
            self.pass_on(out, event, "TEXT_MESSAGE_CONTENT")
        elif piece:
            out.append(text_delta(self._text_block(out, "text", own_id, "text").index, piece))

    def text_end(self, out: Out, event: Json) -> None:
        own_id = _READ.text_of(event, "messageId", "")
        if own_id in self._foreign:
            self._foreign.discard(own_id)
            self.pass_on(out, event, "TEXT_MESSAGE_END")
        else:
            self._end(out, ("text", own_id), marks_of(event))

    def ignored(self, _out: Out, _event: Json) -> None:
        """Ignored: the messages of the reasoning hold everything."""

    def reasoning_start(self, out: Out, event: Json) -> None:
        self._text_block(out, "reasoning", self._message_id(event), "reasoning")

    def reasoning_content(self, out: Out, event: Json) -> None:
        piece = _READ.required_text(event, "delta", "")
        if piece:
            block = self._text_block(out, "reasoning", self._message_id(event), "reasoning")
            out.append(reasoning_delta(block.index, piece))

    def reasoning_end(self, out: Out, event: Json) -> None:
        self._end(out, ("reasoning", self._message_id(event)), marks_of(event))

    @staticmethod
    def _message_id(event: Json) -> str:
        return _READ.text_of(event, "messageId", "")

    def _text_block(self, out: Out, space: str, own_id: str, kind: str) -> OpenBlock:
        block = self._open.get((space, own_id))
        if block is None:
            block = self._start(out, (space, own_id), own_id, {"type": kind, kind: ""})
        return block

    # Calls.

    def call_start(self, out: Out, event: Json) -> None:
        own_id = _READ.required_text(event, "toolCallId", "")
        if ("call", own_id) in self._open:
            return
        parent = _READ.text_of(event, "parentMessageId", "")
        kind = "server_tool_call" if marks_of(event).get(TYPE) == "server_tool_call" else "tool_call"
        if kind == "tool_call":
            self._unanswered[own_id] = None
        name = _READ.text_of(event, "toolCallName", "")
        content = {"type": f"{kind}_chunk", "id": own_id, "name": name, "args": ""}
        self._start(out, ("call", own_id), parent or own_id, content).is_clients = kind == "tool_call"

    def call_args(self, out: Out, event: Json) -> None:
        own_id, piece = _READ.text_of(event, "toolCallId", ""), _READ.required_text(event, "delta", "")
        block = self._open.get(("call", own_id))
        ended = self._finished_calls.pop(own_id, None) if piece and block is None else None
        if ended is not None:
            self._unanswered.pop(own_id, None)
            out.append(events.BlockFinish(ended.index, arguments_after_end(piece)))
        elif block is None:
            self.pass_on(out, event, "TOOL_CALL_ARGS")
        elif piece:
            out.append(tool_call_delta(block.index, piece))

    def call_end(self, out: Out, event: Json) -> None:
        self._end(out, ("call", _READ.text_of(event, "toolCallId", "")), marks_of(event))

    def call_result(self, out: Out, event: Json) -> None:
        own_id = _READ.required_text(event, "toolCallId", "")
        _READ.require(event, ("content",))
        self._result(out, own_id, event.get("content"), marks_of(event))
        self._known.add(_READ.text_of(event, "messageId", ""))

    def _result(self, out: Out, own_id: str, content: Any, marks: Json) -> None:
        self._unanswered.pop(own_id, None)
        if marks.get(UNRUN):
            return
        if marks.get(JSON) and isinstance(content, str):
            with suppress(InvalidJson):
                content = parse_json(content)
        own = marks.get(BLOCK)
        if is_mapping(own) and not self.ended:
            output = {} if content in (None, "") else {"output": content}
            self._whole(out, "", {**own, "type": "server_tool_result", "tool_call_id": own_id, **output})
            return
        failed = marks.get(IS_ERROR) is True
        metadata = fields_of("call", marks)
        result = ToolResult(own_id or None, freeze(content, lenient=True), failed, metadata=metadata)
        self._updated.add(own_id)
        out.append(events.ToolUpdate(own_id, "failed" if failed else "completed", None, result))

    def encrypted(self, out: Out, event: Json) -> None:
        own_id, value = _READ.text_of(event, "entityId", ""), _READ.text_of(event, "encryptedValue", "")
        spaces = ("call",) if event.get("subtype") == "tool-call" else ("reasoning", "text")
        for space in spaces:
            block = self._ended.get((space, own_id)) or self._open.get((space, own_id))
            if block is not None and value:
                out.append(events.BlockDelta(block.index, {block.encrypted_option: value}))
                return
        self.pass_on(out, event, "REASONING_ENCRYPTED_VALUE")

    # Other events.

    def custom(self, out: Out, event: Json) -> None:
        value = event.get("value")
        if event.get("name") == TOOL_UPDATE and is_mapping(value):
            try:
                update = events.from_dict({**value, "event": "tool-update"})
                out.append(update)
                self._updated.add(getattr(update, "call_id", ""))
                return
            except InvalidValueError:
                pass
        if event.get("name") == RUN and is_mapping(value) and word(value.get(RUN_ID)) is not None:
            self._message_of_run(out, value)
            return
        self.said(out, event)

    def said(self, out: Out, event: Json) -> None:
        """The application's own data, which may stand anywhere."""
        if marks_of(event).get(SYNTHETIC) is True:
            return
        data = read_data(event, event["type"])
        if data is None:
            self.pass_on(out, event, event["type"])
        else:
            out.append(data)

    def activity(self, out: Out, event: Json) -> None:
        kind, content = event.get("activityType"), event.get("content")
        if kind == DISCARDED:
            again = is_mapping(content) and content.get(AGAIN) is True
            if again and _READ.text_of(event, "messageId", "") in self._known:
                self._reset(out)
            return
        if is_ours(kind) and is_mapping(content):
            self._whole(out, _READ.text_of(event, "messageId", ""), content)
        else:
            self.pass_on(out, event, "ACTIVITY_SNAPSHOT")

    def raw(self, out: Out, event: Json) -> None:
        whole, source = event.get("event"), event.get("source")
        ours = is_mapping(whole) and whole.keys() == {"name", "payload"} and isinstance(whole["name"], str)
        if ours and is_mapping(whole) and is_mapping(whole["payload"]):
            out.append(events.ProviderEvent(word(source) or "", whole["name"], kept(whole["payload"])))
        else:
            self.pass_on(out, event, "RAW")

    def snapshot(self, out: Out, event: Json) -> None:
        _READ.require(event, ("messages",))
        messages = [
            _READ.mapping(one, f"messages[{place}]")
            for place, one in enumerate(_READ.items(event.get("messages"), "messages"))
        ]
        if not self._started:
            self.pass_on(out, event, "MESSAGES_SNAPSHOT")
            return
        still_open, known = set(self._open), self._known
        own_ids = [_READ.required_text(one, "id", f"messages[{place}]") for place, one in enumerate(messages)]
        self._reset(out)
        for place, (own_id, message) in enumerate(zip(own_ids, messages)):
            if own_id in known:
                _READ.require(message, ("role",), f"messages[{place}]")
                self._message(out, own_id, message, still_open, f"messages[{place}]")
                if {"content", "toolCalls", "encryptedValue"}.isdisjoint(message):
                    self.pass_on(out, event, "MESSAGES_SNAPSHOT")

    def begins_another(self, event: Json, kind: str) -> bool:
        """Whether another message of this run begins, after the end of one."""
        if not self._noted:
            return kind in OPENERS
        value = event.get("value") if event.get("name") == RUN else None
        return is_mapping(value) and FINISH_REASON not in value and INTERRUPTED not in value

    def is_taken_back(self, event: Json) -> bool:
        """Whether the event takes back a message of this run, which has ended."""
        content = event.get("content")
        if event.get("type") == "MESSAGES_SNAPSHOT":
            return word(marks_of(event).get(RUN_ID)) == self._name
        again = is_mapping(content) and content.get(AGAIN) is True
        return again and is_mapping(content) and word(content.get(RUN_ID)) == self._name

    def _reset(self, out: Out) -> None:
        self._open, self._ended, self._known, self._unanswered, self._finished_calls = {}, {}, set(), {}, {}
        self._started, self._next = False, 0
        self._attempt += 1
        if not self._has_no_name:
            out.append(events.AttemptReset(self._attempt, choice=0 if self.ended else None))
        self.ended = False

    def _message(
        self, out: Out, own_id: str, message: Json, still_open: set[tuple[str, str]], path: str
    ) -> None:
        role, content = message.get("role"), message.get("content")
        marks = {name: mark for name, mark in marks_of(message).items() if name != RUN_ID}
        encrypted = word(message.get("encryptedValue"))
        if role == "tool":
            self._result(out, _READ.text_of(message, "toolCallId", path), content, marks)
            self._known.add(own_id)
        elif role == "activity":
            self.activity(out, {**message, "messageId": own_id})
        elif role in ("assistant", "reasoning"):
            text = content if isinstance(content, str) else ""
            space = "text" if role == "assistant" else "reasoning"
            if text or encrypted or (marks and not message.get("toolCalls")):
                block = self._start(out, (space, own_id), own_id, {"type": space, space: text})
                if (space, own_id) not in still_open:
                    self._end(out, (space, own_id), marks)
                    if encrypted:
                        out.append(events.BlockDelta(block.index, {block.encrypted_option: encrypted}))
                    self.release(out)
            for n, found in enumerate(_READ.items(message.get("toolCalls"), f"{path}.toolCalls")):
                self._call(out, own_id, _READ.mapping(found, f"{path}.toolCalls[{n}]"), still_open, path)

    def _call(self, out: Out, parent: str, call: Json, still_open: set[tuple[str, str]], path: str) -> None:
        function = _READ.mapping(call.get("function"), f"{path}.toolCalls.function")
        own_id, marks = _READ.text_of(call, "id", f"{path}.toolCalls"), marks_of(call)
        start = {"toolCallId": own_id, "toolCallName": function.get("name"), "parentMessageId": parent}
        self.call_start(out, {**start, "metadata": call.get("metadata")})
        self.call_args(out, {"toolCallId": own_id, "delta": function.get("arguments")})
        if ("call", own_id) not in still_open:
            self._end(out, ("call", own_id), marks)
            encrypted, block = word(call.get("encryptedValue")), self._ended.get(("call", own_id))
            if encrypted and block is not None:
                out.append(events.BlockDelta(block.index, {block.encrypted_option: encrypted}))
            self.release(out)

    # Chunks.

    def text_chunk(self, out: Out, event: Json) -> None:
        self._continue(out, "text", event, "messageId", self.text_start, self.text_content)

    def reasoning_chunk(self, out: Out, event: Json) -> None:
        self._continue(out, "reasoning", event, "messageId", self.reasoning_start, self.reasoning_content)

    def call_chunk(self, out: Out, event: Json) -> None:
        self._continue(out, "call", event, "toolCallId", self.call_start, self.call_args)

    def _continue(
        self,
        out: Out,
        space: str,
        event: Json,
        name: str,
        start: Callable[[Out, Json], None],
        grow: Callable[[Out, Json], None],
    ) -> None:
        own_id = _READ.text_of(event, name, "")
        if not own_id and self._chunk is not None and self._chunk[0] == space:
            own_id = self._chunk[1]
        begins = self._chunk != (space, own_id)
        if begins:
            self.end_chunks(out, None)
            start(out, {**event, name: own_id})
            self._chunk = (space, own_id)
        if "delta" in event:
            grow(out, {**event, name: own_id})
        elif not (begins and may_begin(event)):
            self.pass_on(out, event, event["type"])

    def end_chunks(self, out: Out, _event: Json | None) -> None:
        chunk, self._chunk = self._chunk, None
        if chunk is not None:
            self._foreign.discard(chunk[1])
            self._end(out, chunk, {})
            self.release(out)

    # Blocks.

    def _start(self, out: Out, key: tuple[str, str], message_id: str, content: Json) -> OpenBlock:
        self._begin(out, message_id)
        block = self._open[key] = OpenBlock(key, self._next)
        self._next += 1
        out.append(events.BlockStart(block.index, content))
        return block

    def _whole(self, out: Out, own_id: str, content: Json) -> None:
        self._begin(out, own_id)
        out.append(events.BlockStart(self._next, content))
        out.append(events.BlockFinish(self._next))
        self._next += 1

    def _end(self, out: Out, key: tuple[str, str], marks: Json) -> None:
        block = self._open.get(key)
        if block is None:
            return
        self._ended[key] = block
        fields = fields_of(key[0], marks)
        if key[0] == "reasoning":
            block.encrypted_option = word(marks.get(ENCRYPTED)) or block.encrypted_option
        if key[0] == "call" and marks.get(TYPE) == "invalid_tool_call":
            block.error = word(marks.get(ERROR)) or "marked invalid by its source"
        if fields:
            out.append(events.BlockDelta(block.index, fields))

    def release(self, out: Out) -> None:
        """Finish the blocks that have ended."""
        ended, self._ended = self._ended, {}
        for block in ended.values():
            self._finish(out, block)

    def _finish(self, out: Out, block: OpenBlock) -> None:
        self._open.pop(block.key, None)
        content = None if block.error is None else invalid_call(block.error)
        if content is not None:
            self._unanswered.pop(block.key[1], None)
        elif block.is_clients:
            self._finished_calls[block.key[1]] = block
        out.append(events.BlockFinish(block.index, content))


def recognises(chunk: Json) -> bool:
    """Whether a stream of this format may begin with this chunk.

    Example:
        >>> recognises({"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"})
        True
        >>> recognises({"type": "response.created"})
        False
    """
    kind = chunk.get("type")
    if not isinstance(kind, str) or (kind not in _EVENTS and kind not in OTHERS):
        return False
    return kind not in SHOWN_BY or SHOWN_BY[kind] in chunk


# The format: its events, in the order of the protocol's documentation.

_EVENTS: Mapping[str, Callable[[_Run, Out, Json], None]] = {
    "RUN_STARTED": _Run.run_started,
    "RUN_FINISHED": _Run.run_finished,
    "RUN_ERROR": _Run.run_error,
    "TEXT_MESSAGE_START": _Run.text_start,
    "TEXT_MESSAGE_CONTENT": _Run.text_content,
    "TEXT_MESSAGE_END": _Run.text_end,
    "TEXT_MESSAGE_CHUNK": _Run.text_chunk,
    "REASONING_START": _Run.ignored,
    "REASONING_END": _Run.ignored,
    "REASONING_MESSAGE_START": _Run.reasoning_start,
    "REASONING_MESSAGE_CONTENT": _Run.reasoning_content,
    "REASONING_MESSAGE_END": _Run.reasoning_end,
    "REASONING_MESSAGE_CHUNK": _Run.reasoning_chunk,
    "REASONING_ENCRYPTED_VALUE": _Run.encrypted,
    "THINKING_START": _Run.ignored,
    "THINKING_END": _Run.ignored,
    "THINKING_TEXT_MESSAGE_START": _Run.reasoning_start,
    "THINKING_TEXT_MESSAGE_CONTENT": _Run.reasoning_content,
    "THINKING_TEXT_MESSAGE_END": _Run.reasoning_end,
    "TOOL_CALL_START": _Run.call_start,
    "TOOL_CALL_ARGS": _Run.call_args,
    "TOOL_CALL_END": _Run.call_end,
    "TOOL_CALL_CHUNK": _Run.call_chunk,
    "TOOL_CALL_RESULT": _Run.call_result,
    "MESSAGES_SNAPSHOT": _Run.snapshot,
    "ACTIVITY_SNAPSHOT": _Run.activity,
    "SUBAGENT_FINISHED": _Run.subagent_finished,
    **dict.fromkeys(DATA_EVENTS, _Run.said),
    "CUSTOM": _Run.custom,
    "RAW": _Run.raw,
}
_AFTER_THE_END = (_Run.encrypted,)
