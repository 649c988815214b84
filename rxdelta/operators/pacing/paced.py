"""The base of the pacing operators: a timer, an end after the held values, and one emitting thread at a time."""

from __future__ import annotations

from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactivex.disposable import (
    CompositeDisposable,
    Disposable,
    SerialDisposable,
    SingleAssignmentDisposable,
)

from rxdelta.core import InvalidValueError
from rxdelta.core.events import EVENT_TYPES
from rxdelta.runtime import current_session, drop_error, errors_to_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

__all__ = ["Paced", "PacedLatest", "not_an_event"]

T = TypeVar("T")


class Paced(Generic[T]):
    """One subscription's state. Under the lock no foreign code runs except the scheduler's.

    Emissions are serialised for any threads of the source and the timer, and no caller waits for another caller's
    observer. If another thread is emitting, a caller leaves its value in the state and returns; the emitting thread
    finds it there.
    """

    _subscription: abc.DisposableBase

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        self._observer = observer
        self._lock = RLock()
        self._end: Callable[[], None] | None = None  # emitted after the held values
        self._emitting = False
        self._stopped = False
        self._timer = SerialDisposable()
        self._session = current_session.get()

    def connect(
        self, source: Observable[T], inherited: abc.SchedulerBase | None, owned: abc.DisposableBase
    ) -> abc.DisposableBase:
        upstream = SingleAssignmentDisposable()
        self._subscription = CompositeDisposable(Disposable(self._stop), self._timer, upstream, owned)
        try:
            upstream.disposable = source.subscribe(
                self.on_next, self.on_error, self.on_completed, scheduler=inherited
            )
        except BaseException:  # from a synchronous source: nobody gets the disposable
            self._subscription.dispose()
            raise
        return self._subscription

    def on_next(self, value: T, /) -> None:
        raise NotImplementedError

    def on_error(self, error: Exception) -> None:
        self._finish(partial(self._observer.on_error, error))

    def on_completed(self) -> None:
        self._finish(self._observer.on_completed)

    def _finish(self, end: Callable[[], None]) -> None:
        with self._lock:
            self._end = self._end or end
        self._emit()

    def _stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._clear()

    def _clear(self) -> None:
        """Drop the held values: the subscription was disposed."""

    def _take_due(self) -> tuple[T] | tuple[()]:
        """Take the next due value, or nothing. Called under the lock."""
        raise NotImplementedError

    def _start_timer(self, time: abc.SchedulerBase, seconds: float) -> None:
        timer = SingleAssignmentDisposable()
        self._timer.disposable = timer
        timer.disposable = time.schedule_relative(seconds, self._fire)

    def _fire(self, *_: Any) -> None:
        """The timer's action."""
        with self._lock:
            self._on_timer()
        with errors_to_session(self._subscription, self._session):
            self._emit()

    def _on_timer(self) -> None:
        """Mark the values that the timer has made due. Called under the lock."""

    def _emit(self) -> None:
        """Emit all due values, including those that other threads leave meanwhile. One thread emits at a time."""
        with self._lock:
            if self._emitting:
                return
            self._emitting = True
        try:
            while (notify := self._next_call()) is not None:
                notify()
        except BaseException:
            self._emitting = False
            raise

    def _next_call(self) -> Callable[[], None] | None:
        """Return the next notification; if there is none, let the next caller emit."""
        with self._lock:
            if not self._stopped:
                due = self._take_due()
                if due:
                    return partial(self._observer.on_next, *due)
                if self._end is not None and self._is_empty():
                    self._stopped = True
                    return self._end
            self._emitting = False
            return None

    def _is_empty(self) -> bool:
        """Whether all values before the end have been emitted."""
        return True


class PacedLatest(Paced[T]):
    """A pacing operator that holds the newest value and drops the older."""

    _operator: str  # for messages

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        super().__init__(observer)
        self._held: tuple[T] | tuple[()] = ()

    def on_next(self, value: T, /) -> None:
        with self._lock:
            if self._stopped or self._end is not None:
                return
            wrong = drop_error(self._operator, self._held[0]) if self._held else None
            if wrong is not None:
                self._end = partial(self._observer.on_error, wrong)
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


def not_an_event(value: object) -> InvalidValueError | None:
    """Return the error for a value that is no event, or `None` for an event."""
    if type(value) in EVENT_TYPES:
        return None
    wanted = (
        "must be an event; chunks go through decode() first, and snapshots are paced by throttle_latest()"
    )
    return InvalidValueError.of([("event", value, wanted)])
