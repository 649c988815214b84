"""The timer of an operator of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reactivex.disposable import Disposable, SerialDisposable, SingleAssignmentDisposable

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import abc

    from rxdelta.runtime.sink import Sink

__all__ = ["Timer"]


class Timer:
    """A timer of one subscription. Its steps are turns; to start it again stops it first."""

    def __init__(self, sink: Sink[Any], time: abc.SchedulerBase) -> None:
        self._sink = sink
        self._time = time
        self._current = SerialDisposable()
        sink.own(self._current)

    def start(self, seconds: float, step: Callable[..., object], *arguments: Any) -> None:
        """Run `step(*arguments)` as a turn after these seconds."""

        def fire(*_: object) -> None:
            self._sink.run(step, *arguments)

        timer = SingleAssignmentDisposable()
        self._current.disposable = timer
        timer.disposable = self._time.schedule_relative(seconds, fire)

    def stop(self) -> None:
        self._current.disposable = Disposable()
