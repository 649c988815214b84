"""Tool calls of AG-UI: the arguments while they grow, then the result.

No call may stay that somebody would run by mistake: clients run every call of a finished run that has no result. A
call that can't be read is therefore answered before the run ends, as is a call that the provider ran without a result.
A call that waits for a person's decision stays without a result: the end of the run asks for the decision.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rxdelta.core import BlockFold, InvalidJson, ToolCall, is_waiting, parse_object, thaw
from rxdelta.formats.ag_ui.blocks import StreamedBlock
from rxdelta.formats.ag_ui.marks import ERROR, IS_ERROR, METADATA, SIGNATURE, TYPE, UNRUN, marked
from rxdelta.formats.ag_ui.results import Answer, ToolNews, result_event, result_message

if TYPE_CHECKING:
    from rxdelta.formats.ag_ui.reply import EncodedReply
    from rxdelta.formats.ag_ui.texts import TextMessage

__all__ = ["CallBlock"]


class _Shown(NamedTuple):
    """What the client has of a call beside its arguments."""

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
        self._news = ToolNews(reply.run, reply.send)

    # The call.

    def announce(self, *, force: bool = False) -> bool:
        """Send TOOL_CALL_START as soon as the call has an id and a name."""
        if self.message is not None:
            return True
        block, run, reply = self.fold.block, self.run, self.reply
        call_id, name = (block.call_id, block.name) if isinstance(block, ToolCall) else (None, None)
        if not force and not (call_id and name):
            return False
        reply.lane.open_texts.end_complete()
        run.pause_for_call()
        message = self.message = reply.text_message()
        self.id = reply.lane.new_id(call_id or f"call-{reply.ids.first()}-{block.key}")
        self._shown = self._now()
        message.calls[self] = None
        run.unanswered[self.id] = self
        if run.serialize_calls:
            run.open_call = self
        self._send_start(message)
        if call_id is not None:
            reply.lane.calls.setdefault(call_id, []).append(self)
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
        block = self.fold.block
        if not isinstance(block, ToolCall):
            return ""
        arguments = block.arguments
        if arguments is None or isinstance(arguments, str):
            return arguments or ""
        if not final:
            return ""
        if seen and _is_json_of(seen, arguments):
            return seen
        return json.dumps(thaw(arguments), ensure_ascii=False)

    def differs(self) -> bool:
        block, shown = self.fold.block, self._shown
        if self.message is None or not isinstance(block, ToolCall):
            return False
        return block.call_id != shown.call_id or ((block.name or "") != shown.name and not self.done)

    def begin_again(self) -> bool:
        block = self.fold.block
        if self.message is None or not isinstance(block, ToolCall):
            return False
        self.contradicted = block.call_id in (None, self._shown.call_id)
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
        if self.run.open_call is self:
            self.run.open_call = None
        self.send_news()

    def _now(self) -> _Shown:
        """What the client should have of the call."""
        block = self.fold.block
        if not isinstance(block, ToolCall):
            return _Shown(None, "", {}, None)
        encrypted = None
        marks: dict[str, Any] = {} if block.type == "tool_call" else {TYPE: block.type}
        if not block.open and block.error is not None:
            marks[ERROR] = block.error
        if not block.open and block.metadata:
            metadata = {
                key: thaw(value) for key, value in block.metadata.items() if key != "execution_status"
            }
            signature = metadata.get(SIGNATURE)
            if self.run.show_reasoning and isinstance(signature, str) and signature:
                encrypted = signature
            if encrypted is not None or not self.run.show_reasoning:
                metadata.pop(SIGNATURE, None)
            if metadata:
                marks[METADATA] = metadata
        return _Shown(block.call_id, block.name or "", marks, encrypted)

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
        block = self.fold.block
        if not isinstance(block, ToolCall) or self.message is None or self.run.open_call is not None:
            return
        if self._news.is_told(block):
            return
        self.run.pause_for_call()
        answer = self._news.tell(self.id, block)
        if answer is not None:
            self.answer(answer)

    @property
    def waits(self) -> bool:
        """Whether the call waits for a person's decision, which the client is asked for."""
        block = self.fold.block
        return isinstance(block, ToolCall) and is_waiting(block) and not self.reply.lane.cancelled

    def answer_unless_it_may_run(self, *, stopped: bool, may_wait: bool) -> None:
        """At the end of the run: answer a call that the client must not run.

        Args:
            stopped: Whether the run was stopped, and the protocol has no other way to say so.
            may_wait: Whether the end of the run tells which calls wait for a decision.
        """
        block = self.fold.block
        if may_wait and self.waits:
            return
        if block.type == "invalid_tool_call" and isinstance(block, ToolCall):
            text = f"This call could not be read: {block.error}"
            self.answer(Answer(text, {UNRUN: True, IS_ERROR: True}))
        elif block.type != "tool_call":
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
        self.run.unanswered.pop(self.id, None)
        message = result_message(self.run, self.reply.lane.new_id(f"{self.id}-result"), self.id, answer)
        self.answers.append(message)
        self.reply.send(result_event(self.run, message))

    # What is taken back.

    def send_again(self, message: TextMessage) -> None:
        """Send the call and its results again, in a message that has got another id."""
        self._send_start(message)
        if text := "".join(self.pieces):
            self._send(text)
        if self.done:
            self._send_end()
        self.answers = [
            answer.model_copy(update={"id": self.reply.lane.new_id(f"{self.id}-result")})
            for answer in self.answers
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
        if run.open_call is self:
            run.open_call = None
        if message is None:
            return False
        if not self.done:  # a reader of our own mustn't take the call for a complete one
            marks = {TYPE: "invalid_tool_call", **self._shown.marks, ERROR: "the call was given up"}
            self._shown = self._shown._replace(marks=marks)
            self._send_end()
        self._give_up("This call was given up.")
        if call_id is not None:
            self.reply.lane.calls[call_id].remove(self)
        if run.speaks_1_0:  # older clients count by themselves which calls have a result
            self.reply.lane.free_id(self.id)
        run.stale_ids += [answer.id for answer in self.answers]
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
