"""The frames of the agent protocol: each event in its envelope, with its number, its namespace and the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

from rxdelta.core import Event, clean_text
from rxdelta.core.events import AttemptReset, Custom
from rxdelta.formats.langchain.marks import CUSTOM_NAME, IN_RUN, SEPARATOR

__all__ = ["FrameWriter", "LangChainFrame", "LangChainParams", "without_lane"]

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
    """Numbers and dates the frames of one stream, in one namespace.

    Args:
        now: The time, in seconds since 1970.
        namespace: The path of what the frames are about.
        numbers: Numbers the frames of all namespaces of the stream.
    """

    def __init__(self, now: Callable[[], float], namespace: Sequence[str], numbers: Iterator[int]) -> None:
        self._now = now
        self._namespace = tuple(map(clean_text, namespace))
        self._numbers = numbers
        self._in_run = False

    def of_run(self, run_id: str | None) -> FrameWriter:
        """Writes the frames of a run, whose namespace is within this one."""
        within = () if run_id is None else run_id.split(SEPARATOR)
        return FrameWriter(self._now, [*self._namespace, *within], self._numbers)

    def enter(self, run_id: str | None) -> None:
        """Go on with the frames of this run."""
        self._in_run = run_id is not None
        self._namespace = self.of_run(run_id)._namespace

    def frame(self, method: Method, data: dict[str, Any]) -> LangChainFrame:
        time = int(self._now() * 1000)
        params: LangChainParams = {"namespace": [*self._namespace], "timestamp": time, "data": data}
        return {"type": "event", "seq": next(self._numbers), "method": method, "params": params}

    def message(self, event: str, **data: Any) -> LangChainFrame:
        return self.frame("messages", {"event": event, **data})

    def tool(self, event: str, call_id: str, **data: Any) -> LangChainFrame:
        mark = {IN_RUN: True} if self._in_run else {}
        return self.frame("tools", {"event": event, "tool_call_id": call_id, **data, **mark})

    def application(self, event: Custom) -> LangChainFrame:
        """The application's own data, in the words of the protocol."""
        if event.name == CUSTOM_NAME:
            return self.custom(event)
        data = without_lane(event)
        del data["event"]
        mark = {} if event.run_id is None else {IN_RUN: True}
        return self.frame("custom", {"name": data.pop("name"), "payload": data.pop("data"), **data, **mark})

    def custom(self, event: Event) -> LangChainFrame:
        """One of our events, whole. Other readers skip it."""
        payload = without_lane(event)
        if isinstance(event, AttemptReset) and event.choice is not None:
            payload["choice"] = 0  # a stream of frames has one choice only; but this event may name none
        return self.frame("custom", {"name": CUSTOM_NAME, "payload": payload})


def without_lane(event: Event) -> dict[str, Any]:
    """The event's wire form, without the run and the choice: the namespace names the run, and there is one choice."""
    data = event.to_dict()
    data.pop("run_id", None)
    data.pop("choice", None)
    return data
