"""The way out of an operator that several may speak through: a source, a timer, somebody's button."""

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
    """Tells one observer everything in the order in which it was said, one thing at a time, and one end.

    What is said while the observer is being told something waits, and is told by whoever tells it now; nobody
    waits for another's observer. Where the observer raises, its caller gets that, and the rest goes out with
    what is said next. Under the lock nobody's code is called.
    """

    def __init__(
        self, observer: abc.ObserverBase[T], lock: AbstractContextManager[object] | None = None
    ) -> None:
        self._observer = observer
        self._lock: AbstractContextManager[object] = RLock() if lock is None else lock
        self._values: deque[T] = deque()
        self._end: Callable[[], None] | None = None
        self.emitting = False  # somebody is at it
        self.closed = False  # an end has been said, or nobody listens any more

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
        """The end, after these values. Whether it was the first, which is the only one that counts."""
        first = self.put_end(last, error)
        self.flush()
        return first

    def stop(self) -> None:
        """Nobody listens any more."""
        with self._lock:
            self.closed = True
            self._values.clear()
            self._end = None

    # In two steps, for one who has several observers and one lock.

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
        """Tell what has been put, unless somebody is at it."""
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
