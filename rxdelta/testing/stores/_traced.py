"""A store whose calls are noted, so that a fault can tell what led to it, and whose calls must answer."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from rxdelta.relay import Answer, LogKey, Page, Record, Store, Topic

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence

    from rxdelta.relay import Terms

__all__ = ["Broken", "TooSlow", "Traced", "shown", "told"]

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
async def told(trace: Sequence[str] | deque[str], seconds: float, about: str = "") -> AsyncGenerator[None]:
    """Let what goes wrong within be told as a `Broken` with the calls that led there, also if it hangs."""
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
        name: Of the store in the trace.
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
