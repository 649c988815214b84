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

__all__ = ["Pump", "Backpressure", "Session", "SharedSession", "current_session"]


class Pump(Protocol):
    """What takes items out of a source and hands them on: a task, which has been told to stop or not."""

    task: asyncio.Task[None]
    stopped: bool


class Backpressure:
    """Whether a reader has any, as it said when it was last asked.

    It is asked on any thread, waited for on the loop. Those who watch are told of each change, on the thread that
    made it and under the lock, so that they hear of all changes in their order; they take locks upstream only.
    """

    def __init__(self, has_room: Callable[[], bool], loop: asyncio.AbstractEventLoop | None) -> None:
        self._has_room = has_room
        self._loop = loop
        self._lock = RLock()
        self._ready = True
        self._changed = asyncio.Event()
        self._watchers: dict[object, Callable[[], None]] = {}

    def is_ready(self) -> bool:
        return self._ready

    async def wait(self) -> None:
        while not self._ready:
            self._changed.clear()
            if not self._ready:  # another thread may have been quicker
                await self._changed.wait()

    def update(self) -> None:
        """Ask the reader again; and once more after a change, since it may have read before it saw that."""
        with self._lock:
            while self._has_room() is not self._ready:
                self._ready = not self._ready
                for call in list(self._watchers.values()):
                    call()
                if self._ready:
                    self._wake()

    def watch(self, call: Callable[[], None]) -> abc.DisposableBase:
        who = object()
        with self._lock:
            self._watchers[who] = call
        return Disposable(partial(self._forget, who))

    def _forget(self, who: object) -> None:
        with self._lock:
            self._watchers.pop(who, None)

    def _wake(self) -> None:
        """An asyncio event must not be set on another thread."""
        if self._loop is None:
            self._changed.set()
        else:
            call_on(self._loop, self._changed.set)


class Session(Protocol):
    """What a pump, or an operator with a clock, a task or a branch, knows of its reader."""

    @property
    def backpressure(self) -> Backpressure:
        """Pumps wait for it before their next item."""
        ...

    def register(self, pump: Pump) -> None: ...

    def fail(self, error: Exception) -> bool:
        """Tell the reader what was raised on the way to it; `False` if it is no longer there."""
        ...

    def check_lag(self) -> None:
        """The source goes on for others although this reader has no room."""
        ...


current_session: ContextVar[Session | None] = ContextVar("rxdelta_session", default=None)


class _Reader:
    """One of those who read a shared source."""

    __slots__ = ("on_our_loop", "session", "watching")

    def __init__(self, session: Session, watching: abc.DisposableBase, on_our_loop: bool) -> None:
        self.session = session
        self.watching = watching
        self.on_our_loop = on_our_loop  # on the source's loop


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
        self._without_session = 0  # who have no session
        self._slow: tuple[Session, ...] = ()
        self._pumps: set[Pump] = set()
        self.backpressure = Backpressure(self._any_has_room, self._loop)

    def join(self, session: Session | None) -> None:
        if session is None:
            self._without_session += 1
        else:
            on_our_loop = self._loop is not None and self._loop is running_loop()
            reader = _Reader(session, session.backpressure.watch(self.backpressure.update), on_our_loop)
            self._readers = (*self._readers, reader)
            if on_our_loop:
                for pump in self._pumps:
                    session.register(pump)
        self.backpressure.update()

    def leave(self, session: Session | None) -> None:
        if session is None:
            self._without_session -= 1
        else:
            left = next(reader for reader in self._readers if reader.session is session)
            left.watching.dispose()
            self._readers = tuple(reader for reader in self._readers if reader is not left)
        self.backpressure.update()

    def register(self, pump: Pump) -> None:
        self._pumps.add(pump)
        pump.task.add_done_callback(lambda _: self._pumps.discard(pump))
        for reader in self._readers:
            if reader.on_our_loop:
                reader.session.register(pump)

    def fail(self, error: Exception) -> bool:
        told = [reader.session.fail(error) for reader in self._readers]
        self._end(error)
        return any(told)

    def check_lag(self) -> None:
        """Those who have no room have just been given more. A source that can't wait is nobody's fault."""
        if self._slow and self._pumps:
            for session in self._slow:
                session.check_lag()

    def _any_has_room(self) -> bool:
        self._slow = tuple(
            reader.session for reader in self._readers if not reader.session.backpressure.is_ready()
        )
        return self._without_session > 0 or not self._readers or len(self._slow) < len(self._readers)
