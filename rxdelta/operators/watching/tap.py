"""The base of `tap_metrics` and `tap_otel`: a listener for a stream that passes unchanged, and what it measures.

The measurements are delay, gaps, rate and lag.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, TypeVar

import attrs
from reactivex import Observable, abc, operators as ops
from reactivex.internal import noop

from rxdelta.core import PIECE_FIELDS, MessageDelta, Snapshot, TokenUsage
from rxdelta.core.events import EVENT_TYPES, BlockStart
from rxdelta.operators.watching.on_settled import Settling, StreamOutcome
from rxdelta.operators.watching.reply_so_far import ReplySoFar
from rxdelta.runtime import Pings, Serial, Sink, create, report, seconds

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


class _Tap(Settling[T]):
    """One subscription's state."""

    def __init__(self, sink: Sink[T], listener: Listener, time: abc.SchedulerBase) -> None:
        self._listener = listener
        self._notifies = type(listener).arrived is not Listener.arrived
        self._meter = Meter(seconds(time))
        self._timer = sink.timer(time)
        self._reply = ReplySoFar(sink)
        self._reports = Serial()
        self._reported_end = False
        super().__init__(sink)

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

    def _report_progress(self, every: float) -> None:
        if not self._is_settled:
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
        if self._notifies:
            self._notify(value, first, gap)
        self._pass_on(value)

    def _notify(self, value: T, first: float | None, gap: float | None) -> None:
        try:
            self._listener.arrived(value, first, gap, self._reply)
        except Exception as error:
            self._report_failure(error)

    def _settled(self, outcome: StreamOutcome) -> None:
        self._timer.stop()
        self._reports.run(self._report, self._metrics(outcome))

    def _metrics(self, outcome: StreamOutcome | None) -> StreamMetrics:
        return self._meter.metrics(outcome, self._reply.usage)

    def _report_failure(self, error: Exception) -> None:
        report(error, f"{self._sink.name} could not report on the stream")


@attrs.frozen(kw_only=True)
class StreamMetrics:
    """The measurements of one subscription. All times are in seconds; `None` means not measured.

    A chunk is a value with more of the reply: an event with a piece of text, reasoning, arguments or data, or any
    other value (no event) that isn't a ping. A ping is what `stall_timeout` takes for one.

    Attributes:
        outcome: How the stream ended; `None` while it goes on.
        seconds: From the subscription until now, or until the end.
        time_to_first_chunk: From the subscription to the first value that isn't a ping, with or without content.
        time_to_first_token: From the subscription to the first value with readable content.
        chunks: The number of chunks.
        streaming_seconds: From the first chunk to the last.
        longest_gap: The longest time between two chunks, including the time in which a reader blocks the source.
        usage: The provider's token usage, failed attempts included; of several runs the sum.
        mean_lag, longest_lag: The time that values spend in the operator given as `through`.

    Example:
        >>> import rxdelta as rd
        >>> metrics = rd.types.StreamMetrics(seconds=3, chunks=41, streaming_seconds=2, usage=rd.TokenUsage(5, 60))
        >>> metrics.chunks_per_second, metrics.tokens_per_second, metrics.mean_gap
        (20.0, 30.0, 0.05)
    """

    outcome: StreamOutcome | None = None
    seconds: float = 0.0
    time_to_first_chunk: float | None = None
    time_to_first_token: float | None = None
    chunks: int = 0
    streaming_seconds: float = 0.0
    longest_gap: float | None = None
    usage: TokenUsage | None = None
    mean_lag: float | None = None
    longest_lag: float | None = None

    @property
    def mean_gap(self) -> float | None:
        """The time between two chunks, on average."""
        return self.streaming_seconds / (self.chunks - 1) if self.chunks > 1 else None

    @property
    def chunks_per_second(self) -> float | None:
        """Chunks per second, over the time in which chunks arrived."""
        return (self.chunks - 1) / self.streaming_seconds if self.streaming_seconds > 0 else None

    @property
    def tokens_per_second(self) -> float | None:
        """Output tokens per second, over the time in which chunks arrived."""
        tokens = None if self.usage is None else self.usage.output_tokens
        return None if tokens is None or self.streaming_seconds <= 0 else tokens / self.streaming_seconds


class Meter:
    """One subscription's measurements. Values may arrive and leave on different threads."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._is_ping = Pings()
        self._lock = Lock()
        self._began = now()
        self._first_value: float | None = None
        self._first_token: float | None = None
        self._plain: Mapping[
            type, str
        ] = {}  # the deltas that are chunks, and of which nothing else is to be known
        self._first_chunk = 0.0
        # The number of chunks, the time of the last, and the longest gap: written as one, so that no lock is needed.
        self._chunks = (0, 0.0, 0.0)
        self._lags = self._longest_lag = 0.0
        self._released = 0
        self._waiting: _Waiting | None = None

    def expect_lag(self) -> None:
        self._waiting = _Waiting()

    def arrived(self, value: Any) -> tuple[float | None, float | None]:
        """Record a value. Return the time to the first chunk, if it is the first, and the time since the last one."""
        now = self._now()
        first = gap = None
        field = self._plain.get(value.__class__)
        if field is None or not getattr(value, field):
            first, is_chunk = self._examine(value, now)
            if not is_chunk:
                return first, None
        count, last, longest = self._chunks
        if count:
            gap = now - last
            if gap > longest:
                longest = gap
        else:
            self._first_chunk = now
        self._chunks = (count + 1, now, longest)
        return first, gap

    def _examine(self, value: Any, now: float) -> tuple[float | None, bool]:
        """Return the time to the first chunk, if this is the first, and whether the value is a chunk."""
        is_ping = self._is_ping(value)
        event = type(value) in EVENT_TYPES
        letters = _letters(value) if event else 0
        if self._waiting is not None:
            with self._lock:
                self._waiting.add(now, letters, value)
        if is_ping:
            return None, False
        first = None
        if self._first_value is None:
            self._first_value = first = now - self._began
        if event and not letters:
            return first, False
        if self._first_token is None and _is_readable(value):
            self._first_token = now - self._began
            self._plain = PIECE_FIELDS if self._waiting is None else {}
        return first, True

    def released(self, value: Any) -> None:
        """Record that the operator under test has emitted a value."""
        with self._lock:
            if self._waiting is None:
                return
            now = self._now()
            lag = now - self._waiting.take(value, now)
            self._released += 1
            self._lags += lag
            self._longest_lag = max(lag, self._longest_lag)

    def metrics(self, outcome: StreamOutcome | None, usage: TokenUsage | None) -> StreamMetrics:
        chunks, last, longest = self._chunks
        with self._lock:
            return StreamMetrics(
                outcome=outcome,
                seconds=self._now() - self._began,
                time_to_first_chunk=self._first_value,
                time_to_first_token=self._first_token,
                chunks=chunks,
                streaming_seconds=last - self._first_chunk if chunks else 0.0,
                longest_gap=longest if chunks > 1 else None,
                usage=usage,
                mean_lag=self._lags / self._released if self._released else None,
                longest_lag=self._longest_lag if self._released else None,
            )


class _Waiting:
    """The values that have arrived and not left.

    A value that leaves unchanged is found by identity; the values before it were dropped. Text that was cut again is
    found by the position of its first letter in the whole text.
    """

    def __init__(self) -> None:
        self._values: deque[tuple[float, int, Any]] = deque()  # (time, letters so far, value)
        self._known: Counter[int] = Counter()
        self._letters_in = self._letters_out = 0

    def add(self, now: float, letters: int, value: Any) -> None:
        self._letters_in += letters
        self._values.append((now, self._letters_in, value))
        self._known[id(value)] += 1

    def take(self, value: Any, now: float) -> float:
        """Remove a value, and return the time of its arrival."""
        if self._known.get(id(value)):
            while True:
                when, letters, one = self._pop()
                if one is value:
                    self._letters_out = letters
                    return when
        if type(value) not in EVENT_TYPES:
            newest = self._values[-1][0] if self._values else now
            self._values.clear()
            self._known.clear()
            return newest
        while len(self._values) > 1 and self._values[0][1] <= self._letters_out:
            self._pop()
        self._letters_out += _letters(value)
        return self._values[0][0] if self._values else now

    def _pop(self) -> tuple[float, int, Any]:
        popped = self._values.popleft()
        self._known[id(popped[2])] -= 1
        if not self._known[id(popped[2])]:
            del self._known[id(popped[2])]
        return popped


def _letters(event: Any) -> int:
    """The number of letters that an event adds to the reply."""
    kind: type[Any] = type(event)  # pyright: ignore[reportUnknownVariableType]
    if kind is BlockStart:
        text = event.content.get("text") or event.content.get("reasoning")
    else:
        field = PIECE_FIELDS.get(kind)
        text = None if field is None else getattr(event, field)
    return len(text) if isinstance(text, str) else 0


def _is_readable(value: Any) -> bool:
    if isinstance(value, Snapshot):
        called = any(call.arguments for call in value.tool_calls)
        unmerged = isinstance(value, MessageDelta) and value.content
        return bool(unmerged or value.text or value.reasoning or called)
    return True
