"""Time that passes at once: for asyncio, and for Observables that are given a scheduler.

The clock of its asyncio loop jumps to the next timer, unless something outside of the loop is at work.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import selectors
import threading
from collections.abc import Callable, Coroutine
from heapq import heappush
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, TypeVarTuple

from reactivex.scheduler import VirtualTimeScheduler

from rxdelta.core import InvalidValueError, RxDeltaError, Seconds, check_seconds
from rxdelta.runtime import running_loop

if TYPE_CHECKING:
    from concurrent.futures import Executor
    from contextvars import Context


T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_PATIENCE = 1.0  # real seconds for a thread that the loop doesn't know of
_MOST_JUMPS = 250_000
_MOST_PLACES = 5
_RESOLUTION = 1e-9  # seconds within which timers are due together, as on Linux; on Windows it would be 16 ms


class Clock:
    """The time, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0


class _Selector(selectors.DefaultSelector):
    """What the loop would wait for, it has waited for already."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._jumps = 0
        self.loop: VirtualLoop | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or self.loop is None or (timeout is not None and timeout <= 0):
            return ready
        if self.loop.is_awaiting_others():
            return self._really(timeout)
        if timeout is None:
            return self._last_chance(self.loop)
        self._jumps += 1
        if self._jumps > _MOST_JUMPS:
            raise RxDeltaError(
                f"the coroutine has not ended after {_MOST_JUMPS:,} jumps of the clock, at {self._clock.now:g} s: a "
                f"timer repeats, and nothing else happens{_places(self.loop)}; give the wait a limit with "
                "asyncio.timeout()"
            )
        self._clock.now += timeout
        return ready

    def close(self) -> None:
        super().close()
        self.loop = None  # a closed loop must not wait for the garbage collection

    def _really(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        began = monotonic()
        ready = super().select(timeout)
        passed = monotonic() - began
        # A timer that has become due is due on time, however late the machine woke up.
        self._clock.now += passed if timeout is None else min(passed, timeout) if ready else timeout
        return ready

    def _last_chance(self, loop: VirtualLoop) -> list[tuple[selectors.SelectorKey, int]]:
        """Raise, unless a thread that we don't know of calls."""
        if threading.active_count() > 1 and (ready := super().select(_PATIENCE)):
            return ready
        raise RxDeltaError(
            "nothing will ever happen again: no timer is set, no socket is watched, no process runs, and no thread "
            f"works for the loop{_places(loop)}; let the awaited event happen, or give the wait a limit with "
            "asyncio.timeout()"
        )


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that takes its time from a clock of ours, and moves that on where another loop would wait.

    Args:
        clock: Its clock. It continues where the loop before it ended.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._numbers = count()
        self._at_work = set[asyncio.Future[Any]]()  # results of threads
        # Processes: on some systems, threads of asyncio's wait for their ends.
        self._children: list[asyncio.SubprocessTransport] = []
        selector = _Selector(clock)
        super().__init__(selector)
        self._selector_map = selector.get_map()
        self._own_sockets = len(self._selector_map)  # what wakes it up from another thread
        selector.loop = self

    def time(self) -> float:
        return self._clock.now

    @property
    def _clock_resolution(self) -> float:
        """The base class reads this. A timer must be due when the clock has reached it, at any height of the clock."""
        return max(_RESOLUTION, math.ulp(self._clock.now))

    @_clock_resolution.setter
    def _clock_resolution(self, _: float) -> None: ...

    def is_awaiting_others(self) -> bool:
        """Whether a thread works for the loop, a process runs or a socket is watched: then time is real."""
        self._children = [child for child in self._children if child.get_returncode() is None]
        return bool(self._at_work or self._children) or len(self._selector_map) > self._own_sockets

    def wait_for_thread(self, future: asyncio.Future[Any]) -> None:
        """Take it that a thread works until the future is done (see `rxdelta.runtime.from_thread`)."""
        self._at_work.add(future)
        future.add_done_callback(self._at_work.discard)

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        future = super().run_in_executor(executor, func, *args)
        self.wait_for_thread(future)
        return future

    async def subprocess_exec(self, *args: Any, **options: Any) -> Any:
        made = await super().subprocess_exec(*args, **options)
        self._children.append(made[0])
        return made

    async def subprocess_shell(self, *args: Any, **options: Any) -> Any:
        made = await super().subprocess_shell(*args, **options)
        self._children.append(made[0])
        return made

    async def shutdown_default_executor(self, *args: Any, **options: Any) -> None:
        """As asyncio's own: another thread joins those of the executor, with a limit of five minutes."""
        joined = self.create_future()
        self.wait_for_thread(joined)
        try:
            await super().shutdown_default_executor(*args, **options)
        finally:
            joined.cancel()

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As asyncio's own, but timers of one time go off in the order in which they were set.

        asyncio's order is then any, which real clocks hide. A timer at infinity is no reason for a jump.
        """
        loop: Any = self
        loop._check_closed()
        if self.get_debug():
            loop._check_thread()
        timer: Any = _Timer(when, callback, args, self, context)
        timer.number = next(self._numbers)
        if when != math.inf:
            heappush(loop._scheduled, timer)
            timer._scheduled = True
        return timer  # type: ignore[no-any-return]


class _Timer(asyncio.TimerHandle):
    __slots__ = ("number",)
    number: int

    def __lt__(self, other: Any) -> bool:
        return (self.when(), self.number) < (other.when(), other.number)


def _places(loop: VirtualLoop) -> str:
    """Where the tasks wait, as `; main waits at line 7 of test_it.py`."""
    tasks: list[asyncio.Task[Any]] = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name())
    waiting = [
        f"{task.get_name()} waits at line {frame.f_lineno} of {frame.f_code.co_filename}, in {frame.f_code.co_name}"
        for task in tasks
        for frame in task.get_stack(limit=1)
    ]
    more = [f"{len(waiting) - _MOST_PLACES} more wait"] if len(waiting) > _MOST_PLACES else []
    return "".join(f"; {each}" for each in waiting[:_MOST_PLACES] + more)


class VirtualTime:
    """Time for tests: two hours of pauses pass in a millisecond, and each timer goes off exactly when it is due.

    `run` is for asyncio: everything that goes by the loop's clock is exact in it. That is `asyncio.sleep`,
    `asyncio.timeout`, `rd.stream` and its `every=`, all operators that pace, limit or wait, the limits of tools, and a
    `Relay` without a server. `scheduler` is for Observables without asyncio. Each of the two has its own clock, which
    begins at 0.

    **Real time.** While a thread works for the loop, a process runs or a socket is watched, the loop waits
    for it, and the clock of `run` continues as a real one: a limit of 30 s leaves a sync tool 30 real seconds. A thread is known if
    `asyncio.to_thread` or `run_in_executor` started it, if it runs a sync tool, or if it reads a sync source. The clock
    jumps over the work of other threads. A server that listens in the coroutine is a watched socket. `time.time`,
    `time.monotonic`, `time.sleep` and `datetime.now` stay real everywhere; the time that code itself takes doesn't
    count.

    Attributes:
        scheduler: The virtual scheduler, in seconds. Its `start()` runs all timers, `advance_to(seconds)` those that
            are due by then. `run` doesn't start it.

    Example:
        >>> import asyncio
        >>> from rxdelta.testing import VirtualTime
        >>> async def slow():
        ...     await asyncio.sleep(7200)
        ...     return "done"
        >>> time = VirtualTime()
        >>> time.run(slow()), time.elapsed
        ('done', 7200.0)
    """

    def __init__(self) -> None:
        self.scheduler: VirtualTimeScheduler = _Scheduler()
        self._clock = Clock()

    @property
    def elapsed(self) -> float:
        """The virtual seconds that have passed in `run`, so far and in all runs together."""
        return self._clock.now

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine to its end, as `asyncio.run` does, and return its result.

        Tasks that are left over are cancelled, and async generators are closed. Each run has a loop of its own. The
        clock of the first begins at 0; that of the next continues where the last one ended.

        Raises:
            InvalidValueError: It isn't a coroutine (a function is to be called: `run(main())`), or a loop is running
                in this thread already.
            RxDeltaError: The coroutine can never end: it waits for something, but no timer is set, no socket is
                watched, no process runs and no thread works for the loop. Or it has not ended after 250,000 jumps of the clock,
                since a timer repeats for ever. The message says where each task waits.
            BaseException: Whatever the coroutine raises, unchanged.
        """
        fault = _fault(coroutine)
        if fault is not None:
            if inspect.iscoroutine(coroutine):
                coroutine.close()  # else Python warns: never awaited
            raise InvalidValueError.of([("coroutine", coroutine, fault)])
        with asyncio.Runner(loop_factory=lambda: VirtualLoop(self._clock)) as runner:
            return runner.run(coroutine)

    def advance(self, seconds: Seconds) -> None:
        """Let time pass while the loop is busy, as code does that blocks it: nothing happens meanwhile.

        Called within `run`, in place of `time.sleep`. Timers that become due go off when the loop runs again.

        Args:
            seconds: How long, in seconds or as a `timedelta`.

        Raises:
            InvalidValueError: The time isn't positive.

        Example:
            >>> import asyncio
            >>> from rxdelta.testing import VirtualTime
            >>> time = VirtualTime()
            >>> async def blocks():
            ...     async with asyncio.timeout(5):
            ...         time.advance(8)
            ...         await asyncio.sleep(0.5)
            >>> time.run(blocks())
            Traceback (most recent call last):
            TimeoutError
            >>> time.elapsed
            8.0
        """
        self._clock.now += check_seconds("seconds", seconds)


def _fault(coroutine: object) -> str | None:
    if inspect.iscoroutinefunction(coroutine):
        return "must be a coroutine, not the function that makes one: call it, as in run(main())"
    if not inspect.iscoroutine(coroutine):
        return "must be a coroutine, as an `async def` function returns one"
    if running_loop() is not None:
        return "can't run here, because a loop is running in this thread already: await it, or use a sync function"
    return None


class _Scheduler(VirtualTimeScheduler):
    """Rx's own moves its clock on by a second after a hundred actions at one time. This one doesn't."""

    def start(self) -> None:
        with self._lock:
            if self._is_enabled:
                return
            self._is_enabled = True
        try:
            while self._is_enabled and self._queue:
                with self._lock:
                    item = self._queue.dequeue()
                    if item.duetime > self.now:
                        self._clock = self.to_seconds(item.duetime)
                if not item.is_cancelled():
                    item.invoke()
        finally:
            self.stop()
