"""Tool calls: the input as it grows, then complete or as an error, then the output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from rxdelta.core import BlockFold, ContentPart, ToolCall, thaw
from rxdelta.formats.ai_sdk.marks import OPTIONS, TEXT, TYPE, marks_for
from rxdelta.formats.ai_sdk.outcomes import Outcome, title_chunk
from rxdelta.formats.ai_sdk.parts import Part
from rxdelta.formats.ai_sdk.tables import CUT_OFF
from rxdelta.formats.approval_ids import approval_id
from rxdelta.formats.encoding import whole_characters
from rxdelta.formats.late_results import place_marks

if TYPE_CHECKING:
    from rxdelta.core import Block
    from rxdelta.formats.ai_sdk.parts import Out
    from rxdelta.formats.ai_sdk.stream import Step, Stream

__all__ = ["CallIds", "CallPart", "OutputPart"]

_INPUT_FIELDS = frozenset(["args", "input", "arguments"])
_ENDED = frozenset(["completed", "failed", "incomplete"])  # a provider's words for the status of its call
_UNNAMED = "invalid"  # the name of a tool in a call that names none


class CallPart(Part):
    """A call, whether the client, the server or the provider runs it.

    The client runs the tool of a call when the input is available. So a call that has ended under its id, and begins
    again under it, is not shown again.
    """

    def __init__(self, step: Step, fold: BlockFold) -> None:
        super().__init__(step, fold)
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

    def begin(self, out: Out, /) -> None:
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
            out.append({"type": "tool-input-start", **self._head(call), **self.run.marked({})})
            self._send_title(out)
            if isinstance(call.arguments, str):
                self.grow(out, call.arguments)

    def _read_id(self, call: ToolCall) -> None:
        calls = self.run.calls
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

    def grow(self, out: Out, piece: str, /) -> None:
        if not (self._started and self._streams):
            return
        if self._half or not piece.isascii():
            piece, self._half = whole_characters(self._half, piece)
        if piece:
            out.append({"type": "tool-input-delta", "toolCallId": self._id, "inputTextDelta": piece})

    def _head(self, call: ToolCall) -> dict[str, Any]:
        """The fields that every chunk of the input has."""
        self._name = call.name or _UNNAMED
        head: dict[str, Any] = {"toolCallId": self._id, "toolName": self._name}
        if call.display_text and self.stream.since_6:
            head["title"] = self._title = call.display_text
        return head | self._outcome.executor()

    def follow(self, out: Out, before: Block, fields: Mapping[str, Any], /) -> bool:
        """Another input needs no correction: the complete input comes at the end."""
        if self.ended:
            return True
        if self._started and not _INPUT_FIELDS.isdisjoint(fields):
            sent, now = cast("ToolCall", before).arguments, self._call.arguments
            sent = sent if isinstance(sent, str) else ""
            sent = sent[:-1] if self._half else sent
            if isinstance(now, str) and now.startswith(sent):
                self._half = ""
                self.grow(out, now[len(sent) :])
            else:
                self._streams = isinstance(now, Mapping) and not sent
        self.begin(out)
        return True

    def send_again(self, out: Out, /) -> None:
        self._started, self._half, self._streams, self._available = False, "", True, False
        self._outcome.settled = False
        self.begin(out)
        super().send_again(out)

    def release_id(self) -> None:
        if self._id is not None:
            self.run.calls.free(self._id)

    def _close(self, out: Out, _cut: str | None, /) -> None:
        call = self._call
        if self._repeats and not self._started:
            return
        self._read_id(call)
        if self._id is None:
            self._name_outcome(self.run.calls.register(self, None))
        marks = marks_for(call, TYPE) if call.type == "invalid_tool_call" else marks_for(call)
        frame = {**self._head(call), "input": thaw(call.arguments), **self.run.marked(marks)}
        if call.status == "complete":
            self._available = True
            out.append({"type": "tool-input-available", **frame})
            self._send_title(out)
            if self.runs_at_provider:
                self.step.pending.append(self)
                self.run.sources.send_found(out, self.step, call.arguments)
            self._send_result(out)
            return
        self._outcome.settled = True
        frame["input"] = frame["input"] if frame["input"] is not None else ""
        out.append({"type": "tool-input-error", **frame, "errorText": call.error or CUT_OFF})

    def take_back(self, out: Out, /) -> None:
        """Send an error in place of the input, unless the call has a result or is still valid."""
        if self._available and not self._outcome.settled and self._call.type == "invalid_tool_call":
            self._close(out, None)

    def _drop(self, out: Out, /) -> None:
        self._outcome.settled = True
        if self._started:
            head = {"toolCallId": self._id, "toolName": self._name, **self._outcome.executor()}
            frame = {**head, "input": "", **self.run.marked({})}
            out.append({"type": "tool-input-error", **frame, "errorText": CUT_OFF})

    # The output.

    def update(self, out: Out) -> None:
        """Send the news of the tool: its progress, or its result."""
        call = self.fold.block
        if not isinstance(call, ToolCall) or call.call_id != self._call_id:
            return
        if self._started or self._available:
            self._send_title(out)
        self._send_result(out)

    def _send_title(self, out: Out) -> None:
        """Send the call's display text, unless the client has it as the title."""
        call = self._call
        if call.display_text is not None and call.display_text != self._title:
            self._title = call.display_text
            out.append(title_chunk(self._id, call.display_text, self.run.marks))

    def set_output(self, out: Out, output: ContentPart, place: int) -> bool:
        """Send the output of the provider's own tool; `False` if the call has another output, or failed."""
        if self._output is not None:
            return self._output[0] is output
        if self._outcome.settled:
            return False
        self._output = output, place
        self._send_result(out)
        return True

    def conclude(self, out: Out, *, is_last: bool) -> bool:
        """Tell the client that the provider has run the tool, where no output says so.

        Args:
            out: Where to append the frame.
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
            self._send_result(out)
        return True

    def _send_result(self, out: Out) -> None:
        """Send the result so far, once the input is complete."""
        if not self._available or self._outcome.settled:
            return
        if self._output is not None:
            self._outcome.settled = True
            self._send_provider_output(out, *self._output)
            return
        if self._has_none:
            self._outcome.settled = True
            self._outcome.send_output(out, {}, output=None)
            return
        self._outcome.tell(out, self._call.execution_status(), self._call.result)

    def _send_provider_output(self, out: Out, output: ContentPart, place: int) -> None:
        options = output.options
        content = options.get("output")
        marks = marks_for(output) | place_marks(self.place, place)
        if options.get("status") == "error" or options.get("is_error") is True:
            self._outcome.send_error(out, content, marks)
            return
        del marks[OPTIONS]
        if rest := {name: value for name, value in thaw(options).items() if name != "output"}:
            marks[OPTIONS] = rest
        self._outcome.send_output(out, marks, output=thaw(content))


class OutputPart(Part):
    """The output of the provider's own tool, which belongs to its call if that is known."""

    def _close(self, out: Out, cut: str | None, /) -> None:
        block = self.fold.block
        if cut is not None or not isinstance(block, ContentPart):
            return
        call = self.run.calls.provider_call(block.options.get("tool_call_id"))
        if call is None or not call.set_output(out, block, self.place):
            out.append(self.run.whole_block(marks_for(block, TYPE, TEXT)))
        self.run.sources.send_found(out, self.step, block.options.get("output"))


class CallIds:
    """The calls of a run by the ids that results name, and the ids that the client knows.

    Args:
        stream: The stream, which makes ids and knows which ids the client has.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._calls: dict[str, list[CallPart]] = {}

    def named(self, call_id: str) -> list[CallPart]:
        """The calls that a result with this id is for."""
        return self._calls.get(call_id, [])

    def provider_call(self, call_id: object) -> CallPart | None:
        """The call that an output of the provider's own tool is for."""
        for call in self.named(call_id) if isinstance(call_id, str) else ():
            if call.runs_at_provider:
                return call
        return None

    def register(self, call: CallPart, call_id: str | None) -> str:
        """The id of a call for the client: its own, unless another call has that."""
        wanted = call_id or f"call-{self._stream.new_id()}"
        self.add_name(call, wanted)
        found = wanted
        while found in self._stream.used_call_ids:
            found = f"{wanted}-{self._stream.new_id()}"
        self._stream.used_call_ids.add(found)
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
