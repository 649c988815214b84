"""First part and resumed part are the whole reply, also where the relay has joined what came meanwhile."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from random import Random
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.encoded import encoded
from support.loops import run
from support.streams import streams

import rxdelta as rd
from rxdelta.operators.edges.encode import made_id
from rxdelta.relay import Relay

Encode = Callable[[], Any]
RUN = {"threadId": "t", "runId": "r", "messages": [], "tools": [], "context": [], "forwardedProps": {}}
WIRES: dict[str, tuple[Encode, Any]] = {
    "ai-sdk": (rd.to_ai_sdk, lambda: rd.decode("ai-sdk")),
    "ag-ui": (lambda: rd.to_ag_ui({**RUN, "protocolVersion": "1.0"}), lambda: rd.decode("ag-ui")),
    "langchain": (
        lambda: encoded(lambda: rd.wire.LangChainEncoder(now=lambda: 0.0, new_id=made_id)),
        lambda: rd.decode("langchain"),
    ),
    "openai-chat": (
        lambda: encoded(lambda: rd.wire.OpenAiChatEncoder(now=lambda: 0.0, new_id=made_id)),
        lambda: rd.decode("openai-chat"),
    ),
    "wire": (
        lambda: ops.map(lambda event: event.to_dict()),
        lambda: ops.compose(
            ops.filter(lambda frame: frame is not rd.wire.DONE),
            ops.map(lambda frame: rd.events.from_dict(frame)),
        ),
    ),
}


async def one_by_one(events: Sequence[rd.Event]) -> AsyncIterator[rd.Event]:
    for event in events:
        yield event
        await asyncio.sleep(0)  # whoever reads live gets each by itself


async def body(relay: Relay, encode: Encode, after: str | None = None) -> tuple[bytes, str]:
    """The response, and how it ended where the encoder didn't write it."""
    entries = relay.entries("c1", split_at=after)
    pieces: list[bytes] = []
    try:
        await rd.for_each(entries.pipe(rd.to_resumable_sse(encode(), after)), pieces.append)
    except rd.RxDeltaError as error:
        return b"".join(pieces), type(error).__name__
    return b"".join(pieces), ""


def with_data(events: Sequence[rd.Event], draw: Random) -> list[rd.Event]:
    """The application's own data among them: some replaces other, some is for one moment."""
    among = [*events]
    for number in range(len(events) // 4):
        name = draw.choice("ab")
        data = rd.events.Custom(name, number, draw.choice([None, "1"]), draw.random() < 0.3)
        among.insert(draw.randint(1, len(among)), data)
    return among


def told(body: bytes, decode: Callable[[], Any]) -> Any:
    """What a reader makes of a response: the messages, and how it ended."""
    events: list[rd.Event] = []
    errors: list[str] = []
    rx.of(body).pipe(rd.parse_sse(), decode()).subscribe(
        events.append, lambda error: errors.append(str(error))
    )
    whole: list[Any] = []
    rx.from_iterable(events).pipe(
        rd.group_by_message(), ops.flat_map(lambda one: one.pipe(rd.scan_deltas(), ops.last_or_default()))
    ).subscribe(whole.append, lambda error: errors.append(str(error)))
    return [one and one.to_dict() for one in whole], errors


@pytest.mark.parametrize(("step", "every"), [pytest.param(9, 3, marks=pytest.mark.slow), (7, 14)])
@pytest.mark.parametrize("wire", WIRES)
def test_a_reply_in_two_parts_is_the_reply(
    wire: str, step: int, every: int, caplog: pytest.LogCaptureFixture
) -> None:
    encode, decode = WIRES[wire]

    async def check(events: Sequence[rd.Event], fails: bool) -> None:
        async with Relay.open() as relay:
            source = rd.from_async_iterable(lambda: one_by_one(events))
            live = asyncio.create_task(body(relay, encode))
            await asyncio.sleep(0)
            await relay.start(
                "c1", rx.concat(source, rx.throw(rd.ProviderError("busy"))) if fails else source
            )
            whole, end = await live
            expected = told(whole, decode)
            late, _ = await body(relay, encode)
            assert told(late, decode) == expected
            found = [*re.finditer(rb"^id: (.*)\ndata: .*\n\n", whole, re.MULTILINE)]
            for one in found[::step]:
                rest, ended = await body(relay, encode, one[1].decode())
                assert (told(whole[: one.end()] + rest, decode), ended) == (expected, end), one[0]

    async def main() -> None:
        draw = Random(step)
        for data in (False, True):
            for stream in [*streams(seed=step)][::every]:
                await check(with_data(stream.events, draw) if data else stream.events, stream.fails)

    run(main)
