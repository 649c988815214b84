"""The publisher of a stream: one subscription of `publish`."""

from __future__ import annotations

from collections import deque
from functools import partial
from threading import RLock, get_ident
from typing import TYPE_CHECKING

from reactivex.disposable import Disposable

from rxdelta.core import Event, InvalidValueError, quote
from rxdelta.core.events import EVENT_TYPES, MessageInterrupted
from rxdelta.relay._bounds import bytes_of
from rxdelta.relay._failures import for_readers
from rxdelta.relay._journal import EventsToCome
from rxdelta.relay._logs import End
from rxdelta.relay._turns import TakesTurns
from rxdelta.relay._window import Window
from rxdelta.runtime import logged, report

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactivex import Observable

    from rxdelta.core import LimitExceededError, RxDeltaError
    from rxdelta.relay._bounds import Room
    from rxdelta.relay._logs import Logs, Name, Writer
    from rxdelta.runtime import Sink

__all__ = ["Publication"]

_LEFT = "publisher left"


class Publication(TakesTurns[Event]):
    """One subscription's state. Notifications of the source are turns; a stop may come on any thread.

    The source, a stop, or the subscriber that leaves: the first of them ends the log. What the source emits after that is
    neither written nor emitted.

    A store may answer in the call, or later and on its own thread. What it says later is a turn on the subscriber's clock.

    Args:
        room: What the log may take.
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
        room: Room,
        began: Callable[[bool], None] | None,
        over: Callable[[Publication], None],
        window: float | None,
    ) -> None:
        super().__init__(sink, shares=False)
        self.name = name
        self.was_refused = False
        self._source = source
        self.room = room
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
        return self.room.events - self._written

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
        self._emit(fresh)
        if error is not None:
            self.on_error(error)

    def _fitting(
        self, events: Sequence[Event], writer: Writer
    ) -> tuple[Sequence[Event], LimitExceededError | None]:
        """Count the next events of the log. Returns those for which it has room, and an error if these aren't all."""
        for place, event in enumerate(events):
            error = self.room.take(bytes_of(event), writer)
            if error is not None:
                return events[:place], error
            if self._journal is not None:
                self._journal.arrived(event, self.room.events)
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
