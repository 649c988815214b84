"""What an event says, in a few words."""

from __future__ import annotations

import json
from typing import Any

from rxdelta.core import ARGUMENT_FIELDS, PIECE_FIELDS, TEXT_FIELDS, Event, TokenUsage
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    StreamError,
    ToolUpdate,
    UsageUpdate,
)

__all__ = ["Told", "as_json", "characters", "kind_of", "say_usage", "tell"]

Told = tuple[str, int, str]
"""What it is, how many characters it adds, and what it says."""

_LONGEST = 300  # characters; a line shows fewer

_TEXTS = ("data", *dict.fromkeys(name for names in TEXT_FIELDS.values() for name in names))
_PIECES = {"args": "arguments"}
_TOTALS = ("input", "output")
_USAGE = (
    ("input_tokens", "input"),
    ("output_tokens", "output"),
    ("cache_read_tokens", "read from cache"),
    ("cache_write_tokens", "written to cache"),
    ("reasoning_tokens", "of reasoning"),
    ("input_audio_tokens", "of audio in"),
    ("output_audio_tokens", "of audio out"),
)


def kind_of(content: Any) -> str:
    """The type of a block, as the wire names it."""
    kind = content.get("type") if content else None
    return kind.removesuffix("_chunk") if isinstance(kind, str) else "block"


def tell(event: Event, kind: str) -> Told:
    """Describe an event.

    Args:
        event: The event.
        kind: The type of its block, if it has one.
    """
    size = characters(event)
    field = PIECE_FIELDS.get(type(event))
    if field is not None:
        return (kind if field == "text" else _PIECES.get(field, field)), size, _quoted(getattr(event, field))
    match event:
        case BlockStart(content=content):
            return f"{kind_of(content)} start", size, _fields(content)
        case BlockDelta(fields=fields):
            return f"{kind} fields", 0, as_json(fields)
        case BlockFinish(content=content):
            return f"{kind} finish", 0, "" if content is None else f"as a whole: {as_json(content)}"
        case MessageStart():
            told = [
                event.id,
                event.model,
                say_usage(event.usage),
                f"for run {event.parent_run_id}" if event.parent_run_id else "",
            ]
            return "message start", 0, _joined(told)
        case UsageUpdate(usage=usage):
            return "usage", 0, say_usage(usage)
        case MessageFinish(reason=reason, provider_reason=word):
            said = f"{reason} (the provider's word: {word})" if word not in (None, reason) else reason
            return "message finish", 0, _joined([said, say_usage(event.usage)])
        case StreamError():
            return "error", 0, f"{_words(event.type, event.code)}{event.message}"
        case ToolUpdate():
            result = "" if event.result is None else f"result {as_json(event.result.content)}"
            return (
                "tool update",
                0,
                _joined([event.call_id, event.execution_status, event.display_text, result]),
            )
        case MessageInterrupted(reason=reason):
            return "interrupted", 0, reason or ""
        case AttemptReset():
            return "another attempt", 0, _joined([f"after {event.attempt} failed", event.error])
        case ProviderEvent():
            return (
                "provider's own",
                0,
                _joined([event.provider, event.name, as_json(event.payload) if event.payload else ""]),
            )
        case Custom():
            return "custom", 0, f"{event.name} {as_json(event.data)}"
        case _:  # the pieces, which stand above
            return kind, size, ""


def characters(event: Event) -> int:
    """How many characters of content an event adds, or the whole content has that it replaces."""
    field = PIECE_FIELDS.get(type(event))
    if field is not None:
        return len(getattr(event, field))
    content = event.content if isinstance(event, (BlockStart, BlockFinish)) else None
    pieces = [] if content is None else [content.get(name) for name in (*_TEXTS, *ARGUMENT_FIELDS)]
    return sum(
        len(piece if isinstance(piece, str) else json.dumps(piece, ensure_ascii=False))
        for piece in pieces
        if piece
    )


def as_json(value: object, most: int = _LONGEST) -> str:
    """A value on one line, cut after so many characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}…"


def say_usage(usage: TokenUsage | None) -> str:
    """The counts of a usage that are known."""
    if usage is None:
        return ""
    counts = [(name, getattr(usage, field)) for field, name in _USAGE]
    said = [f"{count:,} {name}" for name, count in counts if count or (count == 0 and name in _TOTALS)]
    return f"tokens: {', '.join(said)}" if said else ""


def _quoted(text: str) -> str:
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return json.dumps(cut, ensure_ascii=False)


def _fields(content: Any) -> str:
    shown = {
        name: value for name, value in content.items() if name != "type" and value not in (None, "", {}, [])
    }
    return as_json(shown) if shown else ""


def _words(kind: str | None, code: str | None) -> str:
    words = "/".join(word for word in (kind, code) if word)
    return f"{words}: " if words else ""


def _joined(parts: list[str | None]) -> str:
    return " · ".join(part for part in parts if part)
