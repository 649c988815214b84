"""Chunks that come when a stream seemed to be over: usage, a text, the rest of a call, another call, an error.

They are made of the stream's own chunks, so that ids and indexes fit. What they say is `MARK` or `COUNT`, which no
recorded stream has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import attrs

__all__ = ["COUNT", "MARK", "Late", "late_chunks"]

Chunk: TypeAlias = dict[str, Any]

MARK = "late-a7f3"
COUNT = 987_654_321
TAIL = f', "late": "{MARK}"}}'
"""Arguments that end a JSON object, or make two of it."""
ARGUMENTS = f'{{"late": "{MARK}"}}'


@attrs.frozen
class Late:
    """A chunk that comes late.

    Attributes:
        kind: What it brings.
        chunk: The chunk.
        call_id: Of which call it has more arguments, where the stream has said its id.
    """

    kind: str
    chunk: Chunk
    call_id: str | None = None


def late_chunks(wire_format: str, before: Sequence[Chunk]) -> list[Late]:
    """The chunks that may come behind these of a stream, of each kind that the format has."""
    return [*_MAKERS[wire_format](before)]


def _envelope(before: Sequence[Chunk], *names: str) -> Chunk:
    """These fields of the newest chunk that has them."""
    found = next((chunk for chunk in reversed(before) if chunk.get("id")), before[0])
    return {name: found[name] for name in names if name in found}


def _newest(before: Sequence[Chunk], read: Callable[[Chunk], Any]) -> Any:
    """What the newest chunk has of which `read` finds something; else `None`."""
    return next((found for chunk in reversed(before) if (found := read(chunk)) is not None), None)


def _chat(before: Sequence[Chunk]) -> Iterator[Late]:
    envelope = _envelope(before, "id", "object", "created", "model")

    def chunk(delta: Chunk, **more: Any) -> Chunk:
        return {**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], **more}

    usage = {"prompt_tokens": 1, "completion_tokens": COUNT, "total_tokens": COUNT + 1}
    yield Late("usage", {**envelope, "choices": [], "usage": usage})
    yield Late("usage beside a choice", chunk({}, usage=usage))
    yield Late("text", chunk({"content": MARK}))
    entries = [
        entry
        for one in before
        for choice in one.get("choices") or ()
        if choice.get("index") in (0, None)
        for entry in (choice.get("delta") or choice.get("message") or {}).get("tool_calls") or ()
    ]
    if entries:
        index = entries[-1].get("index")
        place = {} if index is None else {"index": index}
        named = [entry["id"] for entry in entries if entry.get("index") == index and entry.get("id")]
        tail = {**place, "function": {"arguments": TAIL}}
        yield Late("rest of a call", chunk({"tool_calls": [tail]}), named[-1] if named else None)
        if named:
            yield Late(
                "rest of a call by its id", chunk({"tool_calls": [{**tail, "id": named[-1]}]}), named[-1]
            )
    call = {"index": len(entries) + 1, "id": "call_late", "type": "function"}
    function = {"name": "late", "arguments": ARGUMENTS}
    yield Late("whole call", chunk({"tool_calls": [{**call, "function": function}]}))
    yield Late("error", {"error": {"message": MARK, "type": "server_error", "code": 500}})


def _completions(before: Sequence[Chunk]) -> Iterator[Late]:
    envelope = _envelope(before, "id", "object", "created", "model")
    yield Late(
        "usage", {**envelope, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": COUNT}}
    )
    yield Late("text", {**envelope, "choices": [{"index": 0, "text": MARK, "finish_reason": None}]})
    yield Late("error", {"error": {"message": MARK, "type": "server_error", "code": 500}})


def _anthropic(before: Sequence[Chunk]) -> Iterator[Late]:
    starts = [chunk for chunk in before if chunk["type"] == "content_block_start"]
    free = 1 + max((chunk["index"] for chunk in starts), default=-1)

    def start(block: Chunk) -> Chunk:
        return {"type": "content_block_start", "index": free, "content_block": block}

    def delta(index: int, piece: Chunk) -> Chunk:
        return {"type": "content_block_delta", "index": index, "delta": piece}

    yield Late("usage", {"type": "message_delta", "delta": {}, "usage": {"output_tokens": COUNT}})
    yield Late("text", start({"type": "text", "text": MARK}))
    yield Late("text without a start", delta(free, {"type": "text_delta", "text": MARK}))
    for kind in ("text", "tool_use"):
        found = [chunk for chunk in starts if chunk["content_block"]["type"] == kind]
        if found and kind == "text":
            yield Late("rest of a text", delta(found[-1]["index"], {"type": "text_delta", "text": MARK}))
        elif found:
            piece = {"type": "input_json_delta", "partial_json": TAIL}
            yield Late("rest of a call", delta(found[-1]["index"], piece), found[-1]["content_block"]["id"])
    call = {"type": "tool_use", "id": "toolu_late", "name": "late", "input": {"late": MARK}}
    yield Late("whole call", start(call))
    yield Late("error", {"type": "error", "error": {"type": "api_error", "message": MARK}})


def _bedrock(before: Sequence[Chunk]) -> Iterator[Late]:
    bodies = [body for chunk in before for body in chunk.values() if isinstance(body, dict)]
    free = 1 + max((body.get("contentBlockIndex", -1) for body in bodies), default=-1)

    def delta(index: int, piece: Chunk) -> Chunk:
        return {"contentBlockDelta": {"contentBlockIndex": index, "delta": piece}}

    usage = {"inputTokens": 1, "outputTokens": COUNT, "totalTokens": COUNT + 1}
    yield Late("usage", {"metadata": {"usage": usage, "metrics": {"latencyMs": 1}}})
    yield Late("text", delta(free, {"text": MARK}))
    call = _newest(before, _bedrock_call)
    if call is not None:
        index, call_id = call
        yield Late("rest of a call", delta(index, {"toolUse": {"input": TAIL}}), call_id)
    start = {"toolUse": {"toolUseId": MARK, "name": "late"}}
    yield Late("start of a call", {"contentBlockStart": {"contentBlockIndex": free, "start": start}})
    yield Late("error", {"modelStreamErrorException": {"message": MARK}})


def _bedrock_call(chunk: Chunk) -> tuple[int, str] | None:
    start = chunk.get("contentBlockStart") or {}
    call = (start.get("start") or {}).get("toolUse")
    return (start["contentBlockIndex"], call["toolUseId"]) if call and "type" not in call else None


def _cohere(before: Sequence[Chunk]) -> Iterator[Late]:
    def chunk(kind: str, message: Chunk, index: int = 0) -> Chunk:
        return {"type": kind, "index": index, "delta": {"message": message}}

    usage = {"tokens": {"input_tokens": 1, "output_tokens": COUNT}}
    yield Late("usage", {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": usage}})
    yield Late("text", chunk("content-start", {"content": {"type": "text", "text": MARK}}, 7))
    yield Late("text without a start", chunk("content-delta", {"content": {"text": MARK}}, 7))
    yield Late("plan", {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": MARK}}})
    start = _newest(before, lambda one: one if one["type"] == "tool-call-start" else None)
    if start is not None:
        tail = {"tool_calls": {"function": {"arguments": TAIL}}}
        call_id = start["delta"]["message"]["tool_calls"]["id"]
        yield Late("rest of a call", chunk("tool-call-delta", tail, start["index"]), call_id)
    call = {"id": "late", "type": "function", "function": {"name": "late", "arguments": ARGUMENTS}}
    yield Late("whole call", chunk("tool-call-start", {"tool_calls": call}, 7))
    yield Late("error", {"type": "message-end", "delta": {"finish_reason": "ERROR", "error": MARK}})


def _gemini(before: Sequence[Chunk]) -> Iterator[Late]:
    envelope = {name: before[-1][name] for name in ("responseId", "modelVersion") if name in before[-1]}

    def chunk(part: Chunk) -> Chunk:
        content = {"role": "model", "parts": [part]}
        return {**envelope, "candidates": [{"index": 0, "content": content}]}

    counts = {"promptTokenCount": 1, "candidatesTokenCount": COUNT, "totalTokenCount": COUNT + 1}
    yield Late("usage", {**envelope, "usageMetadata": counts})
    yield Late("text", chunk({"text": MARK}))
    yield Late("reasoning", chunk({"text": MARK, "thought": True}))
    yield Late("whole call", chunk({"functionCall": {"name": "late", "args": {"late": MARK}}}))
    argument = {"jsonPath": "$.late", "stringValue": MARK}
    yield Late("rest of a call", chunk({"functionCall": {"partialArgs": [argument]}}))
    yield Late("error", {"error": {"code": 500, "message": MARK, "status": "INTERNAL"}})


def _interactions(before: Sequence[Chunk]) -> Iterator[Late]:
    free = 1 + max((chunk.get("index", -1) for chunk in before), default=-1)
    about = {**before[0]["interaction"], "status": "completed"}

    def start(step: Chunk) -> Chunk:
        return {"event_type": "step.start", "index": free, "step": step}

    def delta(index: int, piece: Chunk) -> Chunk:
        return {"event_type": "step.delta", "index": index, "delta": piece}

    usage = {"total_input_tokens": 1, "total_output_tokens": COUNT}
    end = {"event_type": "interaction.completed", "interaction": {**about, "usage": usage}}
    yield Late("usage", end)
    yield Late("text", start({"type": "model_output", "content": [{"type": "text", "text": MARK}]}))
    yield Late("text without a start", delta(free, {"type": "text", "text": MARK}))
    call = _newest(before, _interactions_call)
    if call is not None:
        yield Late("rest of a call", delta(call[0], {"type": "arguments_delta", "arguments": TAIL}), call[1])
    step = {"type": "function_call", "id": "late", "name": "late", "arguments": {"late": MARK}}
    yield Late("whole call", start(step))
    yield Late("error", {"event_type": "error", "error": {"code": "internal", "message": MARK}})


def _interactions_call(chunk: Chunk) -> tuple[int, str] | None:
    step = chunk.get("step") or {}
    return (chunk["index"], step["id"]) if step.get("type") == "function_call" else None


def _ollama(before: Sequence[Chunk]) -> Iterator[Late]:
    envelope = {name: before[0][name] for name in ("model", "created_at") if name in before[0]}

    def line(message: Chunk, **more: Any) -> Chunk:
        return {**envelope, "message": {"role": "assistant", **message}, "done": False, **more}

    counts = {"done": True, "done_reason": "stop", "prompt_eval_count": 1, "eval_count": COUNT}
    yield Late("usage", line({"content": ""}, **counts))
    yield Late("text", line({"content": MARK}))
    yield Late("reasoning", line({"content": "", "thinking": MARK}))
    call = {"function": {"name": "late", "arguments": {"late": MARK}}}
    yield Late("whole call", line({"content": "", "tool_calls": [call]}))
    yield Late("error", {"error": MARK})


def _responses(before: Sequence[Chunk]) -> Iterator[Late]:
    free = 1 + max((chunk.get("output_index", -1) for chunk in before), default=-1)
    told = next((chunk["response"] for chunk in before if isinstance(chunk.get("response"), dict)), {})
    number = 1 + max((chunk.get("sequence_number", -1) for chunk in before), default=-1)

    def chunk(kind: str, **fields: Any) -> Chunk:
        return {"type": kind, "sequence_number": number, **fields}

    def item(kind: str, **fields: Any) -> Chunk:
        return chunk(
            "response.output_item.done", output_index=free, item={"type": kind, "id": "late", **fields}
        )

    usage = {"input_tokens": 1, "output_tokens": COUNT, "total_tokens": COUNT + 1}
    response = {"id": told.get("id", "r"), "object": "response", "status": "completed", "output": []}
    yield Late("usage", chunk("response.completed", response={**response, "usage": usage}))
    text = [{"type": "output_text", "text": MARK, "annotations": []}]
    yield Late("text", item("message", role="assistant", status="completed", content=text))
    place = {"item_id": "late", "output_index": free, "content_index": 0}
    yield Late("text without a start", chunk("response.output_text.delta", **place, delta=MARK))
    newest = _newest(before, lambda one: one if _is_function_call(one) else None)
    if newest is not None:
        place = {"item_id": newest["item"]["id"], "output_index": newest["output_index"]}
        kind = "response.function_call_arguments.delta"
        yield Late("rest of a call", chunk(kind, **place, delta=TAIL), newest["item"]["call_id"])
    call = {"call_id": "call_late", "name": "late", "arguments": ARGUMENTS, "status": "completed"}
    yield Late("whole call", item("function_call", **call))
    yield Late("error", chunk("error", code="server_error", message=MARK, param=None))


def _is_function_call(chunk: Chunk) -> bool:
    kinds = ("response.output_item.added", "response.output_item.done")
    is_item = chunk["type"] in kinds and chunk["item"]["type"] == "function_call"
    return is_item and "id" in chunk["item"] and "output_index" in chunk


_MAKERS: dict[str, Callable[[Sequence[Chunk]], Iterator[Late]]] = {
    "anthropic-messages": _anthropic,
    "bedrock-converse": _bedrock,
    "cohere": _cohere,
    "gemini": _gemini,
    "gemini-interactions": _interactions,
    "mistral": _chat,
    "ollama": _ollama,
    "openai-chat": _chat,
    "openai-completions": _completions,
    "openai-responses": _responses,
}
