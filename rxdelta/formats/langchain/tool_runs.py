"""The channel `tools`: what happens to the calls that run, beside the messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rxdelta.core import TERMINAL, Block, ToolCall, ToolResult, thaw
from rxdelta.core.events import ToolUpdate
from rxdelta.formats.langchain.frames import FrameWriter, LangChainFrame
from rxdelta.formats.langchain.marks import DISPLAY_TEXT, RESULT, SYNTHETIC
from rxdelta.formats.langchain.protocol_content import as_json

__all__ = ["ToolRuns"]

_CUT = "The stream ended before the tool did."


class ToolRuns:
    """Writes the frames of the calls of all messages. What it starts, it ends."""

    def __init__(self, frames: FrameWriter) -> None:
        self._frames = frames
        self._runs: dict[str, _Run] = {}  # by the call's id

    def note(self, block: Block, message: object) -> None:
        """Remember what a frame has to give of a call of this message when it runs."""
        if not isinstance(block, ToolCall) or block.call_id is None:
            return
        run = self._runs.setdefault(block.call_id, _Run())
        run.name = block.name or run.name
        if not block.open:
            run.arguments = block.arguments
        run.message = message

    def update(self, event: ToolUpdate) -> Iterator[LangChainFrame]:
        run, status = self._runs.get(event.call_id), event.execution_status
        ended = status in TERMINAL
        if run is None or run.ended or not (ended or status == "executing"):
            yield self._frames.custom(event)
        elif ended:
            if not run.started:
                yield self._started(event.call_id, run, **{SYNTHETIC: True})
            run.ended = True
            yield self._ended(event)
        elif not run.started:
            result = {} if event.result is None else {RESULT: event.result.to_dict()}
            yield self._started(event.call_id, run, **_display_text(event), **result)
        else:
            delta = run.more_output(event)
            if delta is None:
                yield self._frames.custom(event)
            else:
                yield self._frames.tool("tool-output-delta", event.call_id, delta=delta)

    def _started(self, call_id: str, run: _Run, **marks: Any) -> LangChainFrame:
        run.started = True
        given = {} if run.arguments is None else {"input": thaw(run.arguments)}
        return self._frames.tool("tool-started", call_id, tool_name=run.name, **given, **marks)

    def _ended(self, event: ToolUpdate) -> LangChainFrame:
        """The result's content is the output; a result that has more is added as a mark."""
        result = event.result
        marks = _display_text(event)
        content = None if result is None else thaw(result.content)
        failed = event.execution_status == "failed"
        if result is None:
            marks[RESULT] = None
        elif result != ToolResult(event.call_id, content, failed) or (
            failed and not isinstance(content, str)
        ):
            marks[RESULT] = result.to_dict()
        if failed:
            message = content if isinstance(content, str) else "" if content is None else as_json(content)
            return self._frames.tool("tool-error", event.call_id, message=message, **marks)
        return self._frames.tool("tool-finished", event.call_id, output=content, **marks)

    def close(self, message: object = None) -> Iterator[LangChainFrame]:
        """End the runs of this message, or all: no more events of them will come."""
        for call_id, run in self._runs.items():
            if run.started and not run.ended and message in (None, run.message):
                run.ended = True
                yield self._frames.tool("tool-error", call_id, message=_CUT, **{SYNTHETIC: True})


def _display_text(event: ToolUpdate) -> dict[str, Any]:
    return {} if event.display_text is None else {DISPLAY_TEXT: event.display_text}


class _Run:
    """A call and its run. The output is the text of its partial results so far."""

    __slots__ = ("arguments", "ended", "message", "name", "output", "started")

    def __init__(self) -> None:
        self.name = ""
        self.arguments: Any = None
        self.message: object = None
        self.started = False
        self.ended = False
        self.output = ""

    def more_output(self, event: ToolUpdate) -> str | None:
        """What a partial result appends to the output, if that is all that the event says."""
        result = event.result
        if result is None or event.display_text is not None or not isinstance(result.content, str):
            return None
        if result != ToolResult(event.call_id, result.content) or not result.content.startswith(self.output):
            return None
        delta = result.content[len(self.output) :]
        self.output = result.content
        return delta or None
