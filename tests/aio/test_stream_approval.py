"""A person decides about the calls of `rd.stream`."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.loops import run

import rxdelta as rd

ev = rd.events
STARTS = {"type": "tool_call", "id": "c1", "name": "roll", "args": {"dice": 2}}
THEIRS = {"type": "server_tool_call", "id": "s1", "name": "search", "args": {}}
EVENTS: list[rd.Event] = [
    ev.MessageStart("m"),
    ev.BlockStart(0, STARTS),
    ev.BlockFinish(0),
    ev.BlockStart(1, THEIRS),
    ev.ToolUpdate("s1", "awaiting_approval"),
    ev.BlockFinish(1),
    ev.MessageFinish("tool_use"),
]


def unwanted(dice: int) -> None:
    pytest.fail(f"run with {dice}")


def statuses(reply: rd.Snapshot | rd.Message) -> list[str]:
    return [block.execution_status() for block in reply.blocks if isinstance(block, rd.ToolCall)]


def test_the_reply_ends_when_the_person_has_answered_and_the_tools_have_ended() -> None:
    async def main() -> None:
        answers = {"c1": True, "s1": False}

        async def approve(call: rd.ToolCall) -> bool:
            await asyncio.sleep(0)
            return answers[call.call_id or ""]

        async with rd.stream(EVENTS, tools={"roll": lambda dice: dice}, approve=approve) as reply:
            message = await reply.result()
        assert statuses(message) == ["completed", "failed"]

    run(main)


def test_without_tools_only_the_provider_s_calls_are_decided() -> None:
    with rd.stream(EVENTS, approve=lambda _: True) as reply:
        assert statuses(reply.result()) == ["identified", "completed"]


def test_stopping_a_reply_while_a_call_waits_withdraws_the_question() -> None:
    async def main() -> None:
        asked, withdrawn = asyncio.Semaphore(0), asyncio.Semaphore(0)

        async def approve(_: rd.ToolCall) -> Any:
            asked.release()
            try:
                return await asyncio.get_running_loop().create_future()
            finally:
                withdrawn.release()

        async with rd.stream(EVENTS, tools={"roll": unwanted}, approve=approve) as reply:
            async for snapshot in reply:
                if snapshot.status == "complete" and len(snapshot.waiting_calls) == 2:
                    await asked.acquire()
                    await asked.acquire()
                    reply.stop()
            await withdrawn.acquire()
            await withdrawn.acquire()
        assert reply.snapshot.status == "complete"

    run(main)


def test_a_reply_without_a_decision_ends_and_goes_on_later() -> None:
    with rd.stream(EVENTS, tools={"roll": unwanted}, approve=lambda _: None) as reply:
        kept = reply.result()
    assert statuses(kept) == ["awaiting_approval"] * 2
    with rd.stream(rd.to_events(kept), tools={"roll": lambda dice: dice}, approve=lambda _: True) as reply:
        assert statuses(reply.result()) == ["completed", "completed"]


def test_approve_must_be_a_function() -> None:
    with pytest.raises(rd.InvalidValueError, match=r"^approve: must be a function"):
        rd.stream(EVENTS, approve=True)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
