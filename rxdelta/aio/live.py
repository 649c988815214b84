"""The reply behind `rd.stream`: one hub, which folds the events once and serves all readers.

The user's own operators stand in front of it, between two places at which the reply can be broken off.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Sequence
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias

from reactivex import Observable, abc
from reactivex.disposable import Disposable, SingleAssignmentDisposable

from rxdelta.aio.reading import CLOSE_SECONDS, Latch
from rxdelta.core import (
    Event,
    EventsSoFar,
    Fold,
    IncompleteMessageError,
    InvalidValueError,
    Limits,
    Message,
    Snapshot,
    StreamInterrupted,
    Tail,
)
from rxdelta.core.events import Custom, MessageInterrupted
from rxdelta.operators import Scan, share_kept, text_deltas
from rxdelta.runtime import (
    Sink,
    SourceObservable,
    Taker,
    all_events,
    call_on,
    create,
    lift_map,
    mark_of,
    needed_loop,
    running_loop,
)

if TYPE_CHECKING:
    from rxdelta.aio.queues import ReaderMeter
    from rxdelta.aio.threads import Gate

Operator: TypeAlias = Callable[[Observable[Event]], Observable[Event]]
"""An operator from events to events."""

_LOG = logging.getLogger("rxdelta")
_COMING = "is still coming: result() waits for its end"
_YIELD_EVERY = 64  # snapshots after which a loop that never waits lets asyncio's timers run


class Live:
    """The reply itself, behind both of its faces. Its methods may be called on any thread.

    Each event passes one place, in front of all readers, where the reply is kept, see `_Picture`. The newest snapshot is a
    latch: a reader gets it at once, or waits for a change. There is no queue of snapshots.
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
            _, shown = picture.scan.fail(error)
            if self.is_coming():  # otherwise we have broken it off ourselves
                self._error = shown
            self._end(shown)

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


def applied(
    field: str, operator: Callable[[Observable[Any]], Observable[Any]], source: Observable[Any]
) -> Observable[Event]:
    """The source behind the operator: events, as far as that is known.

    Raises:
        InvalidValueError: It is no operator, or what it emits are no events, or not all of them.
    """
    wanted = f"must be an operator that emits events, such as {'rd.decode(…)' if field == 'decode' else 'rd.smooth()'}"
    if isinstance(operator, (Observable, type)) or not callable(operator):
        raise InvalidValueError.of([(field, operator, wanted)])  # pyright: ignore[reportUnknownArgumentType]
    made: Observable[Any] = operator(source)
    if not isinstance(made, Observable):
        raise InvalidValueError.of(
            [(field, operator, f"{wanted}; this returned none: is it to be called first?")]
        )
    mark = mark_of(made)
    if mark is not None and mark.emits != "events":
        what = "only the newest" if mark.emits == "newest" else mark.emits
        cure = f"put it behind the reply: reply.events.pipe({mark.operator}(…))"
        if mark.emits == "chunks":
            cure = "put it into decode=, with decode() behind it"
        raise InvalidValueError(
            f"{field}: must emit events, and {mark.operator}() emits {what}; {cure}", field=field
        )
    return all_events("rd.stream", _unchanged)(made)


def _unchanged(source: Observable[Event]) -> Observable[Event]:
    return source


class Place:
    """A place in the pipeline at which the reply can be broken off: the source is closed, and the rest gets an end.

    When this place has had its end already, because the provider has ended, say, the next one behind it serves.
    """

    def __init__(self, behind: Place | None = None) -> None:
        self.sink: Any = None  # of the one subscription
        self._behind = behind
        self._end: Callable[[Sink[Event]], object] | None = None  # with which it was broken off

    def put(self, source: Observable[Event]) -> Observable[Event]:
        """The same events, up to here."""
        return create("rd.stream", partial(self._begin, source), emits="events")

    def _begin(self, source: Observable[Event], sink: Sink[Event]) -> None:
        self.sink, self.on_next = sink, self._taking(sink)
        sink.subscribe(source, self)

    def _taking(self, sink: Sink[Event]) -> Callable[[Event], object]:
        return sink.on_next

    def on_error(self, error: Exception) -> None:
        self.sink.on_error(error)
        self._go_on()

    def on_completed(self) -> None:
        self.sink.on_completed()
        self._go_on()

    def close(self) -> None:
        """Close the source."""
        if self.sink is not None:
            self.sink.dispose_source()

    def break_off(self, end: Callable[[Sink[Event]], object]) -> None:
        """End the rest by this function of a place's sink. It may be called on any thread."""
        self._end = end
        self.close()
        if self.sink is None or self.sink.closed:
            self._go_on()
        else:  # an end of the source that waits for its turn comes first, and then goes on to the next place
            self._turn()

    def _turn(self) -> None:
        self.sink.run(self._finish)

    def _finish(self) -> None:
        if self._end is not None:
            self._end(self.sink)

    def _go_on(self) -> None:
        if self._end is not None and self._behind is not None:
            self._behind.break_off(self._end)


class Front(Place):
    """The place in front of the user's operators.

    When the reply is broken off, these emit what they hold, but nothing waits for them: the next place is broken off as
    well. The operators run on the loop, if there is one. Their exceptions end the reply.
    """

    _behind: Place
    _loop: asyncio.AbstractEventLoop | None

    def _begin(self, source: Observable[Event], sink: Sink[Event]) -> None:
        if self.sink is not None:
            raise InvalidValueError(
                "an operator of through= subscribes the reply again, which is requested once: put share_events() in "
                "front of it, or give rd.retry_stream(…) as the source",
                field="through",
            )
        self._loop = running_loop()
        super()._begin(source, sink)

    def _taking(self, sink: Sink[Event]) -> Callable[[Event], object]:
        return partial(self._guarded, sink.on_next)

    def on_error(self, error: Exception) -> None:
        self._guarded(super().on_error, error)

    def on_completed(self) -> None:
        self._guarded(super().on_completed)

    def _turn(self) -> None:
        if self._loop is None:
            super()._turn()
        else:
            call_on(self._loop, super()._turn)

    def _finish(self) -> None:
        self._guarded(super()._finish)
        self._go_on()

    def _guarded(self, step: Callable[..., object], *arguments: Any) -> None:
        try:
            step(*arguments)
        except Exception as error:
            self._behind.break_off(partial(fail, error))


def fail(error: Exception, sink: Sink[Event]) -> None:
    """End a reply with an error, for `break_off`."""
    sink.on_error(error)
