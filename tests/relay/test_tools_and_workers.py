"""Tools, when the worker that runs them dies: a call is made once over all workers, unless the program says otherwise."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import Context
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, operators as ops
from relay.later import Later
from support.runs import call, text, turn

import rxdelta as rd
from rxdelta.relay import Relay
from rxdelta.relay.logs import Name
from rxdelta.testing import VirtualTime

ev = rd.events
Events = Observable[rd.Event]
CALLS = ("c1", "c2", "c3")
REPLY = turn(text(0, "I look."), *(call(n, one, one) for n, one in enumerate(CALLS, 1)), reason="tool_use")
NAME = Name("", "chat")
LATER = ("claim", "append", "end")


class Ran:
    """A tool that counts how often it was called with each argument."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    async def look(self, at: str) -> str:
        self.count[at] += 1
        await asyncio.sleep(0.1)
        return f"seen {at}"


def reply(*events: rd.Event) -> Events:
    """A reply whose events come one by one."""

    async def items() -> AsyncIterator[rd.Event]:
        for event in events or REPLY:
            yield event
            await asyncio.sleep(0.001)

    return rd.from_async_iterable(items)


async def settled() -> None:
    """Virtual time goes on until nothing happens but by an answer."""
    await asyncio.sleep(2)


async def in_log(later: Later) -> tuple[list[rd.Event], Exception | None]:
    """The log, and how it ended."""
    events: list[rd.Event] = []
    try:
        await rd.for_each(Relay(later.memory, 0.01, 10**6).watch("chat"), events.append)
    except rd.RxDeltaError as error:
        return events, error
    return events, None


async def die(relay: Relay, later: Later) -> None:
    """Kill the worker: none of its tasks goes on, and the store takes its publisher for dead."""
    later.die(NAME)
    for task in relay._runs:
        task.cancel()
    await asyncio.gather(*relay._runs, return_exceptions=True)


# How a reply is published. Each gets the events and an operator that runs the tools.

Tools = Callable[[Events], Events]


def read_and_yielded(source: Events, tools: Tools) -> Events:
    async def agent() -> AsyncIterator[rd.Event]:
        async with rd.to_async_iterable(source.pipe(tools), overflow="join") as told:
            async for event in told:
                yield event

    return rd.from_async_iterable(agent)


def iterated(source: Events, tools: Tools) -> Events:
    return rd.from_async_iterable(lambda: rd.iterate(source.pipe(tools)))


def iterated_on_a_thread(source: Events, tools: Tools) -> Events:
    def agent() -> Iterator[rd.Event]:
        with rd.to_iterable(source.pipe(tools)) as told:
            yield from told

    return rd.from_iterable(agent)


def told_from_elsewhere(source: Events, tools: Tools) -> Events:
    """The publication's context isn't that in which its second source is subscribed."""
    loop = asyncio.get_running_loop()
    begin = rx.create(lambda observer, _: Context().run(loop.call_later, 1, observer.on_next, 1) and None)
    return begin.pipe(ops.take(1), ops.flat_map(lambda _: iterated(source, tools)))


def begun_by_a_shared_one(source: Events, tools: Tools) -> Events:
    """The shared source has no log, and its context is that of the subscription."""
    bare = rx.create(lambda observer, _: source.pipe(tools).subscribe(observer))
    return reply(ev.MessageStart("m1")).pipe(rd.share_events(), ops.take(1), ops.flat_map(lambda _: bare))


SHAPES: dict[str, Callable[[Events, Tools], Events]] = {
    "plain": lambda source, tools: source.pipe(tools),
    "smooth": lambda source, tools: source.pipe(tools, rd.smooth()),
    "compact": lambda source, tools: source.pipe(tools, rd.compact_deltas(0.3)),
    "delayed": lambda source, tools: source.pipe(tools, ops.delay(0.5)),
    "named": lambda source, tools: source.pipe(tools, rd.with_run("a")),
    "named and slow": lambda source, tools: source.pipe(tools, rd.with_run("a"), rd.smooth()),
    "second": lambda source, tools: rx.concat(rx.empty(), source.pipe(tools)),
    "mapped": lambda source, tools: rx.timer(0.1).pipe(ops.flat_map(lambda _: source.pipe(tools))),
    "retried": lambda source, tools: rd.retry_stream(lambda: source).pipe(tools),
    "retried as a whole": lambda source, tools: rd.retry_stream(lambda: source.pipe(tools)),
    "read and yielded": read_and_yielded,
    "iterated": iterated,
    "begun by a shared one": begun_by_a_shared_one,
    "told from elsewhere": told_from_elsewhere,
    "iterated, then slow": lambda source, tools: iterated(source, tools).pipe(rd.smooth()),
}


async def until_dead(
    events: Events, later: Later, relay: Relay, appends: int, wait: Callable[[], Any] = settled
) -> bool:
    """Publish until so many events are in the log, then die. Return whether the reply had ended before."""
    starting = asyncio.create_task(relay.start("chat", events))
    written = 0
    while True:
        await wait()
        if not later.asked:
            assert (await starting, later.given_up) == (True, False)
            return True
        if written == appends and later.asked[0] != "claim":
            await die(relay, later)
            return False
        written += later.asked[0] == "append"
        later.answer(1)


async def went_on(later: Later, tools: Tools) -> list[rd.Event]:
    """What the next worker publishes, which goes on with the reply of the dead one."""
    relay = Relay(later.memory, 1.0, 10**6)
    _, error = await in_log(later)
    assert isinstance(error, rd.StreamInterrupted)
    events = [] if error.snapshot is None else rd.to_events(error.snapshot)
    assert await relay.start("chat/2", rx.from_iterable(events).pipe(tools))
    told: list[rd.Event] = []
    await rd.for_each(relay.watch("chat/2"), told.append)
    return told


def executing(events: list[rd.Event]) -> set[str]:
    return {
        event.call_id
        for event in events
        if isinstance(event, ev.ToolUpdate) and event.execution_status == "executing"
    }


@pytest.mark.parametrize(
    "options", [{}, {"max_concurrency": 1}, {"start": "message"}, {"approve": "all"}], ids=str
)
@pytest.mark.parametrize("shape", [key for key in SHAPES if "thread" not in key])
def test_no_tool_runs_twice_wherever_its_worker_dies(shape: str, options: dict[str, Any]) -> None:
    async def allow(_: object) -> bool:
        return True

    if "approve" in options:
        options = {"approve": allow}

    async def attempt(appends: int) -> tuple[bool, int]:
        ran, later = Ran(), Later(asyncio.get_running_loop(), LATER)
        relay = Relay(later, 10.0, 10**6)
        tools: Any = rd.run_tools({"look": ran.look}, **options)
        events = SHAPES[shape](reply(), tools)
        if await until_dead(events, later, relay, appends):
            log, error = await in_log(later)
            assert (error, ran.count) == (None, Counter(CALLS))
            assert executing(log) == set(CALLS)
            return True, 0
        first = Counter(ran.count)
        log, _ = await in_log(later)
        assert set(first) == executing(log)  # each tool that was called, and no other
        told = await went_on(later, rd.run_tools({"look": ran.look}, **options))
        assert max(ran.count.values(), default=0) <= 1
        snapshot = rd.Fold()
        for event in told:
            snapshot.step(event)
        if told:
            for one in snapshot.snapshot.tool_calls:
                status, result = one.execution_status(), one.result
                assert result is not None
                if status == "completed":
                    assert ran.count[one.call_id or ""] == 1
                else:
                    why = str(result.content)
                    assert "outcome isn't known" in why or "before the call was complete" in why
                    assert ("outcome" in why) == (one.call_id in first)
        return False, sum(ran.count.values())

    async def main() -> list[int]:
        counts: list[int] = []
        for appends in range(200):
            ended, count = await attempt(appends)
            if ended:
                return counts
            counts.append(count)
        raise AssertionError("it doesn't end")

    counts = VirtualTime().run(main())
    assert counts[0] == 0
    assert counts[-1] == len(CALLS)
    assert len(counts) > 15
