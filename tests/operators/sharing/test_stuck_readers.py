"""`share_events` and `share_latest`: a reader that is stuck holds up neither the others nor the source."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from typing import Any

import pytest
from reactivex import operators as ops
from reactivex.scheduler import EventLoopScheduler
from reactivex.subject import Subject
from support.loops import run as run_loop
from support.security_page import says

import rxdelta as rd

ev = rd.events
COUNT = 3_000  # more than the queue of a reader
KINDS: dict[str, Any] = {
    "text": lambda number: ev.TextDelta(0, f"{number} "),
    "a provider's own": lambda number: ev.ProviderEvent("p", "odd", {"number": number}),
    "usage": lambda number: ev.UsageUpdate(rd.TokenUsage(output_tokens=number)),
}


async def reply(kind: str) -> Any:
    yield ev.MessageStart("m")
    yield ev.BlockStart(0, {"type": "text"})
    for number in range(COUNT):
        yield KINDS[kind](number)
    yield ev.BlockFinish(0)
    yield ev.MessageFinish("stop")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("comes", ["first", "last"])
def test_doors_of_which_some_are_stuck(kind: str, comes: str) -> None:
    async def main() -> None:
        shared = rd.from_async_iterable(lambda: reply(kind)).pipe(rd.share_events())
        policies: list[Any] = ["block", "join", "buffer"]
        async with AsyncExitStack() as stuck:
            quick = rd.to_async_iterable(shared)
            values = await quick.__aenter__() if comes == "last" else None
            for policy in policies:
                await anext(await stuck.enter_async_context(rd.to_async_iterable(shared, policy, maxsize=4)))
            values = await quick.__aenter__() if values is None else values
            assert [event async for event in values][-1] == ev.MessageFinish("stop")
            await quick.__aexit__(None, None, None)

    run_loop(main)


@says("values by which a reader")
def test_who_is_stuck_far_behind_by_text_is_ended_and_who_comes_late_to_a_long_reply_is_not() -> None:
    async def reply() -> Any:
        yield ev.MessageStart("m")
        yield ev.BlockStart(0, {"type": "text"})
        for _ in range(600):
            yield ev.TextDelta(0, "x" * 50_000)  # 30 MB

    async def main() -> None:
        shared = rd.from_async_iterable(reply).pipe(rd.share_events())
        async with rd.to_async_iterable(shared) as quick, rd.to_async_iterable(shared, "join") as stuck:
            for _ in range(400):
                await anext(quick)
            async with rd.to_async_iterable(shared, "join") as late:  # gets 20 MB at once
                for _ in range(100):
                    await anext(quick)
                whole = await rd.last_value(rd.from_async_iterable(late).pipe(rd.scan_deltas()))
                assert whole.text == "x" * 30_000_000
            with pytest.raises(rd.errors.BufferOverflowError, match="bytes of text behind the others"):
                [event async for event in stuck]

    run_loop(main)


def test_a_thread_that_is_stuck() -> None:
    def blocking() -> Any:
        yield from (KINDS["a provider's own"](number) for number in range(COUNT))

    shared = rd.from_iterable(blocking).pipe(rd.share_events())
    holding, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with rd.to_iterable(shared, maxsize=4) as values:
            next(values)
            holding.set()
            go_on.wait(60)

    stuck = threading.Thread(target=hold)
    stuck.start()
    assert holding.wait(60)
    with rd.to_iterable(shared) as values:
        assert list(values)[-1] == KINDS["a provider's own"](COUNT - 1)
    go_on.set()
    stuck.join(60)


def test_an_observer_that_blocks_a_thread_of_its_own() -> None:
    source, go_on = Subject[int](), threading.Event()
    shared = source.pipe(rd.share_latest())
    own = EventLoopScheduler()
    slow: list[int] = []
    done = threading.Event()

    def draw(value: int) -> None:
        go_on.wait(60)
        slow.append(value)

    shared.pipe(ops.observe_on(own)).subscribe(draw, on_completed=done.set)
    quick: list[int] = []
    shared.subscribe(quick.append)
    for number in range(3):
        source.on_next(number)
    source.on_completed()
    assert (quick, slow) == ([0, 1, 2], [])
    go_on.set()
    assert done.wait(60)
    assert slow == [0, 1, 2]
    own.dispose()


def test_in_threads_one_loop_outlives_each_reader() -> None:
    go_on = threading.Event()

    def blocking() -> Any:
        yield 1
        go_on.wait(60)
        yield 2

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    shared = rd.from_iterable(blocking).pipe(rd.share_latest(grace=3600))
    for _ in range(2):  # the first leaves before the second comes
        with rd.to_iterable(shared, loop=loop) as values:
            assert next(values) == 1
    with rd.to_iterable(shared, loop=loop) as values:
        go_on.set()
        assert list(values) == [1, 2]
    loop.call_soon_threadsafe(loop.stop)
    thread.join(60)
    loop.close()
