"""Replies of any length, the same at every run, as OpenAI chat chunks."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

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


def _chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    head = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice]}


def text(n: int) -> Iterator[dict[str, Any]]:
    """One text in n pieces of about four characters."""
    pick = random.Random(1)
    yield _chunk({"role": "assistant", "content": ""})
    for _ in range(n - 2):
        yield _chunk({"content": pick.choice(WORDS)})
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


STREAMS = {"text": text, "one tool call": tools, "eight tool calls": lambda n: tools(n, 8)}
