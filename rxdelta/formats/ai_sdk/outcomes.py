"""What the client has of a call's outcome: a person's decision, the tool's progress, and its result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rxdelta.core import TERMINAL, Approval, decision_of, thaw
from rxdelta.formats.ai_sdk.marks import DISPLAY_TEXT, METADATA, TOOL_UPDATE, marked
from rxdelta.formats.ai_sdk.tables import TOOL_FAILED
from rxdelta.formats.result_metadata import shown_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rxdelta.core import ToolResult
    from rxdelta.formats.ai_sdk.parts import Out
    from rxdelta.formats.ai_sdk.stream import Stream

__all__ = ["Outcome", "title_chunk"]


class Outcome:
    """What the client has of a call's outcome.

    Args:
        stream: The stream, which knows what the client can read, and may.
        call_id: The client's id of the call, once it is known.
        approval_id: The id of its approval, likewise; see `approval_ids`.
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

    def tell(self, out: Out, status: str | None, result: ToolResult | None) -> None:
        """Send the news of the tool, or of the person who decides whether it runs."""
        if self.settled:
            return
        content, marks = result and result.content, self._marks(result)
        decision = decision_of(result)
        if status == "awaiting_approval":
            self._ask(out)
        elif status in TERMINAL:
            self.settled = True
            if decision is not None:
                self._ask(out)
            self._respond(out, decision or Approval(True))
            if decision is not None and not decision.approved:
                self._deny(out, content, marks)
            elif status == "failed" or (result is not None and result.is_error):
                self.send_error(out, content, marks)
            elif decision is None:  # the provider runs an allowed call of its own at the next request
                self.send_output(out, marks, output=thaw(content))
        else:
            if status == "executing":
                self._respond(out, Approval(True))
            if result is not None and result is not self._result:
                self._result = result
                self.send_output(out, marks, output=thaw(content), preliminary=True)

    def _ask(self, out: Out) -> None:
        if self._stream.since_6 and not self.asked:
            self.asked = True
            named = {"approvalId": self.approval_id, "toolCallId": self.call_id}
            out.append({"type": "tool-approval-request", **named})

    def _respond(self, out: Out, decision: Approval) -> None:
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
        out.append({**frame, **reason, **self.executor()})

    def _deny(self, out: Out, content: Any, marks: dict[str, Any]) -> None:
        if self._stream.since_6:
            out.append({"type": "tool-output-denied", "toolCallId": self.call_id})
        else:
            self.send_error(out, content, marks)

    def _marks(self, result: ToolResult | None) -> dict[str, Any]:
        """The marks of a result. Without any, the client would keep those of the result before."""
        if result is None or not (result.metadata or (self._result and self._result.metadata)):
            return {}
        return {METADATA: shown_metadata(result.metadata, reasoning=self._stream.shown.reasoning)}

    def send_output(self, out: Out, marks: dict[str, Any], **fields: Any) -> None:
        frame = {"type": "tool-output-available", "toolCallId": self.call_id, **fields}
        out.append(frame | self._about(marks))

    def send_error(self, out: Out, content: Any, marks: dict[str, Any]) -> None:
        error = {"errorText": _as_text(content) or TOOL_FAILED}
        frame = {"type": "tool-output-error", "toolCallId": self.call_id, **error}
        out.append(frame | self._about(marks))

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
