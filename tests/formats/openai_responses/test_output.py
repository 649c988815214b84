"""OpenAI Responses: which event belongs to which item."""

from __future__ import annotations

import pytest
from support.openai_responses import (
    Chunk,
    added,
    arguments,
    blocks,
    completed,
    created,
    done,
    event,
    function,
    message,
    noted,
    only,
    part,
    reply,
    response,
    streamed,
    summed,
    text,
    thought,
)

from rxdelta.core import (
    thaw,
)


@pytest.mark.parametrize(
    "item",
    [
        {
            "type": "mcp_list_tools",
            "id": "l",
            "server_label": "s",
            "tools": [{"name": "a", "input_schema": {}}],
        },
        {"type": "compaction", "id": "cmp", "encrypted_content": "gAA"},
        {"type": "mcp_approval_response", "id": "r", "approval_request_id": "q", "approve": True},
        {"type": "text", "id": "t", "text": "no item of this name is known"},
    ],
)
def test_any_other_item_is_kept_whole(item: Chunk) -> None:
    begin = {name: [] if isinstance(value, list) else value for name, value in item.items()}
    snapshot = streamed(item, event(f"{item['type']}.completed"), begin=begin)
    note = {"signed_by": "openai-responses"} if "encrypted_content" in item else {}
    assert (only(snapshot).type, thaw(only(snapshot).options)) == ("unsupported", item | note)
    assert snapshot.finish_reason == "stop"


def test_without_places_the_ids_tell_and_without_those_the_order() -> None:
    said, call = message(part("Hello")), function('{"x": 1}')
    chunks = [
        created(), added(message()), event("content_part.added", part=part("")), event("output_text.delta", delta="Hello"),
        done(said), added(function()), event("function_call_arguments.delta", delta='{"x": 1}'), done(call),
        completed(said, call),
    ]  # fmt: skip
    for chunk in chunks:
        chunk.pop("output_index", None)
    for chunk, item_id in zip(chunks[2:7], ("i0", "i0", None, None, "fc")):
        if "item_id" in chunk:
            chunk["item_id"] = item_id
    assert blocks(reply(*chunks)) == [("text", "Hello"), ("tool_call", "c1", "f")]
    for chunk in chunks:
        chunk.pop("item_id", None)
    assert blocks(reply(*chunks)) == [("text", "Hello"), ("tool_call", "c1", "f")]


def test_an_item_that_is_named_only_when_done_counts_once() -> None:
    said, call = message(part("a"), id="m1"), function("{}")
    nameless = [{**text("a"), "item_id": None}, {**arguments("{}", 1), "item_id": None}]
    snapshot = reply(created(), *nameless, done(said), done(said), done(call, 1), done(call, 1))
    assert blocks(snapshot) == [("text", "a"), ("tool_call", "c1", "f")]


def test_a_stream_that_begins_in_the_middle_is_read_from_there() -> None:
    said, call = message(part("Hello")), function('{"x": 1}')
    assert blocks(reply(text("lo", 1), completed(message(part("Hello"), id="i1")))) == [("text", "Hello")]
    assert blocks(reply(arguments("1}"), done(call), completed(call))) == [("tool_call", "c1", "f")]
    assert thaw(reply(arguments(": 1}"), completed(call)).tool_calls[0].arguments) == {"x": 1}
    queued = {"type": "response.queued", "sequence_number": 7, "response": response("queued")}
    assert reply(queued, added(message()), text("Hello"), done(said), completed(said)).id == "resp_1"
    late = reply(text("Hello"), completed(said))
    assert (late.id, late.model, dict(late.metadata)) == ("resp_1", "m", {"created_at": 5})


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        (event("refusal.delta", content_index=0, delta="x"), "refusal"),
        (thought("x"), "reasoning"),
        (summed("x"), "reasoning"),
        (
            event("content_part.added", content_index=0, part={"type": "reasoning_text", "text": ""}),
            "reasoning",
        ),
        (event("custom_tool_call_input.delta", delta="x"), "tool_call"),
        (event("mcp_call_arguments.delta", delta="{"), "server_tool_call"),
        (event("code_interpreter_call_code.delta", delta="x"), "server_tool_call"),
        (event("shell_call_command.delta", command_index=0, delta="x"), "tool_call"),
        (event("apply_patch_call_operation_diff.delta", delta="x"), "tool_call"),
        (noted(0), "text"),
    ],
)
def test_an_event_whose_item_was_lost_begins_it(chunk: Chunk, kind: str) -> None:
    block = only(reply(chunk))
    assert (block.type, block.open) == (kind, True)
