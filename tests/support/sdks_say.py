"""What a provider's own SDK makes of the chunks of a stream, and what we make of them, in one form."""

from __future__ import annotations

import copy
import json
import warnings
from typing import Any
from unittest import mock

import pytest

import rxdelta as rd
from support.sdk_objects import sdk_objects

__all__ = ["SAYS", "ours"]


def ours(wire_format: str, chunks: list[Any]) -> dict[str, Any]:
    decoder, fold = rd.providers.decoder(wire_format), rd.Fold(choice=0)
    for event in [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]:
        if isinstance(event, rd.events.StreamError):
            break
        fold.step(event)
    reply = fold.snapshot or rd.Snapshot()
    calls = [
        call for call in reply.blocks if isinstance(call, rd.ToolCall) and call.type != "server_tool_call"
    ]
    return {
        "text": reply.text,
        "calls": [
            (
                None if call.metadata.get("synthetic_id") is True else call.call_id,
                call.name,
                rd.core.thaw(call.arguments),
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


def openai_responses_says(chunks: list[Any]) -> dict[str, Any]:
    streaming = pytest.importorskip("openai.lib.streaming.responses._responses")
    types = pytest.importorskip("openai.types.responses")
    from openai._models import construct_type
    from openai._types import omit

    state = streaming.ResponseStreamState(input_tools=omit, text_format=omit)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sources that its types don't know
        for chunk in chunks:
            state.handle_event(construct_type(type_=types.ResponseStreamEvent, value=chunk))
    reply = state._completed_response
    assert reply is not None
    return {
        "text": reply.output_text,
        "calls": [_responses_call(item) for item in reply.output if _is_ours(item)],
        "finish_reason": reply.status,
        "usage": reply.usage and (reply.usage.input_tokens, reply.usage.output_tokens),
    }


def _is_ours(item: Any) -> bool:
    """Whether it is for the client to run."""
    local = ("function_call", "custom_tool_call", "local_shell_call", "apply_patch_call")
    return item.type in local or (item.type == "shell_call" and item.environment is None)


def _responses_call(item: Any) -> tuple[str, str, Any]:
    name = getattr(item, "name", item.type.removesuffix("_call"))
    if item.type == "function_call":
        return item.call_id, name, json.loads(item.arguments)
    said = item.to_dict()
    return (
        item.call_id,
        name,
        {field: said[field] for field in ("input", "action", "operation") if field in said},
    )


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


def bedrock_says(chunks: list[Any]) -> dict[str, Any]:
    """boto3 folds nothing; this reads its events as its documentation tells."""
    text, reason, usage = "", None, None
    calls: dict[int, list[Any]] = {}
    for event in sdk_objects("bedrock-converse", chunks):
        if "contentBlockStart" in event:
            call = event["contentBlockStart"]["start"].get("toolUse")
            if call and "type" not in call:
                calls[event["contentBlockStart"]["contentBlockIndex"]] = [call["toolUseId"], call["name"], ""]
        elif "contentBlockDelta" in event:
            delta = event["contentBlockDelta"]["delta"]
            text += delta.get("text", "")
            index = event["contentBlockDelta"]["contentBlockIndex"]
            if "toolUse" in delta and index in calls:
                calls[index][2] += delta["toolUse"]["input"]
        elif "messageStop" in event:
            reason = event["messageStop"]["stopReason"]
        elif "metadata" in event:
            usage = event["metadata"]["usage"]
    return {
        "text": text,
        "calls": [(call_id, name, json.loads(args or "{}")) for call_id, name, args in calls.values()],
        "finish_reason": reason,
        "usage": usage and (usage["inputTokens"], usage["outputTokens"]),
    }


def cohere_says(chunks: list[Any]) -> dict[str, Any]:
    """The package folds nothing; this reads its events as its documentation tells."""
    text, reason, usage = "", None, None
    calls: list[list[Any]] = []
    for event in sdk_objects("cohere", chunks):
        if event.type == "content-delta":
            text += event.delta.message.content.text or ""
        elif event.type == "tool-call-start":
            call = event.delta.message.tool_calls
            calls.append([call.id, call.function.name, call.function.arguments])
        elif event.type == "tool-call-delta":
            calls[event.index][2] += event.delta.message.tool_calls.function.arguments
        elif event.type == "message-end":
            reason, usage = event.delta.finish_reason, event.delta.usage.tokens
    return {
        "text": text,
        "calls": [(call_id, name, json.loads(args or "{}")) for call_id, name, args in calls],
        "finish_reason": reason,
        "usage": usage and (usage.input_tokens, usage.output_tokens),
    }


def ollama_says(chunks: list[Any]) -> dict[str, Any]:
    """The package folds nothing; this reads its lines as its documentation tells."""
    lines = sdk_objects("ollama", chunks)
    said = [line.message if "message" in line else line for line in lines]
    calls = [call.function for message in said for call in getattr(message, "tool_calls", None) or ()]
    return {
        "text": "".join(
            getattr(message, "content", None) or message.get("response") or "" for message in said
        ),
        "calls": [(mock.ANY, call.name, call.arguments) for call in calls],  # its types know no ids
        "finish_reason": lines[-1].done_reason,
        "usage": (lines[-1].prompt_eval_count, lines[-1].eval_count),
    }


def openai_completions_say(chunks: list[Any]) -> dict[str, Any]:
    """It has no accumulator: the texts of its objects, one after the other."""
    types = pytest.importorskip("openai.types")
    from openai._models import construct_type

    made: list[Any] = [construct_type(type_=types.Completion, value=chunk) for chunk in chunks]
    choices = [choice for completion in made for choice in completion.choices if choice.index == 0]
    usages = [completion.usage for completion in made if completion.usage]
    return {
        "text": "".join(choice.text for choice in choices),
        "calls": [],
        "finish_reason": next((one.finish_reason for one in choices if one.finish_reason), None),
        "usage": (usages[-1].prompt_tokens, usages[-1].completion_tokens) if usages else None,
    }


def mistral_says(chunks: list[Any]) -> dict[str, Any]:
    """It has no accumulator: what its objects say, one after the other."""
    models = pytest.importorskip("mistralai.client.models")
    said: dict[str, Any] = {"text": "", "calls": [], "finish_reason": None, "usage": None}
    for chunk in chunks:
        completion = models.CompletionEvent.model_validate({"data": chunk}).data
        (choice,) = completion.choices
        content = choice.delta.content or ""
        parts = (
            [part.text for part in content if part.type == "text"] if isinstance(content, list) else [content]
        )
        said["text"] += "".join(parts)
        said["calls"] += [
            (call.id, call.function.name, json.loads(call.function.arguments))
            for call in choice.delta.tool_calls or ()
        ]
        said["finish_reason"] = choice.finish_reason or said["finish_reason"]
        if completion.usage:
            said["usage"] = (completion.usage.prompt_tokens, completion.usage.completion_tokens)
    return said


SAYS = {
    "openai-chat": openai_says,
    "openai-responses": openai_responses_says,
    "anthropic-messages": anthropic_says,
    "gemini": gemini_says,
    "bedrock-converse": bedrock_says,
    "cohere": cohere_says,
    "ollama": ollama_says,
    "openai-completions": openai_completions_say,
    "mistral": mistral_says,
}
