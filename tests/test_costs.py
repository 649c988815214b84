"""What a delta costs on the paths that every reply takes, in lines of the package's own code and in snapshots made.

Counts are the same on every machine, so they decide; `nox -s bench` has the times. `python tests/test_costs.py` prints
the table of limits as the counts are now. A limit has a twentieth to spare: versions of Python count lines differently.
A reply without asyncio isn't counted, because two threads read it as they happen to run.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable
from reactivex.testing import TestScheduler
from support.cost import lines_run, snapshots_made

import rxdelta as rd

ev = rd.events
SPARE = 1.05


def text(n: int) -> list[rd.Event]:
    deltas = [ev.TextDelta(0, "word ") for _ in range(n)]
    start = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": ""})]
    return [*start, *deltas, ev.BlockFinish(0), ev.MessageFinish("stop")]


def call(n: int) -> list[rd.Event]:
    pieces = ['{"rows": [', *('{"a": 1},' for _ in range(n)), "0]}"]
    start = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "f", "args": ""})
    deltas = [ev.ToolCallDelta(0, piece) for piece in pieces]
    return [ev.MessageStart("m"), start, *deltas, ev.BlockFinish(0), ev.MessageFinish("tool_use")]


def chunks(format: str, n: int) -> list[dict[str, Any]]:
    if format == "openai-chat":
        head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        deltas = [{"role": "assistant", "content": ""}, *[{"content": "word "}] * n]
        return [head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    if format == "anthropic-messages":
        message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
        delta = {"type": "text_delta", "text": "word "}
        return [
            {
                "type": "message_start",
                "message": message | {"usage": {"input_tokens": 1, "output_tokens": 1}},
            },
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            *[{"type": "content_block_delta", "index": 0, "delta": delta}] * n,
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
            {"type": "message_stop"},
        ]
    if format == "gemini":
        content = {"parts": [{"text": "word "}], "role": "model"}
        details = {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 9}]}
        return [
            {
                "candidates": [{"content": content, "index": 0}],
                "usageMetadata": {
                    "promptTokenCount": 9,
                    "candidatesTokenCount": count,
                    "totalTokenCount": 9 + count,
                }
                | details,
                "modelVersion": "m",
                "responseId": "r",
            }
            for count in range(n)
        ]
    item = {"id": "i", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    place = {"item_id": "i", "output_index": 0, "content_index": 0}
    delta = {"type": "response.output_text.delta", **place, "delta": "word ", "logprobs": []}
    return [
        {
            "type": "response.created",
            "response": {"id": "r", "status": "in_progress", "model": "m", "output": []},
        },
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": part},
        *[delta | {"sequence_number": count} for count in range(n)],
    ]


def fold(events: list[rd.Event]) -> None:
    step = rd.Fold(choice=0).step
    for event in events:
        step(event)


def pipe(items: list[Any], make: Callable[[TestScheduler], Any]) -> None:
    """Everything within one moment of a virtual clock; streams in it are read, too."""
    clock = TestScheduler()
    errors = list[Exception]()

    def read(value: Any) -> None:
        if isinstance(value, Observable):
            value.subscribe(lambda _: None, errors.append)

    rx.from_iterable(items).pipe(make(clock)).subscribe(read, errors.append)
    clock.start()
    assert not errors


def parse(format: str, n: int, size: int) -> None:
    """Bytes to snapshots, in blocks of so many events."""
    sent = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks(format, n)]
    blocks = [b"".join(sent[at : at + size]) for at in range(0, len(sent), size)]
    parser, decoder, step = rd.providers.SseParser(), rd.providers.decoder(format), rd.Fold(choice=0).step
    for block in blocks:
        for chunk in parser.feed(block):
            for event in decoder.decode(chunk):
                step(event)


async def at_once(n: int) -> AsyncIterator[dict[str, Any]]:
    for chunk in chunks("anthropic-messages", n):
        yield chunk


async def paced(n: int) -> AsyncIterator[dict[str, Any]]:
    async for chunk in at_once(n):
        await asyncio.sleep(0)
        yield chunk


async def watch(source: AsyncIterator[Any]) -> None:
    async with rd.stream(source, "anthropic-messages") as reply:
        async for _ in reply:
            pass


async def message(source: AsyncIterator[Any]) -> None:
    await rd.stream(source, "anthropic-messages")


async def pipeline(source: AsyncIterator[Any]) -> None:
    events = rd.from_async_iterable(source).pipe(rd.decode("anthropic-messages"))
    await rd.for_each(events.pipe(rd.scan_deltas()), lambda _: None)


def encode(encoder: Any, events: list[rd.Event]) -> None:
    for event in events:
        for frame in encoder.encode(event):
            rd.wire.sse_frame(frame)


def read_arguments(n: int) -> None:
    step = rd.Fold(choice=0).step
    for event in call(n):
        for each in step(event).tool_calls:
            _ = each.arguments_so_far


def nothing(*_: Any) -> None:
    pass


def operator(
    make: Callable[[TestScheduler], Any], of: Callable[[int], list[Any]] = text
) -> Callable[[int], None]:
    return lambda n: pipe(of(n), make)


def snapshots(n: int) -> list[rd.Snapshot]:
    step = rd.Fold(choice=0).step
    return [step(event) for event in text(n)]


# The ways that a reply of n deltas goes.
PATHS: dict[str, Callable[[int], object]] = {
    "fold": lambda n: fold(text(n)),
    "fold, arguments": lambda n: fold(call(n)),
    "rd.stream": lambda n: asyncio.run(watch(at_once(n))),
    "rd.stream, a chunk a turn": lambda n: asyncio.run(watch(paced(n))),
    "await rd.stream": lambda n: asyncio.run(message(at_once(n))),
    "for_each": lambda n: asyncio.run(pipeline(at_once(n))),
    "bytes, openai-chat": lambda n: parse("openai-chat", n, 64),
    "bytes, anthropic-messages": lambda n: parse("anthropic-messages", n, 64),
    "bytes, gemini": lambda n: parse("gemini", n, 64),
    "bytes, openai-responses": lambda n: parse("openai-responses", n, 64),
    "bytes, an event a block": lambda n: parse("openai-chat", n, 1),
    "scan_deltas": operator(lambda clock: rd.scan_deltas()),
    "on_settled": operator(lambda clock: rd.on_settled(nothing)),
    "text_deltas": operator(lambda clock: rd.text_deltas()),
    "tap_metrics": operator(lambda clock: rd.tap_metrics(nothing)),
    "group_by_message": operator(lambda clock: rd.group_by_message()),
    "share_events": operator(lambda clock: rd.share_events()),
    "share_latest": operator(lambda clock: rd.share_latest(), snapshots),
    "stall_timeout": operator(lambda clock: rd.stall_timeout(1, 1, scheduler=clock)),
    "retry_stream": operator(lambda clock: lambda source: rd.retry_stream(lambda *_: source)),
    "fallback": operator(lambda clock: lambda source: rd.fallback(source)),
    "smooth": operator(lambda clock: rd.smooth(scheduler=clock)),
    "redact": operator(lambda clock: rd.redact(r"\bsk-\w+")),
    "redact, held": operator(lambda clock: rd.redact("word word")),
    "map_text": operator(lambda clock: rd.map_text(str.upper)),
    "stable_blocks": operator(lambda clock: rd.stable_blocks()),
    "partial_arguments": operator(lambda clock: rd.partial_arguments(), call),
    "arguments_so_far": read_arguments,
    "AI SDK": lambda n: encode(rd.wire.AiSdkEncoder(), text(n)),
    "AI SDK, arguments": lambda n: encode(rd.wire.AiSdkEncoder(), call(n)),
    "AG-UI": lambda n: encode(rd.wire.AgUiEncoder(thread_id="t", run_id="r"), text(n)),
    "AG-UI, arguments": lambda n: encode(rd.wire.AgUiEncoder(thread_id="t", run_id="r"), call(n)),
}
# How many lines of the package a delta may take, and how many snapshots may be made for it where nobody looks at one.
LIMITS: dict[str, tuple[int, float | None]] = {
    "fold": (72, None),
    "fold, arguments": (113, None),
    "rd.stream": (105, 0.1),
    "rd.stream, a chunk a turn": (205, None),
    "await rd.stream": (100, 0.0),
    "for_each": (135, None),
    "bytes, openai-chat": (102, None),
    "bytes, anthropic-messages": (95, None),
    "bytes, gemini": (250, None),
    "bytes, openai-responses": (109, None),
    "bytes, an event a block": (124, None),
    "scan_deltas": (86, None),
    "on_settled": (45, 0.0),
    "text_deltas": (61, 0.0),
    "tap_metrics": (57, 0.0),
    "group_by_message": (59, 0.0),
    "share_events": (81, 0.0),
    "share_latest": (125, None),
    "stall_timeout": (55, 0.0),
    "retry_stream": (66, 0.0),
    "fallback": (47, 0.0),
    "smooth": (86, 0.0),
    "redact": (79, 0.0),
    "redact, held": (107, 0.0),
    "map_text": (102, 0.0),
    "stable_blocks": (81, 0.0),
    "partial_arguments": (271, None),
    "arguments_so_far": (279, None),
    "AI SDK": (71, 0.0),
    "AI SDK, arguments": (131, 0.0),
    "AG-UI": (91, 0.0),
    "AG-UI, arguments": (133, 0.0),
}


def a_delta(count: Callable[[Callable[[], Any]], int], name: str) -> float:
    """By how much the count grows for a delta more; starts and ends fall out."""
    act = PATHS[name]
    act(10)  # imports what is imported when it is named
    few, many = (count(lambda n=n: act(n)) for n in (100, 300))
    return (many - few) / 200


def lines_a_delta(name: str) -> float:
    return a_delta(lambda act: lines_run(act, ours=True), name)


def snapshots_a_delta(name: str) -> float:
    return a_delta(snapshots_made, name)


@pytest.mark.parametrize("name", PATHS)
def test_a_delta_runs_through_no_more_lines(name: str) -> None:
    assert lines_a_delta(name) <= LIMITS[name][0]


@pytest.mark.parametrize(
    ("name", "allowed"), [(name, most) for name, (_, most) in LIMITS.items() if most is not None]
)
def test_no_more_snapshots_are_made_where_nobody_looks(name: str, allowed: float) -> None:
    assert snapshots_a_delta(name) <= allowed


def counted() -> Iterator[str]:
    """The table of the limits as the counts are now, with what is counted."""
    for name in PATHS:
        lines, made = lines_a_delta(name), snapshots_a_delta(name)
        allowed = None if LIMITS[name][1] is None else math.ceil(made * 10) / 10
        yield f'    "{name}": ({math.ceil(lines * SPARE)}, {allowed}),  # {lines:.2f}, {made:.2f}'


if __name__ == "__main__":
    print("\n".join(counted()))
