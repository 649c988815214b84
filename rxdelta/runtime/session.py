"""One session connects the reader of a pipeline with its sources.

Observables carry values and one end downstream, and a disposal upstream. Five questions have no place there, and
go past the Observables, through a session:

- *Room*: may the source go on? After each item a pump waits while `backpressure` isn't ready, that is, while the
  reader's queue is full, or while an operator on the way has closed its `Room`. Operators measure a provider's silence
  without the time in which there was no room.
- *Idleness*: does the reader wait for a value? An operator that keeps the newest value holds it until then.
- *End*: has the source closed? A pump registers with the session. A reader that leaves waits, for a bounded time,
  until the pumps that stopped with it have closed.
- *Failure*: who gets an exception that no source can catch, because a timer, a task or another reader's source was
  calling? `fail()` ends the reading and raises the exception at the reader. It returns `False` if the reader has
  left; the exception then belongs to the caller.
- *Log*: are the reader's events written into a log? An effect that must not be repeated waits for that, see `place`.

**Making a session.** Each function that reads (`to_async_iterable` and its kin) makes one for one reading. A shared source makes
a `SharedSession` for its own pumps: it is ready while any of its readers is, and passes pumps and exceptions on to
all of them. An operator with a `Room` makes one for what is in front of it. A plain `subscribe` makes none.

**Finding it.** A reader subscribes with a `SessionScheduler`, which carries the session. In Rx each operator passes
its subscriber's scheduler on, so the session reaches every source, also one that is subscribed later, on whatever
thread. `session_of(scheduler)` finds it. Some of Rx's own operators put another scheduler in its place, or none; the
table in `docs/reference/slow-readers.md` names them. For these the session is also the context's `current_session` during the
subscription. Python copies the context into each task and each call of a loop, but not into a thread. The scheduler
takes precedence, because the context may be that of another reader, whose source happens to be emitting. A `Room` is
found by the scheduler only: the context may be that of the value which an operator with a closed room works on, and what
is subscribed for that work must not wait for its end.

**Time.** A `SessionScheduler` takes its time from another scheduler: in a reader from its loop, in an operator
with `scheduler=` from that one. Work that is due now runs at once, on the calling thread, as in Rx without a
scheduler. So a stream subscribed during a notification misses none of the following ones. Work that is due later runs
on the loop. An action that raises fails the session, because a loop could only log the exception.

**Threads.** Everything may be called on any thread. A pump may run on another loop than the reader, which then can't
wait for its end. Watchers of the backpressure are called under its lock; nothing else is.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from reactivex.disposable import Disposable
from reactivex.scheduler import CurrentThreadScheduler, TimeoutScheduler
from reactivex.scheduler.periodicscheduler import PeriodicScheduler

from rxdelta.core import as_exception
from rxdelta.runtime.observables import OwnObservable, Taker
from rxdelta.runtime.place import (
    Bounds,
    bounds_here,
    current_journal,
    current_place,
    journaling,
    within,
)
from rxdelta.runtime.reader import (
    Backpressure,
    Idleness,
    Journal,
    Pump,
    Session,
    SharedIdleness,
    is_interrupt,
)

if TYPE_CHECKING:
    from datetime import datetime

    from reactivex import Observable, abc, typing


S = TypeVar("S")
T = TypeVar("T")


def current_session() -> Session | None:
    """The session of the context, without the rooms of operators."""
    session = current_place.get()[0]
    return None if session is None else _roomless(session)


class _RxTime(PeriodicScheduler):
    """The times of Rx's own defaults, for a subscription without a scheduler."""

    @property
    def now(self) -> datetime:
        return TimeoutScheduler.singleton().now

    def schedule(self, action: typing.ScheduledAction[S], state: S | None = None) -> abc.DisposableBase:
        return CurrentThreadScheduler.singleton().schedule(action, state)

    def schedule_relative(
        self, duetime: typing.RelativeTime, action: typing.ScheduledAction[S], state: S | None = None
    ) -> abc.DisposableBase:
        return TimeoutScheduler.singleton().schedule_relative(duetime, action, state)

    def schedule_absolute(
        self, duetime: typing.AbsoluteTime, action: typing.ScheduledAction[S], state: S | None = None
    ) -> abc.DisposableBase:
        return TimeoutScheduler.singleton().schedule_absolute(duetime, action, state)


_RX_TIME = _RxTime()


class SessionScheduler(PeriodicScheduler):
    """Carries a session and the bounds of a pipeline up that pipeline, with the time of another scheduler.

    Args:
        session: The session; `None` if nobody has made one, so that only the bounds are carried.
        time: The scheduler of the time; `None` for Rx's own defaults.
        bounds: The bounds; by default those that `time` carries.
    """

    def __init__(
        self, session: Session | None, time: abc.SchedulerBase | None, bounds: Bounds | None = None
    ) -> None:
        super().__init__()
        self.session = session
        if isinstance(time, SessionScheduler):
            bounds, time = bounds or time.bounds, time.time
        self.bounds: Bounds | None = bounds
        self.time: abc.SchedulerBase = time or _RX_TIME

    @property
    def has_time(self) -> bool:
        """Whether the subscriber chose the time."""
        return self.time is not _RX_TIME

    @property
    def now(self) -> datetime:
        return self.time.now

    def schedule(self, action: typing.ScheduledAction[S], state: S | None = None) -> abc.DisposableBase:
        return self.time.schedule(partial(self._run, action), state)

    def schedule_relative(
        self, duetime: typing.RelativeTime, action: typing.ScheduledAction[S], state: S | None = None
    ) -> abc.DisposableBase:
        return self.time.schedule_relative(duetime, partial(self._run, action), state)

    def schedule_absolute(
        self, duetime: typing.AbsoluteTime, action: typing.ScheduledAction[S], state: S | None = None
    ) -> abc.DisposableBase:
        return self.time.schedule_absolute(duetime, partial(self._run, action), state)

    def _run(
        self, action: typing.ScheduledAction[S], _: abc.SchedulerBase, state: S | None = None
    ) -> abc.DisposableBase:
        try:
            return self.invoke_action(action, state)
        except BaseException as error:
            failed = self.session is not None and self.session.fail(as_exception(error))
            if not failed or is_interrupt(error):
                raise
            return Disposable()


def session_of(scheduler: abc.SchedulerBase | None) -> Session | None:
    """Return the session of a subscription, by the scheduler that the subscriber gave."""
    if isinstance(scheduler, SessionScheduler) and scheduler.session is not None:
        return scheduler.session
    return current_session()


def carrying(session: Session | None, time: abc.SchedulerBase) -> abc.SchedulerBase:
    """Return a scheduler with this time that carries the session, if there is one."""
    if session is None or (isinstance(time, SessionScheduler) and time.session is session):
        return time
    return SessionScheduler(session, time)


def bounds_of(scheduler: abc.SchedulerBase | None) -> Bounds | None:
    """Return the bounds of the pipeline behind a subscription, by the scheduler that the subscriber gave."""
    carried = scheduler.bounds if isinstance(scheduler, SessionScheduler) else None
    return bounds_here() if carried is None else carried


@contextmanager
def subscribing(
    session: Session, time: abc.SchedulerBase | None, bounds: Bounds | None = None
) -> Generator[abc.SchedulerBase | None]:
    """Make all that is subscribed in this block belong to the session. The value is the scheduler to subscribe with.

    Without a time only the context carries the session, and the bounds, which are by default those of the time.
    """
    bounds = bounds or bounds_of(time)
    token = current_place.set((session, session.journal, None))
    try:
        with within(bounds):
            yield None if time is None else SessionScheduler(session, time, bounds)
    finally:
        current_place.reset(token)


def calling_for(session: Session | None, bounds: Bounds, call: Callable[[], object]) -> None:
    """Make all that is subscribed by this call, while another reader's source emits, belong to the session."""
    token = current_place.set((session, None if session is None else session.journal, bounds))
    try:
        call()
    finally:
        current_place.reset(token)


def journal_of(scheduler: abc.SchedulerBase | None) -> Journal | None:
    """Return the log of a subscription's events, by the scheduler that the subscriber gave."""
    if isinstance(scheduler, SessionScheduler) and scheduler.session is not None:
        return scheduler.session.journal
    return current_journal()


def logged(source: Observable[T], journal: Journal) -> Observable[T]:
    """The same source, whose operators find this log."""
    return _Logged(source, journal)


class _Logged(OwnObservable[T]):
    def __init__(self, source: Observable[T], journal: Journal) -> None:
        super().__init__()
        self._source = source
        self._journal = journal

    def _start(self, taker: Taker[T], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        if isinstance(scheduler, SessionScheduler) and scheduler.session is not None:
            scheduler = SessionScheduler(_LoggedSession(scheduler.session, self._journal), scheduler)
        with journaling(self._journal):
            return self._source.subscribe(*taker, scheduler=scheduler)


class _Passing:
    """The session of the streams in front of an operator: it passes all on to the session behind that."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.backpressure = session.backpressure
        self.idleness = session.idleness
        self.journal: Journal | None = session.journal

    def register(self, pump: Pump) -> None:
        self._session.register(pump)

    def fail(self, error: Exception) -> bool:
        return self._session.fail(error)

    def check_lag(self) -> None:
        self._session.check_lag()

    def roomless(self) -> Session:
        """The same session without rooms."""
        return self


class SideSession(_Passing):
    """The session of a stream whose values aren't for the reader, such as a signal: no operator holds them for it."""

    def __init__(self, session: Session) -> None:
        super().__init__(_roomless(session))
        self.idleness = Idleness(lambda: True)
        self.journal = None


class _LoggedSession(_Passing):
    """A reader whose events are written into a log before it gets them."""

    def __init__(self, session: Session, journal: Journal | None) -> None:
        super().__init__(session)
        self.journal = journal

    def roomless(self) -> Session:
        behind = _roomless(self._session)
        return self if behind is self._session else _LoggedSession(behind, self.journal)


class _InFront(_Passing):
    """The session in front of an operator with a room."""

    def __init__(self, session: Session, room: Room) -> None:
        super().__init__(session)
        self.backpressure = Backpressure(lambda: room.is_open)

    def check_lag(self) -> None:
        if not self._session.backpressure.is_ready():  # else it isn't the reader that is slow
            self._session.check_lag()

    def roomless(self) -> Session:
        return _roomless(self._session)


def _roomless(session: Session) -> Session:
    return session.roomless() if isinstance(session, _Passing) else session


class Room:
    """Whether an operator takes more values, in one subscription. The sources in front of it wait while it doesn't.

    It is also closed while the reader has no room. All may be called on any thread, and more than once: the last call
    counts. The end of the subscription opens the room for ever.

    Args:
        session: The operator's own session. Without one nobody waits.
    """

    def __init__(self, session: Session | None) -> None:
        self._closed: set[object] = set()  # by whom: by us, or by those whom we follow
        self._following: dict[object, abc.DisposableBase] = {}
        self._is_over = False
        self._behind = session
        self.session: Session | None = None if session is None else _InFront(session, self)
        if session is not None:
            self._follow(session.backpressure)

    @property
    def is_open(self) -> bool:
        return self._is_over or not self._closed

    def close(self) -> None:
        """Let the sources wait before their next value."""
        self._closed.add(self)
        self._update()

    def open(self) -> None:
        """Let the sources go on."""
        self._closed.discard(self)
        self._update()

    def dispose(self) -> None:
        self._is_over = True
        for following in tuple(self._following.values()):
            following.dispose()
        self._update()

    def follow(self, session: Session | None) -> abc.DisposableBase:
        """Be closed while a room of another subscription is that belongs to the same reader, such as that of a branch."""
        behind = self._behind
        if isinstance(session, _InFront) and behind is not None and _roomless(session) is _roomless(behind):
            return self._follow(session.backpressure)
        return Disposable()

    def _follow(self, other: Backpressure) -> abc.DisposableBase:
        who = object()

        def look() -> None:
            # Again after a change: another thread may have looked meanwhile.
            while (ready := other.is_ready()) is (who in self._closed):
                change = self._closed.discard if ready else self._closed.add
                change(who)
            self._update()

        def leave() -> None:
            watching.dispose()
            self._following.pop(who, None)
            self._closed.discard(who)
            self._update()

        watching = other.watch(look)
        self._following[who] = following = Disposable(leave)
        look()
        return following

    def _update(self) -> None:
        if self.session is not None:
            self.session.backpressure.update()


class SharedSession:
    """All readers of one shared source as a single session: there is room while any reader has room.

    So a stuck reader, or a reader that starts after another, doesn't block the source. A subscriber without a
    session always has room. A pump registers with every reader, so that the last reader to leave can wait until the
    pump has closed.

    It has no log: what is shared isn't one reader's alone.

    Args:
        end: Ends the source with an error for subscribers without a session and for late subscribers.
    """

    journal: Journal | None = None

    def __init__(self, end: Callable[[Exception], None]) -> None:
        self._end = end
        self._readers: tuple[
            tuple[Session, abc.DisposableBase], ...
        ] = ()  # and what watches their backpressure
        self._without_session = 0  # subscribers
        self._slow: tuple[Session, ...] = ()
        self._pumps: set[Pump] = set()
        self.backpressure = Backpressure(self._any_has_room)
        self.idleness = SharedIdleness(
            lambda: self._without_session > 0 or not self._readers,
            lambda: tuple(session.idleness for session, _ in self._readers),
        )

    def join(self, session: Session | None) -> None:
        if session is None:
            self._without_session += 1
        else:
            watching = session.backpressure.watch(self.backpressure.update)
            self._readers = (
                *self._readers,
                (session, watching),
            )  # a new tuple: other threads read the old one
            for pump in tuple(self._pumps):
                session.register(pump)
            self.idleness.ask()
        self.backpressure.update()

    def leave(self, session: Session | None) -> None:
        if session is None:
            self._without_session -= 1
        else:
            left = next(reader for reader in self._readers if reader[0] is session)
            left[1].dispose()
            self._readers = tuple(reader for reader in self._readers if reader is not left)
        self.backpressure.update()

    def register(self, pump: Pump) -> None:
        self._pumps.add(pump)
        pump.task.add_done_callback(lambda _: self._pumps.discard(pump))
        for session, _ in self._readers:
            session.register(pump)

    def fail(self, error: Exception) -> bool:
        delivered = [session.fail(error) for session, _ in self._readers]
        self._end(error)
        return any(delivered)

    def check_lag(self) -> None:
        """Check the readers that have just got a value without having room.

        Without a pump the source can't wait for anybody, so its readers aren't to blame.
        """
        if self._slow and self._pumps:
            for session in self._slow:
                session.check_lag()

    def _any_has_room(self) -> bool:
        self._slow = tuple(session for session, _ in self._readers if not session.backpressure.is_ready())
        return self._without_session > 0 or not self._readers or len(self._slow) < len(self._readers)
