"""A bad line between a relay and its store: calls come late, twice, not at all, or their answers are lost."""

from __future__ import annotations

import asyncio
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from rxdelta.relay import Answer, LogKey, Page, Record, Store, Topic
from rxdelta.testing.stores._traced import shown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence
    from random import Random

    from rxdelta.relay import Terms

__all__ = ["Faulty"]

T = TypeVar("T")
_LATE = 0.05
_SLOW = 0.02


class Faulty(Store):
    """Passes calls on, some of them not as they should be.

    Args:
        store: Gets the calls. It's opened and closed by who made it, unless `owns` says otherwise.
        chance: Decides what happens.
        note: Called with a line for each fault.
        rate: Which part of the calls something happens to.
        owns: Whether it opens and closes the store.

    Attributes:
        slow: Of the calls for which the store itself took long, when they ended and how many seconds that was.
    """

    def __init__(
        self,
        store: Store,
        chance: Random,
        note: Callable[[str], object],
        rate: float = 0.2,
        *,
        owns: bool = False,
    ) -> None:
        self._store = store
        self._chance = chance
        self._note = note
        self._owns = owns
        self._rate = rate
        self._late: list[asyncio.Task[Any]] = []
        self._is_dead = False
        self._goes = asyncio.Event()
        self._goes.set()
        self.slow: list[tuple[float, float]] = []

    def die(self) -> None:
        """Pass nothing on any more: the process is gone."""
        self._is_dead = True

    def hold(self) -> None:
        """Pass nothing on until `go`: the process has stopped, or its line is silent."""
        self._goes.clear()

    def go(self) -> None:
        self._goes.set()

    async def _call(self, what: str, call: Callable[..., Coroutine[Any, Any, T]], *given: Any) -> T:
        chance, call = self._chance, partial(self._timed, call)
        if chance.random() < 0.3:
            await asyncio.sleep(chance.uniform(0, 0.01))
        await self._goes.wait()
        if self._is_dead:
            raise ConnectionResetError("the check has ended this process")
        if chance.random() >= self._rate:
            return await call(*given)
        fate = chance.choice(
            ("request lost", "answer lost", "carried out later", "comes twice", "twice at once")
        )
        self._note(f"({what}({', '.join(map(shown, given))}): {fate})")
        if fate == "comes twice":
            await call(*given)
            return await call(*given)
        if fate == "twice at once":
            return (await asyncio.gather(call(*given), call(*given)))[0]
        if fate == "answer lost":
            await call(*given)
        if fate == "carried out later":
            later = self._later(partial(call, *given), chance.uniform(0, _LATE))
            self._late.append(asyncio.get_running_loop().create_task(later))
        raise ConnectionResetError(f"a fault of the check: {fate}")

    async def _timed(self, call: Callable[..., Coroutine[Any, Any, T]], *given: Any) -> T:
        begin = monotonic()
        try:
            return await call(*given)
        finally:
            if (seconds := monotonic() - begin) > _SLOW:
                self.slow.append((monotonic(), seconds))

    async def _later(self, call: Callable[[], Awaitable[object]], seconds: float) -> None:
        await asyncio.sleep(seconds)
        await call()

    async def settle(self) -> None:
        """Wait for what is carried out later."""
        await asyncio.gather(*self._late)

    async def open(self, terms: Terms) -> None:
        if self._owns:
            await self._store.open(terms)

    async def close(self) -> None:
        await asyncio.gather(*self._late, return_exceptions=True)
        if self._owns:
            await self._store.close()

    async def begin(self, key: LogKey) -> str | None:
        return await self._call("begin", self._store.begin, key)

    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        return await self._call("append", self._store.append, key, before, record)

    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        return await self._call("bury", self._store.bury, key, sign, record)

    async def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        return await self._call("read", self._store.read, tenant, id, epoch, after, most)

    async def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        return await self._call("stop", self._store.stop, key, token, reason)

    async def free(self, key: LogKey) -> bool:
        return await self._call("free", self._store.free, key)

    async def names(self, tenant: str) -> Sequence[str]:
        return await self._call("names", self._store.names, tenant)

    def follow(self, topic: Topic, changed: Callable[[], None]) -> Callable[[], None]:
        return self._store.follow(topic, changed)

    async def total(self) -> int:
        return await self._store.total()

    async def probe(self) -> None:
        await self._call("probe", self._store.probe)
