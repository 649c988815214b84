"""Many replies at once through `fallback` or `race`, `redact`, `guard` and `run_tools`: nothing is left over or leaks."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, operators as ops
from support.loops import run, turns
from support.tellings import Told, replies, strings, tell

import rxdelta as rd

ev = rd.events

PIPELINES = 500
subscribed = (
    rd.from_async_iterable
)  # its module has a generator, which is the running loop's if it is imported in one
SECRET, FORBIDDEN = "sk-abcdef0123", "Forbidden"
SENTENCES = ["Fine. ", f"My key is {SECRET}. ", "One more! ", "So be it? ", "It is so.\n"]


class World:
    """One pipeline's sources, checks and tools, by a seed; and what must come of them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.text = "".join(self.chance.choices(SENTENCES, k=self.chance.randrange(1, 8)))
        self.is_refused, self.to = False, "you"
        if self.chance.random() < 0.2:
            self.is_refused, self.text = True, f"{self.text}{FORBIDDEN}. And more. "
        if self.chance.random() < 0.2:
            self.is_refused, self.to = True, FORBIDDEN
        self.shown = self.text.replace(SECRET, "#")
        self.never = self.chance.random() < 0.15  # one of the checks gives no answer
        self.open: Counter[str] = Counter()
        self.passed = [""]
        self.ran = 0

    def source(self) -> Observable[rd.Event]:
        whole = tell(
            self.chance, self.text, kinds=["text"], lanes=False, blocks=1, takes_back=False, strays=False
        )
        start = ev.BlockStart(5, {"type": "tool_call_chunk", "id": "c", "name": "pay"})
        call = [
            start,
            ev.ToolCallDelta(5, '{"to": '),
            ev.ToolCallDelta(5, f'"{self.to}"}}'),
            ev.BlockFinish(5),
        ]
        body = [event for event in whole.events if not isinstance(event, ev.MessageFinish)]
        events = [*body, *call, ev.MessageFinish("tool_use")]
        if self.chance.random() < 0.2:
            events = [ev.MessageStart("m"), ev.MessageFinish("stop")]  # an empty reply

        async def read() -> AsyncIterator[rd.Event]:
            self.open["source"] += 1
            try:
                for event in events:
                    await turns(self.chance.choice([0, 0, 1, 3]))
                    if self.chance.random() < 0.01:
                        raise ConnectionError("reset")
                    yield event
            finally:
                self.open["source"] -= 1
                await turns(self.chance.randrange(3))

        return subscribed(read)

    def check(self, text: str) -> Any:
        def answer() -> bool:
            if FORBIDDEN in text:
                return False
            self.passed.append(text)
            return True

        async def later() -> bool:
            self.open["check"] += 1
            try:
                if self.never and self.chance.random() < 0.3:
                    await asyncio.Event().wait()
                await turns(self.chance.randrange(6))
                if FORBIDDEN in text and self.chance.random() < 0.5:
                    raise LookupError(text)
                return answer()
            finally:
                self.open["check"] -= 1

        def watched() -> Observable[bool]:
            self.open["check"] += 1
            answers = rx.from_future(asyncio.ensure_future(turns(2))).pipe(ops.map(lambda _: answer()))
            return answers.pipe(ops.finally_action(lambda: self.open.subtract(["check"])))

        way = self.chance.randrange(3)
        return answer() if way == 0 else later() if way == 1 else watched()

    async def pay(self, to: str = "") -> str:
        self.open["tool"] += 1
        self.ran += 1
        try:
            await turns(self.chance.randrange(5))
            if self.chance.random() < 0.2:
                raise ValueError(to)
            return "paid"
        finally:
            self.open["tool"] -= 1

    def pipeline(self) -> Observable[rd.Event]:
        sources = [self.source, self.source, self.source]
        after: Any = self.chance.choice([None, 0.0, 0.001])
        return (rd.fallback(*sources) if after is None else rd.race(*sources, after=after)).pipe(
            rd.redact(r"sk-\w{4,}", "#"),
            rd.guard(self.check, self.chance.choice(["word", "sentence", "block", 9])),
            rd.run_tools({"pay": self.pay}),
        )


async def one(seed: int) -> str:
    world = World(seed)
    found: list[rd.Event] = []
    overflow: Any = world.chance.choice(["block", "buffer"])
    reading = asyncio.ensure_future(rd.for_each(world.pipeline(), found.append, overflow=overflow))
    leaves = world.never or world.chance.random() < 0.3
    if leaves:
        await turns(world.chance.randrange(400))
        reading.cancel()
    await asyncio.wait([reading])
    for _ in range(10):  # what is cancelled takes its leave in the loop's next rounds
        await asyncio.sleep(0)
    assert +world.open == Counter()
    judge(world, found)
    if reading.cancelled():
        return "left"
    error = reading.exception()
    if error is not None:
        assert isinstance(error, (rd.RxDeltaError, ConnectionError)), error
        assert SECRET not in f"{error} {getattr(error, '__notes__', '')}"
        return "failed"
    return end(world, found)


def judge(world: World, found: list[rd.Event]) -> None:
    for event in found:
        assert not any(SECRET in one or FORBIDDEN in one for one in strings(event.to_dict()))
    for seen in replies(Told(found)).values():
        for snapshot in seen:
            assert world.shown.startswith(snapshot.text)
            assert any(passed.startswith(snapshot.text) for passed in world.passed)
    outcomes = [
        event
        for event in found
        if isinstance(event, ev.ToolUpdate) and event.execution_status in ("completed", "failed")
    ]
    assert len(outcomes) <= 1
    assert world.ran <= (world.to != FORBIDDEN)


def end(world: World, found: list[rd.Event]) -> str:
    seen = replies(Told(found)).get((None, 0), [rd.Snapshot()])
    last = seen[-1]
    if last.finish_reason == "content_filter":
        assert world.is_refused
        return "refused"
    if not last.tool_calls:
        assert last.text == ""  # all were empty
        return "empty"
    assert not world.is_refused
    assert last.text == world.shown
    assert world.ran == 1
    assert last.to_message().all_tools_terminal()
    return "whole"


@pytest.mark.slow
def test_five_hundred_guarded_replies_leave_nothing_behind() -> None:
    async def main() -> Counter[str]:
        return Counter(await asyncio.gather(*(one(seed) for seed in range(PIPELINES))))

    ended = run(main)
    assert ended.total() == PIPELINES
    for how in ("whole", "refused", "left", "failed", "empty"):
        assert ended[how], ended
