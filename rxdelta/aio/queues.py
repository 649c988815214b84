"""Queues of a slow reader: one that joins events, and one that measures another."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping
from functools import reduce
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from rxdelta.core import JOINABLE, TERMINAL, InvalidValueError, Joined, usage_or_none
from rxdelta.core.events import (
    EVENT_TYPES,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    ProviderEvent,
    ToolUpdate,
    UsageUpdate,
)

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

    from rxdelta.runtime import Newest

T = TypeVar("T")


class Backlog(Generic[T]):
    """A queue of events with a few entries for each open block. It folds to the same reply as the appended events.

    An event is joined with a waiting one of the same subject, and so it may pass events of other subjects: another
    block, a tool, usage. No event passes the end of a message or another event of its own block. None passes a `Custom`
    either, but for a `Custom` that has newer data of the same name and id.

    Attributes:
        text_bytes: How much memory the text that waits takes. Joining makes fewer events of it, but no less text.
    """

    def __init__(self) -> None:
        self.text_bytes = 0
        self._queue: deque[_Entry] = deque()
        self._newest: dict[object, _Entry] = {}  # entries that events can still be joined with, by subject
        self._lock = Lock()  # the source may be on another thread than the reader

    def __len__(self) -> int:
        return len(self._queue)

    def append(self, event: T) -> None:
        """Add an event.

        Raises:
            InvalidValueError: It is no event.
        """
        if type(event) not in EVENT_TYPES:
            wanted = (
                "must be an event where a reader asks for overflow='join'; of snapshots it wants the 'latest'"
            )
            raise InvalidValueError.of([("value", event, wanted)])
        with self._lock:
            subject = self._subject(event)
            entry = self._newest.get(subject)
            if entry is None or not entry.takes(event):
                entry = _Entry(subject, event)
                self._queue.append(entry)
                if subject is not None:
                    self._newest[subject] = entry
            piece = JOINABLE.get(type(event))
            if piece is not None:
                # Many short pieces take more than their characters.
                size = sys.getsizeof(getattr(event, piece[0]))
                entry.text_bytes += size
                self.text_bytes += size

    def popleft(self) -> T:
        """Take the first event; `IndexError` if the queue is empty."""
        with self._lock:
            entry = self._queue.popleft()
            if self._newest.get(entry.subject) is entry:
                del self._newest[entry.subject]
            self.text_bytes -= entry.text_bytes
            held: Any = entry.held
        joined: Any = held.event() if type(held) is Joined else held
        event: T = joined
        return event

    def clear(self) -> None:
        with self._lock:
            self._queue.clear()
            self._newest.clear()
            self.text_bytes = 0

    def _subject(self, given: object) -> object:
        event: Any = given
        kind: Any = type(given)
        if kind in JOINABLE or kind in (BlockStart, BlockDelta, BlockFinish):
            return event.run_id, event.choice, event.index
        if kind is ToolUpdate:
            return ToolUpdate, event.run_id, event.choice, event.call_id
        if kind is UsageUpdate:
            return event.run_id, event.choice
        if kind is Custom:
            self._newest = {
                subject: entry for subject, entry in self._newest.items() if type(entry.held) is Custom
            }
            return None if event.id is None else (Custom, event.run_id, event.name, event.id, event.transient)
        if kind is not ProviderEvent:
            self._newest.clear()
        return None


class _Entry:
    __slots__ = ("held", "subject", "text_bytes")

    def __init__(self, subject: object, given: object) -> None:
        event: Any = given
        self.subject = subject
        self.text_bytes = 0
        kind: Any = type(given)
        known = JOINABLE.get(kind)
        self.held: Any = event if known is None else Joined(event, getattr(event, known[0]))

    def takes(self, given: object) -> bool:
        """Join the event with this entry if possible, and return whether it was."""
        event: Any = given
        held = self.held
        if type(held) is Joined:
            if not held.takes(event):
                return False
            held.pieces.append(getattr(event, JOINABLE[type(event)][0]))
        elif type(held) is UsageUpdate:
            if usage_or_none(event.usage) is not None:  # an empty one changes nothing
                self.held = event
        elif type(held) is Custom:
            self.held = event
        elif type(held) is ToolUpdate:
            if held.execution_status != event.execution_status or held.execution_status in TERMINAL:
                return False
            shown = event.display_text or held.display_text  # an empty text doesn't clear the last one
            result = held.result if event.result is None else event.result
            self.held = attrs.evolve(held, display_text=shown, result=result)
        elif type(held) is BlockDelta and type(event) is BlockDelta:
            if "execution_status" in held.fields:  # a status never goes back, so it must not be overwritten
                return False
            more = {name: value for name, value in event.fields.items() if value is not None}
            self.held = attrs.evolve(held, fields={**held.fields, **more})
        else:
            return False
        return True


_FATES = ("delivered", "joined", "dropped", "unread")


@attrs.frozen(kw_only=True)
class ReaderMetrics:
    """The measurements of a `ReaderMeter`: of all its readers together, those that have left included.

    At any time `received` is the sum of `queued`, `delivered`, `joined`, `dropped` and `unread`.

    Attributes:
        readers: How many read at this moment.
        queued: How many values wait for them.
        longest_queue: How many values have waited for one reader, at most.
        received: How many values came for the readers; a value that comes for two readers counts twice.
        delivered: How many values the readers took. Values that were joined are one.
        joined: How many values were joined with one that waited (`overflow="join"`).
        dropped: How many values a newer one replaced (`overflow="latest"`).
        unread: How many values waited for a reader when it left.
        overflows: How many readers were ended by a `BufferOverflowError`.
    """

    readers: int = 0
    queued: int = 0
    longest_queue: int = 0
    received: int = 0
    delivered: int = 0
    joined: int = 0
    dropped: int = 0
    unread: int = 0
    overflows: int = 0


_NAMES = tuple(field.name for field in attrs.fields(ReaderMetrics))


def _sum(one: ReaderMetrics, other: ReaderMetrics) -> ReaderMetrics:
    counts = {name: getattr(one, name) + getattr(other, name) for name in _NAMES}
    return ReaderMetrics(**{**counts, "longest_queue": max(one.longest_queue, other.longest_queue)})


class ReaderMeter:
    """Measures what waits for readers, and how much of it was joined or dropped.

    Pass one object as `meter=` to all readers that are to be measured together: to `to_async_iterable`, `to_iterable`,
    `for_each`, `iterate`, `rd.stream` and `EventStreamResponse`. A reader without a meter costs nothing more. It may be
    asked on any thread, at any time.

    Example:
        >>> import asyncio
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> meter = rd.ReaderMeter()
        >>> async def draw(snapshot):
        ...     await asyncio.sleep(0.01)
        >>> snapshots = rx.of(rd.MessageDelta(content="Hel"), rd.MessageDelta(content="lo")).pipe(rd.scan_deltas())
        >>> asyncio.run(rd.for_each(snapshots, draw, overflow="latest", meter=meter))
        >>> meter.metrics.received, meter.metrics.delivered, meter.metrics.dropped
        (2, 1, 1)
    """

    def __init__(self) -> None:
        self._lock = Lock()  # taken before a queue's own
        self._queues: set[MeteredQueue[Any]] = set()
        self._past = ReaderMetrics()  # of the readers that have left

    @property
    def metrics(self) -> ReaderMetrics:
        """The measurements until now."""
        with self._lock:
            return reduce(_sum, (queue.metrics() for queue in self._queues), self._past)

    def report_otel(
        self,
        *,
        attributes: Mapping[str, str | bool | int | float] | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        """Report the measurements to OpenTelemetry, as often as its SDK asks. Call it once, when the program starts.

        The instruments are `rxdelta.reader.count`, `rxdelta.reader.queue.length`, `rxdelta.reader.queue.longest`,
        `rxdelta.reader.overflows`, and `rxdelta.reader.values` with the attribute `rxdelta.reader.outcome`: `delivered`,
        `joined`, `dropped` or `unread`. Needs the package `opentelemetry-api` (`pip install "rxdelta[otel]"`).

        Args:
            attributes: Further attributes of all instruments, to tell several meters apart.
            meter_provider: By default the global one.

        Raises:
            ImportError: If the package is missing.
        """
        try:
            from opentelemetry.metrics import Observation, get_meter
        except ImportError as error:
            raise ImportError("report_otel needs opentelemetry-api: pip install 'rxdelta[otel]'") from error
        common = dict(attributes or {})

        def observing(name: str) -> Callable[[object], list[Observation]]:
            def observe(_: object) -> list[Observation]:
                return [Observation(getattr(self.metrics, name), common)]

            return observe

        def fates(_: object) -> list[Observation]:
            now = self.metrics
            return [
                Observation(getattr(now, fate), {**common, "rxdelta.reader.outcome": fate}) for fate in _FATES
            ]

        otel = get_meter("rxdelta", meter_provider=meter_provider)
        count, gauge = otel.create_observable_up_down_counter, otel.create_observable_gauge
        count("rxdelta.reader.count", [observing("readers")], "{reader}", "How many read at this moment.")
        count("rxdelta.reader.queue.length", [observing("queued")], "{value}", "How many values wait.")
        longest = "How many values have waited for one reader, at most."
        gauge("rxdelta.reader.queue.longest", [observing("longest_queue")], "{value}", longest)
        ended = "How many readers were ended because they were too slow."
        otel.create_observable_counter(
            "rxdelta.reader.overflows", [observing("overflows")], "{reader}", ended
        )
        became = "What became of the values for the readers."
        otel.create_observable_counter("rxdelta.reader.values", [fates], "{value}", became)

    def _open(self, queue: deque[T] | Backlog[T] | Newest[T], overflow: str) -> MeteredQueue[T]:
        """Measure a reader's queue, from now until its `close`."""
        metered = MeteredQueue(self, queue, "dropped" if overflow == "latest" else "joined")
        with self._lock:
            self._queues.add(metered)
        return metered

    def _close(self, queue: MeteredQueue[Any]) -> None:
        with self._lock:
            if queue in self._queues:
                self._queues.remove(queue)
                self._past = _sum(self._past, attrs.evolve(queue.metrics(), readers=0))


class MeteredQueue(Generic[T]):
    """A reader's queue, and what was appended and taken. The lock makes the counts exact: two threads may use it."""

    def __init__(
        self, meter: ReaderMeter, queue: deque[T] | Backlog[T] | Newest[T], absorbed_as: str
    ) -> None:
        self._meter = meter
        self._queue = queue
        self._absorbed_as = absorbed_as  # the name of what made the queue no longer
        self._lock = Lock()
        self._longest = self._received = self._delivered = self._absorbed = self._unread = 0
        self.overflows = 0

    def __len__(self) -> int:
        return len(self._queue)

    def append(self, value: T) -> None:
        with self._lock:
            before = len(self._queue)
            self._queue.append(value)
            now = len(self._queue)
            self._received += 1
            self._absorbed += before + 1 - now
            self._longest = max(self._longest, now)

    def popleft(self) -> T:
        with self._lock:
            value = self._queue.popleft()
            self._delivered += 1
            return value

    def clear(self) -> None:
        """The reader has left."""
        with self._lock:
            self._unread += len(self._queue)
            self._queue.clear()
        self._meter._close(self)

    def metrics(self) -> ReaderMetrics:
        with self._lock:
            absorbed: dict[str, int] = {self._absorbed_as: self._absorbed}
            return ReaderMetrics(
                readers=1,
                queued=len(self._queue),
                longest_queue=self._longest,
                received=self._received,
                delivered=self._delivered,
                unread=self._unread,
                overflows=self.overflows,
                **absorbed,
            )


def check_meter(meter: object, by: str) -> list[tuple[str, object, str]]:
    """The fault of a `meter=`, if it has one."""
    is_one = meter is None or isinstance(meter, ReaderMeter)
    return [] if is_one else [("meter", meter, f"{by} takes a rd.ReaderMeter")]
