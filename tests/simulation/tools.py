"""The tools that a model may call, each another kind of trouble, with what must become of the call; and who approves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, NoReturn

import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd
from rxdelta.runtime import LoopScheduler
from simulation.lane import Lane
from simulation.provider import SourceError
from simulation.world import Tools

ev = rd.events


class OddError(Exception):
    """An error that can't even be printed."""

    def __str__(self) -> str:
        raise ValueError("no text")


async def ok(n: int) -> dict[str, int]:
    return {"n": n}


def plain(n: int) -> int:
    return n


async def fail(n: int) -> NoReturn:
    await asyncio.sleep(0.1)
    raise ValueError(f"a secret of {n}")


async def told(n: int) -> NoReturn:
    raise rd.ToolError(f"no {n}")


async def slow(n: int) -> int:
    await asyncio.sleep(3)
    return n


async def odd(n: int) -> NoReturn:
    raise OddError(n)


async def hang(n: int) -> None:
    await asyncio.Event().wait()


async def base(n: int) -> NoReturn:
    raise SourceError(f"of tool {n}")


async def stop(n: int) -> NoReturn:
    raise StopAsyncIteration(n)


async def cancel(n: int) -> NoReturn:
    raise asyncio.CancelledError(n)


async def cancels_itself(n: int) -> int:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(1)
    return n


async def no_json(n: int) -> object:
    return object()


async def observable(n: int) -> rx.Observable[int]:
    return rx.timer(0.3, scheduler=LoopScheduler(asyncio.get_running_loop())).pipe(ops.map(lambda _: n))


async def progress(n: int) -> AsyncIterator[Any]:
    yield rd.ToolProgress(display_text="1")
    await asyncio.sleep(0.2)
    yield rd.ToolProgress(display_text="2")
    yield n


async def agent(n: int) -> AsyncIterator[Any]:
    yield ev.MessageStart("sub")
    yield ev.BlockStart(0, {"type": "text"})
    await asyncio.sleep(0.05)
    yield ev.TextDelta(0, f"sub {n}")
    yield ev.BlockFinish(0)
    yield ev.MessageFinish("stop")


async def custom(n: int) -> AsyncIterator[Any]:
    yield ev.Custom("x", n)
    await asyncio.sleep(0)
    yield n


FUNCTIONS: dict[str, Callable[[int], Any]] = {
    tool.__name__: tool
    for tool in (
        ok,
        plain,
        fail,
        told,
        slow,
        odd,
        hang,
        base,
        stop,
        cancel,
        cancels_itself,
        no_json,
        observable,
    )
}
GENERATORS: dict[str, Callable[[int], AsyncIterator[Any]]] = {
    tool.__name__: tool for tool in (progress, agent, custom)
}
KINDS = (*FUNCTIONS, *GENERATORS, "nobody")
"""`nobody` is a tool that there isn't."""
COMPLETES = {"ok", "plain", "slow", "observable", "progress", "agent", "custom"}


def outcome(kind: str, tools: Tools) -> str | None:
    """What must become of a whole call: `None` if it waits for ever, an empty text if nobody touches it."""
    if kind == "nobody":
        # Nobody runs it, so nobody asks a person either.
        return "failed" if tools.unknown == "fail" else ""
    match tools.approve:
        case "no" | "raises":
            return "failed"
        case "never":
            return None
        case "undecided":
            return "awaiting_approval"
    if kind == "hang":
        return "failed" if tools.timeout else None
    if kind == "slow" and tools.timeout:
        return "failed"
    return "completed" if kind in COMPLETES else "failed"


def tools_of(lane: Lane) -> dict[str, Any]:
    """The functions for `run_tools`, which note in the lane that they run."""

    def function(tool: Callable[[int], Any]) -> Any:
        if tool is plain:

            def run_plain(n: int, note: str) -> int:
                lane.ran[n] += 1
                return plain(n)

            return run_plain

        async def run(n: int, note: str) -> Any:
            lane.ran[n] += 1
            lane.at_work += 1
            try:
                return await tool(n)
            finally:
                lane.at_work -= 1

        return run

    def generator(tool: Callable[[int], AsyncIterator[Any]]) -> Any:
        async def run(n: int, note: str) -> AsyncIterator[Any]:
            lane.ran[n] += 1
            lane.at_work += 1
            try:
                async for each in tool(n):
                    yield each
            finally:
                lane.at_work -= 1

        return run

    return {name: function(tool) for name, tool in FUNCTIONS.items()} | {
        name: generator(tool) for name, tool in GENERATORS.items()
    }


def approve_of(tools: Tools) -> Any:
    how = tools.approve

    async def approve(_: Any) -> Any:
        match how:
            case "no":
                return rd.Approval(False, "no")
            case "late":
                await asyncio.sleep(4)
            case "never":
                await asyncio.Event().wait()
            case "undecided":
                return None
            case "raises":
                raise OddError
        return True

    return None if how is None else approve


def run_tools(tools: Tools, lane: Lane) -> Any:
    return rd.run_tools(
        tools_of(lane),
        max_concurrency=tools.most,
        timeout=tools.timeout,
        start=tools.start,  # type: ignore[arg-type]
        unknown=tools.unknown,  # type: ignore[arg-type]
        approve=approve_of(tools),
    )
