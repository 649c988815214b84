"""A chat model of LangChain's that says what it is told, in chunks as the models of two providers give them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import attrs
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

__all__ = ["PROVIDERS", "Reply", "ScriptedModel"]


@attrs.frozen
class Reply:
    """What a model says once."""

    id: str
    words: tuple[str, ...]
    call: tuple[str, str, dict[str, Any]] | None = None
    usage: tuple[int, int] = (5, 7)

    @property
    def text(self) -> str:
        return "".join(self.words)


def anthropics(reply: Reply) -> list[AIMessageChunk]:
    """Parts with indexes; the provider's id is in the first chunk only; the last chunk says that it is the last."""
    asked, said = reply.usage
    chunks = [
        AIMessageChunk([], id=reply.id, usage_metadata=_usage(asked, 0), response_metadata={"model_name": "claude"}),
        *(AIMessageChunk([{"type": "text", "text": word, "index": 0}]) for word in reply.words),
    ]  # fmt: skip
    if reply.call is not None:
        call_id, name, args = reply.call
        part = {"type": "tool_use", "id": call_id, "name": name, "input": {}, "index": 1}
        chunks.append(AIMessageChunk([part], tool_call_chunks=[_call("", 1, id=call_id, name=name)]))
        for piece in _halves(args):
            part = {"type": "input_json_delta", "partial_json": piece, "index": 1}
            chunks.append(AIMessageChunk([part], tool_call_chunks=[_call(piece, 1)]))
    reason = {"stop_reason": "tool_use" if reply.call else "end_turn"}
    usage = _usage(0, said)
    chunks.append(AIMessageChunk([], usage_metadata=usage, response_metadata=reason, chunk_position="last"))
    for chunk in chunks:
        chunk.response_metadata["model_provider"] = "anthropic"
    return chunks


def openais(reply: Reply) -> list[AIMessageChunk]:
    """Strings; no id of the provider's; the usage comes behind the reason."""
    chunks = [AIMessageChunk(""), *(AIMessageChunk(word) for word in reply.words)]
    if reply.call is not None:
        call_id, name, args = reply.call
        chunks.append(AIMessageChunk("", tool_call_chunks=[_call("", 0, id=call_id, name=name)]))
        chunks += [AIMessageChunk("", tool_call_chunks=[_call(piece, 0)]) for piece in _halves(args)]
    reason = {"finish_reason": "tool_calls" if reply.call else "stop", "model_name": "gpt"}
    chunks += [
        AIMessageChunk("", response_metadata=reason),
        AIMessageChunk("", usage_metadata=_usage(*reply.usage)),
    ]
    for chunk in chunks:
        chunk.response_metadata["model_provider"] = "openai"
    return chunks


PROVIDERS = {"anthropic": anthropics, "openai": openais}


class ScriptedModel(BaseChatModel):
    """Gives its replies one after the other."""

    replies: Sequence[Reply]
    provider: str
    given: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _chunks(self) -> list[AIMessageChunk]:
        reply = self.replies[self.given]
        self.given += 1
        return PROVIDERS[self.provider](reply)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        first, *others = self._chunks()
        whole = first.__add__(others)
        fields = ("content", "id", "tool_calls", "usage_metadata", "response_metadata")
        message = AIMessage(**{name: getattr(whole, name) for name in fields})
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        for chunk in self._chunks():
            yield ChatGenerationChunk(message=chunk)

    async def _astream(
        self, messages: list[BaseMessage], *_: Any, **__: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in self._chunks():
            await asyncio.sleep(0)  # models that run at a time take turns
            yield ChatGenerationChunk(message=chunk)


def _usage(asked: int, said: int) -> dict[str, int]:
    return {"input_tokens": asked, "output_tokens": said, "total_tokens": asked + said}


def _call(args: str, index: int, **fields: Any) -> dict[str, Any]:
    return {"id": None, "name": None, **fields, "args": args, "index": index, "type": "tool_call_chunk"}


def _halves(args: dict[str, Any]) -> tuple[str, str]:
    text = json.dumps(args)
    return text[:5], text[5:]
