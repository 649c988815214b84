"""Replies of any length, the same at every run: chunks as providers send them, and the bytes of their responses."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import rxdelta as rd

Chunks = list[dict[str, Any]]

WORDS = [
    "the ",
    "of",
    " and",
    "ing ",
    "Hello",
    ", wo",
    "rld",
    "\n",
    "def ",
    "x = ",
    "é",
    " 世界",
    "ation",
    " a",
    "ble.",
]
BLOCK = 16_384


def words(n: int) -> Iterator[str]:
    pick = random.Random(1)
    return (pick.choice(WORDS) for _ in range(n))


def _chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    head = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice], **more}


def text(n: int) -> Iterator[dict[str, Any]]:
    """One text in n pieces of about four characters, as chunks of OpenAI's chat."""
    yield _chunk({"role": "assistant", "content": ""})
    yield from (_chunk({"content": word}) for word in words(n - 2))
    yield _chunk({}, "stop")


def _document(size: int, pick: random.Random) -> str:
    edits: list[dict[str, Any]] = []
    length = 0
    while length < size:
        new = "".join(pick.choice(WORDS) for _ in range(60))
        edits.append({"path": f"src/f{len(edits)}.py", "line": pick.randrange(9999), "ok": True, "new": new})
        length += len(new) + 60
    return json.dumps({"edits": edits}, ensure_ascii=False)


def tools(n: int, calls: int = 1) -> Iterator[dict[str, Any]]:
    """`calls` parallel tool calls, n fragments of arguments in all, in turn."""
    pick = random.Random(2)
    each = max(1, (n - calls - 2) // calls)
    texts = [_document(each * 4, pick)[: each * 4] for _ in range(calls)]
    yield _chunk({"role": "assistant", "content": None})
    for call in range(calls):
        function = {"name": f"edit{call}", "arguments": ""}
        yield _chunk(
            {"tool_calls": [{"index": call, "id": f"call_{call}", "type": "function", "function": function}]}
        )
    for place in range(0, each * 4, 4):
        for call in range(calls):
            piece = {"arguments": texts[call][place : place + 4]}
            yield _chunk({"tool_calls": [{"index": call, "function": piece}]})
    yield _chunk({}, "tool_calls")


STREAMS: dict[str, Callable[[int], Iterator[dict[str, Any]]]] = {
    "text": text,
    "one tool call": tools,
    "eight tool calls": lambda n: tools(n, 8),
}


def _openai_chat(n: int) -> Iterator[dict[str, Any]]:
    more = {"service_tier": "default", "system_fingerprint": "fp_0ba0d124f1", "usage": None}
    named = {"id": "chatcmpl-9xYzAbCdEfGhIjKlMnOpQrStUvWx", "created": 1726000000, "model": "gpt-4o-mini"}
    return (chunk | named | more | {"obfuscation": "aB3dE5"} for chunk in text(n))


def _anthropic(n: int) -> Iterator[dict[str, Any]]:
    message = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []}
    rest = {
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    yield {"type": "message_start", "message": message | rest}
    yield {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    for word in words(n - 5):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": n}}
    yield {"type": "message_stop"}


def _gemini(n: int) -> Iterator[dict[str, Any]]:
    """The usage so far is in each chunk."""
    for count, word in enumerate(words(n), 1):
        candidate = {"content": {"parts": [{"text": word}], "role": "model"}, "index": 0}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": count, "totalTokenCount": 10 + count}
        yield {
            "candidates": [candidate | ({"finishReason": "STOP"} if count == n else {})],
            "usageMetadata": usage | {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 10}]},
            "modelVersion": "gemini-2.5-flash",
            "responseId": "abc",
        }


def _openai_responses(n: int) -> Iterator[dict[str, Any]]:
    item = {"id": "i", "type": "message", "status": "in_progress", "role": "assistant", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    place = {"item_id": "msg_67ccd3acc8d48190a77525dc6de64b4104becb25c45c1d42", "output_index": 0}
    response = {"id": "r", "object": "response", "status": "in_progress", "model": "m", "output": []}
    yield {"type": "response.created", "response": response}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.content_part.added", **place, "content_index": 0, "part": part}
    for number, word in enumerate(words(n - 4), 4):
        delta = {"sequence_number": number, "content_index": 0, "delta": word, "logprobs": []}
        yield {"type": "response.output_text.delta", **place, **delta, "obfuscation": "aB3d"}
    yield {"type": "response.completed", "response": response | {"status": "completed"}}


REPLIES: dict[str, Callable[[int], Iterator[dict[str, Any]]]] = {
    "openai-chat": _openai_chat,
    "anthropic-messages": _anthropic,
    "gemini": _gemini,
    "openai-responses": _openai_responses,
}


def sse(format: str, n: int) -> list[bytes]:
    """The reply's server-sent events, an event a block."""

    def event(chunk: dict[str, Any]) -> bytes:
        named = f"event: {chunk['type']}\n" if "type" in chunk else ""
        data = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
        return f"{named}data: {data}\n\n".encode()

    done = [b"data: [DONE]\n\n"] * (format == "openai-chat")
    return [event(chunk) for chunk in REPLIES[format](n)] + done


def blocks(events: list[bytes], size: int = BLOCK) -> list[bytes]:
    """The same bytes, as a fast reader gets them."""
    whole = b"".join(events)
    return [whole[at : at + size] for at in range(0, len(whole), size)]


def events(n: int, *, ascii: bool = False) -> list[rd.Event]:
    """A text in n deltas, as events. With `ascii` it is an English one; else a seventh of the pieces isn't ASCII."""
    ev = rd.events
    deltas = [ev.TextDelta(0, word) for word in words(n) if not ascii or word.isascii()]
    start = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": ""})]
    return [*start, *deltas, ev.BlockFinish(0), ev.MessageFinish("stop")]


def arguments(n: int) -> list[rd.Event]:
    """A call's arguments in n deltas, as events."""
    ev = rd.events
    document = _document(n * 4, random.Random(2))
    size = -(-len(document) // n)
    pieces = [document[at : at + size] for at in range(0, len(document), size)]
    start = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "call_1", "name": "edit", "args": ""})
    deltas = [ev.ToolCallDelta(0, piece) for piece in pieces]
    return [ev.MessageStart("m"), start, *deltas, ev.BlockFinish(0), ev.MessageFinish("tool_use")]
