"""`EventStreamResponse(…, meter=…)`: what waits to be sent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.loops import run

import rxdelta as rd

asgi = pytest.importorskip("rxdelta.asgi")
ev = rd.events
SCOPE: Any = {"type": "http", "asgi": {"spec_version": "2.4"}, "method": "GET", "path": "/", "headers": []}


def test_responses_are_counted_together() -> None:
    meter = rd.ReaderMeter()
    at_the_end: list[rd.types.ReaderMetrics] = []

    async def main() -> None:
        reads_again, never = asyncio.Event(), asyncio.Event()

        async def reply() -> Any:
            yield ev.MessageStart("m")
            yield ev.BlockStart(0, {"type": "text"})
            for _ in range(200):
                yield ev.TextDelta(0, "x")
            at_the_end.append(meter.metrics)
            reads_again.set()
            yield ev.BlockFinish(0)
            yield ev.MessageFinish("stop")

        shared = rd.from_async_iterable(reply).pipe(rd.share_events())

        async def stuck(message: Any) -> None:
            if message.get("body"):
                await reads_again.wait()

        responses = [asgi.EventStreamResponse(shared, rd.to_ai_sdk(), meter=meter) for _ in range(2)]
        await asyncio.gather(*(response(SCOPE, never.wait, stuck) for response in responses))

    run(main)
    (waiting,) = at_the_end
    assert (waiting.readers, waiting.received) == (2, 404)
    assert waiting.joined > 300
    assert waiting.longest_queue < 8
    done = meter.metrics
    assert (done.readers, done.queued, done.unread, done.overflows) == (0, 0, 0, 0)
    assert done.received == done.delivered + done.joined == 408


def test_what_is_no_meter_is_refused_at_once() -> None:
    with pytest.raises(rd.InvalidValueError, match="ReaderMeter"):
        asgi.EventStreamResponse(rd.from_iterable([]), rd.to_ai_sdk(), meter=[])
