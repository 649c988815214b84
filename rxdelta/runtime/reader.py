"""The reader of a pipeline, as its sources and operators see it: has it room, is it idle, and who gets an exception?"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Iterable
from contextvars import Context, copy_context
from functools import partial
from threading import RLock, current_thread, main_thread
from typing import TYPE_CHECKING, Protocol

from reactivex.disposable import Disposable

from rxdelta.core import Event, as_exception
from rxdelta.runtime.loop import call_on, running_loop

if TYPE_CHECKING:
    from reactivex import abc


class Idleness:
    """Tells operators that keep the newest value when their reader takes the next one.

    A value that is emitted to a busy reader waits in the reader's queue, and grows old there. The operator that holds it
    back instead can still replace it.

    All may be called on any thread. The reader calls `notify` when it begins to wait, and when it leaves.
    """

    def __init__(self, is_idle: Callable[[], bool]) -> None:
        self.is_idle = is_idle
        self._calls: list[tuple[Context, Callable[[], None]]] = []

    def when_idle(self, call: Callable[[], None]) -> None:
        """Call once, in this context, when the reader waits the next time. Ask `is_idle` again after this call."""
        self._calls.append((copy_context(), call))

    def notify(self) -> None:
        """Call those who asked, until one of them has given the reader a value."""
        while self._calls and self.is_idle():
            try:
                context, call = self._calls.pop(0)
            except IndexError:  # another thread was quicker
                return
            context.run(call)


class SharedIdleness(Idleness):
    """The readers of a shared source as one: idle while any of them is.

    Args:
        always: Whether there is a subscriber that can't say when it is busy, or nobody at all.
        readers: The others.
    """

    def __init__(self, always: Callable[[], bool], readers: Callable[[], Iterable[Idleness]]) -> None:
        super().__init__(lambda: always() or any(reader.is_idle() for reader in readers()))
        self._readers = readers
        self._asked: set[Hashable] = set()

    def when_idle(self, call: Callable[[], None]) -> None:
        super().when_idle(call)
        self.ask()

    def ask(self) -> None:
        """Ask each reader to call us, once, if there is something for it. To be repeated for a new reader."""
        if self._calls:
            for reader in self._readers():
                if reader not in self._asked:
                    self._asked.add(reader)
                    reader.when_idle(partial(self._answered, reader))

    def _answered(self, reader: Idleness) -> None:
        self._asked.discard(reader)
        self.notify()
        self.ask()


class Journal(Protocol):
    """The log of a stream that may outlive its program."""

    def when_written(self, event: Event, step: Callable[[bool], object]) -> abc.DisposableBase:
        """Call `step` once, on any thread: with `True` when the log has the event, or with `False` when it has ended.

        Ask before the event is emitted. Operators behind may hold it, or pass on a copy for another run.

        Returns:
            Disposing it forgets the step.
        """
        ...


class Pump(Protocol):
    """A task that takes items out of a source and emits them; `stopped` is whether it was asked to end."""

    task: asyncio.Task[None]
    stopped: bool


class Backpressure:
    """Whether a reader has room for more values: its last answer, and a way to wait for a better one.

    Any thread may update it, any loop may wait for it. Watchers are called for each change, on the thread that made the
    change. They are called under the lock, so that they see all changes in order; they may take locks upstream only,
    or two threads could deadlock.
    """

    def __init__(self, has_room: Callable[[], bool]) -> None:
        self._has_room = has_room
        self._lock = RLock()
        self._ready = True
        self._changed: dict[
            asyncio.AbstractEventLoop, asyncio.Event
        ] = {}  # for the pumps that wait on each loop
        self._watchers: dict[object, Callable[[], None]] = {}

    def is_ready(self) -> bool:
        return self._ready

    async def wait(self) -> None:
        loop = asyncio.get_running_loop()
        changed = self._changed.get(loop)
        if changed is None:
            changed = self._changed[loop] = asyncio.Event()
        while not self._ready:
            changed.clear()
            if not self._ready:  # another thread may have been quicker
                await changed.wait()

    def update(self) -> None:
        """Ask the reader again, and once more after a change: it may have read a value before it saw the change."""
        with self._lock:
            while self._has_room() is not self._ready:
                self._ready = not self._ready
                for call in list(self._watchers.values()):
                    call()
                if self._ready:
                    for loop, changed in list(self._changed.items()):
                        call_on(loop, changed.set)

    def watch(self, call: Callable[[], None]) -> abc.DisposableBase:
        who = object()
        with self._lock:
            self._watchers[who] = call
        return Disposable(partial(self._forget, who))

    def _forget(self, who: object) -> None:
        with self._lock:
            self._watchers.pop(who, None)


class Session(Protocol):
    """A reader, as a pump or an operator with a clock, a task or a branch sees it."""

    @property
    def backpressure(self) -> Backpressure:
        """Pumps wait for this before their next item."""
        ...

    @property
    def idleness(self) -> Idleness:
        """Operators that keep the newest value hold it until the reader is idle."""
        ...

    @property
    def journal(self) -> Journal | None:
        """The log that the reader's events are written into, see `place`."""
        ...

    def register(self, pump: Pump) -> None:
        """Let the reader wait for this pump's end when it leaves, if both are on one loop."""
        ...

    def fail(self, error: Exception) -> bool:
        """Raise an exception of the pipeline at the reader. Return `False` if the reader has left."""
        ...

    def check_lag(self) -> None:
        """End a reader that is too far behind: the source goes on for others, although this reader has no room."""
        ...


def is_interrupt(error: BaseException) -> bool:
    """Whether the exception interrupts the program, and is therefore raised again after its reader got it.

    This holds on the main thread only. On another thread it would only end the code that raised it, such as a
    reader's loop.
    """
    return isinstance(error, (KeyboardInterrupt, SystemExit)) and current_thread() is main_thread()


def report(error: BaseException, what: str, session: Session | None = None) -> None:
    """Raise the error at the session's reader; without a session, pass it to the running loop's exception handler.

    Without a running loop the error goes to the log `rxdelta`. The session is the one that was current when the
    operator was subscribed, because a timer or a task may run in another context.
    """
    if session is not None and session.fail(as_exception(error)):
        return
    loop = running_loop()
    if loop is None:
        logging.getLogger("rxdelta").error(what, exc_info=error)
    else:
        loop.call_exception_handler({"message": what, "exception": error})
