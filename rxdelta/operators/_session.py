"""How a reader at one end of a pipeline and the pumps at the other find each other.

Observables carry neither "slow down" nor "have you closed?". The asyncio forms need both, so while they
subscribe they leave a session in the context, and every pump that is started by that subscription signs in. A
shared source, which has several readers, leaves one of its own, which speaks for all of them.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any, Protocol

__all__ = ["Pump", "Session", "SharedSession", "current_session"]


class Pump(Protocol):
    """What takes items out of a source and hands them on: a task, which has been told to stop or not."""

    task: asyncio.Task[None]
    stopped: bool


class _Room(Protocol):
    def is_set(self) -> bool: ...
    async def wait(self) -> Any: ...


class Session(Protocol):
    """What a pump knows of its reader."""

    @property
    def room(self) -> _Room:
        """Whether there is any; pumps wait for it before their next item."""
        ...

    def sign_in(self, pump: Pump) -> None: ...

    def fail(self, error: Exception) -> bool:
        """Tell the reader what was raised on the way to it; `False` if it is no longer there."""
        ...


current_session: ContextVar[Session | None] = ContextVar("rxdelta_session", default=None)


class SharedSession:
    """The readers of one shared source, as its pumps see them: there is room when all of them have room.

    A pump belongs to each of them, so that the last one who leaves can wait until it has closed. Readers on
    another loop than the source's can be waited for by nobody there, and don't count.
    """

    def __init__(self) -> None:
        self._loop = _running_loop()
        self._readers: tuple[Session, ...] = ()
        self._pumps: set[Pump] = set()

    @property
    def room(self) -> _Room:
        return self

    def join(self, reader: Session | None) -> None:
        if reader is None or self._loop is None or self._loop is not _running_loop():
            return
        self._readers = (*self._readers, reader)
        for pump in self._pumps:
            reader.sign_in(pump)

    def leave(self, reader: Session | None) -> None:
        if reader in self._readers:
            place = self._readers.index(reader)
            self._readers = self._readers[:place] + self._readers[place + 1 :]

    def sign_in(self, pump: Pump) -> None:
        self._pumps.add(pump)
        pump.task.add_done_callback(lambda _: self._pumps.discard(pump))
        for reader in self._readers:
            reader.sign_in(pump)

    def fail(self, error: Exception) -> bool:
        told = [reader.fail(error) for reader in self._readers]
        return any(told)

    def is_set(self) -> bool:
        return all(reader.room.is_set() for reader in self._readers)

    async def wait(self) -> None:
        while full := [reader for reader in self._readers if not reader.room.is_set()]:
            await full[0].room.wait()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
