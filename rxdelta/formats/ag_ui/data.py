"""The application's own data (`Custom`) in a run: CUSTOM events, and the protocol's own events for a state and for steps.

AG-UI has events of its own for what some applications say. A `Custom` with the name of one of these is that event, and
its data is the event's one field. CUSTOM is sent instead where the protocol wouldn't allow the event, which ends the run
in a client: of data in another form, a step that is open already, the end of a step that isn't.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rxdelta.core import free_name, thaw
from rxdelta.core.events import Custom
from rxdelta.formats.ag_ui.marks import (
    DATA_EVENTS,
    ID,
    RUN,
    SOURCES_EVENT,
    SYNTHETIC,
    TOOL_UPDATE,
    TRANSIENT,
    marked,
    marks_of,
)
from rxdelta.formats.decoding import kept
from rxdelta.formats.front_ends import OwnNames

if TYPE_CHECKING:
    from rxdelta.formats.ag_ui.run import Lane, Run


_TURN: Final = "model-turn"

_names: Final = OwnNames([RUN, TOOL_UPDATE, SOURCES_EVENT])


class ApplicationData:
    """The application's own data in a run.

    Args:
        run: The AG-UI run.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._steps: dict[tuple[str | None, str], Lane] = {}  # by the sub-agent and the step's name
        self._turns: set[tuple[str | None, str]] = set()  # the steps that are a model's turns
        self._held: deque[tuple[Lane, Custom]] = deque()

    def say(self, lane: Lane, event: Custom) -> None:
        """Send the data, or hold them until the call has ended that nothing may interrupt."""
        self._held.append((lane, event))
        self.release()

    def release(self) -> None:
        """Send what was held back, if nothing prevents it any more."""
        while self._held and self._run.floor.call is None:
            lane, event = self._held.popleft()
            lane.send(self._event(lane, event))

    def turn_name(self, lane: Lane) -> str:
        """The name of the step that a model's turn is. The application has no open step of this name, and can't open one."""
        owner = lane.subagent
        wanted = f"{_TURN}-{len(self._turns) + 1}"
        name = free_name(wanted, lambda name: self._is_taken((owner, name)))
        self._turns.add((owner, name))
        return name

    def _is_taken(self, step: tuple[str | None, str]) -> bool:
        return step in self._steps or step in self._turns

    def close(self) -> None:
        """The run ends: finish the steps that are open."""
        for (_, name), lane in self._steps.items():
            lane.send(self._run.ag.StepFinishedEvent(step_name=name, metadata=marked({SYNTHETIC: True})))

    def _event(self, lane: Lane, event: Custom) -> Any:
        ag, data = self._run.ag, thaw(event.data)
        known = {ID: event.id, TRANSIENT: event.transient or None}
        metadata = marked({name: value for name, value in known.items() if value is not None})
        step = (lane.subagent, data) if isinstance(data, str) else None
        try:
            if event.name == "STATE_SNAPSHOT":
                return ag.StateSnapshotEvent(snapshot=data, metadata=metadata)
            if event.name == "STATE_DELTA":
                return ag.StateDeltaEvent(delta=data, metadata=metadata)
        except ValueError:  # no JSON patch
            pass
        if event.name == "STEP_STARTED" and step is not None and not self._is_taken(step):
            self._steps[step] = lane
            return ag.StepStartedEvent(step_name=data, metadata=metadata)
        if event.name == "STEP_FINISHED" and step in self._steps:
            del self._steps[step]
            return ag.StepFinishedEvent(step_name=data, metadata=metadata)
        return ag.CustomEvent(name=_names.write(event.name), value=data, metadata=metadata)


def read_data(event: Mapping[str, Any], kind: str) -> Custom | None:
    """The `Custom` of an event of such a kind; `None` if it has no name, or if it has something else than data."""
    given = event.get("name") if kind == "CUSTOM" else str.__str__(kind)
    name = _names.read(given) if isinstance(given, str) else None
    if not name or (DATA_EVENTS[kind] not in event and not _FIELDS.issuperset(event)):
        return None
    marks, data = marks_of(event), kept({"": event.get(DATA_EVENTS[kind])})[""]
    own_id = marks.get(ID)
    return Custom(name, data, own_id if isinstance(own_id, str) else None, marks.get(TRANSIENT) is True)


_FIELDS = frozenset(["type", "name", "metadata", "timestamp", "rawEvent", "subagentRunId", "_event"])
