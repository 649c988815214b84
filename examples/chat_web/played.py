"""What the model says without a key: two recorded streams about the weather, and a made one that books a room."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

import rxdelta as rd
from rxdelta.testing import open_sample


def played(conversation: list[rd.Message]) -> list[Any]:
    """The chunks of the next message."""
    question = next(message.text for message in reversed(conversation) if message.role == "user")
    results = {call.name: call.result for call in conversation[-1].tool_calls}
    if "get_forecast" in results:
        return recorded("forecast")
    if "book_room" in results:
        result = results["book_room"]
        return made(
            "I haven’t booked it." if result is None or result.is_error else "The room is **booked**."
        )
    if "get_time_zone" in results:
        city = "Oslo" if "Oslo" in question else "Lisbon"
        return made("This one is free:", "book_room", {"city": city, "nights": 2})
    if "book" in question.lower():
        return made("First I look up your time zone.", "get_time_zone", {})
    return recorded("weather")


def recorded(name: str) -> list[Any]:
    with open_sample(name) as file:
        return [json.loads(line) for line in file]


def made(text: str, tool: str | None = None, arguments: Any = None) -> list[Any]:
    """A message of Anthropic's that says a text and perhaps calls a tool."""
    start = {"id": "made", "role": "assistant", "model": "made", "content": [], "usage": {}}
    chunks: list[Any] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ]
    for word in re.findall(r"\S+\s*", text):
        delta = {"type": "text_delta", "text": word}
        chunks.append({"type": "content_block_delta", "index": 0, "delta": delta})
    chunks.append({"type": "content_block_stop", "index": 0})
    if tool is not None:
        call = {"type": "tool_use", "id": f"call_{secrets.token_hex(6)}", "name": tool, "input": arguments}
        chunks.append({"type": "content_block_start", "index": 1, "content_block": call})
        chunks.append({"type": "content_block_stop", "index": 1})
    reason = "end_turn" if tool is None else "tool_use"
    chunks.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}})
    return [*chunks, {"type": "message_stop"}]
