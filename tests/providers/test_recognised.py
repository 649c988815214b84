"""Which formats take a chunk for theirs. `detect` asks all of them, in the order of their names for one that several take."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from support.shared import recordings
from support.small_replies import REPLIES

import rxdelta as rd
from rxdelta.formats import registry

ID = "6dc321029f5d4aa5899c1b38c9657a61"


def chat(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    return {
        "id": ID,
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


TAKEN: dict[str, list[Any]] = {
    "": [
        {},
        {"type": None},
        {"type": ["ping"]},
        {"type": ["response."]},
        {"object": []},
        {"object": "response.deleted"},
        {"object": "fine_tuning.job", "error": {}},
        {"choices": []},
        {"choices": ["x"]},
        {"id": "c", "choices": []},
        {"choices": [], "usage": {}},
        {"type": "message", "role": "assistant", "content": [], "status": "completed"},
        {"type": "content-start", "index": 0},
        {"outputText": "Hi", "index": 0, "completionReason": None},
        {"generation": "Hi", "prompt_token_count": 3, "stop_reason": None},
        {"results": [{"generated_text": "Hi", "stop_reason": "not_finished"}]},
        {"value": "Hi"},
        {"metadata": {"usage": {"prompt_tokens": 1}}},
        {"output": {"text": "Hi"}},
        {"messageStart": "x"},
        {"is_finished": False, "event_type": "stream-start", "generation_id": "g1"},
        {"is_finished": False, "event_type": "text-generation", "text": "Hi"},
        {"type": "tool-call-delta", "toolCallId": "c1", "argsTextDelta": "{"},
        {"type": "content-end", "index": 0, "content": {}},
        {"type": "message-start"},
        {"type": "debug"},
        {"candidates": "x"},
        {"serverContent": {}, "usageMetadata": {}},
        {"event_type": "message-start"},
        {"event_type": ""},
        {"type": "step.start"},
        {"status": "x"},
        {"model": "llama3", "embeddings": [[0.1]]},
        {"status": "pulling manifest", "total": 3},
        {"models": []},
        {"done": True},
        {"error": "Oops", "error_type": "overloaded"},
        {"message": {"role": "assistant", "content": "Hi"}},
    ],
    "anthropic-messages": [
        {"type": "ping"},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_start", "message": {}},
        {"type": "message", "role": "assistant", "content": []},
        {"type": "error", "error": {"message": "m"}},
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    ],
    "bedrock-converse": [
        {"messageStart": {"role": "assistant"}},
        {"metadata": {"usage": {"inputTokens": 7}, "metrics": {}}, "amazon-bedrock-invocationMetrics": {}},
    ],
    "cohere": [
        {"type": "message-start", "id": "x", "delta": {"message": {}}},
        {"type": "tool-call-end", "index": 0},
        {"type": "citation-end", "index": 0},
        {"type": "debug", "prompt": "x"},
    ],
    "gemini": [
        {"candidates": [{"content": {"parts": [], "role": "model"}}]},
        {"promptFeedback": {"blockReason": "SAFETY"}},
        {"usageMetadata": {"promptTokenCount": 1}, "modelVersion": "gemini-x"},
        {"usage_metadata": {"prompt_token_count": 1}, "candidates": None},
        {"candidates": [{"content": {"parts": [{"function_call": {"name": "f"}}]}}]},
    ],
    "gemini openai-chat": [{"error": {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED"}}],
    "gemini-interactions": [
        {"event_type": "step.start", "usageMetadata": {}},
        {"event_type": "step.stop", "index": 0},
        {"event_type": "content.delta", "delta": {}},
        {"id": "v1", "object": "interaction", "status": "completed", "steps": []},
    ],
    "langchain": [{"type": "AIMessageChunk", "content": "", "usage_metadata": {}}],
    "mistral": [{"data": {"id": "x", "model": "m", "choices": []}}],
    "mistral openai-chat": [
        {"id": ID, "model": "m", "choices": [{"index": 0, "delta": {"content": "a"}}]},
        {
            "id": f"cmpl-{ID}",
            "model": "mistral-tiny",
            "choices": [{"index": 0, "delta": {"role": "assistant"}}],
        },
        {
            "id": "x",
            "model": "open-mixtral-8x7b",
            "choices": [{"index": 0, "delta": {"content": "a"}}],
            "p": "ab",
        },
        chat({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "a"}]}]}),
    ],
    "ollama": [
        {"message": {"content": "Hi"}, "done": False},
        {"model": "llama3", "response": "x", "done": False},
        {"model": "llama3", "response": "", "done": True, "done_reason": "stop"},
        {"error": "Oops"},
    ],
    "openai-chat": [
        {"choices": [{"delta": {}}]},
        {"object": "chat.completion.chunk", "choices": []},
        {"id": "", "object": "", "choices": [], "prompt_filter_results": []},
        {"choices": [{"delta": {"content": "a"}, "text": "a"}]},
        {"object": "chat.completion", "choices": [{"index": 0, "message": {"content": "a"}}]},
        {"error": {"message": "m"}},
        {"error": {"message": "x", "type": "server_error", "code": "x"}},
        {"error": {"code": 400, "message": "x", "metadata": {}}},
        chat({"content": "a"}, system_fingerprint=""),
        chat({"content": "a"}, usage=None),
        chat({"content": "a", "reasoning_content": None}),
        chat({"content": "a"}, id="chatcmpl-1"),
        chat({"content": "a"}, id=f"chatcmpl-{ID}", model="mistralai/Mistral-7B"),
        chat({}, choices=[{"index": 0, "delta": {}, "stop_reason": None}]),
    ],
    "openai-completions": [
        {"id": "c1", "object": "text_completion", "model": "m", "choices": []},
        {"object": "text_completion", "choices": [{"index": 0, "text": "Hi"}]},
        {"choices": [{"index": 0, "text": ""}]},
    ],
    "openai-responses": [
        {"type": "response.created", "response": {}},
        {"type": "response.steer.pending"},
        {"id": "r", "object": "response", "status": "completed", "output": []},
        {"type": "error", "sequence_number": 2, "error": {"message": "m"}},
        {"type": "error", "error": {"type": "x", "message": "m"}, "sequence_number": 1},
        {"type": "error", "code": None, "message": "m", "param": None},
        {"type": "error", "code": "x", "message": "m", "sequence_number": 1},
    ],
    "openai-chat openai-responses": [
        {"id": "r", "object": "response", "status": "failed", "error": {"message": "m"}}
    ],
}
FIRST = {
    "gemini openai-chat": "gemini",
    "mistral openai-chat": "mistral",
    "openai-chat openai-responses": "openai-responses",
}


@pytest.mark.parametrize(
    ("names", "chunk"), [(names, chunk) for names, chunks in TAKEN.items() for chunk in chunks]
)
def test_a_chunk_is_taken_by_the_formats_that_may_have_sent_it(names: str, chunk: Any) -> None:
    assert [
        name for name in sorted(rd.providers.FORMATS) if registry.get(name).recognises(chunk)
    ] == names.split()
    found = ""
    with suppress(rd.errors.UnknownWireFormatError):
        found = rd.providers.detect(chunk)
    assert found == FIRST.get(names, names)


@pytest.mark.parametrize("name", sorted({*REPLIES} - {"ai-sdk", "ag-ui", "langchain", "mistral"}))
def test_each_chunk_of_a_reply_is_taken_by_its_format_alone(name: str) -> None:
    one = REPLIES[name]
    for chunk in (*one.begin, *one.text, *one.call(1), *one.end(one.stop)):
        assert [known for known in rd.providers.FORMATS if registry.get(known).recognises(chunk)] == [name]


@pytest.mark.parametrize(("chunks", "expected"), recordings("openai-chat"))
def test_no_chunk_of_another_vendor_is_taken_for_mistrals(chunks: list[Any], expected: Any) -> None:
    assert not any(registry.get("mistral").recognises(one) for one in chunks), expected["model"]
