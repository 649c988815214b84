"""The steps of an interaction by their places."""

from __future__ import annotations

from collections.abc import Mapping

from rxdelta.formats.gemini_interactions.content import Content, Output, Thought
from rxdelta.formats.gemini_interactions.interaction import Interaction
from rxdelta.formats.gemini_interactions.reading import READ, Json
from rxdelta.formats.gemini_interactions.step import ClientStep, Step
from rxdelta.formats.gemini_interactions.tables import MEDIA
from rxdelta.formats.gemini_interactions.tools import Call, Result, ServerCall

__all__ = ["Steps"]


class Steps:
    """The newest step at each index, and the call whose finish waits for the next step.

    Attributes:
        at: The steps by index.
        held: A call without arguments that has stopped. What follows shows whether it was cut off.
    """

    def __init__(self, interaction: Interaction) -> None:
        self.at: dict[int, Step] = {}
        self.held: Step | None = None
        self._interaction = interaction
        self._newest: Step | None = None

    def index_of(self, chunk: Json) -> int:
        """The index in a chunk. Without one, as chunks once were, it belongs to the newest step."""
        index = chunk.get("index")
        if index is None:
            return 0 if self._newest is None else self._newest.index
        return READ.index(index, "index")

    def begin(self, index: int, kind: str, fields: Json, path: str) -> Step:
        self.release()
        before = self.at.get(index)
        if before is not None:
            before.stop()
        step = self.at[index] = self._newest = _class_of(kind)(self._interaction, index, kind, fields)
        step.begin(fields, path)
        return step

    def for_delta(self, index: int, kind: str) -> Step | None:
        """The step that takes a delta of this type. If its start was lost, content or a thought begins it."""
        step = self.at.get(index)
        if step is None or step.stopped:
            if step is not None and step is self.held and kind in _CALL_DELTAS:
                self.held, step.stopped = None, False
            elif isinstance(step, Call) and kind in _CALL_DELTAS:
                pass
            elif kind in _BEGUN_BY:
                step = self.begin(index, _BEGUN_BY[kind], {}, "step")
            else:
                return None
        self.release()
        return step

    def stop(self, index: int) -> None:
        step = self.at.get(index)
        if step is None or step.stopped:
            return
        if step.is_doubtful():
            self.release()
            self.held, step.stopped = step, True
        else:
            step.stop()

    def release(self, cut: str | None = None) -> None:
        """Finish the held call. `cut` is why it may be cut off."""
        held, self.held = self.held, None
        if held is not None:
            held.stopped = False
            held.stop(cut)

    def finish(self, cut: str | None) -> None:
        self.release(cut)
        for step in self.at.values():
            step.stop(cut)

    def flush(self) -> None:
        for step in self.at.values():
            if step.writes is not None:
                step.flush()

    def clear(self) -> None:
        self.at.clear()
        self.held = self._newest = None


def _class_of(kind: str) -> type[Step]:
    known = _STEPS.get(kind)
    if known is not None:
        return known
    if kind.endswith("_call"):
        return ServerCall
    return Result if kind.endswith("_result") else Step


_STEPS: Mapping[str, type[Step]] = {
    "thought": Thought,
    "model_output": Output,
    "function_call": Call,
    "mcp_server_tool_call": ServerCall,
    "user_input": ClientStep,
    "function_result": ClientStep,
    "text": Content,
    **dict.fromkeys(MEDIA, Content),
}
_CALL_DELTAS = ("arguments_delta", "function_call")
_BEGUN_BY = {
    "text": "model_output",
    "text_annotation_delta": "model_output",
    **dict.fromkeys(MEDIA, "model_output"),
    "thought_summary": "thought",
    "thought_signature": "thought",
}
