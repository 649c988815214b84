"""The base of `tap_metrics` and `tap_otel`: a listener for a stream that passes unchanged."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactivex import Observable, abc
from reactivex.disposable import (
    CompositeDisposable,
    Disposable,
    SerialDisposable,
    SingleAssignmentDisposable,
)

from rxdelta.operators.watching.metrics import Meter, StreamMetrics
from rxdelta.operators.watching.on_settled import StreamOutcome
from rxdelta.operators.watching.reply_so_far import ReplySoFar
from rxdelta.runtime import Outlet, clock, report

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.core import Snapshot

__all__ = ["Listener", "tap"]

T = TypeVar("T")


class Listener:
    """The listener of one subscription. Its exceptions are reported, and the stream goes on."""

    def subscribing(self) -> AbstractContextManager[object]:
        """A context manager around the subscription of the source."""
        return nullcontext()

    def first(self, seconds: float) -> None:
        """Called for the first chunk."""

    def gap(self, seconds: float) -> None:
        """Called for each further chunk."""

    def event(self, value: Any, reply: Snapshot | None) -> None:
        """Called for each value."""

    def progress(self, metrics: StreamMetrics) -> None:
        """Called at intervals while the stream goes on."""

    def settled(self, metrics: StreamMetrics, reply: Snapshot | None) -> None:
        """Called once, at the stream's end."""


def tap(
    name: str,
    listener: Callable[[], Listener],
    scheduler: abc.SchedulerBase | None,
    choice: int,
    *,
    every: float | None = None,
    through: Callable[[Observable[T]], Observable[T]] | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """The operator."""

    def apply(source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: abc.ObserverBase[T], inherited: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            time, owned = clock(scheduler, inherited)
            tapped = _Tap(observer, name, listener(), time, choice)
            everything = CompositeDisposable(
                tapped.upstream, Disposable(tapped.disposed), tapped.timer, owned
            )
            if every is not None:
                tapped.report_every(every)
            tapped.connect(source, through, inherited)
            return everything

        return Observable(subscribe)

    return apply


class _Tap(Generic[T]):
    """One subscription's state."""

    def __init__(
        self,
        observer: abc.ObserverBase[T],
        name: str,
        listener: Listener,
        time: abc.SchedulerBase,
        choice: int,
    ) -> None:
        self._observer = observer
        self._name = name
        self._listener = listener
        self._time = time
        self._meter = Meter(lambda: time.now.timestamp())
        self._reply = ReplySoFar(name, choice)
        self._outlet: Outlet[StreamMetrics] = Outlet(_MetricsObserver(self))
        self._lock = Lock()
        self._settled = False
        self.upstream = SingleAssignmentDisposable()
        self.timer = SerialDisposable()

    def connect(
        self,
        source: Observable[T],
        through: Callable[[Observable[T]], Observable[T]] | None,
        scheduler: abc.SchedulerBase | None,
    ) -> None:
        on_next: Callable[[T], None] = self.on_next
        if through is not None:
            self._meter.expect_lag()
            source, on_next = through(self._measured(source)), self.on_paced
        with self._listener.subscribing():
            self.upstream.disposable = source.subscribe(
                on_next, self.on_error, self.on_completed, scheduler=scheduler
            )

    def _measured(self, source: Observable[T]) -> Observable[T]:
        def subscribe(
            observer: abc.ObserverBase[T], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            def on_next(value: T) -> None:
                self._note(value)
                observer.on_next(value)

            return source.subscribe(on_next, observer.on_error, observer.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    def on_next(self, value: T) -> None:
        self._note(value)
        self._pass_on(value)

    def on_paced(self, value: T) -> None:
        self._meter.released(value)
        self._pass_on(value)

    def on_error(self, error: Exception) -> None:
        self._settle(StreamOutcome("failed", error))
        self._observer.on_error(error)

    def on_completed(self) -> None:
        self._settle(StreamOutcome("completed"))
        self._observer.on_completed()

    def disposed(self) -> None:
        self._settle(StreamOutcome("disposed"))

    def report_every(self, seconds: float) -> None:
        def report_metrics(*_: Any) -> None:
            if not self._settled:
                self._outlet.on_next(self._metrics(None))
                start()

        def start() -> None:
            timer = SingleAssignmentDisposable()
            self.timer.disposable = timer
            timer.disposable = self._time.schedule_relative(seconds, report_metrics)

        start()

    def notify(self, metrics: StreamMetrics) -> None:
        try:
            if metrics.outcome is None:
                self._listener.progress(metrics)
            else:
                self._listener.settled(metrics, self._reply.snapshot)
        except Exception as error:
            self._report_failure(error)

    def _note(self, value: T) -> None:
        self._reply.note(value)
        first, gap = self._meter.arrived(value)
        try:
            if first is not None:
                self._listener.first(first)
            if gap is not None:
                self._listener.gap(gap)
            self._listener.event(value, self._reply.snapshot)
        except Exception as error:
            self._report_failure(error)

    def _pass_on(self, value: T) -> None:
        try:
            self._observer.on_next(value)
        except Exception as error:  # the source sends no end after that
            self.upstream.dispose()
            self._settle(StreamOutcome("failed", error))
            raise

    def _settle(self, outcome: StreamOutcome) -> None:
        with self._lock:
            if self._settled:
                return
            self._settled = True
        self.timer.dispose()
        self._outlet.finish(self._metrics(outcome))

    def _metrics(self, outcome: StreamOutcome | None) -> StreamMetrics:
        reply = self._reply.snapshot
        return self._meter.metrics(outcome, None if reply is None else reply.total_usage)

    def _report_failure(self, error: Exception) -> None:
        report(error, f"what {self._name} tells of the stream could not be told")


class _MetricsObserver(abc.ObserverBase[StreamMetrics]):
    """Passes metrics to the listener. The `Outlet` before it serialises them; the final ones come last."""

    def __init__(self, tapped: _Tap[Any]) -> None:
        self._tapped = tapped

    def on_next(self, value: StreamMetrics) -> None:
        self._tapped.notify(value)

    def on_error(self, error: Exception) -> None:
        pass

    def on_completed(self) -> None:
        pass
