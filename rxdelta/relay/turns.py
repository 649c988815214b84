"""Turns: how a subscription of the relay continues, on its own clock, when another thread or the store has something for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from contextvars import copy_context
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import WeakValueDictionary

from rxdelta.runtime import Sink, loop_of, running_loop

if TYPE_CHECKING:
    import asyncio


T = TypeVar("T")

_A_TURN = 16
"""What a reader may emit in a turn: few, so that one that keeps up has its turn soon among many that are late."""
_TOGETHER = 64
"""What all may emit in an iteration: whatever stands behind a reader, such as an encoder, runs in it, too."""
_ALONE = 256
"""What a turn may cost that isn't one of many on a loop."""


class TakesTurns(ABC, Generic[T]):
    """A subscription that continues in turns. It is woken for each, by any thread; turns are taken on its own clock.

    Args:
        sink: Where it emits. A turn is one of the sink's.
        shares: Whether it shares what may be emitted in an iteration of its loop with all others that do.
    """

    def __init__(self, sink: Sink[T], *, shares: bool) -> None:
        self._sink = sink
        self._time = sink.clock()
        loop = loop_of(self._time) if shares else None
        self._together = None if loop is None else _turns_on(loop)
        self.context = copy_context()
        self._is_due = Lock()  # held while a turn is due
        self._left = 0  # of what the turn may cost

    def _wake(self) -> None:
        """Ask for a turn. Until it begins, to ask again changes nothing."""
        if self._is_due.acquire(False):
            if self._together is None:
                self._time.schedule_relative(0, self._take_alone)
            else:
                self._together.add(self)

    def _take_alone(self, *_: object) -> None:
        self.take_turn(_ALONE)

    def take_turn(self, most: int) -> int:
        """Emit for at most this cost, and return the cost: 1 for an event, and more for one that stands for many."""
        # Released before the turn: news during it asks for another turn.
        self._is_due.release()
        self._left = most
        self._sink.run(self._turn)
        return most - self._left

    @abstractmethod
    def _turn(self) -> None:
        """Emit as long as something of the turn is left, and count down what is left."""


class _Turns:
    """Those on one loop that have a turn to take. Any thread may add one."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due = deque[TakesTurns[Any]]()
        self._is_called = Lock()  # held while a call of the loop is due

    def add(self, one: TakesTurns[Any]) -> None:
        self._due.append(one)
        self._call()

    def _call(self) -> None:
        if not self._is_called.acquire(False):
            return
        if running_loop() is self._loop:
            self._loop.call_soon(self._run)
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        due, left = self._due, _TOGETHER
        try:
            while due and left > 0:
                one = due.popleft()
                left -= max(1, one.context.copy().run(one.take_turn, _A_TURN))
        finally:
            # Released before the look: a turn that another thread adds in between asks by itself.
            self._is_called.release()
            if due:
                self._call()


_MAKING = Lock()
_turns: WeakValueDictionary[asyncio.AbstractEventLoop, _Turns] = WeakValueDictionary()


def _turns_on(loop: asyncio.AbstractEventLoop) -> _Turns:
    with _MAKING:
        return _turns.setdefault(loop, _Turns(loop))
