"""Tool calls: the input as it grows, then complete or as an error, then the output.

The output is an `Outcome`: a person's decision, the tool's progress, and its result.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from rxdelta.core import (
    TERMINAL,
    Approval,
    Block,
    BlockFold,
    ContentPart,
    ToolCall,
    ToolResult,
    decision_of,
    free_name,
    thaw,
)
from rxdelta.formats.ai_sdk.marks import (
    DISPLAY_TEXT,
    METADATA,
    OPTIONS,
    TEXT,
    TOOL_UPDATE,
    TYPE,
    marked,
    marks_for,
)
from rxdelta.formats.ai_sdk.stream import Part, Step, Stream
from rxdelta.formats.ai_sdk.tables import CUT_OFF, TOOL_FAILED
from rxdelta.formats.encoding import whole_characters
from rxdelta.formats.front_ends import approval_id, place_marks, shown_metadata

_INPUT_FIELDS = frozenset(["args", "input", "arguments"])
_ENDED = frozenset(["completed", "failed", "incomplete"])  # a provider's words for the status of its call
_UNNAMED = "invalid"  # the name of a tool in a call that names none


class CallPart(Part):
    """A call, whether the client, the server or the provider runs it.

    The client runs the tool of a call when the input is available. So a call that has ended under its id, and begins
    again under it, is not shown again.
    """

    def __init__(self, step: Step, fold: BlockFold, calls: CallIds) -> None:
        super().__init__(step, fold)
        self._calls = calls
        self._outcome = Outcome(self.stream)
        self._id: str | None = None  # for the client
        self._call_id: str | None = None  # the provider's
        self._name = _UNNAMED
        self._half = ""  # the first half of a character
        self._streams = True  # until the input is replaced by another one
        self._repeats = False  # a call with this id has ended in the block
        self._started = False  # tool-input-start was sent
        self._available = False  # tool-input-available was sent
        self._title: str | None = None
        self._output: tuple[ContentPart, int] | None = None  # of a tool that the provider runs, and its place
        self._has_none = False  # the provider has run the tool, and no output of it comes

    @property
    def _call(self) -> ToolCall:
        return cast("ToolCall", self.fold.block)

    @property
    def runs_at_provider(self) -> bool:
        return self._outcome.at_provider

    @property
    def must_stay(self) -> bool:
        return self._available

    @property
    def is_acted_on(self) -> bool:
        runs_here = not self.runs_at_provider or self._outcome.asked
        return self._available and (runs_here or self.fold.place is not self)

    # The input.

    def begin(self) -> None:
        """Send `tool-input-start` once the call has an id and a name, which some gateways send later."""
        call = self._call
        if not call.open:
            return
        self._repeats = self.run.walk.has_ended(call)
        if self._repeats:
            return
        self._read_id(call)
        can_start = self.stream.since_6 or not self.run.marks
        if can_start and not self._started and self._id is not None and call.name:
            self._started = True
            self.stream.out.append({"type": "tool-input-start", **self._head(call), **self.run.marked({})})
            self._send_title()
            if isinstance(call.arguments, str):
                self.grow(call.arguments)

    def _read_id(self, call: ToolCall) -> None:
        calls = self._calls
        self._outcome.at_provider = call.type == "server_tool_call"
        if call.call_id is not None and call.call_id != self._call_id:
            self._call_id = call.call_id
            if self._id is None:
                self._name_outcome(calls.register(self, call.call_id))
            else:
                calls.add_name(self, call.call_id)

    def _name_outcome(self, own_id: str) -> None:
        self._id = self._outcome.call_id = own_id
        self._outcome.approval_id = approval_id(own_id, self._call_id)

    def grow(self, piece: str, /) -> None:
        if not (self._started and self._streams):
            return
        if self._half or not piece.isascii():
            piece, self._half = whole_characters(self._half, piece)
        if piece:
            self.stream.out.append(
                {"type": "tool-input-delta", "toolCallId": self._id, "inputTextDelta": piece}
            )

    def _head(self, call: ToolCall) -> dict[str, Any]:
        """The fields that every chunk of the input has."""
        self._name = call.name or _UNNAMED
        head: dict[str, Any] = {"toolCallId": self._id, "toolName": self._name}
        if call.display_text and self.stream.since_6:
            head["title"] = self._title = call.display_text
        return head | self._outcome.executor()

    def follow(self, before: Block, fields: Mapping[str, Any], /) -> bool:
        """Another input needs no correction: the complete input comes at the end."""
        if self.ended:
            return True
        if self._started and not _INPUT_FIELDS.isdisjoint(fields):
            sent, now = cast("ToolCall", before).arguments, self._call.arguments
            sent = sent if isinstance(sent, str) else ""
            sent = sent[:-1] if self._half else sent
            if isinstance(now, str) and now.startswith(sent):
                self._half = ""
                self.grow(now[len(sent) :])
            else:
                self._streams = isinstance(now, Mapping) and not sent
        self.begin()
        return True

    def send_again(self) -> None:
        self._started, self._half, self._streams, self._available = False, "", True, False
        self._outcome.settled = False
        self.begin()
        super().send_again()

    def release_id(self) -> None:
        if self._id is not None:
            self._calls.free(self._id)

    def _close(self, _cut: str | None, /) -> None:
        call = self._call
        if self._repeats and not self._started:
            return
        self._read_id(call)
        if self._id is None:
            self._name_outcome(self._calls.register(self, None))
        marks = marks_for(call, TYPE) if call.type == "invalid_tool_call" else marks_for(call)
        frame = {**self._head(call), "input": thaw(call.arguments), **self.run.marked(marks)}
        if call.status == "complete":
            self._available = True
            self.stream.out.append({"type": "tool-input-available", **frame})
            self._send_title()
            if self.runs_at_provider:
                self.step.pending.append(self)
                self.run.sources.send_found(self.step, call.arguments)
            self._send_result()
            return
        self._outcome.settled = True
        frame["input"] = frame["input"] if frame["input"] is not None else ""
        self.stream.out.append({"type": "tool-input-error", **frame, "errorText": call.error or CUT_OFF})

    def take_back(self) -> None:
        """Send an error in place of the input, unless the call has a result or is still valid."""
        if self._available and not self._outcome.settled and self._call.type == "invalid_tool_call":
            self._close(None)

    def _drop(self) -> None:
        self._outcome.settled = True
        if self._started:
            head = {"toolCallId": self._id, "toolName": self._name, **self._outcome.executor()}
            frame = {**head, "input": "", **self.run.marked({})}
            self.stream.out.append({"type": "tool-input-error", **frame, "errorText": CUT_OFF})

    # The output.

    def update(self) -> None:
        """Send the news of the tool: its progress, or its result."""
        call = self.fold.block
        if not isinstance(call, ToolCall) or call.call_id != self._call_id:
            return
        if self._started or self._available:
            self._send_title()
        self._send_result()

    def _send_title(self) -> None:
        """Send the call's display text, unless the client has it as the title."""
        call = self._call
        if call.display_text is not None and call.display_text != self._title:
            self._title = call.display_text
            self.stream.out.append(title_chunk(self._id, call.display_text, self.run.marks))

    def set_output(self, output: ContentPart, place: int) -> bool:
        """Send the output of the provider's own tool; `False` if the call has another output, or failed."""
        if self._output is not None:
            return self._output[0] is output
        if self._outcome.settled:
            return False
        self._output = output, place
        self._send_result()
        return True

    def conclude(self, *, is_last: bool) -> bool:
        """Send that the provider has run the tool, where no output says so.

        Args:
            is_last: Whether no output can come any more. Else the status that the provider gave the call decides.

        Returns:
            `False` if an output may still come.
        """
        if not self._outcome.settled:
            call = self.fold.block
            if isinstance(call, ToolCall):  # else the block has ended again, as another one: no output comes
                ended = is_last or call.metadata.get("status") in _ENDED
                if not ended or call.execution_status() != "identified":  # a person decides
                    return False
            self._has_none = True
            self._send_result()
        return True

    def _send_result(self) -> None:
        """Send the result so far, once the input is complete."""
        if not self._available or self._outcome.settled:
            return
        if self._output is not None:
            self._outcome.settled = True
            self._send_provider_output(*self._output)
            return
        if self._has_none:
            self._outcome.settled = True
            self._outcome.send_output({}, output=None)
            return
        self._outcome.send_news(self._call.execution_status(), self._call.result)

    def _send_provider_output(self, output: ContentPart, place: int) -> None:
        options = output.options
        content = options.get("output")
        marks = marks_for(output) | place_marks(self.place, place)
        if options.get("status") == "error" or options.get("is_error") is True:
            self._outcome.send_error(content, marks)
            return
        del marks[OPTIONS]
        if rest := {name: value for name, value in thaw(options).items() if name != "output"}:
            marks[OPTIONS] = rest
        self._outcome.send_output(marks, output=thaw(content))


class OutputPart(Part):
    """The output of the provider's own tool, which belongs to its call if that is known."""

    def __init__(self, step: Step, fold: BlockFold, calls: CallIds) -> None:
        super().__init__(step, fold)
        self._calls = calls

    def _close(self, cut: str | None, /) -> None:
        block = self.fold.block
        if cut is not None or not isinstance(block, ContentPart):
            return
        call = self._calls.provider_call(block.options.get("tool_call_id"))
        if call is None or not call.set_output(block, self.place):
            self.stream.out.append(self.run.whole_block(marks_for(block, TYPE, TEXT)))
        self.run.sources.send_found(self.step, block.options.get("output"))


class CallIds:
    """The calls of a run by the ids that results name, and the ids that the client knows.

    Args:
        stream: The stream, which makes ids and knows which ids the client has.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._calls: dict[str, list[CallPart]] = {}

    def named(self, call_id: str) -> list[CallPart]:
        """The calls that a result with this id answers."""
        return self._calls.get(call_id, [])

    def provider_call(self, call_id: object) -> CallPart | None:
        """The call that an output of the provider's own tool answers."""
        for call in self.named(call_id) if isinstance(call_id, str) else ():
            if call.runs_at_provider:
                return call
        return None

    def register(self, call: CallPart, call_id: str | None) -> str:
        """The id of a call for the client: its own, unless another call has that."""
        wanted = call_id or f"call-{self._stream.new_id()}"
        self.add_name(call, wanted)
        stream = self._stream
        found = free_name(wanted, stream.used_call_ids.__contains__, iter(stream.new_id, None))
        stream.used_call_ids.add(found)
        return found

    def add_name(self, call: CallPart, call_id: str) -> None:
        """Results with this id are for this call, and for other calls of its message with the same id."""
        known = self._calls.get(call_id)
        if known is None or known[0].step is not call.step:
            self._calls[call_id] = [call]
        elif call not in known:
            known.append(call)

    def free(self, client_id: str) -> None:
        self._stream.used_call_ids.discard(client_id)

    def forget(self, step: Step) -> None:
        """The client has dropped the calls of a step."""
        for call_id in [key for key, calls in self._calls.items() if calls[0].step is step]:
            del self._calls[call_id]


class Outcome:
    """A call's outcome, as far as the client has it.

    Args:
        stream: The stream, which knows what the client can read, and may.
        call_id: The client's id of the call, once it is known.
        approval_id: The id of its approval, likewise; see `front_ends.approval_id`.
        at_provider: Whether the provider runs the tool.
        asked: Whether a person has been asked.
        answer: Whether the person allowed the call; `None` until the client has an answer.

    Attributes:
        settled: Whether the client has all of it, or gets no more.
    """

    def __init__(
        self,
        stream: Stream,
        call_id: str | None = None,
        approval_id: str | None = None,
        *,
        at_provider: bool = False,
        asked: bool = False,
        answer: bool | None = None,
    ) -> None:
        self.call_id = call_id
        self.approval_id = approval_id
        self.at_provider = at_provider
        self.asked = asked
        self.settled = False
        self._stream = stream
        self._answer = answer
        self._result: ToolResult | None = None  # the last preliminary one

    def send_news(self, status: str | None, result: ToolResult | None) -> None:
        """Send the news of the tool, or of the person who decides whether it runs."""
        if self.settled:
            return
        content, marks = result and result.content, self._marks(result)
        decision = decision_of(result)
        if status == "awaiting_approval":
            self._ask()
        elif status in TERMINAL:
            self.settled = True
            if decision is not None:
                self._ask()
            self._respond(decision or Approval(True))
            if decision is not None and not decision.approved:
                self._deny(content, marks)
            elif status == "failed" or (result is not None and result.is_error):
                self.send_error(content, marks)
            elif decision is None:  # the provider runs an allowed call of its own at the next request
                self.send_output(marks, output=thaw(content))
        else:
            if status == "executing":
                self._respond(Approval(True))
            if result is not None and result is not self._result:
                self._result = result
                self.send_output(marks, output=thaw(content), preliminary=True)

    def _ask(self) -> None:
        if self._stream.since_6 and not self.asked:
            self.asked = True
            named = {"approvalId": self.approval_id, "toolCallId": self.call_id}
            self._stream.out.append({"type": "tool-approval-request", **named})

    def _respond(self, decision: Approval) -> None:
        """Send the decision, unless the client has it from the person, or has no chunk for it."""
        if not self._stream.has_answers or not self.asked or self._answer == decision.approved:
            return
        self._answer = decision.approved
        frame = {
            "type": "tool-approval-response",
            "approvalId": self.approval_id,
            "approved": decision.approved,
        }
        reason = {"reason": decision.reason} if decision.reason else {}
        self._stream.out.append({**frame, **reason, **self.executor()})

    def _deny(self, content: Any, marks: dict[str, Any]) -> None:
        if self._stream.since_6:
            self._stream.out.append({"type": "tool-output-denied", "toolCallId": self.call_id})
        else:
            self.send_error(content, marks)

    def _marks(self, result: ToolResult | None) -> dict[str, Any]:
        """The marks of a result. Without any, the client would keep those of the result before."""
        if result is None or not (result.metadata or (self._result and self._result.metadata)):
            return {}
        return {METADATA: shown_metadata(result.metadata, reasoning=self._stream.shown.reasoning)}

    def send_output(self, marks: dict[str, Any], **fields: Any) -> None:
        frame = {"type": "tool-output-available", "toolCallId": self.call_id, **fields}
        self._stream.out.append(frame | self._about(marks))

    def send_error(self, content: Any, marks: dict[str, Any]) -> None:
        error = {"errorText": _as_text(content) or TOOL_FAILED}
        frame = {"type": "tool-output-error", "toolCallId": self.call_id, **error}
        self._stream.out.append(frame | self._about(marks))

    def _about(self, marks: dict[str, Any]) -> dict[str, Any]:
        return {**(marked(marks) if self._stream.since_6 else {}), **self.executor()}

    def executor(self) -> dict[str, Any]:
        """The field that says that the provider runs the tool."""
        return {"providerExecuted": True} if self.at_provider else {}


def title_chunk(call_id: str | None, text: str, marks: Mapping[str, Any]) -> dict[str, Any]:
    """The chunk with a new display text of a call whose input is complete."""
    return {"type": TOOL_UPDATE, "id": call_id, "data": {"toolCallId": call_id, DISPLAY_TEXT: text, **marks}}


def _as_text(content: Any) -> str:
    """The content of a failed result, as the text of an error."""
    if content is None or isinstance(content, str):
        return content or ""
    return json.dumps(thaw(content), ensure_ascii=False)
