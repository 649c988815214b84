"""What a relay does, in numbers: for a dashboard, for OpenTelemetry, and for a probe."""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

import attrs

from rxdelta.runtime import call_on

if TYPE_CHECKING:
    import asyncio

    from opentelemetry.metrics import MeterProvider


_log = logging.getLogger("rxdelta")

_ROUND_TRIPS = 1000


@attrs.frozen(kw_only=True)
class RelayMetrics:
    """What one relay has done in its process until now. Numbers grow, but for those that say *now*.

    Attributes:
        publishing: Now: the streams that are published here.
        readers: Now: the subscriptions of `watch` and `entries`.
        backlog: Now: the events that their sources have emitted, and that aren't in the log yet.
        kept_bytes: Now: the bytes of all streams as `max_total_bytes` counts them, as far as they are known here; 0 in a
            store without that bound.
        events_published: Events that were accepted for the log.
        bytes_published: Their bytes, as `max_bytes` counts them.
        events_read: Events that readers got. Events that were joined for a reader are one.
        bytes_sent: Bytes that went to the store, where it counts them, as Valkey's does.
        bytes_received: Bytes that came from the store, where it counts them.
        round_trips: Round trips to Valkey or Redis, without the blocking reads. For other stores, calls.
        round_trip_seconds: What these took in all.
        round_trip_p50: The median of the last thousand round trips, in seconds; 0 without any.
        round_trip_p99: What 99 of a hundred of them didn't exceed.
        outages: How often a store couldn't be reached or couldn't work.
        reconnects: How often it came back.
        away: Now: the seconds for which it hasn't been usable; 0 if it is.
        fences: Publishers of this process that were stopped, because others had taken them for dead.
        deaths: Publishers that this process found dead, so that it wrote the end of their streams.
    """

    publishing: int = 0
    readers: int = 0
    backlog: int = 0
    kept_bytes: int = 0
    events_published: int = 0
    bytes_published: int = 0
    events_read: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    round_trips: int = 0
    round_trip_seconds: float = 0.0
    round_trip_p50: float = 0.0
    round_trip_p99: float = 0.0
    outages: int = 0
    reconnects: int = 0
    away: float = 0.0
    fences: int = 0
    deaths: int = 0


@attrs.frozen
class RelayHealth:
    """The answer to `Relay.health`.

    Attributes:
        ready: Whether this relay takes new streams, and its store writes them.
        why: Why it doesn't.
        latency: Seconds that a write and its answer took; `None` without an answer, and 0 in memory.
        draining: Whether the relay is being drained, or was.
    """

    ready: bool
    why: str | None
    latency: float | None
    draining: bool


class Tally:
    """The counts of one relay that only grow, and of its readers.

    Attributes:
        sent, received, round_trips, seconds, outages, reconnects, fences, deaths: See `RelayMetrics`.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._readers = self._events_read = 0
        self._recent = deque[float](maxlen=_ROUND_TRIPS)
        self.sent = 0
        self.received = 0
        self.round_trips = 0
        self.seconds = 0.0
        self.outages = 0
        self.reconnects = 0
        self.fences = 0
        self.deaths = 0
        self.recorders: list[Callable[[float], object]] = []
        """What learns of each round trip's seconds."""

    def reads(self, *, readers: int = 0, events: int = 0) -> None:
        """Count readers that come (or leave: -1), and events that they got. Any thread may call."""
        with self._lock:
            self._readers += readers
            self._events_read += events

    def round_trip(self, seconds: float) -> None:
        self.round_trips += 1
        self.seconds += seconds
        self._recent.append(seconds)
        for record in self.recorders:
            record(seconds)

    def metrics(self, *, kept_bytes: int, away: float, **counts: int) -> RelayMetrics:
        """Return the metrics of this moment."""
        recent = sorted(self._recent.copy())  # a copy is made in one step
        return RelayMetrics(
            **counts,
            kept_bytes=kept_bytes,
            away=away,
            readers=self._readers,
            events_read=self._events_read,
            bytes_sent=self.sent,
            bytes_received=self.received,
            round_trips=self.round_trips,
            round_trip_seconds=self.seconds,
            round_trip_p50=_quantile(recent, 0.5),
            round_trip_p99=_quantile(recent, 0.99),
            outages=self.outages,
            reconnects=self.reconnects,
            fences=self.fences,
            deaths=self.deaths,
        )


class Reports:
    """The functions that are called with the metrics, on the loop on which the relay was opened."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None) -> None:
        self._loop = loop
        self._timers: dict[Callable[[], object], asyncio.TimerHandle] = {}

    def add(
        self, take: Callable[[RelayMetrics], object], every: float, metrics: Callable[[], RelayMetrics]
    ) -> None:
        def report() -> None:
            try:
                take(metrics())
            except Exception:
                _log.exception("a function that is called with a relay's metrics failed")

        if self._loop is not None:
            call_on(self._loop, partial(self._wait, self._loop, every, report))

    def _wait(self, loop: asyncio.AbstractEventLoop, every: float, report: Callable[[], object]) -> None:
        def due() -> None:
            self._wait(loop, every, report)
            report()

        self._timers[report] = loop.call_later(every, due)

    def close(self) -> None:
        """Call each once more, and none any more."""
        timers, self._timers = self._timers, {}
        for report, timer in timers.items():
            timer.cancel()
            report()


def _quantile(ordered: list[float], share: float) -> float:
    return ordered[max(math.ceil(len(ordered) * share) - 1, 0)] if ordered else 0.0


_NOW: Mapping[str, tuple[str, str]] = {
    "publishing": ("{stream}", "The streams that are published here."),
    "readers": ("{reader}", "The subscriptions of watch and entries."),
    "backlog": ("{event}", "The events that aren't in the log yet."),
    "kept_bytes": ("By", "The bytes of all streams, as far as they are known here."),
    "away": ("s", "The seconds for which the store hasn't been usable."),
}
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_COUNTS: Mapping[str, tuple[str, str]] = {
    "events_published": ("{event}", "Events that were accepted for the log."),
    "bytes_published": ("By", "The bytes of these events."),
    "events_read": ("{event}", "Events that readers got."),
    "bytes_sent": ("By", "Bytes that went to the store."),
    "bytes_received": ("By", "Bytes that came from the store."),
    "outages": ("{outage}", "How often the store couldn't be used."),
    "reconnects": ("{reconnect}", "How often it came back."),
    "fences": ("{stream}", "Publishers of this process that others had taken for dead."),
    "deaths": ("{stream}", "Publishers that this process found dead."),
}


def report_otel(
    tally: Tally,
    metrics: Callable[[], RelayMetrics],
    attributes: Mapping[str, str | bool | int | float] | None,
    meter_provider: MeterProvider | None,
) -> None:
    """See `Relay.report_otel`."""
    try:
        from opentelemetry.metrics import Observation, get_meter
    except ImportError as error:
        raise ImportError("report_otel needs opentelemetry-api: pip install 'rxdelta[otel]'") from error
    common = dict(attributes or {})
    meter = get_meter("rxdelta", meter_provider=meter_provider)

    def observing(name: str) -> Callable[[object], list[Observation]]:
        return lambda _: [Observation(getattr(metrics(), name), common)]

    for name, (unit, what) in _NOW.items():
        meter.create_observable_gauge(f"rxdelta.relay.{name}", [observing(name)], unit, what)
    for name, (unit, what) in _COUNTS.items():
        meter.create_observable_counter(f"rxdelta.relay.{name}", [observing(name)], unit, what)
    what = "What a round trip to the store took."
    took = meter.create_histogram(
        "rxdelta.relay.round_trip", "s", what, explicit_bucket_boundaries_advisory=_BUCKETS
    )
    tally.recorders.append(lambda seconds: took.record(seconds, common))
