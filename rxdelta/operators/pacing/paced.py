"""The base of the pacing operators: a timer, an end after the held values, and a state that changes during a notification."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Generic, TypeVar

from reactivex.disposable import Disposable

from rxdelta.core import InvalidValueError
from rxdelta.core.events import EVENT_TYPES
from rxdelta.runtime import KeyOf, Newest, Sink, lift, refuse_pieces

if TYPE_CHECKING:
    from reactivex import Observable, abc


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


def newest_only(
    name: str, begin: Callable[[Sink[T]], PacedLatest[T]], key: KeyOf | None
) -> Callable[[Observable[T]], Observable[T]]:
    """An operator that keeps the newest value of each key."""
    if key is not None and not callable(key):
        raise InvalidValueError.of([("key", key, "must be a function of a value")])
    operator = lift(name, begin, serial=False, emits="newest")

    def apply(source: Observable[T]) -> Observable[T]:
        if key is None:
            refuse_pieces(source, name)
        return operator(source)

    return apply


class PacedLatest(Paced[T]):
    """A pacing operator that holds the newest value of each key and drops the older.

    While the reader is busy, it holds them longer: in the reader's queue they would wait, too, and couldn't be replaced.
    """

    def __init__(self, sink: Sink[T], time: abc.SchedulerBase, key: KeyOf | None) -> None:
        super().__init__(sink, time)
        self._held: Newest[T] = Newest(sink.name, key)
        self._going = 0  # of the held values, those that are emitted together
        self._idleness = None if sink.session is None else sink.session.idleness
        self._has_asked = False  # for a call when the reader is idle

    def on_next(self, value: T, /) -> None:
        with self._lock:
            if self._end is not None:
                return
            try:
                may_be_due = self._hold(value)
            except Exception as error:
                self._end = partial(self._sink.on_error, error)
                may_be_due = True
            if not may_be_due:
                return
        self._emit()

    def _hold(self, value: T) -> bool:
        """Hold the value, and return whether it may be due at once. Called under the lock."""
        self._held.append(value)
        return True

    def _may_go(self) -> bool:
        """Whether the held values are due, as far as time decides. Called under the lock."""
        return True

    def _has_gone(self) -> None:
        """The held values are emitted now. Called under the lock."""

    def _take_due(self) -> tuple[T] | tuple[()]:
        if not self._held:
            return ()
        if self._end is None and not self._going:
            if not self._may_go() or self._reader_is_busy():
                return ()
            self._has_gone()
            self._going = len(self._held)
        self._going -= 1
        return (self._held.popleft(),)

    def _reader_is_busy(self) -> bool:
        idleness = self._idleness
        if idleness is None or idleness.is_idle():
            return False
        if not self._has_asked:
            self._has_asked = True
            idleness.when_idle(partial(self._sink.run, self._reader_is_idle))
        return not idleness.is_idle()

    def _reader_is_idle(self) -> None:
        with self._lock:
            self._has_asked = False
        self._emit()

    def _clear(self) -> None:
        self._held.clear()
