"""Small replies, written by hand: a text, and a text with a tool call, as two providers send them."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["ANTHROPIC", "OPENAI", "REPLIES", "sse"]


def _openai(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "small",
        "choices": [choice],
    }


OPENAI: list[dict[str, Any]] = [
    _openai({"role": "assistant", "content": ""}),
    _openai({"content": "Let me "}),
    _openai({"content": "look."}),
    _openai(
        {
            "tool_calls": [
                {
                    "index": 0,
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "look", "arguments": ""},
                }
            ]
        }
    ),
    _openai({"tool_calls": [{"index": 0, "function": {"arguments": '{"at": '}}]}),
    _openai({"tool_calls": [{"index": 0, "function": {"arguments": '"sea"}'}}]}),
    _openai({}, "tool_calls"),
    {**_openai({}), "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}},
]

ANTHROPIC: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "small",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 3, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "ping"},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Let me "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "look."}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start",
        "index": 1,
        "content_block": {"type": "tool_use", "id": "call_1", "name": "look", "input": {}},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '{"at": '},
    },
    {
        "type": "content_block_delta",
        "index": 1,
        "delta": {"type": "input_json_delta", "partial_json": '"sea"}'},
    },
    {"type": "content_block_stop", "index": 1},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 5},
    },
    {"type": "message_stop"},
]

REPLIES: dict[str, list[dict[str, Any]]] = {"openai-chat": OPENAI, "anthropic-messages": ANTHROPIC}


def sse(chunks: list[dict[str, Any]]) -> bytes:
    """The chunks as the body of a response."""
    named = (f"event: {chunk['type']}\n" if "type" in chunk else "" for chunk in chunks)
    body = "".join(f"{name}data: {json.dumps(chunk)}\n\n" for name, chunk in zip(named, chunks))
    return (body if "type" in chunks[0] else f"{body}data: [DONE]\n\n").encode()
