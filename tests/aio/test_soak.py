"""Ten thousand subscriptions left at random moments leave nothing behind: no task, timer, generator, thread or file."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.loops import run, turns
from support.replies import ANTHROPIC

import rxdelta as rd
from rxdelta.aio import pumps

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from reactivex import Observable

pytestmark = pytest.mark.slow

CYCLES = 10_000
WORKERS = 8  # so that readings overlap
SEED = 20_261


class World:
    """Sources that do as chance has it, and count what is opened and closed."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.counts: Counter[str] = Counter()

    async def source(self) -> AsyncIterator[dict[str, Any]]:
        self.counts["opened"] += 1
        file = Path(os.devnull).open("rb")  # noqa: SIM115
        try:
            for chunk in ANTHROPIC:
                if self.chance.random() < 0.5:
                    await asyncio.sleep(0)
                if self.chance.random() < 0.05:
                    raise ConnectionError("reset")
                yield chunk
            if self.chance.random() < 0.3:
                await asyncio.Event().wait()
        finally:
            file.close()
            self.counts["closed"] += 1
            await turns(self.chance.randrange(3))

    async def request(self) -> AsyncIterator[dict[str, Any]]:
        await turns(self.chance.randrange(3))
        return self.source()

    def blocking(self) -> Iterator[dict[str, Any]]:
        self.counts["opened"] += 1
        try:
            yield from ANTHROPIC
        finally:
            self.counts["closed"] += 1

    async def look(self, at: str) -> AsyncIterator[Any]:
        self.counts["opened"] += 1
        try:
            yield rd.ToolProgress(display_text="Looking")
            await turns(self.chance.randrange(6))
            if self.chance.random() < 0.2:
                raise ValueError(at)
            yield "calm"
        finally:
            self.counts["closed"] += 1


def pipelines(world: World) -> dict[str, Callable[[], Observable[Any]]]:
    """What is subscribed. Their timers wait for an hour: they end by being cancelled, or they are found."""

    def events() -> Observable[rd.Event]:
        return rd.from_async_iterable(world.request).pipe(rd.decode("anthropic-messages"))

    def blocking() -> Observable[rd.Event]:
        return rd.from_iterable(world.blocking).pipe(rd.decode("anthropic-messages"))

    def retried() -> Observable[rd.Event]:
        return rd.retry_stream(events, backoff=lambda failures, error: world.chance.choice([0, 3600]))

    shared = [events().pipe(rd.share_events(unread="restart")) for _ in range(2)]
    return {
        "throttle": lambda: events().pipe(rd.scan_deltas(), rd.throttle_latest(3600)),
        "debounce": lambda: events().pipe(rd.scan_deltas(), rd.debounce_latest(3600, max_wait=7200)),
        "compact": lambda: events().pipe(rd.compact_deltas(3600)),
        "smooth": lambda: events().pipe(rd.smooth("char", rate=1 / 3600, max_lag=7200)),
        "stall": lambda: rd.from_async_iterable(world.request).pipe(
            rd.stall_timeout(first=3600, idle=3600, total=7200), rd.decode("anthropic-messages")
        ),
        "share": lambda: world.chance.choice(shared),
        "tools": lambda: events().pipe(
            rd.run_tools({"look": world.look}, timeout=3600), rd.scan_deltas(), rd.until_all_tools_terminal()
        ),
        "retry": retried,
        "fallback": lambda: rd.fallback(events, events(), blocking),
        "race": lambda: rd.race(events, events, retried, after=world.chance.choice([0, 3600])),
        "all": lambda: retried().pipe(
            rd.run_tools({"look": world.look}),
            rd.share_events(),
            rd.scan_deltas(),
            rd.stall_timeout(idle=3600),
            rd.throttle_latest(3600),
        ),
        "thread": lambda: blocking().pipe(rd.scan_deltas(), rd.throttle_latest(3600)),
    }


async def cycle(world: World, pipeline: Observable[Any]) -> None:
    """Subscribe in one of the ways there are, and leave in one of the ways there are."""
    chance = world.chance
    overflow: Any = chance.choice(["latest", "buffer", "block", "error"])
    way = chance.randrange(5)
    if way == 0:
        subscription = pipeline.subscribe(lambda _: None, lambda _: None)
        await turns(chance.randrange(30))
        if chance.random() < 0.9:
            subscription.dispose()
        else:
            await asyncio.to_thread(subscription.dispose)
        return
    work: Any
    if way == 1:
        work = read_some(world, pipeline, overflow)
    elif way == 2:
        work = rd.for_each(pipeline, lambda _: asyncio.sleep(0), overflow=overflow)
    elif way == 3:
        work = rd.last_value(pipeline)
    else:
        work = rd.first_value(pipeline)
    task = asyncio.ensure_future(work)
    await turns(chance.randrange(30))
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        failure = task.exception()
        assert failure is None or isinstance(failure, (rd.RxDeltaError, ConnectionError)), failure


async def read_some(world: World, pipeline: Observable[Any], overflow: Any) -> None:
    left = world.chance.randrange(12)
    async with rd.to_async_iterable(pipeline, overflow, maxsize=2) as values:
        async for _ in values:
            left -= 1
            if left <= 0:
                return
    world.counts["read to the end"] += 1


def files() -> int | None:
    try:
        return len(os.listdir("/proc/self/fd"))
    except FileNotFoundError:
        return None


def waiting(loop: Any) -> list[Any]:
    """The loop's timers that haven't been cancelled."""
    return [timer for timer in loop._scheduled if not timer.cancelled()]


def test_ten_thousand_subscriptions_left_at_random_moments_leave_nothing() -> None:
    world = World(SEED)
    kinds = pipelines(world)
    names = [name for name in kinds for _ in range(1 if name == "thread" else 5)]
    threads = set(threading.enumerate())

    async def work(cycles: int) -> None:
        for _ in range(cycles):
            name = world.chance.choice(names)
            world.counts[name] += 1
            await cycle(world, kinds[name]())

    async def main() -> None:
        loop = asyncio.get_running_loop()
        before = waiting(loop)
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(work(CYCLES // WORKERS))
        while pumps._running:
            await asyncio.sleep(0)
        await turns(100)
        assert [timer for timer in waiting(loop) if timer not in before] == []
        await loop.shutdown_default_executor()

    held = files()
    run(main)
    gc.collect()
    assert sum(world.counts[name] for name in kinds) == CYCLES
    assert all(world.counts[name] > CYCLES / 100 for name in kinds)
    assert world.counts["opened"] == world.counts["closed"] > CYCLES / 2
    assert world.counts["read to the end"]
    assert set(threading.enumerate()) <= threads
    assert files() == held


@pytest.mark.parametrize("seed", range(3))
def test_readers_without_asyncio_that_leave_at_random_moments_leave_nothing(seed: int) -> None:
    world = World(seed)
    threads, held = set(threading.enumerate()), files()
    kinds = [pipelines(world)[name] for name in ("throttle", "stall", "tools", "thread")]
    for _ in range(60):
        with (
            suppress(rd.RxDeltaError, ConnectionError),
            rd.to_iterable(world.chance.choice(kinds)(), "block", maxsize=2) as values,
        ):
            next(values)
    gc.collect()
    assert world.counts["opened"] == world.counts["closed"] > 30
    assert set(threading.enumerate()) <= threads
    assert files() == held
