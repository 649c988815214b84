"""Chunks of the Responses API, and what comes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rxdelta.core import ContentPart, Fold, ProtocolChecker, Snapshot
from rxdelta.core.events import Event, StreamError
from rxdelta.formats.calls import knowing_calls
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder

Chunk = dict[str, Any]


USAGE = {
    "input_tokens": 7,
    "output_tokens": 3,
    "total_tokens": 10,
    "input_tokens_details": {"cached_tokens": 2},
}


def response(status: str = "in_progress", **more: Any) -> Chunk:
    return {"id": "resp_1", "object": "response", "created_at": 5, "model": "m", "status": status, **more}


def created(**more: Any) -> Chunk:
    return {"type": "response.created", "sequence_number": 0, "response": response(output=[], **more)}


def completed(*output: Chunk, status: str = "completed", **more: Any) -> Chunk:
    whole = response(status, output=list(output), usage=USAGE, **more)
    return {"type": f"response.{status}", "sequence_number": 99, "response": whole}


def incomplete(*output: Chunk, reason: str | None = "max_output_tokens") -> Chunk:
    return completed(*output, status="incomplete", incomplete_details={"reason": reason} if reason else None)


def event(kind: str, place: int = 0, **more: Any) -> Chunk:
    return {
        "type": f"response.{kind}",
        "output_index": place,
        "item_id": f"i{place}",
        "sequence_number": 1,
        **more,
    }


def added(item: Chunk, place: int = 0) -> Chunk:
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def done(item: Chunk, place: int = 0) -> Chunk:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def text(piece: str, place: int = 0, part: int = 0, **more: Any) -> Chunk:
    return event("output_text.delta", place, content_index=part, delta=piece, **more)


def part(said: str, *annotations: Chunk, **more: Any) -> Chunk:
    return {"type": "output_text", "text": said, "annotations": list(annotations), "logprobs": [], **more}


def message(*parts: Chunk, id: str = "i0", status: str = "completed", **more: Any) -> Chunk:
    return {
        "type": "message",
        "id": id,
        "role": "assistant",
        "status": status,
        "content": list(parts),
        **more,
    }


def reasoning(*summary: str, content: list[str] | None = None, **more: Any) -> Chunk:
    item = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": s} for s in summary],
    }
    if content is not None:
        item["content"] = [{"type": "reasoning_text", "text": said} for said in content]
    return item | more


def function(arguments: Any = "", name: str = "f", call_id: Any = "c1", **more: Any) -> Chunk:
    item = {
        "type": "function_call",
        "id": "fc",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        **more,
    }
    return {key: value for key, value in item.items() if value is not ...}


def arguments(piece: str, place: int = 0) -> Chunk:
    return event("function_call_arguments.delta", place, delta=piece)


def decode(*chunks: Any) -> list[Event]:
    decoder = knowing_calls(OpenAIResponsesDecoder())
    found = [one for chunk in chunks for one in decoder.decode(chunk)]
    return [*found, *decoder.close()]


def violations(found: Iterable[Event]) -> list[str]:
    lifecycle = ProtocolChecker()
    broken = [lifecycle.check(one) for one in found]
    return [rule for rule in (*broken, lifecycle.close()) if rule is not None]


def fold(found: Iterable[Event]) -> Snapshot:
    fold = Fold(choice=0)
    for one in found:
        if not isinstance(one, StreamError):
            fold.step(one)
    return fold.snapshot


def reply(*chunks: Any) -> Snapshot:
    found = decode(*chunks)
    assert set(violations(found)) <= {"missing_message_finish", "error_event"}
    return fold(found)


def streamed(item: Chunk, *pieces: Chunk, begin: Chunk | None = None) -> Snapshot:
    """A response of this item alone, which begins with what is known of it at the beginning."""
    return reply(created(), added(begin or item), *pieces, done(item), completed(item))


def blocks(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    return [
        (block.type, block.text)
        if isinstance(block, ContentPart)
        else (block.type, block.call_id, block.name)
        for block in snapshot.blocks
    ]


def only(snapshot: Snapshot) -> Any:
    (block,) = snapshot.blocks
    return block


def names(found: Iterable[Event]) -> list[str]:
    return [one.event.removeprefix("content-") for one in found]


def annotation(n: int = 0) -> Chunk:
    return {
        "type": "url_citation",
        "url": f"https://x/{n}",
        "title": f"T{n}",
        "start_index": n,
        "end_index": n + 1,
    }


def noted(n: int, **more: Any) -> Chunk:
    return event(
        "output_text.annotation.added", content_index=0, annotation_index=n, annotation=annotation(n), **more
    )


def summed(piece: str, at: int = 0) -> Chunk:
    return event("reasoning_summary_text.delta", summary_index=at, delta=piece)


def thought(piece: str, at: int = 0) -> Chunk:
    return event("reasoning_text.delta", content_index=at, delta=piece)


def custom(said: str, **more: Any) -> Chunk:
    return {"type": "custom_tool_call", "id": "ct", "call_id": "c1", "name": "sql", "input": said, **more}


WHOLE: list[Chunk] = [
    reasoning("One", "Two", encrypted_content="gAA", status="completed"),
    message(part("Look", annotation(3)), {"type": "refusal", "refusal": "no"}, phase="commentary"),
    {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "x"}},
    {"type": "mcp_call", "id": "mc", "name": "f", "server_label": "s", "arguments": "{}", "output": "o", "status": "completed"},
    {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "QUJD"},
    {"type": "compaction", "id": "cm", "encrypted_content": "e"},
    function('{"x": 1}', status="completed"),
    custom("text", status="completed"),
]  # fmt: skip
