"""Many streams with many tools at once, some failing, hanging or left: nothing is left over, nothing is wrong."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

import rxdelta as rd

ev = rd.events
STREAMS, CALLS = 1_000, 8
OUTCOMES = ("value", "error", "progress")


class Tools:
    """What the tools of one stream do, by a seed; and what must come of it."""

    def __init__(self, seed: int) -> None:
        self.pick = random.Random(seed)
        self.wants = [self.pick.choice(OUTCOMES) for _ in range(CALLS)]
        if self.pick.random() < 0.3:
            self.wants[self.pick.randrange(CALLS)] = "hang"
        self.open = 0

    async def act(self, n: int) -> Any:
        self.open += 1
        try:
            for _ in range(self.pick.randrange(4)):
                await asyncio.sleep(0)
            if self.wants[n] == "error":
                raise ValueError(n)
            if self.wants[n] == "hang":
                await asyncio.Event().wait()
            return {"n": n}
        finally:
            self.open -= 1

    async def tell(self, n: int) -> AsyncIterator[Any]:
        yield rd.ToolProgress(display_text=f"step {n}")
        yield await self.act(n)

    async def events(self) -> AsyncIterator[rd.Event]:
        yield ev.MessageStart("m")
        for n in range(CALLS):
            name = "tell" if self.wants[n] == "progress" else "act"
            yield ev.BlockStart(n, {"type": "tool_call_chunk", "id": f"c{n}", "name": name})
            yield ev.ToolCallDelta(n, f'{{"n": {n}}}')
            if self.pick.random() < 0.3:
                await asyncio.sleep(0)
            yield ev.BlockFinish(n)
        yield ev.MessageFinish("tool_use")


async def passes(text: str) -> bool:
    await asyncio.sleep(0)
    return text != "never"


async def one(seed: int) -> str:
    tools = Tools(seed)
    events = rd.from_async_iterable(tools.events)
    if seed % 3 == 0:
        events = events.pipe(rd.redact("never"), rd.guard(passes), rd.until_sequence("never"))
    pipeline = events.pipe(
        rd.run_tools({"act": tools.act, "tell": tools.tell}, max_concurrency=1 + seed % CALLS, timeout=2),
        rd.scan_deltas(),
        rd.until_all_tools_terminal(),
    )
    leave_after = tools.pick.randrange(1, 40) if seed % 5 == 0 else None
    last, count = rd.Snapshot(), 0
    async with rd.to_async_iterable(pipeline, overflow="buffer") as snapshots:
        async for last in snapshots:
            count += 1
            if count == leave_after:
                break
    for _ in range(3):  # a cancelled tool takes its leave in the loop's next round
        await asyncio.sleep(0)
    assert tools.open == 0
    if leave_after is not None and count == leave_after:
        return "left"
    message = last.to_message()
    assert message.all_tools_terminal()
    for n, call in enumerate(message.tool_calls):
        wanted = tools.wants[n]
        assert call.result is not None
        assert call.result.is_error is (call.execution_status() == "failed")
        told = rd.core.thaw(call.result.content)
        late = (
            told == "the tool did not end within 2 seconds"
        )  # as any may be, where the machine is slow enough
        assert late or (wanted != "hang" and told == {"error": "The tool failed."}.get(wanted, {"n": n}))
    return "done"


@pytest.mark.slow
def test_a_thousand_streams_leave_nothing_behind() -> None:
    async def main() -> tuple[list[str], int, list[Any]]:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: stray.append(context))
        ended = await asyncio.gather(*(one(seed) for seed in range(STREAMS)))
        for _ in range(5):
            await asyncio.sleep(0)
        timers = [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        return list(ended), len(asyncio.all_tasks()) - 1, timers

    stray: list[Any] = []
    threads = threading.active_count()
    ended, tasks, timers = asyncio.run(main())
    gc.collect()
    assert len(ended) == STREAMS
    assert ended.count("left") > STREAMS // 10
    assert (tasks, timers, stray) == (0, [], [])
    assert threading.active_count() <= threads
