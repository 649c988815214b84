"""What a delta costs on its way to a browser: bytes and time, against pydantic-ai's adapters for the same protocols and the
`ai` package's own server; and on its way to clients of a provider's API.

Everyone gets a reply as events of their own (a text of many deltas, then a call whose arguments come in pieces) and gives
the bytes of the response. pydantic-ai's adapters are asynchronous generators, the `ai` package's are streams of Node.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import reactivex as rx
from harness import Table

import rxdelta as rd

DELTAS = 2_000  # of each kind
N = 2 * DELTAS
WORD, PIECE = " word", '"x", '


@cache
def ours() -> list[rd.Event]:
    ev = rd.events
    return [
        ev.MessageStart("m1"),
        ev.BlockStart(0, {"type": "text"}),
        *(ev.TextDelta(0, WORD) for _ in range(DELTAS)),
        ev.BlockFinish(0),
        ev.BlockStart(1, {"type": "tool_call_chunk", "id": "call_1", "name": "tides"}),
        ev.ToolCallDelta(1, '{"ports": ['),
        *(ev.ToolCallDelta(1, PIECE) for _ in range(DELTAS)),
        ev.ToolCallDelta(1, '"y"]}'),
        ev.BlockFinish(1),
        ev.MessageFinish("tool_use"),
    ]


@cache
def theirs() -> list[Any]:
    from pydantic_ai import messages as m

    text = m.TextPart(WORD * DELTAS)
    call = m.ToolCallPart("tides", '{"ports": [' + PIECE * DELTAS + '"y"]}', tool_call_id="call_1")

    def piece(text: str) -> Any:
        return m.PartDeltaEvent(index=1, delta=m.ToolCallPartDelta(args_delta=text, tool_call_id="call_1"))

    return [
        m.PartStartEvent(index=0, part=m.TextPart("")),
        *(m.PartDeltaEvent(index=0, delta=m.TextPartDelta(WORD)) for _ in range(DELTAS)),
        m.PartEndEvent(index=0, part=text, next_part_kind="tool-call"),
        m.PartStartEvent(index=1, part=m.ToolCallPart("tides", "", tool_call_id="call_1")),
        piece('{"ports": ['),
        *(piece(PIECE) for _ in range(DELTAS)),
        piece('"y"]}'),
        m.PartEndEvent(index=1, part=call),
    ]


ENCODERS: dict[str, Callable[[], Any]] = {
    "AI SDK": lambda: rd.wire.AiSdkEncoder(message_id="m1"),
    "AG-UI": lambda: rd.wire.AgUiEncoder(thread_id="t", run_id="r"),
}
TOLD: dict[str, Any] = {"now": lambda: 1.0, "new_id": lambda: "r1", "tools": ()}
CLIENTS: dict[str, Callable[[], Any]] = {
    "OpenAI chat": lambda: rd.wire.OpenAiChatEncoder(**TOLD),
    "OpenAI Responses": lambda: rd.wire.OpenAiResponsesEncoder(**TOLD),
    "Anthropic Messages": lambda: rd.wire.AnthropicMessagesEncoder(**TOLD),
}
STAGES: dict[str, Callable[[], Any]] = {
    "AI SDK": lambda: rd.to_ai_sdk(message_id="m1"),
    "AG-UI": lambda: rd.to_ag_ui(thread_id="t", run_id="r"),
}
HALF_OF_BEFORE = {"AI SDK": 1.8, "AG-UI": 4.1}
HALF = "The goals are half of what it was when each delta was folded."
GOALS = {"AI SDK": 3.5, "AG-UI": 2.5}


def encoded(protocol: str) -> int:
    encoder = (ENCODERS.get(protocol) or CLIENTS[protocol])()
    size = sum(len(rd.wire.sse_frame(frame)) for event in ours() for frame in encoder.encode(event))
    return size + sum(len(rd.wire.sse_frame(frame)) for frame in encoder.close())


def folded() -> None:
    fold = rd.Fold(choice=0)
    for event in ours():
        fold.step(event)


def piped(protocol: str) -> None:
    rx.from_iterable(ours()).pipe(STAGES[protocol](), rd.to_sse()).subscribe(lambda data: None)


def adapter(protocol: str) -> Any:
    if protocol == "AI SDK":
        from pydantic_ai.ui.vercel_ai import VercelAIEventStream

        return VercelAIEventStream(None)  # type: ignore[arg-type]
    from ag_ui.core import RunAgentInput
    from pydantic_ai.ui.ag_ui import AGUIEventStream

    empty = {"state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {}}
    return AGUIEventStream(RunAgentInput.model_validate({"threadId": "t", "runId": "r", **empty}))


def transformed(protocol: str) -> int:
    stream = adapter(protocol)

    async def source() -> AsyncIterator[Any]:
        for event in theirs():
            yield event

    async def size() -> int:
        return sum(
            [len(data.encode()) async for data in stream.encode_stream(stream.transform_stream(source()))]
        )

    return asyncio.run(size())


def node() -> dict[str, float]:
    """The least CPU time a delta and the bytes a delta of the `ai` package's own way from parts to server-sent events."""
    program = Path(__file__).with_name("ai_encoder.mjs")
    home = Path(__file__).parents[1] / "tests/clients"
    if shutil.which("node") is None or not (home / "node_modules/ai").exists():
        raise ImportError("the `ai` package or node is missing")
    command = ["node", "--input-type=module", "-", str(DELTAS)]
    done = subprocess.run(command, input=program.read_bytes(), cwd=home, check=True, capture_output=True)
    return json.loads(done.stdout)


def tables() -> Iterator[Table]:
    sizes = Table("Size", "bytes a delta", scale=1, base="-", rounds=1)
    for protocol, goal in GOALS.items():
        name = f"pydantic-ai's adapter for {protocol}"
        table = Table(f"{protocol}, with `to_sse`", "µs a delta", base=name, faster=True, rounds=9)
        table.row(name, lambda p=protocol: (transformed(p), None)[1], N, peer=True)
        table.row(
            f"the encoder of {protocol} and `sse_frame`, by hand",
            lambda p=protocol: (encoded(p), None)[1],
            N,
            goal=goal,
        )
        table.row("the same as stages of a pipeline", lambda p=protocol: piped(p), N)
        if protocol == "AI SDK":
            table.row("the `ai` package on Node", lambda: node()["seconds"], told=True, peer=True)
            sizes.row("the `ai` package", lambda: node()["bytes"], column=protocol, told=True, peer=True)
        sizes.row("rxdelta", lambda p=protocol: encoded(p) / N, column=protocol, told=True)
        sizes.row("pydantic-ai", lambda p=protocol: transformed(p) / N, column=protocol, told=True, peer=True)
        yield table
    yield sizes
    table = Table("With `to_sse`, beside the fold", "µs a delta", base="`Fold.step`, by hand", note=HALF)
    table.row(table.base, folded, N)
    for protocol, goal in HALF_OF_BEFORE.items():
        table.row(
            f"the encoder of {protocol} and `sse_frame`, by hand",
            lambda p=protocol: (encoded(p), None)[1],
            N,
            goal=goal,
        )
    yield table
    base = "the encoder of OpenAI chat and `sse_frame`, by hand"
    table = Table("For clients of a provider's API", "µs a delta", base=base, rounds=9)
    for protocol in CLIENTS:
        name = f"the encoder of {protocol} and `sse_frame`, by hand"
        goal = None if name == base else 1.0
        table.row(name, lambda p=protocol: (encoded(p), None)[1], N, goal=goal)
    yield table
