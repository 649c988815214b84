"""The publisher's side of a stream: one subscription of `publish`, and all publications of a process.

Deltas may wait for their neighbours before they are written; calls of tools wait until the log has the event that asks for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Lock, RLock, get_ident
from typing import TYPE_CHECKING, Any

from reactivex.disposable import Disposable

from rxdelta.core import (
    JOINABLE,
    Event,
    InvalidValueError,
    Joined,
    LimitExceededError,
    RxDeltaError,
    StreamInterrupted,
    quote,
)
from rxdelta.core.events import EVENT_TYPES, MessageInterrupted, ToolUpdate
from rxdelta.relay.logs import Budget, End, Logs, Name, Writer, bytes_of
from rxdelta.relay.replay import for_readers
from rxdelta.relay.turns import TakesTurns
from rxdelta.runtime import Sink, call_on, logged, report

if TYPE_CHECKING:
    from reactivex import Observable, abc


_MOST, _EACH = 1 << 16, 64
"""The characters that a window holds at most. Each piece counts some more, because short strings take memory too."""


class Window:
    """What one publication holds back. Its owner's lock guards it.

    As in `compact_deltas`, the first delta is due at once and opens a window; those within it are due when it closes, which
    opens the next one. Any other event flushes the window and follows at once.

    Args:
        start: Starts a timer. At its end what it is given is called, under the lock, and returns the events that are due.
    """

    def __init__(self, start: Callable[[Callable[[], Sequence[Event]]], object]) -> None:
        self._start = start
        self._is_open = False
        self._held: list[Joined] = []
        self._size = 0

    def take(self, event: Any) -> Sequence[Event]:
        """Take the next event, and return those that are due."""
        kind: type = event.__class__
        known = JOINABLE.get(kind)
        if known is None or event.more:  # what a newer version has added can't be joined
            return (*self.empty(), event)
        if not self._is_open:
            self._open()
            return (event,)
        piece = getattr(event, known[0])
        if self._held and self._held[-1].takes(event):
            self._held[-1].pieces.append(piece)
        else:
            self._held.append(Joined(event, piece))
        self._size += len(piece) + _EACH
        return self.empty() if self._size > _MOST else ()

    def empty(self) -> Sequence[Event]:
        """Return all that is held."""
        if not self._held:
            return ()
        held, self._held, self._size = self._held, [], 0
        return [joined.event() for joined in held]

    def _close(self) -> Sequence[Event]:
        self._is_open = False
        if self._held:
            self._open()
        return self.empty()

    def _open(self) -> None:
        self._is_open = True
        self._start(self._close)


_LATE_SECONDS = 10.0
_LATE = (
    "a tool waits because the update that says it is executing doesn't reach the stream %s: what stands between run_tools() "
    "and the relay has to pass it on"
)
_log = logging.getLogger("rxdelta")


class EventsToCome:
    """The `Journal` of one publication. Any thread may ask, come with an event, or end it.

    Only a `ToolUpdate` can be waited for. It may arrive as a copy that names another run (`with_run`), and later than it
    was emitted (`smooth`).

    Args:
        stream_id: For the log's readers.
        time: The clock of the warning about an update that doesn't arrive.
    """

    def __init__(self, stream_id: str, time: abc.SchedulerBase) -> None:
        self._stream_id = stream_id
        self._time = time
        self._lock = Lock()
        self._waiting: list[_Step] = []
        self._copies: dict[str, int] = {}  # that have arrived, by the id of the call
        self._ended = False

    def when_written(self, event: Event, step: Callable[[bool], object]) -> abc.DisposableBase:
        """See `Journal`."""
        waiting = _Step(event, step)
        with self._lock:
            ended = self._ended
            if not ended:
                self._waiting.append(waiting)
        if ended:
            step(False)
            return Disposable()

        def warn(*_: object) -> None:
            if waiting.number is None and waiting in self._waiting:
                _log.warning(_LATE, quote(self._stream_id))

        late = self._time.schedule_relative(_LATE_SECONDS, warn)

        def forget() -> None:
            late.dispose()
            with self._lock:
                if waiting in self._waiting:
                    self._waiting.remove(waiting)

        return Disposable(forget)

    def arrived(self, event: Event, number: int) -> None:
        """Note the number that an event has got in the log, before the store has written it."""
        if not self._waiting or not isinstance(event, ToolUpdate) or event.execution_status != "executing":
            return
        with self._lock:
            missing = [step for step in self._waiting if step.number is None]
            own = [step for step in missing if step.event is event]
            if not own:
                # Copies of calls of several runs can't be distinguished, so each of these waits until all have come.
                call_id = event.call_id
                own = [step for step in missing if _call_of(step.event) == call_id]
                copies = self._copies[call_id] = self._copies.get(call_id, 0) + 1
                if copies < len(own):
                    return
                del self._copies[call_id]
            for step in own:
                step.number = number

    def written(self, newest: int) -> list[_Step]:
        """The steps that waited for the events up to this number."""
        if not self._waiting:
            return []
        with self._lock:
            done = [step for step in self._waiting if step.number is not None and step.number <= newest]
            self._waiting = [step for step in self._waiting if step not in done]
        return done

    def end(self) -> None:
        """Nothing more will be written."""
        with self._lock:
            self._ended = True
            waiting, self._waiting = self._waiting, []
        for step in waiting:
            step.take(False)


class _Step:
    __slots__ = ("event", "number", "take")

    def __init__(self, event: Event, take: Callable[[bool], object]) -> None:
        self.event = event
        self.take = take
        self.number: int | None = None  # the event's, as soon as it has arrived


def _call_of(event: Event) -> str | None:
    return event.call_id if isinstance(event, ToolUpdate) else None


_LEFT = "publisher left"


class Publication(TakesTurns[Event]):
    """One subscription's state. Notifications of the source are turns; a stop may come on any thread.

    The source, a stop, or the subscriber that leaves: the first of them ends the log. What the source emits after that is
    neither written nor emitted.

    A store may answer in the call, or later and on its own thread. What it says later is a turn on the subscriber's clock.

    Args:
        budget: What the log may take.
        began: Called with whether the name was free. If it was taken, the subscription completes without an error.
        over: Called when the log has its end, or nothing more can be written.
        window: Seconds in which neighbouring deltas are joined, see `Window`.

    Attributes:
        name: The name of the log.
        was_refused: Whether there was no log for this publication: the name was taken, or the store couldn't be asked.
    """

    def __init__(
        self,
        sink: Sink[Event],
        source: Observable[Event],
        name: Name,
        budget: Budget,
        began: Callable[[bool], None] | None,
        over: Callable[[Publication], None],
        window: float | None,
    ) -> None:
        super().__init__(sink, shares=False)
        self.name = name
        self.was_refused = False
        self._source = source
        self.budget = budget
        self._began = began
        self._over = over
        self._seconds = window
        self._window: Window | None = None
        self._due: Callable[[Event], Sequence[Event]] = _at_once
        self._writer: Writer | None = None
        self._lock = RLock()  # a reader may run in the call that appends, and leave
        self._is_over = False
        self._early: Callable[[Writer], None] | None = None  # an end before the claim was answered
        self._asking: int | None = None  # the thread that is in a call of the store
        self._answers_at_once = False
        self._answers: deque[Callable[[], object]] = deque()  # for the next turn
        self._journal: EventsToCome | None = None  # of a store that answers later
        self._written = 0  # events that the log has
        self._fresh: list[Event] = []  # written in the call that appends

    @property
    def backlog(self) -> int:
        """How many events of the source aren't in the log yet."""
        return self.budget.events - self._written

    def begin(self, store: Logs) -> None:
        self._sink.own(Disposable(self.leave))
        self._asking = get_ident()
        store.claim(self.name, self)
        self._asking = None

    def _answer(self, step: Callable[[], object]) -> None:
        """Take the store's answer, now or on the subscriber's clock."""
        if self._asking == get_ident():
            self._answers_at_once = True
            step()
        else:
            self._answers.append(step)
            self._wake()

    def _turn(self) -> None:
        while self._answers:
            self._answers.popleft()()

    def refused(self, why: str, *, taken: bool) -> None:
        self._is_over = self.was_refused = True
        self._over(self)
        self._answer(partial(self._refuse, why, taken))

    def _refuse(self, why: str, taken: bool) -> None:
        if taken and self._began is not None:
            self._began(False)
            self._sink.on_completed()
            return
        refusal = f"the stream {quote(self.name.id)} can't be published: {why}"
        self._sink.on_error(InvalidValueError(refusal, field="stream_id", value=self.name.id))

    def claimed(self, writer: Writer) -> None:
        with self._lock:
            self._writer, early = writer, self._early
        self._answer(self._subscribe)
        if early is not None:
            early(writer)

    def _subscribe(self) -> None:
        if self._began is not None:
            self._began(True)
        if self._is_over:
            return  # stopped meanwhile: nothing is paid
        source = self._source
        if self._seconds is not None:
            timer = self._sink.timer(self._time)
            self._window = Window(partial(timer.start, self._seconds, self._write))
            self._due = self._window.take
        # A store that writes in the call needs no journal: its log has each event before it is emitted.
        if not self._answers_at_once:
            self._journal = EventsToCome(self.name.id, self._time)
            source = logged(source, self._journal)
        self._sink.subscribe(source, self)

    def failed(self, error: RxDeltaError) -> None:
        with self._lock:
            first, self._is_over = not self._is_over, True
            self.was_refused = self._writer is None
        self._over(self)
        if first:
            self._report(self._close_source())
        self._answer(partial(self._sink.on_error, error))

    def on_next(self, event: Event) -> None:
        if type(event) not in EVENT_TYPES:
            raise self._sink.refusal(event)
        self._write(self._due, event)

    def _write(self, due: Callable[..., Sequence[Event]], *arguments: Event) -> None:
        """Append the events that are due. A stop on another thread ends the log before `due` is called, or behind them."""
        error: LimitExceededError | None = None
        with self._lock:
            if self._is_over or self._writer is None:
                return  # a value that waited for its turn while the stream was stopped
            events, error = self._fitting(due(*arguments), self._writer)
            if events:
                self._asking = get_ident()
                self._writer.append(events)
                self._asking = None
            fresh, self._fresh = self._fresh, []
        # Without the lock: a subscriber may block, and a stop on another thread must not wait for it.
        self._emit(fresh)
        if error is not None:
            self.on_error(error)

    def _fitting(
        self, events: Sequence[Event], writer: Writer
    ) -> tuple[Sequence[Event], LimitExceededError | None]:
        """Count the next events of the log. Returns those that fit, and an error if these aren't all."""
        for place, event in enumerate(events):
            error = self.budget.take(bytes_of(event), writer)
            if error is not None:
                return events[:place], error
            if self._journal is not None:
                self._journal.arrived(event, self.budget.events)
        return events, None

    def written(self, events: Sequence[Event]) -> None:
        if self._asking == get_ident():
            self._fresh.extend(events)  # emitted when nobody waits for our lock
        else:
            self._answer(partial(self._emit, events))

    def _emit(self, events: Sequence[Event]) -> None:
        for event in events:
            self._sink.on_next(event)
        self._written += len(events)
        if self._journal is not None:
            for step in self._journal.written(self._written):
                self._sink.effect(step.take, True)

    def on_error(self, error: Exception) -> None:
        self._end(error=error)

    def on_completed(self) -> None:
        self._end()

    def tell(self, reason: str | None) -> bool:
        return self._end(MessageInterrupted(reason))

    def leave(self) -> None:
        self._end(MessageInterrupted(_LEFT))

    def _end(self, *last: Event, error: Exception | None = None) -> bool:
        """End the log, unless it has an end; return whether it had none."""
        with self._lock:
            first, self._is_over = not self._is_over, True
            writer = self._writer
            if first and writer is None:
                self._early = partial(self._write_end, last, error)
        if first and writer is not None:
            self._write_end(last, error, writer)
        return first

    def _write_end(self, last: Sequence[Event], error: Exception | None, writer: Writer) -> None:
        def ended() -> None:
            self._over(self)
            if self._answers_at_once:
                self._sink.run(finish)
            else:
                self._answer(finish)

        def finish() -> None:
            self._emit(last)
            if error is None:
                self._sink.on_completed()
            else:
                self._sink.on_error(error)

        if self._window is not None:
            held, full = self._fitting(self._window.empty(), writer)
            last, error = (held, full) if full is not None else ((*held, *last), error)
        failed = self._close_source()
        writer.end(last, End(None if error is None else for_readers(error)), ended)
        self._report(failed)

    def _close_source(self) -> Exception | None:
        """Dispose the source, and return the error of one that can't be closed. The log ends all the same."""
        try:
            self._sink.dispose_source()
        except Exception as error:
            return error
        finally:
            if self._journal is not None:
                self._journal.end()
        return None

    def _report(self, failed: Exception | None) -> None:
        if failed is not None:
            why = f"the source of the stream {self.name.id!r} could not be closed"
            report(failed, why, self._sink.session)


def _at_once(event: Event) -> Sequence[Event]:
    return (event,)


_DRAINS = "the relay is draining: it publishes no new streams in this process"
_END_SECONDS = 5.0
_AT_ONCE = 100
"""How many streams are ended before the loop's other tasks have a turn."""


class Publications:
    """What a relay and its scopes publish in this process. Any thread may call.

    Args:
        store: Where the logs are.
        budget: What one stream's log may take.
        patience: Seconds that the store tries to write an end.
        window: Seconds in which neighbouring deltas are joined, or `None`.

    Attributes:
        drains: Whether none begins any more.
    """

    def __init__(
        self, store: Logs, budget: Callable[[], Budget], patience: float, window: float | None
    ) -> None:
        self._store = store
        self._budget = budget
        self._window = window
        self._end_seconds = min(_END_SECONDS, patience)
        self._lock = Lock()
        self._live: dict[Publication, None] = {}  # in the order in which they began
        self._past = 0, 0  # events and bytes of those that are over
        self.drains = False
        self._waiting: dict[object, Callable[[], None]] = {}  # for the last one to be over

    def begin(
        self,
        sink: Sink[Event],
        source: Observable[Event],
        name: Name,
        began: Callable[[bool], None] | None = None,
    ) -> None:
        """Begin a publication, see `Publication`.

        Raises:
            StreamInterrupted: The relay is draining.
        """
        publication = Publication(sink, source, name, self._budget(), began, self._forget, self._window)
        with self._lock:
            # Under the lock that `drain` takes: no publication begins behind its list.
            if self.drains:
                raise StreamInterrupted(_DRAINS)
            self._live[publication] = None
        publication.begin(self._store)

    def counts(self) -> dict[str, int]:
        """The fields of `RelayMetrics` that are about publications."""
        with self._lock:
            live, (events, size) = [*self._live], self._past
        return {
            "publishing": len(live),
            "backlog": sum(each.backlog for each in live),
            "events_published": events + sum(each.budget.events for each in live),
            "bytes_published": size + sum(each.budget.bytes for each in live),
        }

    def _forget(self, publication: Publication) -> None:
        with self._lock:
            if publication in self._live:
                del self._live[publication]
                events, size = self._past
                self._past = events + publication.budget.events, size + publication.budget.bytes
            calls = () if self._live else tuple(self._waiting.values())
        for call in calls:
            call()

    async def drain(self, seconds: float, reason: str) -> list[str]:
        """See `Relay.drain`."""
        with self._lock:
            self.drains = True
        if await self._are_over(seconds):
            return []
        with self._lock:
            left = [*self._live]
        stopped = list[Publication]()
        for number, publication in enumerate(left, 1):
            if publication.tell(reason):
                stopped.append(publication)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        if not await self._are_over(self._end_seconds):
            _log.warning(
                "the relay is drained, but after %g seconds it has no end in the logs of %d streams: their readers "
                "find the publisher dead when the lease is over",
                self._end_seconds,
                len(self._live),
            )
        return [publication.name.id for publication in stopped if not publication.was_refused]

    async def _are_over(self, seconds: float) -> bool:
        """Wait until no publication is left, for so many seconds at most, and return whether there is none."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[None] = loop.create_future()
        who = object()
        with self._lock:
            if not self._live:
                return True
            self._waiting[who] = partial(call_on, loop, partial(_settle, over))
        try:
            async with asyncio.timeout(seconds):
                await over
        except TimeoutError:
            return False
        finally:
            with self._lock:
                del self._waiting[who]
        return True


def _settle(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)
