"""Steps that run one at a time, in the order in which any threads gave them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

A = TypeVar("A")

_MAKING = Lock()  # one is enough, because a queue is made once


class Serial:
    """Runs steps one at a time; it serialises calls, not data.

    The thread that finds it idle runs the queue; the others leave their steps and go on.

    So no caller waits for another caller's step, and a step that is given during a step runs after it. If a step
    raises, the caller that ran it gets the exception, and the next call runs the rest.

    Example:
        >>> import rxdelta as rd
        >>> serial = rd.building.Serial()
        >>> def step(number):
        ...     if number < 3:
        ...         serial.run(step, number + 1)
        ...     print(number)
        >>> serial.run(step, 1)
        1
        2
        3
    """

    __slots__ = ("_calm", "_effects", "_idle", "_steps")

    def __init__(self) -> None:
        # Empty during a step. To take the item is atomic, and faster than to try a lock.
        self._idle = [True]
        self._calm = [True]  # the same for effects
        self._effects: list[Callable[[], object]] = []
        self._steps: deque[tuple[Callable[[Any], object], Any]] | None = None  # from the first that waits on

    def run(self, step: Callable[[A], object], argument: A) -> None:
        """Run `step(argument)`: now if no step is running, otherwise after the steps given before it."""
        idle = self._idle
        if idle and not self._steps:
            try:
                idle.pop()
            except IndexError:  # another thread was quicker
                pass
            else:
                try:
                    step(argument)
                finally:
                    idle.append(True)
                if self._steps:  # another thread left a step before we were idle again
                    self.flush()
                return
        self.put(step, argument)
        self.flush()

    def put(self, step: Callable[[A], object], argument: A) -> None:
        """Leave a step for the next call of `run` or `flush`. So an owner of several queues in all, then flushes each."""
        if self._steps is None:
            with _MAKING:  # several threads may come at once
                self._steps = deque() if self._steps is None else self._steps
        self._steps.append((step, argument))

    def flush(self) -> None:
        """Run the steps that wait, unless a step is running: its caller then runs them."""
        steps, idle = self._steps, self._idle
        while steps:
            try:
                idle.pop()
            except IndexError:
                return
            try:
                while steps:
                    step, argument = steps.popleft()
                    step(argument)
            finally:
                idle.append(True)
            if self._effects:
                self._run_effects()

    def after(self, effect: Callable[[], object]) -> None:
        """Call this when no step is running or waiting. Steps may run meanwhile; other effects wait."""
        self._effects.append(effect)
        self.put(_nothing, None)
        self.flush()

    def _run_effects(self) -> None:
        effects, calm = self._effects, self._calm
        while effects:
            try:
                calm.pop()
            except IndexError:
                return
            try:
                while effects:
                    effects.pop(0)()
            finally:
                calm.append(True)


def _nothing(_: object) -> None:
    """A step that makes the running one flush, and so run the effects."""
