"""What is noted of one subscription of the pipeline: requests, tools, events, snapshots and ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import reactivex as rx
from reactivex import abc
from reactivex.disposable import Disposable

END = "|"


class Seen:
    """What passes one place of a pipeline in one subscription."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.ends: list[Any] = []
        self.is_disposed = False
        self.is_told_late = False
        """A value or an end came behind an end, or after the subscription was disposed."""

    def next(self, item: Any) -> None:
        self.is_told_late |= self.is_disposed or bool(self.ends)
        self.values.append(item)

    def end(self, how: Any) -> None:
        self.is_told_late |= self.is_disposed or bool(self.ends)
        self.ends.append(how)


class Lane:
    """One subscription: a reader that shares nothing has one of its own."""

    def __init__(self) -> None:
        self.requests = 0
        self.closed = 0
        self.ran: Counter[int] = Counter()
        """How often the tool of each call was called."""
        self.at_work = 0
        self.events = Seen()
        self.to_settle = self.settled = 0
        """How often `on_settled` was subscribed, and how often it was told the end."""


def watched(source: rx.Observable[Any], seen: Callable[[], Seen]) -> rx.Observable[Any]:
    """The same, noted for each subscription."""

    def subscribe(
        observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        mine = seen()

        def on_next(item: Any) -> None:
            mine.next(item)
            observer.on_next(item)

        def on_error(error: Exception) -> None:
            mine.end(error)
            observer.on_error(error)

        def on_completed() -> None:
            mine.end(END)
            observer.on_completed()

        inner = source.subscribe(on_next, on_error, on_completed, scheduler=scheduler)

        def dispose() -> None:
            inner.dispose()
            mine.is_disposed = True

        return Disposable(dispose)

    return rx.Observable(subscribe)
