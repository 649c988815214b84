"""The official SDKs as judges: what their own accumulators make of each recorded stream is what we make of it.

Where an SDK is wrong, the stream is listed with the reason, and the test is that it still differs.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from support.shared import recordings

import rxdelta as rd

REPEATED_ID = "concatenates an id and a name that are repeated with every fragment"
NULLS = "asserts that an opening fragment has arguments, where the vendor sends null"
ERROR_CHUNK = "iterates over the choices of an error chunk, which has none"
UNASSEMBLED = "leaves arguments that come one by one as they come"
PARTIAL = "takes arguments that were cut off for whole ones"

WRONG = {
    "openai-chat": {
        "llm-test-tools-streaming-variant-a": REPEATED_ID,
        "tl-test-writer-async-streaming-chat-multiple-tool-call-requests-legacy": NULLS,
        "pai-test-tool-use-failed-error-streaming": ERROR_CHUNK,
    },
    "anthropic-messages": {"anthsdk-incomplete-partial-json-response": PARTIAL},
    "gemini": {
        "vercel-google-stream-tool-call-arguments": UNASSEMBLED,
        "vercel-google-stream-tool-call-array-arguments-missing-terminal-function-call": UNASSEMBLED,
    },
}


def ours(wire_format: str, chunks: list[Any]) -> dict[str, Any]:
    decoder, fold = rd.providers.decoder(wire_format), rd.Fold(choice=0)
    for event in [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]:
        if isinstance(event, rd.events.StreamError):
            break
        fold.step(event)
    reply = fold.snapshot or rd.MessageDelta()
    calls = [
        call for call in reply.blocks if isinstance(call, rd.ToolCall) and call.type != "server_tool_call"
    ]
    return {
        "text": reply.text,
        "calls": [
            (
                None if call.metadata.get("synthetic_id") is True else call.call_id,
                call.name,
                rd.thaw(call.arguments),
            )
            for call in calls
        ],
        "finish_reason": reply.provider_finish_reason,
        "usage": reply.usage and (reply.usage.input_tokens, reply.usage.output_tokens),
    }


def openai_says(chunks: list[Any]) -> dict[str, Any]:
    streaming = pytest.importorskip("openai.lib.streaming.chat")
    types = pytest.importorskip("openai.types.chat")
    from openai._models import construct_type

    state = streaming.ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(construct_type(type_=types.ChatCompletionChunk, value=chunk))
    reply = state.current_completion_snapshot
    choice = next(choice for choice in reply.choices if choice.index == 0)
    usage = reply.usage or _groq_usage(chunks)
    return {
        "text": choice.message.content or "",
        "calls": [
            (call.id, call.function.name, json.loads(call.function.arguments or "{}"))
            for call in choice.message.tool_calls or ()
        ],
        "finish_reason": choice.finish_reason,
        "usage": usage and (usage.prompt_tokens, usage.completion_tokens),
    }


def _groq_usage(chunks: list[Any]) -> Any:
    """The SDK hands a vendor's own fields through; Groq's old usage is one of them."""
    from types import SimpleNamespace

    found = [chunk["x_groq"]["usage"] for chunk in chunks if (chunk.get("x_groq") or {}).get("usage")]
    return SimpleNamespace(**found[-1]) if found else None


def anthropic_says(chunks: list[Any]) -> dict[str, Any]:
    streaming = pytest.importorskip("anthropic.lib.streaming._messages")
    types = pytest.importorskip("anthropic.types")
    from anthropic._models import construct_type_unchecked

    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for chunk in chunks:
        if chunk["type"] == "ping":
            continue
        if snapshot is not None and chunk["type"] == "message_start":
            continue  # as its client would have it: one message
        event = construct_type_unchecked(type_=types.RawMessageStreamEvent, value=chunk)
        snapshot = streaming.accumulate_event(event=event, current_snapshot=snapshot, json_bufs=buffers)
    return {
        "text": "".join(block.text for block in snapshot.content if block.type == "text"),
        "calls": [
            (block.id, block.name, block.input) for block in snapshot.content if block.type == "tool_use"
        ],
        "finish_reason": snapshot.stop_reason,
        "usage": (snapshot.usage.input_tokens, snapshot.usage.output_tokens),
    }


def gemini_says(chunks: list[Any]) -> dict[str, Any]:
    """It has no accumulator: its responses' own properties, one after the other."""
    types = pytest.importorskip("google.genai.types")
    said: dict[str, Any] = {"text": "", "calls": [], "finish_reason": None, "usage": None}
    figures: dict[str, int] = {}
    for chunk in chunks:
        if "error" in chunk:
            break  # its client raises
        response = types.GenerateContentResponse._from_response(response=copy.deepcopy(chunk), kwargs={})
        said["text"] += response.text or ""
        said["calls"] += [(call.id, call.name, call.args or {}) for call in response.function_calls or ()]
        for candidate in response.candidates or ():
            said["finish_reason"] = candidate.finish_reason or said["finish_reason"]
        usage = response.usage_metadata
        figures |= {} if usage is None else usage.model_dump(exclude_none=True)
        if usage is not None:
            said["usage"] = (figures.get("prompt_token_count"), figures.get("candidates_token_count"))
    return said


SAYS = {"openai-chat": openai_says, "anthropic-messages": anthropic_says, "gemini": gemini_says}


@pytest.mark.parametrize(
    ("wire_format", "name", "chunks"),
    [
        pytest.param(wire_format, case.id, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
        for wire_format in SAYS
        for case in recordings(wire_format)
    ],
)
def test_the_sdk_says_the_same(wire_format: str, name: str, chunks: list[Any]) -> None:
    reason = WRONG[wire_format].get(name)
    if reason is None:
        assert SAYS[wire_format](chunks) == ours(wire_format, chunks)
        return
    try:
        theirs = SAYS[wire_format](chunks)
    except (AssertionError, TypeError):
        return
    assert theirs != ours(wire_format, chunks), f"the SDK agrees now: it no longer {reason}"
