"""LangChain's message chunks, written by hand, and what becomes of them."""

from __future__ import annotations

from typing import Any

import rxdelta as rd

Chunk = dict[str, Any]

USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
LAST: Chunk = {"type": "AIMessageChunk", "content": "", "chunk_position": "last"}


def chunk(content: Any = "", **fields: Any) -> Chunk:
    return {"type": "AIMessageChunk", "content": content, **fields}


def call(args: Any = None, index: Any = 0, **fields: Any) -> Chunk:
    return {"name": None, "id": None, **fields, "args": args, "index": index, "type": "tool_call_chunk"}


def decoded(*chunks: Any, close: bool = True) -> list[rd.events.Event]:
    decoder = rd.providers.decoder("langchain")
    events = [event for chunk in chunks for event in decoder.decode(chunk)]
    return [*events, *(decoder.close() if close else ())]


def folded(*chunks: Any) -> rd.Snapshot:
    """The reply; asserts that the events keep the protocol."""
    fold, lifecycle = rd.Fold(choice=0), rd.core.ProtocolChecker()
    for event in decoded(*chunks):
        assert lifecycle.check(event) is None, event
        fold.step(event)
    return fold.snapshot


def message(*chunks: Any) -> dict[str, Any]:
    return folded(*chunks, LAST).to_message().to_dict()


def blocks(*chunks: Any) -> list[dict[str, Any]]:
    return message(*chunks).get("blocks", [])


STREAM: list[Chunk] = [
    chunk(
        [{"type": "reasoning", "reasoning": "H", "index": 0}], id="m1", response_metadata={"model_name": "m"}
    ),
    chunk([{"type": "reasoning", "reasoning": "m", "index": 0}], id="m1"),
    chunk([{"type": "text", "text": "Let me ", "index": 1}], id="m1"),
    chunk([{"type": "text", "text": "look.", "index": 1}], id="m1"),
    chunk([], tool_call_chunks=[call('{"at": ', 0, name="look", id="c1")], id="m1"),
    chunk([], tool_call_chunks=[call('"sea"}', 0)], id="m1"),
    chunk([], response_metadata={"finish_reason": "tool_calls"}, usage_metadata=USAGE, id="m1"),
    chunk([], chunk_position="last", id="m1"),
]
BODY: Chunk = {
    "type": "ai",
    "id": "m1",
    "content": [{"type": "reasoning", "reasoning": "Hm"}, {"type": "text", "text": "Let me look."}],
    "tool_calls": [{"name": "look", "args": {"at": "sea"}, "id": "c1", "type": "tool_call"}],
    "response_metadata": {"model_name": "m", "finish_reason": "tool_calls"},
    "usage_metadata": USAGE,
}
