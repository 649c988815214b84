"""Tool calls of AG-UI: the arguments while they grow, then the result.

No call may stay that somebody would run by mistake: clients run every call of a finished run that has no result. A
call that can't be read is therefore answered before the run ends, as is a call that the provider ran without a result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from rxdelta.core import TERMINAL, Block, BlockFold, InvalidJson, ToolCall, ToolResult, parse_object, thaw
from rxdelta.formats.ag_ui.blocks import StreamedBlock
from rxdelta.formats.ag_ui.marks import (
    ERROR,
    IS_ERROR,
    JSON,
    METADATA,
    SIGNATURE,
    TOOL_UPDATE,
    TYPE,
    UNRUN,
    marked,
)

if TYPE_CHECKING:
    from rxdelta.core.events import ToolUpdate
    from rxdelta.formats.ag_ui.reply import EncodedReply
    from rxdelta.formats.ag_ui.texts import TextMessage

__all__ = ["CallBlock"]


class _Answer(NamedTuple):
    """The content of a call's result, and its marks."""

    text: str
    marks: dict[str, Any]


class CallBlock(StreamedBlock):
    """A call, whether the client, the server or the provider runs it.

    Attributes:
        message: The message that the call stands in; `None` until the client knows of the call.
        answers: The results that the client has.
    """

    def __init__(self, reply: EncodedReply, index: int | str, fold: BlockFold) -> None:
        super().__init__(reply, index, fold)
        self.message: TextMessage | None = None
        self.answers: list[Any] = []
        self._announced_as: tuple[str | None, str | None] = (None, None)  # call id and name
        self._finished_block: Block | None = None
        self._result_ids: list[str] = []  # that results of this call may name
        self._waiting_answers: list[_Answer] = []  # for the end of the arguments
        self._partial_result: ToolResult | None = None
        self._settled = False  # the tool has completed or failed

    @property
    def name(self) -> str:
        block = self.fold.block
        return (block.name or "") if isinstance(block, ToolCall) else ""

    # The call.

    def open(self) -> None:
        if self.run.serialize_calls:
            self.reply.order.open_call = self

    def announce(self, *, force: bool = False) -> bool:
        """Send TOOL_CALL_START as soon as the call has an id and a name."""
        if self.message is not None:
            return True
        block, run, reply = self.fold.block, self.run, self.reply
        call_id, name = (block.call_id, block.name) if isinstance(block, ToolCall) else (None, None)
        if not force and not (call_id and name):
            return False
        reply.open_texts.end_complete()
        reply.pause_for_call()
        message = self.message = reply.text_message()
        self.id = run.new_id(call_id or f"call-{reply.ids.first()}-{self.index}")
        self._announced_as = (call_id, name)
        message.calls[self] = None
        run.unanswered[self.id] = self
        self._send_start(message)
        for known in {call_id or self.id, self.id}:
            run.calls.setdefault(known, []).append(self)
            self._result_ids.append(known)
        for update in reply.early_updates.pop(call_id or self.id, ()):
            if run.serialize_calls:
                reply.order.updates.append(update)
            else:
                self.update(update)
        return True

    def text(self, seen: str, /, *, final: bool) -> str:
        """The arguments as text. An object that came whole may be replaced by another one, so it waits for the end."""
        block = self.fold.block
        if not isinstance(block, ToolCall):
            return ""
        arguments = block.arguments
        if arguments is None or isinstance(arguments, str):
            return arguments or ""
        if not final or (seen and _is_json_of(seen, arguments)):
            return seen
        return json.dumps(thaw(arguments), ensure_ascii=False)

    def differs(self) -> bool:
        block = self.fold.block
        if self.message is None or not isinstance(block, ToolCall):
            return False
        renamed = (block.call_id, block.name) != self._announced_as
        return renamed or (self.done and block != self._finished_block)

    def finish(self) -> None:
        if not self.done:
            self.done, self._finished_block = True, self.fold.block
            self._send_end()
            waiting, self._waiting_answers = self._waiting_answers, []
            for answer in waiting:
                self._answer(answer)
        if self.reply.order.open_call is self:
            self.reply.order.open_call = None

    def _send(self, piece: str) -> None:
        self.run.send(self.run.ag.ToolCallArgsEvent(tool_call_id=self.id, delta=piece))

    def _send_start(self, message: TextMessage) -> None:
        kind = self.fold.block.type
        self.run.send(
            self.run.ag.ToolCallStartEvent(
                tool_call_id=self.id,
                tool_call_name=self.name,
                parent_message_id=message.id,
                metadata=marked({} if kind == "tool_call" else {TYPE: kind}),
            )
        )

    def _send_end(self) -> None:
        metadata = marked(self._marks())
        self.run.send(self.run.ag.ToolCallEndEvent(tool_call_id=self.id, metadata=metadata))
        if (value := self._encrypted_value()) is not None:
            self.run.send(
                self.run.ag.ReasoningEncryptedValueEvent(
                    subtype="tool-call", entity_id=self.id, encrypted_value=value
                )
            )

    def _encrypted_value(self) -> str | None:
        block = self.fold.block
        if not self.run.show_reasoning or not self.done or not isinstance(block, ToolCall):
            return None
        value = block.metadata.get(SIGNATURE)
        return value if isinstance(value, str) and value else None

    def _marks(self) -> dict[str, Any]:
        block = self.fold.block
        if not isinstance(block, ToolCall):
            return {}
        marks: dict[str, Any] = {} if block.type == "tool_call" else {TYPE: block.type}
        if not self.done:
            return marks
        if block.error is not None:
            marks[ERROR] = block.error
        names = [name for name in block.metadata if name != "execution_status"]
        if SIGNATURE in names and (not self.run.show_reasoning or self._encrypted_value() is not None):
            names.remove(SIGNATURE)
        metadata = {name: thaw(block.metadata[name]) for name in names}
        return marks | ({METADATA: metadata} if metadata else {})

    # The result.

    def update(self, event: ToolUpdate) -> None:
        """Send the progress of the tool, or its result."""
        if self._settled:
            return
        status, result = event.execution_status, event.result
        self._partial_result = result or self._partial_result
        terminal = status in TERMINAL
        if event.display_text or (not terminal and (status != "identified" or result is not None)):
            value = {**event.to_dict(), "call_id": self.id}
            del value["event"]
            self.run.send(self.run.ag.CustomEvent(name=TOOL_UPDATE, value=value))
        if terminal:
            self._settled = True
            result = self._partial_result or ToolResult(self.id)
            failed = status == "failed" or result.is_error
            self.answer_with(result.content, {IS_ERROR: True} if failed else {})

    def answer_with(self, content: Any, marks: dict[str, Any]) -> None:
        """Send the result of the call once its arguments are complete."""
        if content is None or isinstance(content, str):
            self._answer(_Answer(content or "", marks))
        else:
            text = json.dumps(thaw(content), ensure_ascii=False)
            self._answer(_Answer(text, {**marks, JSON: True}))

    def answer_unless_it_may_run(self, *, stopped: bool) -> None:
        """At the end of the run: answer a call that the client must not run.

        Args:
            stopped: Whether the run was stopped, and the protocol has no other way to say so.
        """
        block = self.fold.block
        if block.type == "invalid_tool_call" and isinstance(block, ToolCall):
            text = f"This call could not be read: {block.error}"
            self._answer(_Answer(text, {UNRUN: True, IS_ERROR: True}))
        elif block.type != "tool_call":
            self._answer(_Answer("", {UNRUN: True}))
        elif stopped:
            self._answer(_Answer("The run was stopped.", {UNRUN: True}))

    def _answer(self, answer: _Answer) -> None:
        if not self.done and UNRUN not in answer.marks:
            self._waiting_answers.append(answer)
            return
        self.run.unanswered.pop(self.id, None)
        message = self.run.ag.ToolMessage(
            id=self.run.new_id(f"{self.id}-result"),
            tool_call_id=self.id,
            content=answer.text,
            metadata=marked(answer.marks),
        )
        self.answers.append(message)
        self._send_result(message)

    def _send_result(self, message: Any) -> None:
        self.run.send(
            self.run.ag.ToolCallResultEvent(
                message_id=message.id,
                tool_call_id=message.tool_call_id,
                content=message.content,
                role="tool",
                metadata=message.metadata,
            )
        )

    # What is taken back.

    def send_again(self, message: TextMessage) -> None:
        """Send the call and its results again, in a message that has got another id."""
        self._send_start(message)
        if text := "".join(self.pieces):
            self._send(text)
        if self.done:
            self._send_end()
        self.answers = [
            answer.model_copy(update={"id": self.run.new_id(f"{self.id}-result")}) for answer in self.answers
        ]
        for answer in self.answers:
            self._send_result(answer)

    def message_call(self) -> Any:
        """The call as a message in MESSAGES_SNAPSHOT repeats it."""
        ag = self.run.ag
        return ag.ToolCall(
            id=self.id,
            function=ag.FunctionCall(name=self.name, arguments="".join(self.pieces)),
            encrypted_value=self._encrypted_value(),
            metadata=marked(self._marks()),
        )

    def _retract(self) -> bool:
        run, reply, message = self.run, self.reply, self.message
        if reply.order.open_call is self:
            reply.order.open_call = None
        if message is None:
            return False
        if not self.done:
            run.send(run.ag.ToolCallEndEvent(tool_call_id=self.id))
        if self.id in run.unanswered:
            self._answer(_Answer("This call was given up.", {UNRUN: True}))
        for known in self._result_ids:
            run.calls[known].remove(self)
        if run.speaks_1_0:  # older clients count by themselves which calls have a result
            run.free_id(self.id)
        run.stale_ids += [answer.id for answer in self.answers]
        del message.calls[self]
        message.drop_if_empty()
        return True


def _is_json_of(text: str, arguments: Mapping[str, Any]) -> bool:
    try:
        return parse_object(text) == arguments
    except InvalidJson:
        return False
