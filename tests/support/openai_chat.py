"""Chunks of chat completions, and what a stream of them becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import ContentPart, Fold, Message, ProtocolChecker, Snapshot, events, thaw
from rxdelta.core.events import Event, StreamError
from rxdelta.formats.calls import knowing_calls
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder

if TYPE_CHECKING:
    from collections.abc import Iterable

Chunk = dict[str, Any]

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def chunk(
    delta: Chunk | None = None,
    finish: str | None = None,
    *,
    index: int = 0,
    said: Chunk | None = None,
    **extras: Any,
) -> Chunk:
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish, **(said or {})}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "m",
        "choices": [choice],
        **extras,
    }


def text(piece: str, finish: str | None = None, **extras: Any) -> Chunk:
    return chunk({"content": piece}, finish, **extras)


def call(*entries: Chunk, finish: str | None = None, **extras: Any) -> Chunk:
    return chunk({"tool_calls": list(entries)}, finish, **extras)


def fragment(
    index: Any = 0, arguments: Any = None, id: str | None = None, name: str | None = None, **more: Any
) -> Chunk:
    function = {"name": name, "arguments": arguments}
    entry = {
        "index": index,
        "id": id,
        "function": {key: value for key, value in function.items() if value is not None},
    }
    return {key: value for key, value in entry.items() if value is not None} | more


def usage(**more: Any) -> Chunk:
    return {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": USAGE | more}


def decode(*chunks: Any, close: bool = True) -> list[Event]:
    decoder = knowing_calls(OpenAIChatDecoder())
    found = [event for one in chunks for event in decoder.decode(one)]
    return found + (list(decoder.close()) if close else [])


def violations(found: Iterable[Event]) -> list[str]:
    lifecycle = ProtocolChecker()
    broken = [lifecycle.check(event) for event in found]
    return [rule for rule in (*broken, lifecycle.close()) if rule is not None]


def fold(found: Iterable[Event], choice: int = 0) -> Snapshot:
    fold = Fold(choice=choice)
    for event in found:
        if not isinstance(event, StreamError):
            fold.step(event)
    return fold.snapshot


def reply(*chunks: Any, choice: int = 0) -> Snapshot:
    """The snapshot of a complete stream, which must keep the protocol."""
    found = decode(*chunks)
    assert violations(found) == []
    assert [events.from_dict(event.to_dict()) for event in found] == found
    return fold(found, choice)


def shape(message: Snapshot) -> list[tuple[str, str | None]]:
    return [
        (block.type, block.text if isinstance(block, ContentPart) else block.name) for block in message.blocks
    ]


def calls(message: Snapshot) -> list[tuple[Any, ...]]:
    return [(each.call_id, each.name, thaw(each.arguments)) for each in message.tool_calls]


def of_type(kind: type, found: Iterable[Event]) -> list[Any]:
    return [event for event in found if type(event) is kind]


def detail(text: str | None = None, index: int | None = 0, **more: Any) -> Chunk:
    entry = {"type": "reasoning.text", "text": text, "index": index, "format": "f1", **more}
    return {key: value for key, value in entry.items() if value is not None}


def annotation(n: int) -> Chunk:
    cited = {"url": f"u{n}", "title": f"t{n}", "start_index": n, "end_index": n + 1, "content": "words"}
    return {"type": "url_citation", "url_citation": cited}


def parts_of(reply: Snapshot | Message) -> list[ContentPart]:
    return [block for block in reply.blocks if isinstance(block, ContentPart)]
