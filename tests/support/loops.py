"""Running a coroutine so that nothing may be left behind, and streams that do as they are told."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["Stream", "run", "turns"]

T = TypeVar("T")
SECONDS = 60  # nothing here takes time; what hangs is found


def run(main: Callable[[], Coroutine[Any, Any, T]], *, reports: list[dict[str, Any]] | None = None) -> T:
    """What `main()` returns, with no task, thread, generator or report to the loop left behind. pytest refuses warnings."""
    told: list[dict[str, Any]] = [] if reports is None else reports

    async def watched() -> T:
        loop: Any = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        try:
            return await asyncio.wait_for(main(), SECONDS)
        finally:
            await turns()
            gc.collect()
            assert asyncio.all_tasks() == {asyncio.current_task()}
            open_still = getattr(loop, "_asyncgens", ())  # uvloop shows none
            assert [generator for generator in open_still if generator.ag_frame is not None] == []

    threads = set(threading.enumerate())
    gc.collect()
    gc.freeze()  # what is there needn't be looked through, now and by later tests
    result = asyncio.run(watched())
    gc.collect()
    for thread in set(threading.enumerate()) - threads:
        thread.join(
            SECONDS
        )  # the timer of an Observable may still return from the value that ended the reading
        assert not thread.is_alive()
    if reports is None:
        assert told == []
    return result


async def turns(count: int = 20) -> None:
    """Let everything run that can."""
    for _ in range(count):
        await asyncio.sleep(0)


class Stream(Generic[T]):
    """An SDK's stream: an async iterator with an async `close`. What it waits for is in the test's hands."""

    def __init__(self, *items: T, end: Exception | None = None, hold: bool = False) -> None:
        self.items = list(items)
        self.end = end
        self.hold = hold  # before the end
        self.go_on = asyncio.Event()
        self.given = 0
        self.closed = 0
        self.cancelled = 0

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        await asyncio.sleep(0)
        if self.given < len(self.items):
            self.given += 1
            return self.items[self.given - 1]
        try:
            if self.hold:
                await self.go_on.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise StopAsyncIteration if self.end is None else self.end

    async def close(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1
