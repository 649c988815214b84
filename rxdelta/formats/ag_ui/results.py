"""What the client gets of a tool that runs: its progress as CUSTOM events, then its result."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from rxdelta.core import TERMINAL, ToolCall, ToolResult, thaw
from rxdelta.core.events import ToolUpdate
from rxdelta.formats.ag_ui.marks import IS_ERROR, JSON, METADATA, TOOL_UPDATE, marked
from rxdelta.formats.result_metadata import shown_metadata

if TYPE_CHECKING:
    from collections.abc import Callable

    from ag_ui.core import BaseEvent

    from rxdelta.formats.ag_ui.run import Run

__all__ = ["Answer", "ToolNews", "answer_of", "result_event", "result_message"]


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
    """What the client has of a tool's progress.

    Args:
        run: The AG-UI run.
        send: Sends a frame.

    Attributes:
        settled: Whether the tool has completed or failed.
    """

    def __init__(self, run: Run, send: Callable[[BaseEvent], None]) -> None:
        self._run = run
        self._send = send
        self._told: tuple[object, str | None, ToolResult | None] = (None, None, None)
        self.settled = False

    def is_told(self, call: ToolCall) -> bool:
        """Whether the client has all that the call tells of its tool."""
        return self.settled or _news_of(call) == self._told

    def tell(self, own_id: str, call: ToolCall) -> Answer | None:
        """Send the progress.

        Returns:
            The answer of the call, once its tool has completed or failed.
        """
        display_text_before = self._told[1]
        self._told = known, display_text, result = _news_of(call)
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
