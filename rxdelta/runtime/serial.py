"""Steps that run one at a time, in the order in which any threads gave them."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Serial"]

A = TypeVar("A")


class Serial:
    """Runs steps one at a time. The thread that finds it idle runs the queue; the others leave their steps and go on.

    So no caller waits for another caller's step, and a step that is given during a step runs after it. If a step
    raises, the caller that ran it gets the exception, and the next call runs the rest.

    Example:
        >>> import rxdelta as rd
        >>> serial = rd.Serial()
        >>> def step(number):
        ...     if number < 3:
        ...         serial.run(step, number + 1)
        ...     print(number)
        >>> serial.run(step, 1)
        1
        2
        3
    """

    __slots__ = ("_busy", "_steps")

    def __init__(self) -> None:
        self._busy = Lock()  # only tried, never waited for
        self._steps: deque[tuple[Callable[[Any], object], Any]] = deque()

    def run(self, step: Callable[[A], object], argument: A) -> None:
        """Run `step(argument)`: now if no step is running, otherwise after the steps given before it."""
        self._steps.append((step, argument))
        self.flush()

    def put(self, step: Callable[[A], object], argument: A) -> None:
        """Leave a step for the next call of `run` or `flush`. So an owner of several queues in all, then flushes each."""
        self._steps.append((step, argument))

    def flush(self) -> None:
        """Run the steps that wait, unless a step is running: its caller then runs them."""
        steps, busy = self._steps, self._busy
        while steps and busy.acquire(blocking=False):
            try:
                while steps:
                    step, argument = steps.popleft()
                    step(argument)
            finally:
                busy.release()

    def entry(self, step: Callable[[A], object]) -> Callable[[A], None]:
        """Return a function that runs this step with its argument, as `run` does, only faster."""
        steps, acquire, release, flush = self._steps, self._busy.acquire, self._busy.release, self.flush

        def enter(argument: A) -> None:
            if steps or not acquire(False):
                steps.append((step, argument))
            else:
                try:
                    step(argument)
                finally:
                    release()
            if steps:
                flush()

        return enter
