"""Tool calls of AG-UI: the arguments while they grow, then the result; activities; and the calls of the request.

No call may stay that somebody would run by mistake: clients run every call of a finished run that has no result. A
call that can't be read is therefore answered before the run ends, as is a call that the provider ran without a result.
A call that waits for a person's decision stays without a result: the end of the run asks for the decision.
"""

# The messages of a request are JSON without types; every value is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import attrs

from rxdelta.core import (
    TERMINAL,
    BlockFold,
    InvalidJson,
    ToolCall,
    ToolResult,
    block_to_wire,
    is_mapping,
    is_waiting,
    parse_object,
    thaw,
    with_news,
)
from rxdelta.core.events import ToolUpdate
from rxdelta.formats.ag_ui.blocks import AgUiBlock, ClientMessages, EncodedReply, StreamedBlock
from rxdelta.formats.ag_ui.marks import (
    BLOCK,
    ERROR,
    IS_ERROR,
    JSON,
    METADATA,
    SIGNATURE,
    TOOL_UPDATE,
    TYPE,
    UNRUN,
    activity_type,
    marked,
)
from rxdelta.formats.ag_ui.texts import TextMessage, text_message
from rxdelta.formats.decoding import word
from rxdelta.formats.front_ends import place_marks, shown_metadata

if TYPE_CHECKING:
    from ag_ui.core import BaseEvent

    from rxdelta.formats.ag_ui.run import Run
    from rxdelta.formats.ag_ui.run_input import Answers

_NO_CALL: Final = ToolCall()


class Answer(NamedTuple):
    """The content of a call's result, and its marks."""

    text: str
    marks: dict[str, Any]


def answer_of(content: Any, marks: dict[str, Any]) -> Answer:
    """The answer with this content, which is text or JSON."""
    if content is None or isinstance(content, str):
        return Answer(content or "", marks)
    return Answer(json.dumps(thaw(content), ensure_ascii=False), {**marks, JSON: True})


def result_message(run: Run, own_id: str, call_id: str, answer: Answer) -> Any:
    """The tool's message, as the client keeps it."""
    return run.ag.ToolMessage(
        id=own_id, tool_call_id=call_id, content=answer.text, metadata=marked(answer.marks)
    )


def result_event(run: Run, message: Any) -> BaseEvent:
    """The event that makes the client keep a tool's message."""
    event: BaseEvent = run.ag.ToolCallResultEvent(
        message_id=message.id,
        tool_call_id=message.tool_call_id,
        content=message.content,
        role="tool",
        metadata=message.metadata,
    )
    return event


class ToolNews:
    """A tool's progress, as far as the client has it.

    Args:
        run: The AG-UI run.
        send: Sends a frame.

    Attributes:
        settled: Whether the tool has completed or failed.
    """

    def __init__(self, run: Run, send: Callable[[BaseEvent], None]) -> None:
        self._run = run
        self._send = send
        self._sent: tuple[object, str | None, ToolResult | None] = (None, None, None)
        self.settled = False

    def is_sent(self, call: ToolCall) -> bool:
        """Whether the client has all that is known of the call's tool."""
        return self.settled or _news_of(call) == self._sent

    def next_answer(self, own_id: str, call: ToolCall) -> Answer | None:
        """Send the progress.

        Returns:
            The answer of the call, once its tool has completed or failed.
        """
        display_text_before = self._sent[1]
        self._sent = known, display_text, result = _news_of(call)
        status: Any = known if isinstance(known, str) else None
        terminal = status in TERMINAL
        if display_text != display_text_before or (
            not terminal and (status != "identified" or result is not None)
        ):
            value = ToolUpdate(own_id, status, display_text, result).to_dict()
            del value["event"]
            if result is not None and result.metadata:
                value["result"][METADATA] = self._metadata_of(result)
            self._send(self._run.ag.CustomEvent(name=TOOL_UPDATE, value=value))
        if not terminal:
            return None
        self.settled = True
        result = result or ToolResult(own_id)
        marks: dict[str, Any] = {IS_ERROR: True} if status == "failed" or result.is_error else {}
        if result.metadata:
            marks[METADATA] = self._metadata_of(result)
        return answer_of(result.content, marks)

    def _metadata_of(self, result: ToolResult) -> dict[str, Any]:
        return shown_metadata(result.metadata, reasoning=self._run.show_reasoning)


def _news_of(call: ToolCall) -> tuple[object, str | None, ToolResult | None]:
    return call.metadata.get("execution_status"), call.display_text, call.result


class _Shown(NamedTuple):
    """A call at the client, beside its arguments."""

    call_id: str | None
    name: str
    marks: dict[str, Any]
    encrypted_value: str | None


class CallBlock(StreamedBlock):
    """A call, whether the client, the server or the provider runs it.

    A client may run the call at TOOL_CALL_END, so a call that begins or ends again under its id isn't sent again: the
    client's messages are corrected when it has ended again.

    Attributes:
        message: The message that the call stands in; `None` until the client knows of the call.
        answers: The results that the client has.
    """

    def __init__(self, reply: EncodedReply, fold: BlockFold) -> None:
        super().__init__(reply, fold)
        self.message: TextMessage | None = None
        self.answers: list[Any] = []
        self._shown = _Shown(None, "", {}, None)
        self._waiting_answers: list[Answer] = []  # for the end of the arguments
        self._news = ToolNews(self.run, reply.send)

    @property
    def call(self) -> ToolCall:
        """The call; an empty one while its block seems to be something else, which only the block's end decides."""
        block = self.fold.block
        return block if isinstance(block, ToolCall) else _NO_CALL

    # The call.

    def announce(self, *, force: bool = False) -> bool:
        """Send TOOL_CALL_START as soon as the call has an id and a name."""
        if self.message is not None:
            return True
        call, run, reply = self.call, self.run, self.reply
        call_id = call.call_id
        if not force and not (call_id and call.name):
            return False
        self.lane.open_texts.end_complete()
        run.floor.pause_for_call()
        message = self.message = text_message(reply)
        self.id = self.lane.new_id(call_id or f"call-{reply.ids.first()}-{self.fold.block.key}")
        self._shown = self._now()
        message.calls[self] = None
        run.unanswered.add(self)
        run.floor.take(self)
        self._send_start(message)
        if call_id is not None:
            self.lane.calls.setdefault(call_id, []).append(self)
        return True

    def catch_up(self, *, changed: bool = True, final: bool = False) -> bool:
        contradicted = False
        if not self.done:
            changed = changed or (final and _MAY_BE_NO_JSON("".join(self.pieces)) is not None)
            contradicted = super().catch_up(changed=changed, final=final)
        elif final:
            shown, pieces = self._shown, self.pieces
            self._shown, self.pieces = self._now(), [self.text("".join(pieces), final=True)]
            contradicted = self._shown != shown or self.pieces != ["".join(pieces)]
        if not final:
            self.send_news()
        return contradicted

    def text(self, seen: str, /, *, final: bool) -> str:
        """The arguments as text; `""` for an object that came whole, which may be replaced until the end."""
        arguments = self.call.arguments
        if arguments is None or isinstance(arguments, str):
            return arguments or ""
        if not final:
            return ""
        if seen and _is_json_of(seen, arguments):
            return seen
        return json.dumps(thaw(arguments), ensure_ascii=False)

    def differs(self) -> bool:
        call, shown = self.call, self._shown
        if self.message is None:
            return False
        return call.call_id != shown.call_id or ((call.name or "") != shown.name and not self.done)

    def begin_again(self) -> bool:
        if self.message is None:
            return False
        self.contradicted = self.call.call_id in (None, self._shown.call_id)
        return self.contradicted

    def finish(self) -> None:
        if not self.done:
            self.done, self._shown = True, self._now()
            self._send_end()
            waiting, self._waiting_answers = self._waiting_answers, []
            for answer in waiting:
                self.answer(answer)
            if self.repeated:
                self._give_up("This call has ended before.")
        self.run.floor.leave(self)
        self.send_news()

    def _now(self) -> _Shown:
        """The call as the client should have it."""
        call, encrypted = self.call, None
        marks: dict[str, Any] = {} if call.type == "tool_call" else {TYPE: call.type}
        if not call.open and call.error is not None:
            marks[ERROR] = call.error
        if not call.open and call.metadata:
            metadata = {key: thaw(value) for key, value in call.metadata.items() if key != "execution_status"}
            signature = metadata.get(SIGNATURE)
            if self.run.show_reasoning and isinstance(signature, str) and signature:
                encrypted = signature
            if encrypted is not None or not self.run.show_reasoning:
                metadata.pop(SIGNATURE, None)
            if metadata:
                marks[METADATA] = metadata
        return _Shown(call.call_id, call.name or "", marks, encrypted)

    def _send(self, piece: str) -> None:
        self.reply.send(self.run.ag.ToolCallArgsEvent(tool_call_id=self.id, delta=piece))

    def _send_start(self, message: TextMessage) -> None:
        marks = self._shown.marks
        self.reply.send(
            self.run.ag.ToolCallStartEvent(
                tool_call_id=self.id,
                tool_call_name=self._shown.name,
                parent_message_id=message.id,
                metadata=marked({TYPE: marks[TYPE]} if TYPE in marks else {}),
            )
        )

    def _send_end(self) -> None:
        metadata = marked(self._shown.marks)
        self.reply.send(self.run.ag.ToolCallEndEvent(tool_call_id=self.id, metadata=metadata))
        if (value := self._shown.encrypted_value) is not None:
            self.reply.send(
                self.run.ag.ReasoningEncryptedValueEvent(
                    subtype="tool-call", entity_id=self.id, encrypted_value=value
                )
            )

    # The result.

    def send_news(self) -> None:
        """Send the progress of the tool, or its result, unless an open call must end first."""
        call, floor = self.call, self.run.floor
        if call is _NO_CALL or self.message is None or floor.call is not None or self._news.is_sent(call):
            return
        floor.pause_for_call()
        answer = self._news.next_answer(self.id, call)
        if answer is not None:
            self.answer(answer)

    @property
    def waits(self) -> bool:
        """Whether the call waits for a person's decision, which the client is asked for."""
        return is_waiting(self.call) and not self.lane.cancelled

    def answer_unless_it_may_run(self, *, stopped: bool, may_wait: bool) -> None:
        """At the end of the run: answer a call that the client must not run.

        Args:
            stopped: Whether the run was stopped, and the protocol has no other way to say so.
            may_wait: Whether the end of the run names the calls that wait for a decision.
        """
        call = self.call
        if may_wait and self.waits:
            return
        if call.type == "invalid_tool_call":
            text = f"This call could not be read: {call.error}"
            self.answer(Answer(text, {UNRUN: True, IS_ERROR: True}))
        elif call.type != "tool_call":
            self.answer(Answer("", {UNRUN: True}))
        elif stopped:
            self.answer(Answer("The run was stopped.", {UNRUN: True}))

    def _give_up(self, text: str) -> None:
        """Answer the call for the client, if nothing else has."""
        if self.id in self.run.unanswered:
            self.answer(Answer(text, {UNRUN: True}))

    def answer(self, answer: Answer) -> None:
        """Send the result of the call once its arguments are complete."""
        if not self.done and UNRUN not in answer.marks:
            self._waiting_answers.append(answer)
            return
        self.run.unanswered.settle(self)
        message = result_message(self.run, self.lane.new_id(f"{self.id}-result"), self.id, answer)
        self.answers.append(message)
        self.reply.send(result_event(self.run, message))

    # Taking back.

    def send_again(self, message: TextMessage) -> None:
        """Send the call and its results again, in a message that has got another id."""
        self._send_start(message)
        if text := "".join(self.pieces):
            self._send(text)
        if self.done:
            self._send_end()
        self.answers = [
            answer.model_copy(update={"id": self.lane.new_id(f"{self.id}-result")}) for answer in self.answers
        ]
        for answer in self.answers:
            self.reply.send(result_event(self.run, answer))

    def message_call(self) -> Any:
        """The call as a message in MESSAGES_SNAPSHOT repeats it."""
        ag = self.run.ag
        return ag.ToolCall(
            id=self.id,
            function=ag.FunctionCall(name=self._shown.name, arguments="".join(self.pieces)),
            encrypted_value=self._shown.encrypted_value,
            metadata=marked(self._shown.marks),
        )

    def _retract(self) -> bool:
        run, message, call_id = self.run, self.message, self._shown.call_id
        run.floor.leave(self)
        if message is None:
            return False
        if not self.done:  # a reader of our own mustn't take the call for a complete one
            marks = {TYPE: "invalid_tool_call", **self._shown.marks, ERROR: "the call was given up"}
            self._shown = self._shown._replace(marks=marks)
            self._send_end()
        self._give_up("This call was given up.")
        if call_id is not None:
            self.lane.calls[call_id].remove(self)
        if run.speaks_1_0:  # older clients count by themselves which calls have a result
            run.free_id(self.id)
        self.reply.client.let_go_stale(*(answer.id for answer in self.answers))
        del message.calls[self]
        message.drop_if_empty()
        return True


_MAY_BE_NO_JSON = re.compile(r"[\x00-\x1f]|\A *null").search
"""Finds what our arguments' reader takes and a client's doesn't: a raw control character in a string, or null."""


def _is_json_of(text: str, arguments: Mapping[str, Any]) -> bool:
    try:
        return parse_object(text) == arguments
    except InvalidJson:
        return False


class ActivityBlock(AgUiBlock):
    """A block that is neither text, reasoning nor call. The client sees it when it is complete."""

    _answered = False

    def finish(self) -> None:
        self.done = True
        block = self.part
        call_id = block.options.get("tool_call_id")
        calls = self.lane.calls.get(call_id) if isinstance(call_id, str) else None
        if block.type == "server_tool_result" and calls:
            self._retract()
            if not self._answered:
                self._answered = True
                content = block_to_wire(block)
                output, _ = content.pop("output", None), content.pop("tool_call_id")
                marks = {BLOCK: content, **place_marks(calls[-1].place, self.place)}
                calls[-1].answer(answer_of(output, marks))
            return
        self.lane.open_texts.end_complete()
        self.run.floor.pause_for_call()
        self.id = self.id or self.reply.ids.next()
        self.reply.entries.setdefault(self)
        self.send()

    def send(self) -> None:
        content, kind = block_to_wire(self.part), activity_type(self.part.type)
        self.reply.send(
            self.run.ag.ActivitySnapshotEvent(message_id=self.id, activity_type=kind, content=content)
        )

    def pause(self) -> list[str]:
        return [self.id]

    def send_again(self) -> None:
        self.send()

    def messages(self) -> list[Any]:
        content, kind = block_to_wire(self.part), activity_type(self.part.type)
        return [self.run.ag.ActivityMessage(id=self.id, activity_type=kind, content=content)]

    def _retract(self) -> bool:
        if self in self.reply.entries:
            del self.reply.entries[self]
            self.run.discard_message(self.id)
        return False


class EarlierCalls:
    """The calls that the client has from before the run, and what it gets of their tools.

    A run may begin with what has become of the calls that an earlier run ended with: a person has decided about them, and
    their tools run now. The client has the calls, so only the tool's progress and its result are sent, and nothing of a
    call that has its result.

    Args:
        run: The AG-UI run.
        client: The messages that the client has.
        messages: The messages of the request, as JSON.
        answers: The person's decisions, which aren't results of calls.

    Attributes:
        were_updated: Whether the stream has had news of one of them.
    """

    def __init__(self, run: Run, client: ClientMessages, messages: Iterable[Any], answers: Answers) -> None:
        self._run = run
        self._client = client
        self._own_ids = answers.own_ids
        self._calls: dict[str, ToolCall] = {}  # without a result, by the client's ids
        self._news: dict[str, ToolNews] = {}
        self._held: dict[str, None] = {}  # the calls whose news wait for an open call to end
        for message in messages:
            if not is_mapping(message):
                continue
            self._calls.update((call.call_id or "", call) for call in _calls_of(message))
            own_id = word(message.get("toolCallId"))
            if own_id is not None and not answers.are_repeated_by(own_id, message.get("content")):
                self._calls.pop(own_id, None)

    @property
    def were_updated(self) -> bool:
        return bool(self._news)

    def update(self, event: ToolUpdate) -> None:
        """Send what is new of a call; nothing if the client doesn't have it."""
        run, own_id = self._run, event.call_id
        if own_id not in self._calls:
            own_id = self._own_ids.get(own_id, own_id)
        known = self._calls.get(own_id)
        if known is None:
            return
        self._calls[own_id] = with_news(
            attrs.evolve(known, call_id=event.call_id),  # the provider's, by which the call is stored
            execution_status=event.execution_status,
            display_text=event.display_text,
            result=event.result,
        )
        self._news.setdefault(own_id, ToolNews(run, run.send))
        self._held[own_id] = None
        self.release()

    def release(self) -> None:
        """Send what is new, unless an open call must end first."""
        while self._held and self._run.floor.call is None:
            own_id = next(iter(self._held))
            del self._held[own_id]
            if not self._news[own_id].is_sent(self._calls[own_id]):
                self._send(own_id)

    def _send(self, own_id: str) -> None:
        run = self._run
        run.floor.pause_for_call()
        answer = self._news[own_id].next_answer(own_id, self._calls[own_id])
        if answer is not None:
            message = result_message(run, run.new_id(f"{own_id}-result", None), own_id, answer)
            run.send(result_event(run, message))
            self._client.add_result(message)

    def waiting(self) -> Iterator[tuple[str, ToolCall]]:
        """The calls that wait for a decision again, with the client's ids."""
        for own_id in self._news:
            if is_waiting(self._calls[own_id]):
                yield own_id, self._calls[own_id]


def _calls_of(message: Mapping[str, Any]) -> Iterator[ToolCall]:
    calls: Any = message.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        function: Any = call.get("function") if is_mapping(call) else None
        own_id = word(call.get("id")) if is_mapping(function) else None
        if own_id is not None:
            name, arguments = word(function.get("name")), word(function.get("arguments"))
            yield ToolCall(call_id=own_id, name=name, arguments=arguments)
