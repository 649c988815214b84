"""The events of ConverseStream as the body of Converse, for a client that doesn't stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["converse"]

Json = dict[str, Any]


def converse(chunks: Iterable[Mapping[str, Any]]) -> Json:
    """The body of a reply that isn't streamed. A call that the token limit has cut is left out."""
    content: list[Json] = []
    deltas: list[Json] = []
    start: Json = {}
    body: Json = {"usage": {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0}}
    for chunk in chunks:
        for name, event in chunk.items():
            if name == "contentBlockStart":
                start = event["start"]
            elif name == "contentBlockDelta":
                deltas.append(event["delta"])
            elif name == "contentBlockStop":
                block = _block(start, deltas)
                content += [] if block is None else [block]
                start, deltas = {}, []
            elif name in ("messageStop", "metadata"):
                body |= event
    message = {"role": "assistant", "content": content}
    return {"output": {"message": message}, "metrics": {"latencyMs": 0}, **body}


def _block(start: Json, deltas: list[Json]) -> Json | None:
    """A block as its events say it; `None` for a call that can't be read."""
    if "toolUse" in start:
        written = "".join(delta["toolUse"]["input"] for delta in deltas)
        try:
            return {"toolUse": {**start["toolUse"], "input": json.loads(written or "{}")}}
        except ValueError:
            return None
    if "image" in start:
        return {"image": {**start["image"], **deltas[0]["image"]}}
    if any("reasoningContent" in delta for delta in deltas):
        pieces = [delta["reasoningContent"] for delta in deltas]
        if "redactedContent" in pieces[-1]:
            return {"reasoningContent": pieces[-1]}
        signed = {"signature": pieces[-1]["signature"]} if "signature" in pieces[-1] else {}
        text = "".join(piece.get("text", "") for piece in pieces)
        return {"reasoningContent": {"reasoningText": {"text": text, **signed}}}
    text = "".join(delta.get("text", "") for delta in deltas)
    citations = [delta["citation"] for delta in deltas if "citation" in delta]
    return (
        {"citationsContent": {"content": [{"text": text}], "citations": citations}}
        if citations
        else {"text": text}
    )
