"""How a reader at one end of a pipeline and the pumps at the other find each other.

Observables carry neither "slow down" nor "have you closed?". The asyncio forms need both, so while they
subscribe they leave a session in the context, and every pump that is started by that subscription signs in. A
shared source, which has several readers, leaves one of its own, which speaks for all of them.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Protocol

from reactivex.disposable import Disposable

from rxdelta.runtime.loop import call_on, running_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import abc

__all__ = ["Pump", "Room", "Session", "SharedSession", "current_session"]


class Pump(Protocol):
    """What takes items out of a source and hands them on: a task, which has been told to stop or not."""

    task: asyncio.Task[None]
    stopped: bool


class Room:
    """Whether a reader has any, as it said when it was last asked.

    It is asked on any thread, waited for on the loop. Those who watch are told of each change, on the thread that
    made it and under the lock, so that they hear of all changes in their order; they take locks upstream only.
    """

    def __init__(self, has_some: Callable[[], bool], loop: asyncio.AbstractEventLoop | None) -> None:
        self._has_some = has_some
        self._loop = loop
        self._lock = RLock()
        self._is_set = True
        self._news = asyncio.Event()
        self._watching: dict[object, Callable[[], None]] = {}

    def is_set(self) -> bool:
        return self._is_set

    async def wait(self) -> None:
        while not self._is_set:
            self._news.clear()
            if not self._is_set:  # another thread may have been quicker
                await self._news.wait()

    def update(self) -> None:
        """Ask the reader again; and once more after a change, since it may have read before it saw that."""
        with self._lock:
            while self._has_some() is not self._is_set:
                self._is_set = not self._is_set
                for call in list(self._watching.values()):
                    call()
                if self._is_set:
                    self._wake()

    def watch(self, call: Callable[[], None]) -> abc.DisposableBase:
        who = object()
        with self._lock:
            self._watching[who] = call
        return Disposable(partial(self._forget, who))

    def _forget(self, who: object) -> None:
        with self._lock:
            self._watching.pop(who, None)

    def _wake(self) -> None:
        """An asyncio event must not be set on another thread."""
        if self._loop is None:
            self._news.set()
        else:
            call_on(self._loop, self._news.set)


class Session(Protocol):
    """What a pump, or an operator with a clock, a task or a branch, knows of its reader."""

    @property
    def room(self) -> Room:
        """Pumps wait for it before their next item."""
        ...

    def sign_in(self, pump: Pump) -> None: ...

    def fail(self, error: Exception) -> bool:
        """Tell the reader what was raised on the way to it; `False` if it is no longer there."""
        ...

    def overtaken(self) -> None:
        """The source goes on for others although this reader has no room."""
        ...


current_session: ContextVar[Session | None] = ContextVar("rxdelta_session", default=None)


class _Reader:
    """One of those who read a shared source."""

    __slots__ = ("is_near", "session", "watching")

    def __init__(self, session: Session, watching: abc.DisposableBase, is_near: bool) -> None:
        self.session = session
        self.watching = watching
        self.is_near = is_near  # on the source's loop


class SharedSession:
    """The readers of one shared source, as its pumps see them: there is room while any of them has room.

    So a reader that takes nothing, or that is read after another, holds nobody up. An observer of somebody's own, who
    has no session, always has room.

    A pump belongs to each of them, so that the last one who leaves can wait until it has closed; not to those on
    another loop, where nobody can wait for it.

    Args:
        end: Tells how the source ended to those who have no session, and to those who come later.
    """

    def __init__(self, end: Callable[[Exception], None]) -> None:
        self._end = end
        self._loop = running_loop()
        self._readers: tuple[_Reader, ...] = ()
        self._others = 0  # who have no session
        self._slow: tuple[Session, ...] = ()
        self._pumps: set[Pump] = set()
        self.room = Room(self._any_has_room, self._loop)

    def join(self, session: Session | None) -> None:
        if session is None:
            self._others += 1
        else:
            is_near = self._loop is not None and self._loop is running_loop()
            reader = _Reader(session, session.room.watch(self.room.update), is_near)
            self._readers = (*self._readers, reader)
            if is_near:
                for pump in self._pumps:
                    session.sign_in(pump)
        self.room.update()

    def leave(self, session: Session | None) -> None:
        if session is None:
            self._others -= 1
        else:
            left = next(reader for reader in self._readers if reader.session is session)
            left.watching.dispose()
            self._readers = tuple(reader for reader in self._readers if reader is not left)
        self.room.update()

    def sign_in(self, pump: Pump) -> None:
        self._pumps.add(pump)
        pump.task.add_done_callback(lambda _: self._pumps.discard(pump))
        for reader in self._readers:
            if reader.is_near:
                reader.session.sign_in(pump)

    def fail(self, error: Exception) -> bool:
        told = [reader.session.fail(error) for reader in self._readers]
        self._end(error)
        return any(told)

    def overtaken(self) -> None:
        """Those who have no room have just been given more. A source that can't wait is nobody's fault."""
        if self._slow and self._pumps:
            for session in self._slow:
                session.overtaken()

    def _any_has_room(self) -> bool:
        self._slow = tuple(reader.session for reader in self._readers if not reader.session.room.is_set())
        return self._others > 0 or not self._readers or len(self._slow) < len(self._readers)
