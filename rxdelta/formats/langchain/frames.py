"""The frames of the agent protocol: each event in its envelope, with its number, its namespace and the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from rxdelta.core import Event, clean_text
from rxdelta.core.events import AttemptReset
from rxdelta.formats.langchain.marks import CUSTOM_NAME

__all__ = ["FrameWriter", "LangChainFrame", "LangChainParams"]

Method: TypeAlias = Literal["messages", "tools", "custom"]


class LangChainParams(TypedDict):
    """What a frame is about, and when it was written, in milliseconds since 1970."""

    namespace: list[str]
    timestamp: int
    data: dict[str, Any]


class LangChainFrame(TypedDict):
    """One event of the protocol in its envelope."""

    type: Literal["event"]
    seq: int
    method: Method
    params: LangChainParams


class FrameWriter:
    """Numbers and dates the frames of one stream."""

    def __init__(self, now: Callable[[], float], namespace: Sequence[str], first_seq: int) -> None:
        self._now = now
        self._namespace = tuple(map(clean_text, namespace))
        self._seq = first_seq

    def frame(self, method: Method, data: dict[str, Any]) -> LangChainFrame:
        seq, self._seq = self._seq, self._seq + 1
        time = int(self._now() * 1000)
        params: LangChainParams = {"namespace": [*self._namespace], "timestamp": time, "data": data}
        return {"type": "event", "seq": seq, "method": method, "params": params}

    def message(self, event: str, **data: Any) -> LangChainFrame:
        return self.frame("messages", {"event": event, **data})

    def tool(self, event: str, call_id: str, **data: Any) -> LangChainFrame:
        return self.frame("tools", {"event": event, "tool_call_id": call_id, **data})

    def custom(self, event: Event) -> LangChainFrame:
        """One of our events, whole. Other readers skip it."""
        payload = event.to_dict()
        if payload.pop("choice", None) is not None and isinstance(event, AttemptReset):
            payload["choice"] = 0  # a stream of frames has one choice only; but this event may name none
        return self.frame("custom", {"name": CUSTOM_NAME, "payload": payload})
