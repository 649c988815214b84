"""Time that passes at once: for asyncio, and for Observables that are given a scheduler."""

from __future__ import annotations

import asyncio
import inspect
from typing import TYPE_CHECKING, Any, TypeVar

from reactivex.scheduler import VirtualTimeScheduler

from rxdelta.core import InvalidValueError, check_seconds
from rxdelta.runtime import running_loop
from rxdelta.testing._virtual_loop import Clock, VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from rxdelta.core import Seconds

__all__ = ["VirtualTime"]

T = TypeVar("T")


class VirtualTime:
    """Time for tests: two hours of pauses pass in a millisecond, and each timer goes off exactly when it is due.

    `run` is for asyncio: everything that goes by the loop's clock is exact in it. That is `asyncio.sleep`,
    `asyncio.timeout`, `rd.stream` and its `every=`, all operators that pace, limit or wait, the limits of tools, and a
    `Relay` without a server. `scheduler` is for Observables without asyncio. Each of the two has its own clock, which
    begins at 0.

    **What isn't virtual.** While a thread works for the loop, a process runs or a socket is watched, the loop waits
    for it, and the clock of `run` goes on as a real one: a limit of 30 s leaves a sync tool 30 real seconds. A thread is known if
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
        clock of the first begins at 0; that of the next goes on where the last one ended.

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
