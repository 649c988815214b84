"""The base of `tap_metrics` and `tap_otel`: a listener for a stream that passes unchanged."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from reactivex import operators as ops
from reactivex.disposable import Disposable
from reactivex.internal import noop

from rxdelta.operators.watching.metrics import Meter, StreamMetrics
from rxdelta.operators.watching.on_settled import StreamOutcome, outcome_of_leaving
from rxdelta.operators.watching.reply_so_far import ReplySoFar
from rxdelta.runtime import Serial, create, report, seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

    from rxdelta.core import Snapshot
    from rxdelta.runtime import Sink

__all__ = ["Listener", "tap"]

T = TypeVar("T")


class Listener:
    """The listener of one subscription. Its exceptions are reported, and the stream goes on."""

    def subscribing(self) -> AbstractContextManager[object]:
        """A context manager around the subscription of the source."""
        return nullcontext()

    def arrived(self, value: Any, first: float | None, gap: float | None, reply: ReplySoFar) -> None:
        """Called for each value, with the time to the first chunk, or the time since the last one."""

    def progress(self, metrics: StreamMetrics) -> None:
        """Called at intervals while the stream goes on."""

    def settled(self, metrics: StreamMetrics, reply: Snapshot | None) -> None:
        """Called once, at the stream's end."""


def tap(
    name: str,
    listener: Callable[[], Listener],
    scheduler: abc.SchedulerBase | None,
    *,
    every: float | None = None,
    through: Callable[[Observable[T]], Observable[T]] | None = None,
) -> Callable[[Observable[T]], Observable[T]]:
    """The operator."""

    def apply(source: Observable[T]) -> Observable[T]:
        paced = source if through is None else through(source)  # it may refuse the source

        def begin(sink: Sink[T]) -> None:
            _Tap(sink, listener(), sink.clock(scheduler)).connect(source, every, through)

        return create(name, begin, emits="same", source=paced)

    return apply


class _Tap(Generic[T]):
    """One subscription's state."""

    def __init__(self, sink: Sink[T], listener: Listener, time: abc.SchedulerBase) -> None:
        self._sink = sink
        self._listener = listener
        self._tells = type(listener).arrived is not Listener.arrived
        self._meter = Meter(seconds(time))
        self._timer = sink.timer(time)
        self._reply = ReplySoFar(sink)
        self._reports = Serial()
        self._reported_end = False
        self._lock = Lock()
        self._settled = False
        sink.own(Disposable(self._disposed))

    def connect(
        self,
        source: Observable[T],
        every: float | None,
        through: Callable[[Observable[T]], Observable[T]] | None,
    ) -> None:
        self.on_next = self._note if through is None else self._released
        self._pass_on = self._sink.on_next if through is None else noop
        if every is not None:
            self._timer.start(every, self._report_progress, every)
        if through is not None:
            self._meter.expect_lag()
            source = through(source.pipe(ops.do_action(self._note)))
        with self._listener.subscribing():
            self._sink.subscribe(source, self, serial=False)

    def _released(self, value: T) -> None:
        self._meter.released(value)
        self._sink.on_next(value)

    def on_error(self, error: Exception) -> None:
        self._sink.effect(self._fail, error)

    def on_completed(self) -> None:
        self._sink.effect(self._complete)

    def _fail(self, error: Exception) -> None:
        self._settle(StreamOutcome("failed", error))
        self._sink.on_error(error)

    def _complete(self) -> None:
        self._settle(StreamOutcome("completed"))
        self._sink.on_completed()

    def _disposed(self) -> None:
        self._settle(outcome_of_leaving(self._sink))

    def _report_progress(self, every: float) -> None:
        if not self._settled:
            self._reports.run(self._report, self._metrics(None))
            self._timer.start(every, self._report_progress, every)

    def _report(self, metrics: StreamMetrics) -> None:
        """Pass metrics to the listener. The final ones come last."""
        if self._reported_end:
            return
        self._reported_end = metrics.outcome is not None
        try:
            if metrics.outcome is None:
                self._listener.progress(metrics)
            else:
                self._listener.settled(metrics, self._reply.snapshot)
        except Exception as error:
            self._report_failure(error)

    def _note(self, value: T) -> None:
        if not self._reply.keeps(value):
            self._reply.note(value)
        first, gap = self._meter.arrived(value)
        if self._tells:
            self._tell(value, first, gap)
        self._pass_on(value)

    def _tell(self, value: T, first: float | None, gap: float | None) -> None:
        try:
            self._listener.arrived(value, first, gap, self._reply)
        except Exception as error:
            self._report_failure(error)

    def _settle(self, outcome: StreamOutcome) -> None:
        with self._lock:
            if self._settled:
                return
            self._settled = True
        self._timer.stop()
        self._reports.run(self._report, self._metrics(outcome))

    def _metrics(self, outcome: StreamOutcome | None) -> StreamMetrics:
        return self._meter.metrics(outcome, self._reply.usage)

    def _report_failure(self, error: Exception) -> None:
        report(error, f"what {self._sink.name} tells of the stream could not be told")
