"""Chunks of Bedrock's ConverseStream for tests, and what the decoder makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rxdelta as rd
from rxdelta.core import Fold, ProtocolChecker, Snapshot, ToolCall, thaw
from rxdelta.core.events import Event
from rxdelta.formats.bedrock_converse.decoder import BedrockConverseDecoder
from rxdelta.formats.calls import knowing_calls

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Chunk",
    "PAGE",
    "RICH",
    "START",
    "USAGE",
    "WEB",
    "args",
    "block_start",
    "blocks",
    "calls",
    "decode",
    "delta",
    "fold",
    "in_message",
    "message_stop",
    "metadata",
    "only_part",
    "reply",
    "stop",
    "tool_use",
    "violations",
]

Chunk = dict[str, Any]

START: Chunk = {"messageStart": {"role": "assistant", "p": "abc"}}
USAGE: Chunk = {"inputTokens": 7, "outputTokens": 3, "totalTokens": 10}


def block_start(index: Any, **start: Any) -> Chunk:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": start, "p": "ab"}}


def delta(index: Any, **fields: Any) -> Chunk:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": fields, "p": "abcd"}}


def stop(index: Any) -> Chunk:
    return {"contentBlockStop": {"contentBlockIndex": index, "p": "a"}}


def tool_use(index: int, id: str | None = "tooluse_1", name: str = "roll", **fields: Any) -> Chunk:
    return block_start(index, toolUse={"toolUseId": id, "name": name, **fields})


def args(index: int, piece: Any) -> Chunk:
    return delta(index, toolUse={"input": piece})


def message_stop(reason: str | None = "end_turn", **fields: Any) -> Chunk:
    return {"messageStop": {"stopReason": reason, "p": "abc", **fields}}


def metadata(**fields: Any) -> Chunk:
    return {"metadata": {"usage": USAGE, "metrics": {"latencyMs": 12}, "p": "abcdef", **fields}}


def decode(*chunks: Any, close: bool = True) -> list[Event]:
    decoder = knowing_calls(BedrockConverseDecoder())
    decoded = [event for chunk in chunks for event in decoder.decode(chunk)]
    return decoded + list(decoder.close()) if close else decoded


def in_message(*chunks: Chunk) -> list[Event]:
    """The events of chunks in the middle of a message."""
    return decode(START, *chunks, close=False)[1:]


def fold(decoded: Iterable[Event]) -> Snapshot:
    folding = Fold()
    for event in decoded:
        folding.step(event)
    return folding.snapshot


def reply(*chunks: Chunk) -> Snapshot:
    return fold(decode(*chunks))


def blocks(*chunks: Chunk) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        reply(START, *chunks, message_stop(), metadata()).to_message().to_dict()["blocks"]
    )
    return found


def only_part(decoded: Iterable[Event]) -> rd.ContentPart:
    (part,) = fold(decoded).blocks
    assert isinstance(part, rd.ContentPart)
    return part


def calls(snapshot: Snapshot) -> list[tuple[str, Any, Any]]:
    return [
        (call.type, call.call_id, thaw(call.arguments))
        for call in snapshot.blocks
        if isinstance(call, ToolCall)
    ]


def violations(decoded: Iterable[Event]) -> list[str]:
    lifecycle = ProtocolChecker()
    found = [lifecycle.check(event) for event in decoded]
    return [violation for violation in [*found, lifecycle.close()] if violation]


WEB = {"location": {"web": {"domain": "a.example", "url": "https://a.example/x"}}}
PAGE = {
    "title": "Tides",
    "source": "tides.pdf",
    "sourceContent": [{"text": "twice "}, {"text": "a day"}],
    "location": {"documentPage": {"documentIndex": 0, "start": 2, "end": 3}},
}

RICH: list[Chunk] = [
    START,
    delta(0, reasoningContent={"text": "Let me "}),
    delta(0, reasoningContent={"text": "see."}),
    delta(0, reasoningContent={"signature": "c2ln"}),
    stop(0),
    tool_use(1, "srv_1", "nova_grounding", type="server_tool_use"),
    args(1, '{"query": "tides"}'),
    stop(1),
    block_start(2, toolResult={"toolUseId": "srv_1", "type": "nova_grounding_result", "status": "success"}),
    delta(2, toolResult=[{"text": "twice a day"}]),
    delta(2, toolResult=[{"json": {"hits": 2}}]),
    stop(2),
    delta(3, text="Twice "),
    delta(3, text="a day"),
    stop(3),
    delta(4, citation=WEB),
    delta(4, citation=PAGE),
    stop(4),
    tool_use(5),
    args(5, ""),
    stop(5),
    tool_use(7, "tooluse_2"),
    args(7, '{"sides"'),
    args(7, ": 20}"),
    stop(7),
    message_stop("tool_use"),
    metadata(),
]
