"""The same stream in other pieces."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

Chunk = dict[str, Any]


def single_characters(wire_format: str, chunks: list[Chunk]) -> list[Chunk]:
    """Every text and argument fragment cut into single characters, a chunk each."""
    split = {
        "anthropic-messages": _anthropic,
        "openai-chat": _openai,
        "openai-responses": _responses,
        "bedrock-converse": _bedrock,
        "cohere": _cohere,
        "ollama": _ollama,
        "mistral": _mistral,
        "openai-completions": _completions,
        "gemini": _gemini,
        "gemini-interactions": _interactions,
    }[wire_format]
    return [piece for chunk in chunks for piece in split(chunk)]


def _bedrock(chunk: Chunk) -> Iterator[Chunk]:
    event = chunk.get("contentBlockDelta") or {}
    for outer, inner in (("text", None), ("reasoningContent", "text"), ("toolUse", "input")):
        found = (event.get("delta") or {}).get(outer)
        piece = found if inner is None else (found or {}).get(inner)
        if isinstance(piece, str) and len(piece) > 1:
            for character in piece:
                cut = character if inner is None else {inner: character}
                yield {"contentBlockDelta": {**event, "delta": {outer: cut}}}
            return
    yield chunk


def _cohere(chunk: Chunk) -> Iterator[Chunk]:
    for path in (["content", "text"], ["content", "thinking"], ["tool_plan"], _COHERE_ARGUMENTS):
        last = copy.deepcopy(chunk)
        found: Any = (
            (last.get("delta") or {}).get("message") if str(chunk.get("type")).endswith("-delta") else None
        )
        for name in path[:-1]:
            found = (found or {}).get(name)
        if found and len(found.get(path[-1]) or "") > 1:
            for character in found[path[-1]]:
                found[path[-1]] = character
                yield copy.deepcopy(last)
            return
    yield chunk


_COHERE_ARGUMENTS = ["tool_calls", "function", "arguments"]


def _ollama(chunk: Chunk) -> Iterator[Chunk]:
    last = copy.deepcopy(chunk)
    message = last.get("message", last)
    bare = {name: chunk[name] for name in ("model", "created_at") if name in chunk}
    for field in ("thinking", "content", "response"):
        if len(message.get(field) or "") > 1 and not last.get("logprobs"):
            *pieces, message[field] = message[field]
            for character in pieces:
                piece = {field: character}
                yield {**bare, **({"message": piece} if "message" in last else piece), "done": False}
    yield last


def _anthropic(chunk: Chunk) -> Iterator[Chunk]:
    delta = chunk.get("delta") if chunk.get("type") == "content_block_delta" else None
    field = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}.get(
        (delta or {}).get("type", "")
    )
    if delta is None or field is None or len(delta[field]) < 2:
        yield chunk
        return
    for character in delta[field]:
        yield {**chunk, "delta": {**delta, field: character}}


def _openai(chunk: Chunk) -> Iterator[Chunk]:
    choices = chunk.get("choices") or []
    if len(choices) != 1 or not choices[0].get("delta"):
        yield chunk
        return
    last = copy.deepcopy(chunk)
    delta = last["choices"][0]["delta"]
    bare = {name: last[name] for name in ("id", "model", "object", "created") if name in last}
    index = choices[0].get("index", 0)

    def piece(of: Chunk) -> Chunk:
        return {**bare, "choices": [{"index": index, "delta": of, "finish_reason": None}]}

    for field in ("reasoning_content", "reasoning", "content", "refusal"):
        alone = field != "reasoning" or not delta.get("reasoning_details")
        if (
            isinstance(delta.get(field), str)
            and len(delta[field]) > 1
            and alone
            and not delta.get("reasoning_details")
        ):
            *pieces, delta[field] = delta[field]
            for character in pieces:
                yield piece({field: character})
    calls = delta.get("tool_calls") or []
    if len(calls) == 1 and len((calls[0].get("function") or {}).get("arguments") or "") > 1:
        function = calls[0]["function"]
        first, *rest = function["arguments"]
        function["arguments"] = first
        reason, usage = last["choices"][0].pop("finish_reason", None), last.pop("usage", None)
        yield last
        for character in rest:
            again = {"function": {"arguments": character}}
            if calls[0].get("index") is not None:
                again["index"] = calls[0]["index"]
            yield piece({"tool_calls": [again]})
        if reason is not None or usage is not None:
            end = {**last, "choices": [{"index": index, "delta": {}, "finish_reason": reason}]}
            yield end if usage is None else {**end, "usage": usage}
        return
    yield last


def _responses(chunk: Chunk) -> Iterator[Chunk]:
    piece = chunk.get("delta")
    if isinstance(piece, str) and len(piece) > 1 and not chunk.get("logprobs"):
        for character in piece:
            yield {**chunk, "delta": character}
        return
    yield chunk


def _gemini(chunk: Chunk) -> Iterator[Chunk]:
    """Texts, and strings of streamed arguments."""
    candidates = chunk.get("candidates") or []
    parts = candidates[0].get("content", {}).get("parts", []) if len(candidates) == 1 else []
    if len(parts) != 1:
        yield chunk
        return
    candidate, part = candidates[0], parts[0]
    bare = {name: chunk[name] for name in ("modelVersion", "responseId", "createTime") if name in chunk}

    def piece(of: Chunk) -> Chunk:
        content = {**candidate["content"], "parts": [of]}
        index = {"index": candidate["index"]} if "index" in candidate else {}
        return {**bare, "candidates": [{**index, "content": content}]}

    last = copy.deepcopy(chunk)
    end = last["candidates"][0]["content"]["parts"][0]
    if len(part.get("text", "")) > 1:
        for character in part["text"][:-1]:
            yield piece({"text": character, **({"thought": True} if part.get("thought") else {})})
        end["text"] = part["text"][-1]
    arguments = part.get("functionCall", {}).get("partialArgs", [])
    if len(arguments) == 1 and len(arguments[0].get("stringValue", "")) > 1:
        for character in arguments[0]["stringValue"][:-1]:
            argument = {**arguments[0], "stringValue": character, "willContinue": True}
            yield piece({"functionCall": {"partialArgs": [argument], "willContinue": True}})
        end["functionCall"]["partialArgs"][0]["stringValue"] = arguments[0]["stringValue"][-1]
    yield last


def _interactions(chunk: Chunk) -> Iterator[Chunk]:
    delta = chunk.get("delta") or {}
    content = delta.get("content") or {}
    for field in ("text", "arguments"):
        for of, whole in ((delta, delta.get(field)), (content, content.get(field))):
            if isinstance(whole, str) and len(whole) > 1:
                for character in whole:
                    new = {**of, field: character}
                    yield {**chunk, "delta": new if of is delta else {**delta, "content": new}}
                return
    yield chunk


def _mistral(chunk: Chunk) -> Iterator[Chunk]:
    choices = chunk.get("choices") or []
    content = (choices[0].get("delta") or {}).get("content") if len(choices) == 1 else None
    texts = (
        [text for part in content for text in part.get("thinking", [part])]
        if isinstance(content, list)
        else []
    )
    if not texts or any(text["type"] != "text" for text in texts):
        yield from _openai(chunk)
        return
    last = copy.deepcopy(chunk)
    last["choices"][0]["delta"]["content"] = []
    for part in content:
        texts = part["thinking"] if part["type"] == "thinking" else [part]
        for character in "".join(text["text"] for text in texts):
            piece = {"type": "text", "text": character}
            cut = piece if part["type"] == "text" else {**part, "thinking": [piece]}
            choice = {"index": 0, "delta": {"content": [cut]}, "finish_reason": None}
            yield {**{name: chunk[name] for name in ("id", "model", "created")}, "choices": [choice]}
    yield last


def _completions(chunk: Chunk) -> Iterator[Chunk]:
    choices = chunk.get("choices") or []
    if len(choices) != 1 or len(choices[0].get("text") or "") < 2:
        yield chunk
        return
    last = copy.deepcopy(chunk)
    *pieces, last["choices"][0]["text"] = choices[0]["text"]
    for character in pieces:
        piece = {"index": choices[0].get("index", 0), "text": character, "finish_reason": None}
        yield {**{name: chunk[name] for name in ("id", "model", "created")}, "choices": [piece]}
    yield last


def as_sse(chunks: list[Chunk]) -> bytes:
    """The stream as it came over HTTP."""
    lines = [": a comment\r\n\r\n"]
    for chunk in chunks:
        data = {name: value for name, value in chunk.items() if name != "_event"}
        name = chunk.get("_event")
        lines.append(f"event: {name}\n" if name else "")
        lines.append(f"data: {json.dumps(data, ensure_ascii=False)}\n\n")
    lines.append("data: [DONE]\n\n")
    return "".join(lines).encode()
