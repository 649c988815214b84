"""What the pacing operators share: a timer, an end that comes last, and one thread that emits at a time."""

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
    """One subscription's state. Under the lock nobody's code is called but the scheduler's.

    What goes out is serialised, whatever threads the source and the timer are on, and no caller waits for another's
    observer: who finds it busy leaves what there is to emit, and the one that emits will see it.
    """

    _subscription: abc.DisposableBase

    def __init__(self, observer: abc.ObserverBase[T]) -> None:
        self._observer = observer
        self._lock = RLock()
        self._end: Callable[[], None] | None = None  # comes after what is held
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
        except BaseException:  # the observer's, from a synchronous source: nobody gets anything to dispose
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
        """Forget what is held: the subscription was disposed."""

    def _take_due(self) -> tuple[T] | tuple[()]:
        """Take the next value that is due, if there is one. Called under the lock."""
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
        """What the passing of time makes due, under the lock."""

    def _emit(self) -> None:
        """Emit what is due. One thread does it at a time, and finds what others have left meanwhile."""
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
        """The next thing to do; where there is none, whoever comes next may look."""
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
        """Whether nothing stands before the end any more."""
        return True


class PacedLatest(Paced[T]):
    """One that holds the newest value and lets go of the older."""

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
        """Hold it, under the lock. Whether it may be due at once."""
        self._held = (value,)
        return True

    def _take_due(self) -> tuple[T] | tuple[()]:
        held, self._held = self._held, ()
        return held

    def _clear(self) -> None:
        self._held = ()


def not_an_event(value: object) -> InvalidValueError | None:
    """What is wrong with a value where events are paced."""
    if type(value) in EVENT_TYPES:
        return None
    wanted = (
        "must be an event; chunks go through decode() first, and snapshots are paced by throttle_latest()"
    )
    return InvalidValueError.of([("event", value, wanted)])
