"""From the bytes of a response to snapshots, beside the least: to split at blank lines and to read the JSON behind `data: `.

No real stream allows the least: it knows no other line, no line end and no limit, and makes nothing of the JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import reactivex as rx
from harness import Table
from streams import blocks, sse

import rxdelta as rd

N = 2_000
GOALS = {"openai-chat": 1.5, "anthropic-messages": 1.8, "gemini": 3.3, "openai-responses": None}
LEAST = "split and `json.loads`"


def least(pieces: list[bytes]) -> None:
    rest = b""
    for piece in pieces:
        *events, rest = (rest + piece).split(b"\n\n")
        for event in events:
            data = event[event.find(b"data: ") + 6 :]
            if data != b"[DONE]":
                json.loads(data)


def pipeline(pieces: list[bytes], format: str, **options: Any) -> None:
    steps = rd.parse_sse(**options), rd.decode(format), rd.scan_deltas()
    rx.from_iterable(pieces).pipe(*steps).subscribe(lambda snapshot: None)


def with_loads(pieces: list[bytes], format: str, option: str) -> None:
    module, _, name = option.rpartition(".")
    pipeline(pieces, format, loads=getattr(import_module(module), name))


def loop(pieces: list[bytes], format: str) -> None:
    parser, decoder, fold = rd.providers.SseParser(), rd.providers.decoder(format), rd.Fold(choice=0)
    for piece in pieces:
        for chunk in parser.feed(piece):
            for event in decoder.decode(chunk):
                fold.step(event)


def parse(pieces: list[bytes]) -> None:
    parser = rd.providers.SseParser()
    for piece in pieces:
        parser.feed(piece)
    parser.close()


def openai_events(pieces: list[bytes]) -> None:
    from openai._streaming import SSEDecoder

    for event in SSEDecoder().iter_bytes(iter(pieces)):
        if event.data != "[DONE]":
            event.json()


def openai_sdk(pieces: list[bytes]) -> None:
    from openai._models import construct_type
    from openai._streaming import SSEDecoder
    from openai.lib.streaming.chat import ChatCompletionStreamState
    from openai.types.chat import ChatCompletionChunk

    state = ChatCompletionStreamState()
    for event in SSEDecoder().iter_bytes(iter(pieces)):
        if event.data != "[DONE]":
            state.handle_chunk(construct_type(type_=ChatCompletionChunk, value=event.json()))  # type: ignore[arg-type]


def anthropic_sdk(pieces: list[bytes]) -> None:
    from anthropic._models import construct_type
    from anthropic._streaming import SSEDecoder
    from anthropic.lib.streaming._messages import accumulate_event
    from anthropic.types import RawMessageStreamEvent

    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for event in SSEDecoder().iter_bytes(iter(pieces)):
        made: Any = construct_type(type_=RawMessageStreamEvent, value=event.json())  # type: ignore[arg-type]
        snapshot = accumulate_event(event=made, current_snapshot=snapshot, json_bufs=buffers)


def cuts(format: str) -> dict[str, list[bytes]]:
    events = sse(format, N)
    return {"16 kB a block": blocks(events), "an event a block": events}


SDKS = {"openai-chat": openai_sdk, "anthropic-messages": anthropic_sdk}
UNIT = "µs an event: least / median (× split and `json.loads`)"


def tables() -> Iterator[Table]:
    for way in cuts("gemini"):
        table = Table(f"Bytes to snapshots, {way}", UNIT, rounds=9)
        for name, most in GOALS.items():
            pieces, place = cuts(name)[way], {"column": name}
            goal = most if way.startswith("16 kB") else None
            table.row(LEAST, partial(least, pieces), N, **place)
            table.row(
                "`parse_sse`, `decode`, `scan_deltas`", partial(pipeline, pieces, name), N, goal=goal, **place
            )
            for option in ("json.loads", "orjson.loads", "msgspec.json.decode"):
                act = partial(with_loads, pieces, name, option)
                aim = goal if option == "orjson.loads" else None
                table.row(f"the same with `loads={option}`", act, N, goal=aim, **place)
            table.row("a loop by hand over parser, decoder and fold", partial(loop, pieces, name), N, **place)
            if name in SDKS:
                act = partial(SDKS[name], pieces)
                table.row("the provider's SDK, its own accumulator", act, N, peer=True, **place)
        yield table
    table = Table("Bytes to parsed events", UNIT, note=NOTE)
    for way, pieces in cuts("openai-chat").items():
        table.row(LEAST, partial(least, pieces), N, column=way)
        table.row("`SseParser`", partial(parse, pieces), N, column=way)
        table.row("openai SDK, its SSE decoder", partial(openai_events, pieces), N, column=way, peer=True)
    yield table


NOTE = (
    "rxdelta can be quicker than the least, because it decodes the bytes of a block at once; there `json.loads` finds out "
    "the encoding of each event."
)
