"""A call whose arguments are null, as text or as a value, has none: in every format that has calls, there and back."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support import ag_ui, ai_sdk

import rxdelta as rd

ev = rd.events


def chat(arguments: Any) -> list[Any]:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "now", "arguments": arguments}}
    return [
        {"id": "x", "model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]},
        {"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    ]


def anthropic(arguments: Any) -> list[Any]:
    start = {"type": "message", "id": "m", "role": "assistant", "model": "claude", "content": []}
    call = {"type": "tool_use", "id": "c1", "name": "now", "input": None}
    piece = {"type": "input_json_delta", "partial_json": arguments}
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": call},
        *([{"type": "content_block_delta", "index": 0, "delta": piece}] if arguments else []),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]


def anthropic_body(arguments: Any) -> list[Any]:
    call = {"type": "tool_use", "id": "c1", "name": "now", "input": arguments}
    return [
        {"type": "message", "id": "m", "role": "assistant", "content": [call], "stop_reason": "tool_use"},
    ]


def bedrock(arguments: Any) -> list[Any]:
    call = {"toolUseId": "c1", "name": "now"}
    return [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": {"contentBlockIndex": 0, "start": {"toolUse": call}}},
        {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": arguments}}}},
        {"contentBlockStop": {"contentBlockIndex": 0}},
        {"messageStop": {"stopReason": "tool_use"}},
    ]


def cohere(arguments: Any) -> list[Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": arguments}}
    return [
        {"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant"}}},
        {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": call}}},
        {"type": "tool-call-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
    ]


def gemini(arguments: Any) -> list[Any]:
    content = {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "now", "args": arguments}}]}
    return [{"candidates": [{"content": content, "finishReason": "STOP"}]}]


def ollama(arguments: Any) -> list[Any]:
    call = {"id": "c1", "function": {"name": "now", "arguments": arguments}}
    message = {"role": "assistant", "content": "", "tool_calls": [call]}
    return [
        {"model": "m", "created_at": "t", "message": message, "done": False},
        {"model": "m", "created_at": "t", "message": {"role": "assistant", "content": ""}, "done": True},
    ]


def responses(arguments: Any) -> list[Any]:
    call = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "now", "status": "completed"}
    body = {"id": "r", "object": "response", "model": "m", "status": "completed", "output": []}
    return [
        {"type": "response.created", "response": {**body, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**call, "arguments": ""}},
        {"type": "response.output_item.done", "output_index": 0, "item": {**call, "arguments": arguments}},
        {"type": "response.completed", "response": {**body, "output": [{**call, "arguments": arguments}]}},
    ]


def langchain(arguments: Any) -> list[Any]:
    call = {"type": "tool_call_chunk", "id": "c1", "name": "now", "index": 0, "args": arguments}
    return [{"type": "AIMessageChunk", "content": "", "tool_call_chunks": [call], "chunk_position": "last"}]


def ui(arguments: Any) -> list[Any]:
    given = {"toolCallId": "c1", "toolName": "now"}
    return [
        {"type": "start", "messageId": "m"},
        {"type": "tool-input-available", **given, "input": arguments},
        {"type": "finish"},
    ]


def agent(arguments: Any) -> list[Any]:
    return [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "now"},
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": arguments},
        {"type": "TOOL_CALL_END", "toolCallId": "c1"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]


CALLS: list[tuple[str, Callable[[Any], list[Any]], tuple[Any, ...]]] = [
    ("openai-chat", chat, ("null", None)),
    ("mistral", chat, ("null", None)),
    ("anthropic-messages", anthropic, ("null", None)),
    ("anthropic-messages", anthropic_body, ("null", None)),
    ("bedrock-converse", bedrock, ("null", None)),
    ("cohere", cohere, ("null", None)),
    ("gemini", gemini, (None,)),
    ("ollama", ollama, ("null", None)),
    ("openai-responses", responses, ("null", None)),
    ("langchain", langchain, ("null", None)),
    ("ai-sdk", ui, (None,)),
    ("ag-ui", agent, ("null",)),
]


@pytest.mark.parametrize(
    ("wire_format", "chunks"),
    [
        pytest.param(wire_format, make(arguments), id=f"{make.__name__}-{json.dumps(arguments)}")
        for wire_format, make, given in CALLS
        for arguments in given
    ],
)
def test_null_is_no_arguments_in_every_format(wire_format: str, chunks: list[Any]) -> None:
    message = rx.from_iterable(chunks).pipe(rd.decode(wire_format), rd.scan_deltas(), rd.to_message()).run()
    (call,) = message.tool_calls
    assert (call.call_id, call.name, call.arguments, call.status) == ("c1", "now", {}, "complete")


def test_a_tool_without_parameters_runs() -> None:
    """Groq writes this for such a tool, and takes it back."""
    events = rx.from_iterable(chat("null")).pipe(
        rd.decode("openai-chat"), rd.run_tools({"now": lambda: "noon"}), ops.to_list()
    )
    fold = rd.Fold()
    for event in events.run():
        fold.step(event)
    (call,) = fold.snapshot.to_message().tool_calls
    assert call.result is not None
    assert (call.result.content, call.result.is_error) == ("noon", False)
    (asked, _) = rd.to_request([fold.snapshot.to_message()], "openai-chat")["messages"]
    assert asked["tool_calls"][0]["function"]["arguments"] == "{}"


NULL = [
    ev.MessageStart("m1"),
    ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "now"}),
    ev.ToolCallDelta(0, "nu"),
    ev.ToolCallDelta(0, "ll"),
    ev.BlockFinish(0),
    ev.MessageFinish("tool_use"),
]


def test_front_ends_get_an_object() -> None:
    frames = ai_sdk.told(*NULL)
    (whole,) = ai_sdk.of_type("tool-input-available", frames)
    assert whole["input"] == {}
    client = ag_ui.read(ag_ui.told(*NULL))
    message = client.messages[-1]  # behind the one that was taken back
    assert message["toolCalls"][0]["function"]["arguments"] == "{}"
    told = rx.from_iterable(NULL).pipe(rd.to_langchain_events(), rd.decode("langchain"), rd.scan_deltas())
    assert told.run().tool_calls[0].arguments == {}


def test_a_raw_line_end_reaches_front_ends_as_json() -> None:
    raw = '{"code": "a\nb"}'
    events = [*NULL[:2], ev.ToolCallDelta(0, raw), *NULL[-2:]]
    (whole,) = ai_sdk.of_type("tool-input-available", ai_sdk.told(*events))
    assert whole["input"] == {"code": "a\nb"}
    message = ag_ui.read(ag_ui.told(*events)).messages[-1]
    assert json.loads(message["toolCalls"][0]["function"]["arguments"]) == {"code": "a\nb"}
    call = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": raw}}
    (sent_back,) = rd.from_ag_ui({"messages": [{"id": "1", "role": "assistant", "toolCalls": [call]}]})
    assert sent_back.tool_calls[0].arguments == {"code": "a\nb"}
