"""The connection between the reader of a pipeline and its sources: backpressure, closing and exceptions.

Observables carry neither "slow down" nor "have you closed?", so these three go past them, through a session.

- `to_async_iterable` and its kin create a session. It is the context's `current_session` while they subscribe.
- A pump (the task behind `from_async_iterable` or `from_iterable`) that starts during this subscription registers
  with the session. An operator with a timer, a task or a branch keeps the session for later.
- After each item a pump waits while the session's `backpressure` isn't ready, that is, while the reader's queue is
  full. A reader that leaves waits, for a bounded time, until the pumps that stopped with it have closed.
- An exception that no source can catch goes to `fail()`: it ends the reading and is raised at the reader.
- A shared source creates a `SharedSession` for its own pumps. It is ready while any of its readers is, and passes
  pumps and exceptions on to all of them.
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

__all__ = ["Pump", "Backpressure", "Session", "SharedSession", "current_session", "session_of"]


class Pump(Protocol):
    """A task that takes items out of a source and emits them; `stopped` is whether it was asked to end."""

    task: asyncio.Task[None]
    stopped: bool


class Backpressure:
    """Whether a reader has room for more values: its last answer, and a way to wait for a better one.

    Any thread may update it; only the loop waits for it. Watchers are called for each change, on the thread that
    made the change. They are called under the lock, so that they see all changes in order; they may take locks
    upstream only, or two threads could deadlock.
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
        """Ask the reader again, and once more after a change: it may have read a value before it saw the change."""
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
        # An asyncio event must not be set on another thread.
        if self._loop is None:
            self._changed.set()
        else:
            call_on(self._loop, self._changed.set)


class Session(Protocol):
    """A reader, as a pump or an operator with a clock, a task or a branch sees it."""

    @property
    def backpressure(self) -> Backpressure:
        """Pumps wait for this before their next item."""
        ...

    def register(self, pump: Pump) -> None: ...

    def fail(self, error: Exception) -> bool:
        """Raise an exception of the pipeline at the reader. Return `False` if the reader has left."""
        ...

    def check_lag(self) -> None:
        """End a reader that is too far behind: the source goes on for others, although this reader has no room."""
        ...


current_session: ContextVar[Session | None] = ContextVar("rxdelta_session", default=None)


def session_of(scheduler: abc.SchedulerBase | None) -> Session | None:  # noqa: ARG001
    """The session of a subscription, by the scheduler that the subscriber gave."""
    return current_session.get()


class _Reader:
    """One reader of a shared source."""

    __slots__ = ("on_our_loop", "session", "watching")

    def __init__(self, session: Session, watching: abc.DisposableBase, on_our_loop: bool) -> None:
        self.session = session
        self.watching = watching
        self.on_our_loop = on_our_loop  # the source's loop


class SharedSession:
    """All readers of one shared source as a single session: there is room while any reader has room.

    So a stuck reader, or a reader that starts after another, doesn't block the source. A subscriber without a
    session always has room.

    A pump registers with every reader on its loop, so that the last reader to leave can wait until the pump has
    closed. A reader on another loop couldn't wait for it.

    Args:
        end: Ends the source with an error for subscribers without a session and for late subscribers.
    """

    def __init__(self, end: Callable[[Exception], None]) -> None:
        self._end = end
        self._loop = running_loop()
        self._readers: tuple[_Reader, ...] = ()
        self._without_session = 0  # subscribers
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
        delivered = [reader.session.fail(error) for reader in self._readers]
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
        self._slow = tuple(
            reader.session for reader in self._readers if not reader.session.backpressure.is_ready()
        )
        return self._without_session > 0 or not self._readers or len(self._slow) < len(self._readers)
