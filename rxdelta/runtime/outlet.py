"""Serialised notifications for an operator with several emitters, such as a source, a timer and a stop signal.

Rx's grammar allows one notification at a time, and one end. An `Outlet` queues the values of all threads under a
lock. The thread that finds the observer idle delivers the queue; the others leave their values and return. The lock
is never held during a notification, so observers can't deadlock.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from reactivex import abc

__all__ = ["Outlet"]

T = TypeVar("T")


class Outlet(Generic[T]):
    """Notifies one observer of all values in their order, one at a time, and of one end.

    Notifications that arrive during a notification are queued. The thread that is already notifying delivers them,
    so no caller waits for another caller's observer. If the observer raises, the delivering caller gets the
    exception, and the next notification delivers the rest of the queue. No foreign code runs under the lock.
    """

    def __init__(
        self, observer: abc.ObserverBase[T], lock: AbstractContextManager[object] | None = None
    ) -> None:
        self._observer = observer
        self._lock: AbstractContextManager[object] = RLock() if lock is None else lock
        self._values: deque[T] = deque()
        self._end: Callable[[], None] | None = None
        self.emitting = False  # a thread is delivering
        self.closed = False  # an end has been queued, or the subscription was disposed

    def on_next(self, value: T) -> None:
        with self._lock:
            if self.closed:
                return
            self._values.append(value)
            if self.emitting:
                return
            self.emitting = True
        self._drain()

    def on_error(self, error: Exception) -> None:
        self.finish(error=error)

    def on_completed(self) -> None:
        self.finish()

    def finish(self, *last: T, error: Exception | None = None) -> bool:
        """Emit these values and the end. Return whether this end was the first; any other is ignored."""
        first = self.put_end(last, error)
        self.flush()
        return first

    def stop(self) -> None:
        """Drop the queue and ignore all that follows: the subscription was disposed."""
        with self._lock:
            self.closed = True
            self._values.clear()
            self._end = None

    # Queueing and delivering as two steps: an owner of several outlets queues under one lock, then flushes each.

    def put(self, values: Iterable[T]) -> None:
        with self._lock:
            if not self.closed:
                self._values.extend(values)

    def put_end(self, last: Iterable[T] = (), error: Exception | None = None) -> bool:
        with self._lock:
            if self.closed:
                return False
            self.closed = True
            self._values.extend(last)
            observer = self._observer
            self._end = observer.on_completed if error is None else partial(observer.on_error, error)
            return True

    def flush(self) -> None:
        """Deliver the queue, unless another call is delivering."""
        with self._lock:
            if self.emitting:
                return
            self.emitting = True
        self._drain()

    def _drain(self) -> None:
        on_next, values = self._observer.on_next, self._values
        try:
            while True:
                with self._lock:
                    if not values:
                        end, self._end = self._end, None
                        if end is None:
                            self.emitting = False
                            return
                        break
                    value = values.popleft()
                on_next(value)
            end()
        except BaseException:
            self.emitting = False
            raise
        self.emitting = False
