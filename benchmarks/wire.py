"""What a token costs on its way to a browser: bytes and time, against pydantic-ai's adapters for the same protocols.

Both get a reply as events of their own (a text of many deltas, then a call whose arguments come in pieces) and
give the bytes of the response. Run with `python benchmarks/wire.py [deltas]`.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from pydantic_ai.messages import (
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolCallPartDelta,
)
from pydantic_ai.ui.ag_ui import AGUIEventStream
from pydantic_ai.ui.vercel_ai import VercelAIEventStream

import rxdelta as rd

WORD, PIECE = " word", '"x", '


def ours(deltas: int) -> list[rd.Event]:
    ev = rd.events
    return [
        ev.MessageStart("m1"),
        ev.BlockStart(0, {"type": "text"}),
        *(ev.TextDelta(0, WORD) for _ in range(deltas)),
        ev.BlockFinish(0),
        ev.BlockStart(1, {"type": "tool_call_chunk", "id": "call_1", "name": "tides"}),
        ev.ToolCallDelta(1, '{"ports": ['),
        *(ev.ToolCallDelta(1, PIECE) for _ in range(deltas)),
        ev.ToolCallDelta(1, '"y"]}'),
        ev.BlockFinish(1),
        ev.MessageFinish("tool_use"),
    ]


def theirs(deltas: int) -> list[Any]:
    text = TextPart(WORD * deltas)
    call = ToolCallPart("tides", '{"ports": [' + PIECE * deltas + '"y"]}', tool_call_id="call_1")
    return [
        PartStartEvent(index=0, part=TextPart("")),
        *(PartDeltaEvent(index=0, delta=TextPartDelta(WORD)) for _ in range(deltas)),
        PartEndEvent(index=0, part=text, next_part_kind="tool-call"),
        PartStartEvent(index=1, part=ToolCallPart("tides", "", tool_call_id="call_1")),
        PartDeltaEvent(index=1, delta=ToolCallPartDelta(args_delta='{"ports": [', tool_call_id="call_1")),
        *(
            PartDeltaEvent(index=1, delta=ToolCallPartDelta(args_delta=PIECE, tool_call_id="call_1"))
            for _ in range(deltas)
        ),
        PartDeltaEvent(index=1, delta=ToolCallPartDelta(args_delta='"y"]}', tool_call_id="call_1")),
        PartEndEvent(index=1, part=call),
    ]


def encoded(events: list[rd.Event], encoder: rd.wire.Encoder[Any]) -> int:
    size = sum(len(rd.wire.sse_frame(frame)) for event in events for frame in encoder.encode(event))
    return size + sum(len(rd.wire.sse_frame(frame)) for frame in encoder.close())


async def transformed(events: list[Any], stream: Any) -> int:
    async def source() -> AsyncIterator[Any]:
        for event in events:
            yield event

    size = 0
    async for data in stream.encode_stream(stream.transform_stream(source())):
        size += len(data.encode())
    return size


async def best(run: Callable[[], Awaitable[int]], times: int = 5) -> tuple[float, int]:
    found = float("inf")
    size = 0
    for _ in range(times):
        start = time.perf_counter()
        size = await run()
        found = min(found, time.perf_counter() - start)
    return found, size


async def main(deltas: int) -> None:
    from ag_ui.core import RunAgentInput

    mine, other = ours(deltas), theirs(deltas)
    run = RunAgentInput.model_validate(
        {
            "threadId": "t",
            "runId": "r",
            "state": {},
            "messages": [],
            "tools": [],
            "context": [],
            "forwardedProps": {},
        }
    )

    async def our_ai_sdk() -> int:
        return encoded(mine, rd.wire.AiSdkEncoder(message_id="m1"))

    async def our_ag_ui() -> int:
        return encoded(mine, rd.wire.AgUiEncoder("t", "r"))

    async def their_ai_sdk() -> int:
        return await transformed(other, VercelAIEventStream(None))

    async def their_ag_ui() -> int:
        return await transformed(other, AGUIEventStream(run))

    count = 2 * deltas
    print(f"{count} deltas               bytes a delta        µs a delta")
    print("                        ours   pydantic-ai   ours   pydantic-ai   ratio")
    for name, us, them in (("AI SDK", our_ai_sdk, their_ai_sdk), ("AG-UI", our_ag_ui, their_ag_ui)):
        (our_time, our_size), (their_time, their_size) = await best(us), await best(them)
        print(
            f"{name:22} {our_size / count:6.1f} {their_size / count:12.1f} {our_time / count * 1e6:7.1f}"
            f" {their_time / count * 1e6:12.1f} {their_time / our_time:8.1f}×"
        )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5_000))
