"""Chunks of Cohere's chat API for tests, and what the decoder makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import Fold, ProtocolChecker, Snapshot, ToolCall, thaw
from rxdelta.core.events import Event
from rxdelta.formats.cohere.decoder import CohereDecoder

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "CITED",
    "Chunk",
    "DOCUMENT",
    "RICH",
    "TOOL",
    "USAGE",
    "args",
    "call_end",
    "call_start",
    "calls",
    "citation",
    "content",
    "content_end",
    "content_start",
    "decode",
    "end",
    "fold",
    "in_message",
    "plan",
    "reply",
    "start",
    "violations",
]

Chunk = dict[str, Any]

USAGE: Chunk = {
    "billed_units": {"input_tokens": 8, "output_tokens": 2},
    "tokens": {"input_tokens": 1394, "output_tokens": 33},
    "cached_tokens": 1376,
}


def start(id: str | None = "m1", **message: Any) -> Chunk:
    empty: Chunk = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    return {"id": id, "type": "message-start", "delta": {"message": empty | message}}


def plan(text: Any) -> Chunk:
    return {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": text}}}


def content_start(index: Any, type: str = "text", **fields: Any) -> Chunk:
    content = {"type": type, **(fields or {type: ""})}
    return {"type": "content-start", "index": index, "delta": {"message": {"content": content}}}


def content(index: Any, **fields: Any) -> Chunk:
    return {"type": "content-delta", "index": index, "delta": {"message": {"content": fields}}}


def content_end(index: Any) -> Chunk:
    return {"type": "content-end", "index": index}


def call_start(
    index: Any, id: Any = "roll_1", name: str = "roll", arguments: Any = "", **fields: Any
) -> Chunk:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **fields}
    return {"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": call}}}


def args(index: Any, piece: Any) -> Chunk:
    call = {"function": {"arguments": piece}}
    return {"type": "tool-call-delta", "index": index, "delta": {"message": {"tool_calls": call}}}


def call_end(index: Any) -> Chunk:
    return {"type": "tool-call-end", "index": index}


def citation(index: Any, **fields: Any) -> Chunk:
    return {"type": "citation-start", "index": index, "delta": {"message": {"citations": CITED | fields}}}


def end(reason: Any = "COMPLETE", **fields: Any) -> Chunk:
    return {"type": "message-end", "delta": {"finish_reason": reason, "usage": USAGE, **fields}}


DOCUMENT = {
    "type": "document",
    "id": "d1",
    "document": {"title": "Tides", "url": "https://a.example", "x": "y"},
}
TOOL = {"type": "tool", "id": "tides_1:0", "tool_output": {"content": "twice"}}
CITED: Chunk = {"start": 0, "end": 5, "text": "Twice", "sources": [TOOL, DOCUMENT], "type": "TEXT_CONTENT"}

RICH: list[Chunk] = [
    start(),
    plan("I will "),
    plan("roll."),
    call_start(0),
    call_end(0),
    call_start(1, "roll_2"),
    args(1, '{"sides"'),
    args(1, ": 20}"),
    call_end(1),
    content_start(0, "thinking"),
    content(0, thinking="Let me "),
    content(0, thinking="see."),
    content_end(0),
    content_start(1),
    content(1, text="Twice "),
    content(1, text="a day"),
    citation(0),
    {"type": "citation-end", "index": 0},
    content_end(1),
    end("TOOL_CALL"),
]


def decode(*chunks: Any, close: bool = True) -> list[Event]:
    decoder = CohereDecoder()
    decoded = [event for chunk in chunks for event in decoder.decode(chunk)]
    return decoded + list(decoder.close()) if close else decoded


def in_message(*chunks: Chunk) -> list[Event]:
    """The events of chunks in the middle of a message."""
    return decode(start(), *chunks, close=False)[1:]


def fold(decoded: Iterable[Event]) -> Snapshot:
    folding = Fold()
    for event in decoded:
        folding.step(event)
    return folding.snapshot


def reply(*chunks: Any) -> Snapshot:
    return fold(decode(*chunks))


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
