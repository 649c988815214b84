"""The turns of readers: all on one loop share what they may emit in one of its iterations."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from rxdelta.runtime import running_loop

if TYPE_CHECKING:
    import asyncio
    from contextvars import Context

__all__ = ["Turns", "taken", "turns_on"]

_A_TURN = 16
"""What a reader may emit in a turn: few, so that one that keeps up has its turn soon among many that are late."""
_TOGETHER = 64
"""What all may emit in an iteration: whatever stands behind a reader, such as an encoder, runs in it, too."""


class _Reader(Protocol):
    @property
    def context(self) -> Context: ...

    def take_turn(self, most: int) -> int:
        """Emit at most so much, and return how much it was."""
        ...


class Turns:
    """The readers on one loop that have something to do. Any thread may add one, at most once at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due: deque[_Reader] = deque()
        self._asleep = deque([True])  # empty while a call of the loop is due

    def add(self, reader: _Reader) -> None:
        self._due.append(reader)
        if self._asleep and taken(self._asleep):
            self._call()

    def _call(self) -> None:
        if running_loop() is self._loop:
            self._loop.call_soon(self._run)
        else:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        due, left = self._due, _TOGETHER
        try:
            while due and left > 0:
                reader = due.popleft()
                left -= max(1, reader.context.copy().run(reader.take_turn, _A_TURN))
        finally:
            self._asleep.append(True)
            if due and taken(self._asleep):
                self._call()


_MAKING = Lock()
_turns: WeakValueDictionary[asyncio.AbstractEventLoop, Turns] = WeakValueDictionary()


def turns_on(loop: asyncio.AbstractEventLoop) -> Turns:
    """The turns on a loop, for all its readers the same."""
    with _MAKING:
        turns = _turns.get(loop)
        if turns is None:
            turns = _turns[loop] = Turns(loop)
        return turns


def taken(ticket: deque[bool]) -> bool:
    """Take the item of a deque that has at most one. Of several threads one gets it."""
    try:
        ticket.pop()
    except IndexError:
        return False
    return True
