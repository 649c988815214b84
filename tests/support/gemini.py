"""Responses of generateContent, and what a stream of them becomes."""

from __future__ import annotations

from typing import Any

import rxdelta as rd
from rxdelta.core import Event, Fold, ProtocolChecker
from rxdelta.core.events import StreamError
from rxdelta.formats.calls import knowing_calls
from rxdelta.formats.gemini.decoder import GeminiDecoder

Chunk = dict[str, Any]


def said(*parts: Any, reason: str | None = None, **candidate: Any) -> Chunk:
    """A response with these parts; its candidate's other fields by name."""
    finish = {} if reason is None else {"finishReason": reason}
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **finish, **candidate}]}


def text(piece: str, **fields: Any) -> Chunk:
    return {"text": piece, **fields}


def call(name: Any = None, **fields: Any) -> Chunk:
    return {"functionCall": ({} if name is None else {"name": name}) | fields}


def piece(path: str, *, more: bool = True, goes_on: bool = False, **value: Any) -> Chunk:
    """A fragment of streamed arguments."""
    argument = {"jsonPath": path, **value, **({"willContinue": True} if goes_on else {})}
    return call(partialArgs=[argument], **({"willContinue": True} if more else {}))


STOP = said(reason="STOP")


def decoded(*chunks: Any) -> list[Event]:
    """All events of a stream, checked against the protocol."""
    decoder = knowing_calls(GeminiDecoder())
    found = [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]
    lifecycle = ProtocolChecker()
    for event in found:
        assert lifecycle.check(event) is None or isinstance(event, StreamError), event
    return found


def folded(*chunks: Any, choice: int = 0) -> rd.Snapshot:
    fold = Fold(choice=choice)
    for event in decoded(*chunks):
        if isinstance(event, StreamError):
            break
        fold.step(event)
    return fold.snapshot


def message(*chunks: Any, choice: int = 0) -> rd.Message:
    return folded(*chunks, choice=choice).to_message()


def parts_of(found: rd.Message) -> list[rd.ContentPart]:
    return [block for block in found.blocks if isinstance(block, rd.ContentPart)]


def blocks(*chunks: Any) -> list[tuple[str, Any]]:
    """Each block's type and text, or arguments."""
    return [
        (block.type, block.text if isinstance(block, rd.ContentPart) else rd.core.thaw(block.arguments))
        for block in message(*chunks).blocks
    ]
