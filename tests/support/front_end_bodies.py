"""What front ends send to a server, and what they get of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx

import rxdelta as rd

__all__ = [
    "BEGUN",
    "CHAT",
    "ENCODERS",
    "ENDED",
    "FUNCTION",
    "RUN",
    "UI",
    "Json",
    "call_part",
    "deep",
    "shown",
    "to_each",
]

Json = dict[str, Any]
ev = rd.events


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [value]}
    return value


def call_part(state: str = "output-available", call_id: str = "c1", **more: Any) -> Json:
    told = {"input": {"n": 1}, **({"output": 1} if state == "output-available" else {})}
    return {"type": "tool-pay", "toolCallId": call_id, "state": state, **told, **more}


UI: list[Json] = [
    {
        "id": "m1",
        "role": "assistant",
        "metadata": {"usage": {"inputTokens": 1}, "status": "complete"},
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "Hm", "providerMetadata": {"rxdelta": {"options": {"signature": "s"}}}},
            {"type": "text", "text": "Hi", "citations": [{"type": "x", "url": "https://x"}]},
            call_part(callProviderMetadata={"rxdelta": {"metadata": {"provider_type": "x"}}}),
            call_part("approval-responded", "c2", approval={"id": "c2", "approved": True, "reason": "x"}),
            {"type": "data-note", "id": "n", "data": {"a": 1}},
            {"type": "custom", "kind": "x", "providerMetadata": {"rxdelta": {"type": "x", "options": {"type": "x"}}}},
        ],
    },
    {"id": "m2", "role": "user", "parts": [{"type": "file", "url": "https://x/y", "mediaType": "image/png"}]},
]  # fmt: skip
FUNCTION = {"name": "pay", "arguments": '{"n": 1}'}
RUN: Json = {
    "threadId": "t",
    "runId": "r",
    "protocolVersion": "1.0",
    "resume": [{"interruptId": "c1", "status": "resolved", "payload": {"approved": True, "reason": "x"}}],
    "messages": [
        {"id": "u", "role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"id": "m", "role": "assistant", "content": "Hi", "toolCalls": [{"id": "c1", "type": "function", "function": FUNCTION}]},
        {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "1", "metadata": {"rxdelta": {"json": True}}},
        {"id": "m~1", "role": "activity", "activityType": "rxdelta.x", "content": {"type": "non_standard", "value": {}}},
    ],
}  # fmt: skip
CHAT: list[Json] = [
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x/y"}}]},
    {
        "role": "assistant",
        "content": "Hi",
        "tool_calls": [{"id": "c1", "type": "function", "function": FUNCTION}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "x"}]},
]

BEGUN: list[rd.Event] = [ev.MessageStart("m1", "model"), ev.BlockStart(0, {"type": "text", "text": "Hi"})]
ENDED: list[rd.Event] = [ev.BlockFinish(0), ev.MessageFinish("stop")]
ENCODERS: dict[str, Callable[..., Any]] = {
    "AI SDK": rd.to_ai_sdk,
    "AI SDK 5": lambda **options: rd.to_ai_sdk(sdk_version=5, **options),
    "AG-UI": lambda **options: rd.to_ag_ui({**RUN, "messages": [], "resume": None}, **options),
    "LangChain": rd.to_langchain_events,
    "OpenAI": rd.to_openai_chat,
    "OpenAI Responses": rd.to_openai_responses,
    "Anthropic": rd.to_anthropic_messages,
    "Ollama": rd.to_ollama,
}
to_each = pytest.mark.parametrize("which", ENCODERS)


def shown(events: rx.Observable[rd.Event], encode: Any) -> str:
    """What a front end gets."""
    pieces: list[bytes] = []
    events.pipe(encode, rd.to_sse()).subscribe(pieces.append)
    return b"".join(pieces).decode()
