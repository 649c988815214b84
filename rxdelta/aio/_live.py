"""The reply behind `rd.stream`: one hub, which folds the events once and serves all who look at it."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

from reactivex.disposable import Disposable, SingleAssignmentDisposable

from rxdelta.aio._latch import Latch
from rxdelta.aio._reader_session import CLOSE_SECONDS
from rxdelta.aio._through import Front, Place, applied, fail
from rxdelta.core import (
    EventsSoFar,
    Fold,
    IncompleteMessageError,
    InvalidValueError,
    Snapshot,
    StreamInterrupted,
    Tail,
)
from rxdelta.core.events import Custom, MessageInterrupted
from rxdelta.operators import Scan, share_kept, text_deltas
from rxdelta.runtime import SourceObservable, lift_map, needed_loop, running_loop

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence

    from reactivex import Observable, abc

    from rxdelta.aio._from_iterable import Gate
    from rxdelta.aio._meter import ReaderMeter
    from rxdelta.aio._through import Operator
    from rxdelta.core import Event, Limits, Message
    from rxdelta.runtime import Sink, Taker

__all__ = ["Live"]

_LOG = logging.getLogger("rxdelta")
_COMING = "is still coming: result() waits for its end"
_YIELD_EVERY = 64  # snapshots after which a loop that never waits lets asyncio's timers run


class Live:
    """The reply itself, behind both of its faces. Its methods may be called on any thread.

    Each event passes one place, in front of all readers, where the reply is kept, see `_Picture`. The newest snapshot is a
    latch: who looks gets it, or waits for a change. There is no queue of snapshots.
    """

    def __init__(
        self,
        decoded: Observable[Event],
        through: Sequence[Operator],
        run: Operator | None,
        pace: Callable[[Observable[Snapshot]], Observable[Snapshot]] | None,
        meter: ReaderMeter | None,
    ) -> None:
        self.meter = meter
        self.gate: Gate | None = None  # closed when others may read the events
        self.is_queued = pace is not None or meter is not None  # a loop then reads `snapshots`
        self.was_asked = False  # for more than the snapshot
        self._error: Exception | None = None  # of the reply
        self._no_message: str | None = _COMING  # why there is none
        self._stopped = False
        self._ended = False
        self.end_error: Exception | None = None  # what loops raise at the end
        self.changes, self.over = Latch(), Latch()
        self.empty = Snapshot()
        self._picture: _Picture | None = None
        self._reading = SingleAssignmentDisposable()
        self._last = Place()  # its events are the reply
        self._middle = self._last if run is None else Place(self._last)
        self._first = Front(self._middle) if through else self._middle
        events = decoded
        if through:
            events = self._first.put(events)
            for number, operator in enumerate(through):
                events = applied(f"through[{number}]", operator, events)
        if run is not None:
            events = run(self._middle.put(events))
        self.events = self._last.put(events).pipe(share_kept(self._keep))
        self.end: Observable[Any] = SourceObservable("rd.stream", self._read)
        look = lift_map("rd.stream", lambda _: _Look(self), emits="newest")
        snapshots: Observable[Snapshot] = self.events.pipe(look)
        self.snapshots = snapshots if pace is None else snapshots.pipe(pace)
        self.text_deltas: Observable[str] = self.events.pipe(text_deltas())

    def _keep(self, limits: Limits) -> _Picture:
        self._picture = _Picture(self, Fold(choice=self._last.sink.choice, limits=limits), limits)
        return self._picture

    def _read(self, reader: Taker[Any], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        """Read the reply to its end. To take its values here, too, would cost a queue: `_Picture` has seen them."""

        def fail(error: Exception) -> None:
            self.fail(error)
            reader.on_error(error)

        def complete() -> None:
            self._complete()
            reader.on_completed()

        self._reading.disposable = self.events.subscribe(None, fail, complete, scheduler=scheduler)
        return Disposable(self._leave_source)

    def _leave_source(self) -> None:
        self._reading.dispose()
        self._end(StreamInterrupted("nobody reads the reply any more", snapshot=self.snapshot))

    def fail(self, error: Exception, *, broken: bool = False) -> None:
        """The reply ends with an error: of the stream, or of its fold. Others may then go on to read the events."""
        if broken:
            self._last.sink.effect(self._leave_source)
        if not self._ended:
            picture = self._picture or self._keep(self._last.sink.limits)
            picture.look()
            _, told = picture.scan.fail(error)
            if self.is_coming():  # otherwise we have broken it off ourselves
                self._error = told
            self._end(told)

    def _complete(self) -> None:
        if not self._ended:
            stopped = self._stopped or self.snapshot.status == "interrupted"
            if self._picture is not None:
                self._picture.scan.close()
            self._no_message = "was stopped before its end" if stopped else None
            self._end(None)

    def _end(self, error: Exception | None) -> None:
        if not self._ended:
            self.end_error, self._ended = error, True
            self.changes.changed()
            self.over.changed()

    @property
    def snapshot(self) -> Snapshot:
        return self.empty if self._picture is None else self._picture.look()

    def state(self) -> str:
        if self._error is not None:
            return f"failed with {type(self._error).__name__}"
        if self.is_coming():
            return "is coming"
        return "has ended" if self._no_message is None else "was broken off"

    def is_coming(self) -> bool:
        return self._no_message is _COMING and self._error is None

    def stop(self, reason: str) -> None:
        if self.is_coming():
            self._stopped = True
            self._first.break_off(partial(_interrupt, reason or "stopped"))
            loop = running_loop()
            if loop is None:
                # The loop's thread may be emitting, and then ends the reply in its next turn.
                self.over.wait_here(0, CLOSE_SECONDS)
            else:
                # A signal's handler runs while the loop sleeps, and only this wakes it.
                loop.call_soon_threadsafe(lambda: None)

    def emit(self, event: Custom) -> None:
        if type(event) is not Custom:
            raise InvalidValueError.of([("event", event, "must be an events.Custom")])
        sink = self._last.sink
        sink.run(sink.on_next, event)

    def leave(self) -> None:
        """Break off what has not ended, so that the source is closed whoever still reads."""
        if self.is_coming():
            self._no_message = "was left before its end; `result()` inside the block waits for it"
            why = (
                "the block of rd.stream() was left before the reply had ended; "
                "who still reads its events needs the block open"
            )
            error = StreamInterrupted(why, snapshot=self.snapshot)
            self._first.close()
            self._middle.break_off(partial(fail, error))
            self._end(error)
        elif self._error is not None and not self.was_asked:
            _LOG.warning(
                "a reply failed, and nobody has read it; .message raises the error", exc_info=self._error
            )

    def message(self) -> Message:
        self.was_asked = True
        if self._error is not None:
            raise self._error
        if self._no_message is not None:
            raise IncompleteMessageError(f"the reply {self._no_message}", snapshot=self.snapshot)
        return self.snapshot.to_message()

    def result(self) -> Message:
        """The message of a reply that has ended."""
        if self.is_coming():
            self.check()
        return self.message()

    def failure(self, error: Exception) -> Exception:
        """The error of a stream with the snapshot, as a reader of snapshots gets it."""
        return self._error or error

    def check(self) -> None:
        """Raise the error with which the reply has ended, if it has."""
        if self.end_error is not None:
            raise self.end_error

    def looks(self) -> Generator[Snapshot | int]:
        """For one loop: the newest snapshot, if it is another, and always the last; or else the count to wait behind."""
        seen = self.empty
        while True:
            known, ended = self.changes.count, self._ended  # before the look: nothing is missed, nor the last
            picture = self._picture
            snapshot = seen if picture is None else picture.look()
            if snapshot is not seen:
                seen = snapshot
                yield snapshot
            if ended:
                self.check()
                return
            yield known

    async def newest(self) -> AsyncGenerator[Snapshot]:
        loop = needed_loop("rd.stream", "await it in a coroutine that asyncio.run() runs")
        count = 0
        for look in self.looks():
            if isinstance(look, int):
                await self.changes.wait(loop, look)
                continue
            yield look
            count += 1
            if not count % _YIELD_EVERY:
                await asyncio.sleep(0)

    def newest_here(self) -> Generator[Snapshot]:
        for look in self.looks():
            if isinstance(look, int):
                self.changes.wait_here(look)
            else:
                yield look


def _interrupt(reason: str, sink: Sink[Event]) -> None:
    sink.on_next(MessageInterrupted(reason))
    sink.on_completed()


class _Picture:
    """The reply so far: for those who look, and for late readers of the events. It is folded when somebody waits or looks."""

    def __init__(self, live: Live, fold: Fold, limits: Limits) -> None:
        self._live = live
        self._past = EventsSoFar(limits, whole=True, name="rd.stream")
        self.scan = Scan(fold)
        self._shown = live.empty
        self._is_broken = False
        self._tail = Tail(self._step, lambda _: None if self._is_broken else fold, RLock())

    def take(self, event: Event) -> None:
        changes = self._live.changes
        if changes.waiting:  # somebody looks at once
            self._tail.follow(None)
            self._step(event)
        else:
            self._tail.feed(event)
        changes.changed()

    def _step(self, event: Event) -> None:
        self._past.take(event)
        if not self._is_broken:
            try:
                self._shown = self.scan.step(event) or self._shown
            except Exception as error:
                self._is_broken = True
                self._live.fail(error, broken=True)

    def look(self) -> Snapshot:
        self._tail.settle()
        return self._shown

    def so_far(self) -> Sequence[Event]:
        self._tail.settle()
        return self._past.so_far()

    def snapshot(self) -> Snapshot | None:
        self._tail.settle()
        return self._past.snapshot()


class _Look:
    """The newest snapshot after each event, for a reader with a queue: one subscription's state."""

    def __init__(self, live: Live) -> None:
        self._live = live
        self._seen = live.empty

    def step(self, _: Event) -> Snapshot | None:
        before, self._seen = self._seen, self._live.snapshot
        if self._seen is not before:
            return self._seen
        self._live.check()
        return None

    def close(self) -> Iterable[Snapshot]:
        self._live.check()
        return ()

    def fail(self, error: Exception) -> tuple[Iterable[Snapshot], Exception]:
        return (), self._live.end_error or error
