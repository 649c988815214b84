"""The scheduler that an operator takes its time from."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Thread
from time import monotonic, time as time_of_day
from typing import TYPE_CHECKING, Any, TypeVar

from reactivex.abc import DisposableBase
from reactivex.disposable import CompositeDisposable, Disposable, SingleAssignmentDisposable
from reactivex.scheduler import CurrentThreadScheduler
from reactivex.scheduler.periodicscheduler import PeriodicScheduler
from reactivex.scheduler.scheduler import Scheduler

from rxdelta.runtime.loop import call_on, running_loop
from rxdelta.runtime.session import SessionScheduler, carrying, session_of

if TYPE_CHECKING:
    from reactivex import abc, typing


ABOUT_NOW = 2e-6
"""Seconds within which two times are the same: schedulers count whole microseconds."""

S = TypeVar("S")
_LONGEST_WAIT = 3600.0  # seconds; a lock refuses to wait for years


def clock(
    chosen: abc.SchedulerBase | None, inherited: abc.SchedulerBase | None
) -> tuple[abc.SchedulerBase, abc.DisposableBase]:
    """Return the scheduler of one subscription and the disposable that ends with the subscription.

    The order of preference: the operator's own argument, the subscriber's scheduler, the running asyncio loop, a
    new thread. That thread ends with the subscription; Rx's default would start a thread for each timer. An action
    that raises fails the subscriber's session, whichever of them runs it.
    """
    owned: abc.DisposableBase = Disposable()
    time = chosen if chosen is not None else inherited
    if isinstance(time, SessionScheduler) and not time.has_time:
        time = None
    if time is None:
        loop = running_loop()
        if loop is not None:
            time = LoopScheduler(loop)
        else:
            time = owned = _ThreadScheduler()
    return carrying(session_of(inherited), time), owned


def deadline(
    time: tuple[abc.SchedulerBase, abc.DisposableBase], seconds: float, call: Callable[[], None]
) -> abc.DisposableBase:
    """Call once, by a clock: after these seconds, or already when its loop ends, which would never call a timer.

    Once disposed it isn't called. The clock is disposed, too.
    """
    scheduler, owned = time
    if isinstance(scheduler, SessionScheduler):
        scheduler = scheduler.time
    if isinstance(scheduler, LoopScheduler):
        return scheduler.deadline(seconds, call)

    def end(*_: object) -> None:
        call()

    return CompositeDisposable(scheduler.schedule_relative(seconds, end), owned)


def seconds(time: abc.SchedulerBase) -> Callable[[], float]:
    """A function that returns the scheduler's time in seconds since any moment. `now` makes a date, which costs more."""
    own = time.time if isinstance(time, SessionScheduler) else time
    if isinstance(own, LoopScheduler):
        return own.seconds
    return monotonic if isinstance(own, _ThreadScheduler) else lambda: own.now.timestamp()


def loop_of(time: abc.SchedulerBase) -> asyncio.AbstractEventLoop | None:
    """The loop whose time a scheduler of `clock` has, if it has a loop's."""
    own = time.time if isinstance(time, SessionScheduler) else time
    return own.loop if isinstance(own, LoopScheduler) else None


class LoopScheduler(PeriodicScheduler):
    """Timers on a loop, from any thread; what is due now runs at once, on the calling thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop
        self.seconds = loop.time
        self._epoch = time_of_day() - loop.time()

    @property
    def now(self) -> datetime:
        """The loop's time as the time of day. The wall clock may jump; the timers don't follow it."""
        return datetime.fromtimestamp(self._epoch + self.loop.time(), UTC)

    def schedule(self, action: typing.ScheduledAction[S], state: S | None = None) -> abc.DisposableBase:
        # A later start would lose values: the first of each group behind `group_by`, where `start_with` or `concat`
        # subscribes to the group.
        return CurrentThreadScheduler.singleton().schedule(action, state)

    def schedule_absolute(
        self, duetime: typing.AbsoluteTime, action: typing.ScheduledAction[S], state: S | None = None
    ) -> abc.DisposableBase:
        return self.schedule_relative(self.to_datetime(duetime) - self.now, action, state)

    def schedule_relative(
        self, duetime: typing.RelativeTime, action: typing.ScheduledAction[S], state: S | None = None
    ) -> abc.DisposableBase:
        due = self.loop.time() + self.to_seconds(duetime)
        timer = SingleAssignmentDisposable()
        handle: asyncio.TimerHandle | None = None

        def start() -> None:
            nonlocal handle
            if not timer.is_disposed:
                handle = self.loop.call_at(due, run)

        def run() -> None:
            if not timer.is_disposed:
                timer.disposable = self.invoke_action(action, state)

        def stop() -> None:
            if handle is not None:
                handle.cancel()

        def dispose() -> None:
            timer.dispose()
            call_on(self.loop, stop)

        call_on(self.loop, start)
        return Disposable(dispose)

    def deadline(self, seconds: float, call: Callable[[], None]) -> abc.DisposableBase:
        """Call once, after these seconds or when the loop ends: it cancels the task that waits for them."""
        due = self.loop.time() + seconds
        waiting = SingleAssignmentDisposable()

        def start() -> None:
            if not waiting.is_disposed:
                task = self.loop.create_task(asyncio.sleep(due - self.loop.time()))
                task.add_done_callback(end)
                waiting.disposable = Disposable(partial(call_on, self.loop, task.cancel))

        def end(_: object) -> None:
            if not waiting.is_disposed:
                call()

        if running_loop() is self.loop:
            start()
        else:
            try:
                self.loop.call_soon_threadsafe(start)
            except RuntimeError:  # the loop is closed
                call()
        return waiting


class _ThreadScheduler(Scheduler, DisposableBase):
    """Timers on one thread, which starts with the first timer and ends when disposed.

    Rx's `EventLoopScheduler` goes by the wall clock, which may jump. It also overlooks a `dispose` during an
    action, and its thread then stays for ever.
    """

    def __init__(self) -> None:
        self._queue: list[tuple[float, int, SingleAssignmentDisposable, Callable[[], Any]]] = []
        self._numbers = count()
        self._changed = Condition()
        self._thread: Thread | None = None
        self._disposed = False

    @property
    def now(self) -> datetime:
        return datetime.fromtimestamp(monotonic(), UTC)

    def schedule(self, action: typing.ScheduledAction[S], state: S | None = None) -> abc.DisposableBase:
        return self.schedule_relative(0, action, state)

    def schedule_absolute(
        self, duetime: typing.AbsoluteTime, action: typing.ScheduledAction[S], state: S | None = None
    ) -> abc.DisposableBase:
        return self.schedule_relative(self.to_datetime(duetime) - self.now, action, state)

    def schedule_relative(
        self, duetime: typing.RelativeTime, action: typing.ScheduledAction[S], state: S | None = None
    ) -> abc.DisposableBase:
        timer = SingleAssignmentDisposable()
        due = monotonic() + self.to_seconds(duetime)
        with self._changed:
            if not self._disposed:
                heappush(
                    self._queue, (due, next(self._numbers), timer, lambda: self.invoke_action(action, state))
                )
                self._changed.notify()
                if self._thread is None:
                    self._thread = Thread(target=self._run, name="rxdelta-timer", daemon=True)
                    self._thread.start()
        return timer

    def dispose(self) -> None:
        with self._changed:
            self._disposed = True
            self._queue.clear()
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._disposed and (wait := self._until_next()) > 0:
                    self._changed.wait(wait)
                if self._disposed:
                    return
                _, _, timer, action = heappop(self._queue)
            if not timer.is_disposed:
                timer.disposable = action()

    def _until_next(self) -> float:
        return min(self._queue[0][0] - monotonic(), _LONGEST_WAIT) if self._queue else _LONGEST_WAIT
