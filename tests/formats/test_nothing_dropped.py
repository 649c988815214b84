"""A chunk that lacks a field, or has it under another name: what it held is used, passed on or refused, never dropped.

`STREAMS` has streams with every kind of chunk in them. Each field of each chunk is taken away in turn, and renamed. The
law: a reply that lost something against the intact stream's says so, by an error, by a `ProviderEvent` that has the
chunk, or by a violation.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import rxdelta as rd

Chunk = dict[str, Any]
Path = tuple[str | int, ...]


def ai_sdk(*chunks: Chunk) -> list[Chunk]:
    return [{"type": "start", "messageId": "m"}, {"type": "start-step"}, *chunks, {"type": "finish"}]


def ag_ui(*chunks: Chunk) -> list[Chunk]:
    run = {"threadId": "t", "runId": "r"}
    return [{"type": "RUN_STARTED", **run}, *chunks, {"type": "RUN_FINISHED", **run}]


def langchain(*deltas: tuple[Chunk, Chunk]) -> list[Chunk]:
    """Blocks by their content at the start and their delta."""
    events: list[Chunk] = [{"event": "message-start", "id": "m", "role": "ai"}]
    for index, (content, delta) in enumerate(deltas):
        events.append({"event": "content-block-start", "index": index, "content": content})
        events.append({"event": "content-block-delta", "index": index, "delta": delta})
    return [*events, {"event": "message-finish", "reason": "stop"}]


def candidates(*parts: Chunk) -> list[Chunk]:
    """A response for each part, and the end."""
    whole = [{"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]} for part in parts]
    return [*whole, {"candidates": [{"index": 0, "finishReason": "STOP"}], "responseId": "r"}]


def interaction(*steps: list[Chunk]) -> list[Chunk]:
    """Steps by their start and their deltas."""
    events: list[Chunk] = [{"event_type": "interaction.created", "interaction": {"id": "i", "model": "m"}}]
    for index, (start, *deltas) in enumerate(steps):
        events.append({"event_type": "step.start", "index": index, "step": start})
        events += [{"event_type": "step.delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"event_type": "step.stop", "index": index})
    done = {"id": "i", "status": "completed"}
    return [*events, {"event_type": "interaction.completed", "interaction": done}]


def converse(*blocks: list[Chunk]) -> list[Chunk]:
    """Blocks by their start, which may be empty, and their deltas."""
    events: list[Chunk] = [{"messageStart": {"role": "assistant"}}]
    for place, (start, *deltas) in enumerate(blocks):
        if start:
            events.append({"contentBlockStart": {"contentBlockIndex": place, "start": start}})
        events += [{"contentBlockDelta": {"contentBlockIndex": place, "delta": delta}} for delta in deltas]
        events.append({"contentBlockStop": {"contentBlockIndex": place}})
    return [*events, {"messageStop": {"stopReason": "end_turn"}}]


def cohere(*events: Chunk) -> list[Chunk]:
    first = {"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant"}}}
    return [first, *events, {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}}]


def of_cohere(kind: str, index: int | None = None, **message: Any) -> Chunk:
    at = {} if index is None else {"index": index}
    return {"type": kind, **at, "delta": {"message": message}}


def ollama(*messages: Chunk) -> list[Chunk]:
    line = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    lines = [{**line, "message": {"role": "assistant", **one}, "done": False} for one in messages]
    last = {**line, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"}
    return [*lines, last]


def generate(*fields: Chunk) -> list[Chunk]:
    line = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    lines = [{**line, **one, "done": False} for one in fields]
    return [*lines, {**line, "response": "", "done": True, "done_reason": "stop"}]


def completions(*choices: Chunk) -> list[Chunk]:
    return [{"id": "c", "object": "text_completion", "model": "m", "choices": [one]} for one in choices]


WORDS = re.compile(
    "said|anew|quoted|offered|autographed|chunked|further|thought|pondered|musing|planned|given|done|print(?:ed)?|sea|half|sealed|completed|failed"
    "|executing|AAAA|BBBB|blue|first"
)
"""What the streams say. To which blocks it belongs doesn't matter here."""

CALL = {"type": "tool-input-start", "toolCallId": "c", "toolName": "f"}
GIVEN = {"type": "tool-input-available", "toolCallId": "c", "toolName": "f", "input": {"a": "given"}}
AG_UI_CALL = {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"}
AG_UI_ARGS = {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"a": 1}'}
FUNCTION = {"name": "f", "arguments": {"a": "given"}}

STREAMS: dict[str, tuple[str, list[Chunk]]] = {
    "ai-sdk texts": (
        "ai-sdk",
        ai_sdk(
            {"type": "text-start", "id": "1"},
            {"type": "text-delta", "id": "1", "delta": "said"},
            {"type": "text-end", "id": "1"},
            {"type": "reasoning-start", "id": "2"},
            {"type": "reasoning-delta", "id": "2", "delta": "thought"},
            {"type": "reasoning-end", "id": "2"},
            {"type": "file", "url": "data:image/png;base64,AAAA", "mediaType": "image/png"},
            {"type": "reasoning-file", "url": "https://sea.example/a.png", "mediaType": "image/png"},
            {"type": "source-url", "sourceId": "s", "url": "https://sea.example"},
            {"type": "data-weather", "id": "w", "data": {"sky": "blue"}},
            {"type": "message-metadata", "messageMetadata": {"own": "metadata"}},
        ),
    ),
    "ai-sdk streamed call": (
        "ai-sdk",
        ai_sdk(CALL, {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"a": "given"}'}, GIVEN),
    ),
    "ai-sdk call and result": (
        "ai-sdk",
        ai_sdk(GIVEN, {"type": "tool-output-available", "toolCallId": "c", "output": "done"}),
    ),
    "ai-sdk call and error": (
        "ai-sdk",
        ai_sdk(GIVEN, {"type": "tool-output-error", "toolCallId": "c", "errorText": "broken"}),
    ),
    "ai-sdk invalid call": (
        "ai-sdk",
        ai_sdk({**GIVEN, "type": "tool-input-error", "input": '{"a', "errorText": "cut"}),
    ),
    "ai-sdk approval": (
        "ai-sdk",
        ai_sdk(
            GIVEN,
            {"type": "tool-approval-request", "approvalId": "p", "toolCallId": "c"},
            {"type": "tool-approval-response", "approvalId": "p", "approved": True},
        ),
    ),
    "ai-sdk denial": ("ai-sdk", ai_sdk(GIVEN, {"type": "tool-output-denied", "toolCallId": "c"})),
    "ai-sdk provider's call": (
        "ai-sdk",
        ai_sdk(
            {**GIVEN, "providerExecuted": True},
            {"type": "tool-output-available", "toolCallId": "c", "output": "done", "providerExecuted": True},
        ),
    ),
    "ai-sdk error": ("ai-sdk", [{"type": "start"}, {"type": "error", "errorText": "broken"}]),
    "ag-ui texts": (
        "ag-ui",
        ag_ui(
            {"type": "TEXT_MESSAGE_START", "messageId": "1", "role": "assistant"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "1", "delta": "said"},
            {"type": "TEXT_MESSAGE_END", "messageId": "1"},
            {"type": "REASONING_START", "messageId": "2"},
            {"type": "REASONING_MESSAGE_START", "messageId": "2", "role": "reasoning"},
            {"type": "REASONING_MESSAGE_CONTENT", "messageId": "2", "delta": "thought"},
            {"type": "REASONING_MESSAGE_END", "messageId": "2"},
            {
                "type": "REASONING_ENCRYPTED_VALUE",
                "subtype": "message",
                "entityId": "2",
                "encryptedValue": "sealed",
            },
            {"type": "REASONING_END", "messageId": "2"},
            {"type": "THINKING_TEXT_MESSAGE_START"},
            {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "pondered"},
            {"type": "THINKING_TEXT_MESSAGE_END"},
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "3", "role": "assistant", "delta": "chunked"},
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "3", "delta": "further"},
            {"type": "REASONING_MESSAGE_CHUNK", "messageId": "4", "delta": "musing"},
            {"type": "CUSTOM", "name": "weather", "value": {"sky": "blue"}},
            {"type": "STATE_SNAPSHOT", "snapshot": {"step": "first"}},
        ),
    ),
    "ag-ui call": (
        "ag-ui",
        ag_ui(
            AG_UI_CALL,
            AG_UI_ARGS,
            {"type": "TOOL_CALL_END", "toolCallId": "c"},
            {"type": "TOOL_CALL_RESULT", "messageId": "t1", "toolCallId": "c", "content": "done"},
        ),
    ),
    "ag-ui chunked call": (
        "ag-ui",
        ag_ui(
            {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "delta": '{"a": '},
            {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "delta": "1}"},
        ),
    ),
    "ag-ui snapshot": (
        "ag-ui",
        ag_ui(
            {"type": "TEXT_MESSAGE_START", "messageId": "1", "role": "assistant"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "1", "delta": "said"},
            {"type": "TEXT_MESSAGE_END", "messageId": "1"},
            {
                "type": "MESSAGES_SNAPSHOT",
                "messages": [{"id": "1", "role": "assistant", "content": "said anew"}],
            },
        ),
    ),
    "ag-ui error": ("ag-ui", [ag_ui()[0], {"type": "RUN_ERROR", "message": "broken"}]),
    "langchain events": (
        "langchain",
        langchain(
            ({"type": "text", "text": ""}, {"type": "text-delta", "text": "said"}),
            ({"type": "reasoning", "reasoning": ""}, {"type": "reasoning-delta", "reasoning": "thought"}),
            ({"type": "image", "base64": ""}, {"type": "data-delta", "data": "AAAA"}),
            (
                {"type": "tool_call_chunk", "id": "c", "name": "f", "args": ""},
                {"type": "tool-call-delta", "args": '{"a": "given"}'},
            ),
            (
                {"type": "tool_call_chunk", "id": "d", "name": "g", "args": ""},
                {"type": "block-delta", "fields": {"type": "tool_call_chunk", "args": '{"b": "offered"}'}},
            ),
        ),
    ),
    "langchain chunks": (
        "langchain",
        [
            {"type": "AIMessageChunk", "id": "m", "content": "said"},
            {"type": "AIMessageChunk", "id": "m", "content": "further"},
            {"type": "AIMessageChunk", "id": "m", "content": "", "chunk_position": "last"},
        ],
    ),
    "langchain call": (
        "langchain",
        [
            {
                "type": "AIMessageChunk",
                "id": "m",
                "content": "",
                "tool_call_chunks": [{"index": 0, "id": "c", "name": "f", "args": '{"a": 1}'}],
            },
            {"type": "AIMessageChunk", "id": "m", "content": "", "chunk_position": "last"},
        ],
    ),
    "langchain parts": (
        "langchain",
        [
            {
                "type": "AIMessageChunk",
                "id": "m",
                "content": [
                    {"type": "text", "text": "said", "index": 0},
                    {"type": "reasoning", "reasoning": "thought", "index": 1},
                    {"type": "image", "base64": "AAAA", "index": 2},
                    {"type": "tool_use", "id": "c", "name": "f", "input": {"a": "given"}, "index": 3},
                ],
            },
            {"type": "AIMessageChunk", "id": "m", "content": "", "chunk_position": "last"},
        ],
    ),
    "langchain tools": (
        "langchain",
        [
            *langchain(
                ({"type": "tool_call", "id": "c", "name": "f", "args": {}}, {"type": "text-delta", "text": ""})
            )[:2],
            {"event": "message-finish", "reason": "tool_use"},
            *(
                {"type": "tools", "ns": [], "data": {"tool_call_id": "c", **data}}
                for data in (
                    {"event": "tool-started", "tool_name": "f"},
                    {"event": "tool-output-delta", "delta": "half"},
                    {"event": "tool-finished", "output": "done"},
                )
            ),
        ],
    ),
    "gemini": (
        "gemini",
        candidates(
            {"text": "thought", "thought": True},
            {"text": "said"},
            {"text": "autographed", "thoughtSignature": "sealed"},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
            {"fileData": {"mimeType": "image/png", "fileUri": "gs://sea/a.png"}},
            {"executableCode": {"language": "PYTHON", "code": "print()"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "printed"}},
            {"toolCall": {"id": "s", "toolType": "GOOGLE_SEARCH", "args": {"q": "sea"}}},
            {"toolResponse": {"id": "s", "toolType": "GOOGLE_SEARCH", "response": {"found": "sea"}}},
        ),
    ),
    "gemini call": ("gemini", candidates({"functionCall": {"id": "c", "name": "f", "args": {"a": "given"}}})),
    "gemini streamed call": (
        "gemini",
        candidates(
            {"functionCall": {"id": "c", "name": "f", "willContinue": True}},
            {"functionCall": {"partialArgs": [{"jsonPath": "$.a", "stringValue": "given"}], "willContinue": True}},
            {"functionCall": {}},
        ),
    ),
    "gemini-interactions": (
        "gemini-interactions",
        interaction(
            [
                {"type": "thought"},
                {"type": "thought_summary", "content": {"type": "text", "text": "thought"}},
                {"type": "thought_signature", "signature": "sealed"},
            ],
            [
                {"type": "model_output"},
                {"type": "text", "text": "said"},
                {"type": "text_annotation_delta", "annotations": [{"url": "https://sea.example"}]},
                {"type": "image", "data": "AAAA", "mime_type": "image/png"},
                {"type": "audio", "data": "BBBB", "mime_type": "audio/wav"},
            ],
            [
                {"type": "google_search_call", "id": "s"},
                {"type": "google_search_call", "arguments": {"queries": ["sea"]}},
            ],
            [
                {"type": "google_search_result", "call_id": "s"},
                {"type": "google_search_result", "result": [{"found": "sea"}]},
            ],
        ),
    ),
    "gemini-interactions call": (
        "gemini-interactions",
        interaction(
            [
                {"type": "function_call", "id": "c", "name": "f", "arguments": {}},
                {"type": "arguments_delta", "arguments": '{"a": "given"}'},
            ]
        ),
    ),
    "bedrock-converse": (
        "bedrock-converse",
        converse(
            [{}, {"text": "said"}],
            [
                {},
                {"reasoningContent": {"text": "thought"}},
                {"reasoningContent": {"signature": "sealed"}},
            ],
            [{}, {"reasoningContent": {"redactedContent": "AAAA"}}],
            [{"image": {"format": "png"}}, {"image": {"source": {"bytes": "AAAA"}}}],
        ),
    ),
    "bedrock-converse call": (
        "bedrock-converse",
        converse([{"toolUse": {"toolUseId": "c", "name": "f"}}, {"toolUse": {"input": '{"a": "given"}'}}]),
    ),
    "bedrock-converse result": (
        "bedrock-converse",
        converse([{"toolResult": {"toolUseId": "c"}}, {"toolResult": [{"text": "done"}]}]),
    ),
    "cohere": (
        "cohere",
        cohere(
            of_cohere("tool-plan-delta", tool_plan="planned"),
            of_cohere("content-start", 0, content={"type": "thinking", "thinking": ""}),
            of_cohere("content-delta", 0, content={"thinking": "thought"}),
            {"type": "content-end", "index": 0},
            of_cohere("content-start", 1, content={"type": "text", "text": ""}),
            of_cohere("content-delta", 1, content={"text": "said"}),
            of_cohere("citation-start", 0, citations={"start": 0, "end": 4, "text": "quoted", "sources": []}),
            {"type": "citation-end", "index": 0},
            {"type": "content-end", "index": 1},
        ),
    ),
    "cohere call": (
        "cohere",
        cohere(
            of_cohere(
                "tool-call-start",
                0,
                tool_calls={"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}},
            ),
            of_cohere("tool-call-delta", 0, tool_calls={"function": {"arguments": '{"a": "given"}'}}),
            {"type": "tool-call-end", "index": 0},
        ),
    ),
    "ollama": (
        "ollama",
        ollama({"thinking": "thought"}, {"content": "said"}, {"content": "further"}, {"images": ["AAAA"]}),
    ),
    "ollama call": ("ollama", ollama({"tool_calls": [{"id": "c", "function": FUNCTION}]})),
    "ollama generate": ("ollama", generate({"thinking": "thought"}, {"response": "said"}, {"response": "further"})),
    "langchain body": (
        "langchain",
        [{"type": "ai", "id": "m", "content": "said", "tool_calls": [{"id": "c", "name": "f", "args": {"a": "given"}}]}],
    ),
    "gemini-interactions body": (
        "gemini-interactions",
        [
            {
                "object": "interaction",
                "id": "i",
                "status": "completed",
                "steps": [
                    {"type": "thought", "summary": [{"type": "text", "text": "thought"}]},
                    {"type": "model_output", "content": [{"type": "text", "text": "said"}]},
                    {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": "given"}},
                ],
            }
        ],
    ),
    "bedrock-converse body": (
        "bedrock-converse",
        [
            {
                "output": {
                    "message": {
                        "role": "assistant",
                        "content": [
                            {"text": "said"},
                            {"reasoningContent": {"reasoningText": {"text": "thought", "signature": "sealed"}}},
                            {"toolUse": {"toolUseId": "c", "name": "f", "input": {"a": "given"}}},
                        ],
                    }
                },
                "stopReason": "tool_use",
            }
        ],
    ),
    "cohere body": (
        "cohere",
        [
            {
                "id": "m",
                "finish_reason": "TOOL_CALL",
                "message": {
                    "role": "assistant",
                    "tool_plan": "planned",
                    "content": [{"type": "text", "text": "said"}],
                    "tool_calls": [
                        {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": "given"}'}}
                    ],
                },
            }
        ],
    ),
    "ollama body": (
        "ollama",
        [
            {
                "model": "m",
                "created_at": "2026-01-01T00:00:00Z",
                "message": {"role": "assistant", "content": "said", "tool_calls": [{"function": FUNCTION}]},
                "done": True,
                "done_reason": "stop",
            }
        ],
    ),
    "ollama generate body": (
        "ollama",
        [{"model": "m", "created_at": "2026-01-01T00:00:00Z", "response": "said", "done": True, "done_reason": "stop"}],
    ),
    "openai-completions": (
        "openai-completions",
        completions(
            {"index": 0, "text": "said"}, {"index": 0, "text": "further"}, {"index": 0, "text": "", "finish_reason": "stop"}
        ),
    ),
}  # fmt: skip

OPENERS = frozenset(
    ["type", "event", "event_type", "contentBlockDelta", "contentBlockStart", "choices", "candidates"]
)
"""The fields that say what a chunk is: without one of them it is another chunk, or none that is known."""

STATUS = frozenset(["executing", "completed", "failed"])

GEMINI = [
    "content",
    "parts",
    "text",
    "thoughtSignature",
    "inlineData",
    "data",
    "fileData",
    "fileUri",
    "executableCode",
]
GEMINI += ["code", "codeExecutionResult", "output", "toolCall", "args", "toolResponse", "response"]

OPTIONAL = {
    "ai-sdk call and result": ["output"],  # a tool may return nothing
    "ai-sdk provider's call": ["output"],
    "ai-sdk texts": ["data"],
    "ag-ui texts": ["delta", "value", "snapshot"],  # TEXT_MESSAGE_CHUNK may only begin a message
    "langchain chunks": ["content"],
    "langchain call": ["tool_call_chunks", "args"],
    "langchain parts": ["content", "text", "reasoning", "base64", "input"],
    "langchain tools": ["data"],
    "langchain body": ["content", "tool_calls"],
    "gemini": GEMINI,
    "gemini call": ["content", "parts", "functionCall", "args"],
    "gemini streamed call": ["content", "parts", "functionCall", "partialArgs", "stringValue"],
    "gemini-interactions": ["arguments", "result", "data", "url"],
    "cohere": ["text"],  # of a citation
    "gemini-interactions body": ["steps", "summary", "content", "text", "arguments"],
    "cohere body": ["content", "text", "tool_calls", "arguments", "tool_plan"],
    "ollama call": ["arguments"],
    "ollama body": ["content", "tool_calls", "arguments"],
    "openai-completions": ["text"],
}
"""The fields without which a chunk says nothing, where the format allows it. By another name, they must be found."""

FREE = frozenset(
    [
        "input",
        "args",
        "arguments",
        "output",
        "response",
        "result",
        "data",
        "value",
        "snapshot",
        "messageMetadata",
        "fields",
    ]
)
"""The fields whose value is a tool's or the application's, in which any name is right."""


def fields_in(value: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of the fields of the format."""
    if isinstance(value, list):
        for place, item in enumerate(value):
            yield from fields_in(item, (*path, place))
    elif isinstance(value, dict):
        for name, inner in value.items():
            if path or name not in OPENERS:
                yield (*path, name)
            if name not in FREE and not (name == "toolResult" and isinstance(inner, list)):
                yield from fields_in(inner, (*path, name))


def holder_of(chunk: Chunk, path: Path) -> dict[str, Any]:
    found: Any = chunk
    for step in path[:-1]:
        found = found[step]
    assert isinstance(found, dict)
    return found


def without(chunk: Chunk, path: Path) -> Chunk:
    changed = copy.deepcopy(chunk)
    del holder_of(changed, path)[str(path[-1])]
    return changed


def renamed(chunk: Chunk, path: Path) -> Chunk:
    changed = copy.deepcopy(chunk)
    holder = holder_of(changed, path)
    holder[f"{path[-1]}Renamed"] = holder.pop(str(path[-1]))
    return changed


def read(wire_format: str, chunks: list[Chunk]) -> tuple[list[rd.Event], rd.Snapshot, bool]:
    """The events and the reply of a stream, and whether it says that something is wrong."""
    decoder, fold, events = rd.providers.decoder(wire_format), rd.Fold(), list[rd.Event]()
    try:
        for chunk in chunks:
            events += decoder.decode(chunk)
        events += decoder.close()
    except rd.errors.MalformedChunkError:
        return events, fold.snapshot, True
    for event in events:
        if not isinstance(event, rd.events.StreamError):
            fold.step(event)
    reply = fold.snapshot
    failed = any(isinstance(event, rd.events.StreamError) for event in events)
    counted = bool(getattr(reply, "violations", None))
    refused = any(block.type == "invalid_tool_call" for block in reply.blocks)
    return events, reply, failed or counted or refused or reply.status == "incomplete"


def said(reply: rd.Snapshot, events: list[rd.Event]) -> set[str]:
    """The words of a reply and of the application. A call that runs has to have them in its arguments or its result."""
    found = str(reply.metadata) + "".join(
        str(event.data) for event in events if isinstance(event, rd.events.Custom)
    )
    for block in reply.blocks:
        if isinstance(block, rd.ToolCall) and block.type == "tool_call":
            found += f"{block.arguments} {block.result and block.result.content} {block.execution_status()} "
        else:
            found += f"{block.to_dict()} "
    return {*WORDS.findall(found)}


CASES = [
    pytest.param(name, place, path, id=f"{name}/{place}.{'.'.join(map(str, path))}")
    for name, (_, chunks) in STREAMS.items()
    for place, chunk in enumerate(chunks)
    for path in fields_in(chunk)
]


@pytest.mark.parametrize("change", [without, renamed])
@pytest.mark.parametrize(("name", "place", "path"), CASES)
def test_a_field_that_is_missing_or_renamed_is_never_silent(
    name: str, place: int, path: Path, change: Callable[[Chunk, Path], Chunk]
) -> None:
    wire_format, chunks = STREAMS[name]
    before, whole, _ = read(wire_format, chunks)
    changed = change(chunks[place], path)
    events, reply, is_wrong = read(wire_format, [*chunks[:place], changed, *chunks[place + 1 :]])
    lost = said(whole, before) - said(reply, events)
    if is_wrong or not lost or (change is without and path[-1] in OPTIONAL.get(name, ())):
        return
    passed_on = [str(event.payload) for event in events if isinstance(event, rd.events.ProviderEvent)]
    assert passed_on, lost
    assert change is without or lost - STATUS <= {*WORDS.findall("".join(passed_on))}, (lost, passed_on)


@pytest.mark.parametrize(("wire_format", "chunks"), STREAMS.values(), ids=STREAMS)
def test_an_intact_stream_has_nothing_to_tell(wire_format: str, chunks: list[Chunk]) -> None:
    events, reply, is_wrong = read(wire_format, chunks)
    passed_on = [event.name for event in events if isinstance(event, rd.events.ProviderEvent)]
    assert reply.status == "complete" or is_wrong
    assert passed_on in ([], ["STATE_SNAPSHOT"])
