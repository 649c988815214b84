"""A store whose calls are noted and must answer, and a bad line to it.

A fault's report lists the calls that led to it. On a bad line calls come late, twice, not at all, or their answers are lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from rxdelta.relay import Answer, LogKey, Page, Record, Store, Terms, Topic

if TYPE_CHECKING:
    from collections import deque
    from random import Random


T = TypeVar("T")

_ANSWER_SECONDS = 30.0
_SHOWN = 60


class TooSlow(Exception):
    """The machine was too slow to say whether a law holds. It's tried again."""


class Broken(Exception):
    """A law doesn't hold. The text says what was seen.

    Attributes:
        trace: The calls that led there.
    """

    trace: Sequence[str] = ()

    def __str__(self) -> str:
        return "\n".join([*map(str, self.args), *["the last calls:"] * bool(self.trace), *self.trace])


@asynccontextmanager
async def as_broken(
    trace: Sequence[str] | deque[str], seconds: float, about: str = ""
) -> AsyncGenerator[None]:
    """Raise any fault within as a `Broken` with the calls that led there, also if it hangs."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except (NotImplementedError, TooSlow):
        raise
    except Exception as error:
        seen = f"{error}" if isinstance(error, Broken) else f"it raised {error!r}"
        if isinstance(error, TimeoutError) and limit.expired():
            seen = f"it isn't through after {seconds:g} seconds"
        broken = Broken(about + seen)
        broken.trace = [*trace]
        raise broken from error


class Traced(Store):
    """Passes calls on.

    Args:
        name: The store's name in the trace.
        store: Gets the calls.
        trace: Gets a line for each call.
        lets: Exceptions of the store that are passed on. Any other is a fault.
    """

    def __init__(
        self, name: str, store: Store, trace: deque[str], lets: tuple[type[Exception], ...] = ()
    ) -> None:
        self._name = name
        self._store = store
        self._trace = trace
        self._lets = lets

    async def _call(self, what: str, call: Coroutine[Any, Any, T], *given: object) -> T:
        said = f"{self._name}.{what}({', '.join(map(shown, given))})"
        limit = asyncio.timeout(_ANSWER_SECONDS)
        try:
            async with limit:
                answer = await call
        except (NotImplementedError, Broken):  # the latter of a store within
            raise
        except asyncio.CancelledError:
            self._trace.append(f"{said}: cancelled")
            raise
        except Exception as error:
            self._trace.append(f"{said} raised {error!r}")
            if limit.expired():
                raise Broken(f"{what} hasn't answered for {_ANSWER_SECONDS:g} seconds") from error
            if isinstance(error, self._lets):
                raise
            raise Broken(f"{what} raised {error!r}") from error
        self._trace.append(f"{said} -> {shown(answer)}")
        return answer

    async def open(self, terms: Terms) -> None:
        await self._call("open", self._store.open(terms))

    async def close(self) -> None:
        await self._call("close", self._store.close())

    async def begin(self, key: LogKey) -> str | None:
        return await self._call("begin", self._store.begin(key), key)

    async def append(self, key: LogKey, before: int | None, record: Record | None) -> Answer:
        return await self._call("append", self._store.append(key, before, record), key, before, record)

    async def bury(self, key: LogKey, sign: int | None, record: Record) -> bool:
        return await self._call("bury", self._store.bury(key, sign, record), key, sign, record)

    async def read(self, tenant: str, id: str, epoch: str | None, after: int, most: int) -> Page | None:
        call = self._store.read(tenant, id, epoch, after, most)
        given = LogKey(tenant, id, epoch or "any")
        return await self._call("read", call, given, after, most)

    async def stop(self, key: LogKey, token: str, reason: bytes) -> bool:
        return await self._call("stop", self._store.stop(key, token, reason), key, token, reason)

    async def free(self, key: LogKey) -> bool:
        return await self._call("free", self._store.free(key), key)

    async def names(self, tenant: str) -> Sequence[str]:
        return await self._call("names", self._store.names(tenant), tenant)

    def follow(self, topic: Topic, changed: Callable[[], None]) -> Callable[[], None]:
        self._trace.append(f"{self._name}.follow({topic.what} {shown(LogKey(*topic[1:]))})")
        return self._store.follow(topic, changed)

    async def total(self) -> int:
        return await self._call("total", self._store.total())

    async def probe(self) -> None:
        await self._call("probe", self._store.probe())


def shown(value: object) -> str:
    """A value on a part of a line."""
    match value:
        case LogKey(tenant, id, epoch):
            return f"{tenant}/{id[:20]}:{epoch[:4]}" if tenant else f"{id[:20]}:{epoch[:4]}"
        case Record(number, count):
            parts = [f"{count} events, {len(value.events)} bytes"] if count or value.events else []
            parts += [] if value.end is None else [f"dead {value.dead}" if value.dead else "end"]
            return f"#{number} ({', '.join(parts)})"
        case Page():
            numbers = [record.number for record in value.records]
            listed = f"#{numbers[0]}..#{numbers[-1]}" if numbers else "nothing"
            ended = ", ended" if value.has_ended else ""
            return f"{listed} of {value.epoch[:4]}, newest #{value.newest}{ended}, sign {value.sign}"
        case Answer(state, stop, is_named):
            return (
                state
                + (f", stop {stop[:20]!r}" if stop is not None else "")
                + ("" if is_named else ", no name")
            )
        case bytes() if len(value) > _SHOWN:
            return f"{len(value)} bytes"
        case _:
            text = repr(value)
            return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


_LATE = 0.05
_SLOW = 0.02


class Faulty(Store):
    """Passes calls on, some of them not as they should be.

    Args:
        store: Gets the calls. Its maker opens and closes it, unless `owns` says otherwise.
        chance: Decides what happens.
        note: Called with a line for each fault.
        rate: Which part of the calls something happens to.
        owns: Whether it opens and closes the store.

    Attributes:
        slow: The calls for which the store itself took long: when they ended, and after how many seconds.
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
        """Wait for the calls that are carried out later."""
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
