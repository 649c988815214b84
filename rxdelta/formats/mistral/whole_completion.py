"""The chunks of Mistral's stream as the body of a reply that isn't streamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rxdelta.formats.openai_chat.tables import THINKING

__all__ = ["mistral_completion"]

Json = dict[str, Any]


def mistral_completion(chunks: Iterable[Mapping[str, Any]]) -> Json:
    """One choice with all parts of the message in their order: a text alone is no list."""
    body: Json = {}
    parts: list[Json] = []
    calls: list[Json] = []
    reason = None
    for chunk in chunks:
        body |= chunk
        for choice in chunk["choices"]:
            delta, reason = choice["delta"], choice["finish_reason"]
            calls += delta.get("tool_calls", ())
            said: str | list[Json] = delta.get("content") or []
            for part in [{"type": "text", "text": said}] if isinstance(said, str) else said:
                _append(parts, part)
    is_text = all(part["type"] == "text" for part in parts)
    content = "".join(part["text"] for part in parts) if is_text else parts
    message = {"role": "assistant", "content": content, "tool_calls": calls or None}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {**body, "object": "chat.completion", "choices": [choice]}


def _append(parts: list[Json], part: Json) -> None:
    """Append a part, or let it continue the last one."""
    last = parts[-1] if parts and parts[-1]["type"] == part["type"] else None
    if last is not None and part["type"] == "text":
        last["text"] += part["text"]
    elif last is not None and part["type"] == THINKING and "signature" not in last:
        last |= {**part, "thinking": _joined([*last["thinking"], *part["thinking"]])}
    else:
        parts.append({**part})


def _joined(thinking: list[Json]) -> list[Json]:
    return [{"type": "text", "text": "".join(piece["text"] for piece in thinking)}]
