"""The base of the pacing operators: a timer, an end after the held values, and a state that changes during a notification."""

from __future__ import annotations

from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Generic, TypeVar

from reactivex.disposable import Disposable

from rxdelta.core import InvalidValueError
from rxdelta.core.events import EVENT_TYPES
from rxdelta.runtime import drop_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import abc

    from rxdelta.runtime import Sink

__all__ = ["Paced", "PacedLatest"]

T = TypeVar("T")


class Paced(Generic[T]):
    """One subscription's state, which its own lock guards, so that a value counts although the observer is busy.

    Under the lock no foreign code runs except the scheduler's. Emissions are turns: if another thread is emitting, a
    caller leaves its value in the state and returns; the emitting thread finds it there.
    """

    def __init__(self, sink: Sink[T], time: abc.SchedulerBase) -> None:
        self._sink = sink
        self._time = time
        self._timer = sink.timer(time)
        self._lock = RLock()
        self._end: Callable[[], None] | None = None  # emitted after the held values
        self._emitting = False  # a turn emits, or has been asked for
        sink.own(Disposable(self._stop))

    def on_error(self, error: Exception) -> None:
        self._finish(partial(self._sink.on_error, error))

    def on_completed(self) -> None:
        self._finish(self._sink.on_completed)

    def _finish(self, end: Callable[[], None]) -> None:
        with self._lock:
            self._end = self._end or end
        self._emit()

    def _refuse(self, value: object) -> InvalidValueError | None:
        """Return the error for a value that is no event, or `None` for an event."""
        return None if type(value) in EVENT_TYPES else self._sink.refusal(value)

    def _stop(self) -> None:
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        """Drop the held values: the subscription was disposed."""

    def _take_due(self) -> tuple[T] | tuple[()]:
        """Take the next due value, or nothing. Called under the lock."""
        raise NotImplementedError

    def _start_timer(self, seconds: float) -> None:
        self._timer.start(seconds, self._fire)

    def _fire(self) -> None:
        """The timer's action."""
        with self._lock:
            self._on_timer()
        self._emit()

    def _on_timer(self) -> None:
        """Mark the values that the timer has made due. Called under the lock."""

    def _emit(self) -> None:
        """Emit all due values, including those that other threads leave meanwhile."""
        with self._lock:
            if self._emitting:
                return
            self._emitting = True
        self._take_turn()

    def _take_turn(self) -> None:
        self._sink.turn(self._emit_due)

    def _emit_due(self) -> None:
        while (notify := self._next_call()) is not None:
            notify()

    def _next_call(self) -> Callable[[], None] | None:
        """Return the next notification; if there is none, let the next caller emit."""
        with self._lock:
            if not self._sink.closed:
                due = self._take_due()
                if due:
                    return partial(self._sink.on_next, *due)
                if self._end is not None and self._is_empty():
                    return self._end
            self._emitting = False
            return None

    def _is_empty(self) -> bool:
        """Whether all values before the end have been emitted."""
        return True


class PacedLatest(Paced[T]):
    """A pacing operator that holds the newest value and drops the older."""

    def __init__(self, sink: Sink[T], time: abc.SchedulerBase) -> None:
        super().__init__(sink, time)
        self._held: tuple[T] | tuple[()] = ()

    def on_next(self, value: T, /) -> None:
        with self._lock:
            if self._end is not None:
                return
            wrong = drop_error(self._sink.name, self._held[0]) if self._held else None
            if wrong is not None:
                self._end = partial(self._sink.on_error, wrong)
            elif not self._hold(value):
                return
        self._emit()

    def _hold(self, value: T) -> bool:
        """Hold the value, and return whether it may be due at once. Called under the lock."""
        self._held = (value,)
        return True

    def _take_due(self) -> tuple[T] | tuple[()]:
        held, self._held = self._held, ()
        return held

    def _clear(self) -> None:
        self._held = ()
