"""Chunks of Google's Interactions API, and what comes of them."""

from __future__ import annotations

from typing import Any

import rxdelta as rd
from rxdelta.core import Event, Fold, ProtocolChecker
from rxdelta.core.events import (
    StreamError,
)
from rxdelta.formats.gemini_interactions.decoder import GeminiInteractionsDecoder

Chunk = dict[str, Any]


CREATED = {
    "event_type": "interaction.created",
    "interaction": {"id": "v1_1", "model": "gemini-x", "status": "in_progress", "object": "interaction"},
}


def completed(status: str = "completed", **fields: Any) -> Chunk:
    interaction = {"id": "v1_1", "status": status, "object": "interaction", **fields}
    return {"event_type": "interaction.completed", "interaction": interaction}


def start(index: Any, type: str, **fields: Any) -> Chunk:
    return {"event_type": "step.start", "index": index, "step": {"type": type, **fields}}


def delta(index: Any, type: str, **fields: Any) -> Chunk:
    return {"event_type": "step.delta", "index": index, "delta": {"type": type, **fields}}


def text(index: int, piece: str) -> Chunk:
    return delta(index, "text", text=piece)


def stop(index: int) -> Chunk:
    return {"event_type": "step.stop", "index": index}


def step(index: int, type: str, *deltas: Chunk, **fields: Any) -> list[Chunk]:
    return [start(index, type, **fields), *({**each, "index": index} for each in deltas), stop(index)]


def decoded(*chunks: Any) -> list[Event]:
    """All events of a stream, checked against the protocol."""
    decoder = GeminiInteractionsDecoder()
    found = [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]
    lifecycle = ProtocolChecker()
    for event in found:
        assert lifecycle.check(event) is None or isinstance(event, StreamError), event
    return found


def folded(*chunks: Any) -> rd.Snapshot:
    fold = Fold()
    for event in decoded(*chunks):
        if isinstance(event, StreamError):
            break
        fold.step(event)
    return fold.snapshot


def message(*chunks: Any) -> rd.Message:
    return folded(*chunks).to_message()


def parts_of(found: rd.Message) -> list[rd.ContentPart]:
    return [block for block in found.blocks if isinstance(block, rd.ContentPart)]
