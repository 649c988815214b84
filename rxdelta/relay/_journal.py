"""What waits until a publication's log has an event: the calls of tools."""

from __future__ import annotations

import logging
from threading import Lock
from typing import TYPE_CHECKING

from reactivex.disposable import Disposable

from rxdelta.core import quote
from rxdelta.core.events import ToolUpdate

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import abc

    from rxdelta.core import Event

__all__ = ["EventsToCome"]

_LATE_SECONDS = 10.0
_LATE = (
    "a tool waits because the update that says it is executing doesn't reach the stream %s: what stands between run_tools() "
    "and the relay has to pass it on"
)
_log = logging.getLogger("rxdelta")


class EventsToCome:
    """The `Journal` of one publication. Any thread may ask, come with an event, or end it.

    Only a `ToolUpdate` can be waited for. It may arrive as a copy that names another run (`with_run`), and later than it
    was emitted (`smooth`).

    Args:
        stream_id: For the log's readers.
        time: The clock of the warning about an update that doesn't arrive.
    """

    def __init__(self, stream_id: str, time: abc.SchedulerBase) -> None:
        self._stream_id = stream_id
        self._time = time
        self._lock = Lock()
        self._waiting: list[_Step] = []
        self._copies: dict[str, int] = {}  # that have arrived, by the id of the call
        self._ended = False

    def when_written(self, event: Event, step: Callable[[bool], object]) -> abc.DisposableBase:
        """See `Journal`."""
        waiting = _Step(event, step)
        with self._lock:
            ended = self._ended
            if not ended:
                self._waiting.append(waiting)
        if ended:
            step(False)
            return Disposable()

        def warn(*_: object) -> None:
            if waiting.number is None and waiting in self._waiting:
                _log.warning(_LATE, quote(self._stream_id))

        late = self._time.schedule_relative(_LATE_SECONDS, warn)

        def forget() -> None:
            late.dispose()
            with self._lock:
                if waiting in self._waiting:
                    self._waiting.remove(waiting)

        return Disposable(forget)

    def arrived(self, event: Event, number: int) -> None:
        """Note the number that an event has got in the log, before the store has written it."""
        if not self._waiting or not isinstance(event, ToolUpdate) or event.execution_status != "executing":
            return
        with self._lock:
            missing = [step for step in self._waiting if step.number is None]
            own = [step for step in missing if step.event is event]
            if not own:
                # Copies of calls of several runs can't be told apart, so each of these waits until all have come.
                call_id = event.call_id
                own = [step for step in missing if _call_of(step.event) == call_id]
                copies = self._copies[call_id] = self._copies.get(call_id, 0) + 1
                if copies < len(own):
                    return
                del self._copies[call_id]
            for step in own:
                step.number = number

    def written(self, newest: int) -> list[_Step]:
        """The steps that waited for the events up to this number."""
        if not self._waiting:
            return []
        with self._lock:
            done = [step for step in self._waiting if step.number is not None and step.number <= newest]
            self._waiting = [step for step in self._waiting if step not in done]
        return done

    def end(self) -> None:
        """Nothing more will be written."""
        with self._lock:
            self._ended = True
            waiting, self._waiting = self._waiting, []
        for step in waiting:
            step.take(False)


class _Step:
    __slots__ = ("event", "number", "take")

    def __init__(self, event: Event, take: Callable[[bool], object]) -> None:
        self.event = event
        self.take = take
        self.number: int | None = None  # the event's, as soon as it has arrived


def _call_of(event: Event) -> str | None:
    return event.call_id if isinstance(event, ToolUpdate) else None
