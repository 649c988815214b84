"""OpenAI Responses: events that are known by their type, but whose field is missing or has another name."""

from __future__ import annotations

from typing import Any

import pytest
from support.openai_responses import (
    Chunk,
    added,
    arguments,
    completed,
    created,
    custom,
    decode,
    done,
    event,
    fold,
    function,
    message,
    only,
    part,
    reasoning,
    reply,
    summed,
    text,
    thought,
)

from rxdelta.core import MalformedChunkError
from rxdelta.core.events import ProviderEvent

SHELL = {"type": "shell_call", "id": "sh", "call_id": "c1", "action": {"commands": []}}
OUTPUT = {"type": "shell_call_output", "id": "sho", "call_id": "c1", "output": []}
IMAGE = {"type": "image_generation_call", "id": "ig", "result": None}
MCP = {"type": "mcp_call", "id": "mcp", "name": "f", "arguments": ""}
CODE = {"type": "code_interpreter_call", "id": "ci", "code": ""}
PATCH = {
    "type": "apply_patch_call",
    "call_id": "c1",
    "operation": {"type": "update_file", "path": "a", "diff": ""},
}

EVENTS: list[tuple[Chunk | None, str, str]] = [
    # the item, the event, its required field
    (message(), "output_text.delta", "delta"),
    (message(), "refusal.delta", "delta"),
    (message(), "output_text.done", "text"),
    (message(), "refusal.done", "refusal"),
    (message(), "output_text.annotation.added", "annotation"),
    (message(), "content_part.added", "part"),
    (message(), "content_part.done", "part"),
    (reasoning(), "reasoning_text.delta", "delta"),
    (reasoning(), "reasoning_text.done", "text"),
    (reasoning(), "reasoning_summary_text.delta", "delta"),
    (reasoning(), "reasoning_summary_text.done", "text"),
    (reasoning(), "reasoning_summary_part.added", "part"),
    (reasoning(), "reasoning_summary_part.done", "part"),
    (function(), "function_call_arguments.delta", "delta"),
    (function(), "function_call_arguments.done", "arguments"),
    (custom(""), "custom_tool_call_input.delta", "delta"),
    (custom(""), "custom_tool_call_input.done", "input"),
    (MCP, "mcp_call_arguments.delta", "delta"),
    (MCP, "mcp_call_arguments.done", "arguments"),
    (CODE, "code_interpreter_call_code.delta", "delta"),
    (CODE, "code_interpreter_call_code.done", "code"),
    (PATCH, "apply_patch_call_operation_diff.delta", "delta"),
    (PATCH, "apply_patch_call_operation_diff.done", "diff"),
    (SHELL, "shell_call_command.delta", "delta"),
    (SHELL, "shell_call_command.done", "command"),
    (OUTPUT, "shell_call_output_content.delta", "delta"),
    (OUTPUT, "shell_call_output_content.done", "output"),
    (IMAGE, "image_generation_call.partial_image", "partial_image_b64"),
    (None, "audio.delta", "delta"),
    (None, "audio.transcript.delta", "delta"),
]


@pytest.mark.parametrize(("item", "kind", "field"), EVENTS)
@pytest.mark.parametrize("instead", [{}, {"value": "a"}])
def test_an_event_without_its_field_is_malformed(
    item: Chunk | None, kind: str, field: str, instead: dict[str, Any]
) -> None:
    for begin in ([], [added(item)] if item else []):
        with pytest.raises(MalformedChunkError) as caught:
            decode(created(), *begin, event(kind, **instead))
        assert caught.value.path == field


@pytest.mark.parametrize("chunk", [text("a"), arguments("a"), thought("a"), summed("a")])
def test_a_piece_that_is_null_is_an_empty_one_unless_it_has_another_name(chunk: Chunk) -> None:
    assert fold(decode(created(), {**chunk, "delta": None}, chunk)) == fold(decode(created(), chunk))
    with pytest.raises(MalformedChunkError):
        decode(created(), {**chunk, "delta": None, "text": "a"})


@pytest.mark.parametrize(
    ("chunk", "end"),
    [
        (text("ab"), event("output_text.done", content_index=0)),
        (text("ab"), event("content_part.done", content_index=0, part={"type": "output_text"})),
        (thought("ab"), event("reasoning_text.done", content_index=0)),
        (summed("ab"), event("reasoning_summary_text.done", summary_index=0, summary="ab")),
        (arguments("{}"), event("function_call_arguments.done", input="{}")),
        (
            event("shell_call_command.delta", command_index=0, delta="ls"),
            event("shell_call_command.done", command_index=0),
        ),
    ],
)
def test_an_end_without_its_text_loses_nothing_that_has_come(chunk: Chunk, end: Chunk) -> None:
    found = decode(created(), chunk, end)
    assert fold(found) == fold(decode(created(), chunk))
    assert [one.name for one in found if isinstance(one, ProviderEvent)] == [end["type"]]


NAMELESS = {"type": "output_text", "annotations": []}


@pytest.mark.parametrize(
    ("item", "path"),
    [
        (message({**NAMELESS, "content": "Hi"}), "item.content[0].text"),
        (message(part("a"), {"type": "refusal", "text": "No."}), "item.content[1].refusal"),
        (reasoning() | {"summary": [{"type": "summary_text", "summary": "hm"}]}, "item.summary[0].text"),
        (function(..., args={"x": 1}, status="completed"), "item.arguments"),
        (function(..., parameters='{"x": 1}', status="completed"), "item.arguments"),
        (custom("", arguments="SELECT 1", status="completed") | {"input": None}, "item.input"),
    ],
)
def test_an_item_whose_content_has_another_name_is_malformed(item: Chunk, path: str) -> None:
    begin = {**item, "content": [], "summary": []}
    for chunks in ([added(begin), done(item)], [done(item)]):
        with pytest.raises(MalformedChunkError) as caught:
            decode(created(), *chunks)
        assert caught.value.path == path
    with pytest.raises(MalformedChunkError):
        decode(completed(item)["response"])


def test_an_item_without_the_text_that_has_come_is_whole() -> None:
    assert only(reply(created(), text("ab"), done(message(NAMELESS)), completed())).text == "ab"
    said = reasoning() | {"summary": [{"type": "summary_text"}]}
    assert only(reply(created(), added(reasoning()), summed("hm"), done(said), completed())).text == "hm"
    call = function(..., status="completed", args="{}")
    assert only(reply(created(), added(function()), arguments('{"x": 1}'), done(call))).arguments == {"x": 1}
    bare = function(..., status="completed")
    assert only(reply(created(), added(bare), done(bare), completed())).arguments == {}
