"""OpenAI Responses: the blocks keep all that the next request needs."""

from __future__ import annotations

import json

import pytest
from support.openai_responses import (
    Chunk,
    reply,
)
from support.shared import recordings

from rxdelta.core import (
    Snapshot,
    ToolCall,
    thaw,
)


def items_of(snapshot: Snapshot) -> list[Chunk]:
    """The response's items again, from our blocks alone."""
    items: list[Chunk] = []
    for block in snapshot.blocks:
        said = thaw(block.metadata if isinstance(block, ToolCall) else block.options)
        item_id, kind = said.pop("item_id", None), said.pop("provider_type", None)
        mine = {"id": item_id} if item_id else {}
        if block.type == "unsupported":
            items.append(said)
        elif isinstance(block, ToolCall):
            mine |= {"type": kind or "function_call", "name": block.name, **said}
            if block.call_id != item_id:
                mine["call_id"] = block.call_id
            raw = mine["type"] in ("function_call", "mcp_call", "tool_search_call", "mcp_approval_request")
            mine |= {"arguments": thaw(block.arguments)} if raw else thaw(block.arguments)
            items.append(mine)
        elif block.type == "server_tool_result":
            owner, output = said.pop("tool_call_id"), said.pop("output")
            if items[-1]["id"] == item_id:
                items[-1][
                    {"file_search_call": "results", "code_interpreter_call": "outputs"}.get(kind, "output")
                ] = output
            else:
                said["status"] = said.pop("item_status", None)
                mine |= {"type": kind, "call_id": owner, **said}
                items.append({**mine, {"tool_search_output": "tools"}.get(kind, "output"): output})
        elif block.type == "image":
            items.append({**mine, "type": kind, "result": block.text, **said})
        elif block.type == "reasoning":
            lengths, parts, at = said.pop("part_lengths", [len(block.text or "")]), [], 0
            for length in lengths:
                parts.append((block.text or "")[at : at + length])
                at += length + (0 if kind else 2)
            field = "content" if kind else "summary"
            said["encrypted_content"] = said.pop("signature", None)
            said.pop("signed_by", None)
            items.append({**mine, "type": "reasoning", field: parts, **said})
        else:
            found = {"type": f"output_{block.type}", "text": block.text}
            found["annotations"] = [thaw(citation.raw) for citation in block.citations]
            found["logprobs"] = said.pop("logprobs", [])
            if not items or items[-1].get("id") != item_id:
                items.append({**mine, "type": "message", "role": "assistant", "content": [], **said})
            items[-1]["content"].append(found)
    return items


def plainly(item: Chunk) -> Chunk:
    """An item without what says nothing, and with its arguments parsed."""
    known = dict(item)
    name = known["type"].removesuffix("_call")
    if known.get("name") == name:
        del known["name"]
    if isinstance(known.get("arguments"), str):
        known["arguments"] = json.loads(known["arguments"])
    for field in ("summary", "content"):
        if known["type"] == "reasoning":
            parts = [part["text"] if isinstance(part, dict) else part for part in known.get(field) or []]
            known[field] = [part for part in parts if part]
    if known["type"] == "message":
        known["content"] = [{"logprobs": [], **part} for part in known["content"]]
    for field in [field for field, value in known.items() if value in (None, [], {}, "")]:
        del known[field]
    if known["type"] in ("tool_search_call", "tool_search_output"):
        known.pop("call_id", None)  # which we make out, where the wire has none
    known.pop("mime_type", None)
    known.pop("signed_by", None)
    return known


@pytest.mark.parametrize(("chunks", "expected"), recordings("openai-responses"))
def test_the_items_can_be_told_again_from_our_blocks_alone(chunks: list[Chunk], expected: Chunk) -> None:
    order = [chunk["output_index"] for chunk in chunks if chunk["type"] == "response.output_item.added"]
    sent = {
        chunk["output_index"]: chunk["item"]
        for chunk in chunks
        if chunk["type"] == "response.output_item.done"
    }
    if len(sent) < len(order):
        output = chunks[-1]["response"]["output"]
        sent = dict(enumerate(output)) | sent
    told = [plainly(item) for item in items_of(reply(*chunks))]
    assert told == [plainly(sent[place]) for place in order]


@pytest.mark.parametrize(("chunks", "expected"), recordings("openai-responses"))
def test_the_last_events_response_is_the_same_message_as_its_stream(
    chunks: list[Chunk], expected: Chunk
) -> None:
    body = chunks[-1]["response"]
    if body["status"] == "failed" or [item.get("id") for item in body["output"]] != [
        chunk["item"].get("id") for chunk in chunks if chunk["type"] == "response.output_item.added"
    ]:
        return  # whose items are others than those that were streamed
    streamed, whole = reply(*chunks), reply(body)
    if [block.to_dict() for block in whole.blocks] != [block.to_dict() for block in streamed.blocks]:
        sent = {
            chunk["output_index"]: chunk["item"]
            for chunk in chunks
            if chunk["type"] == "response.output_item.done"
        }
        assert body["output"] != [sent.get(place) for place in range(len(body["output"]))]
    assert (whole.text, whole.usage, whole.finish_reason) == (
        streamed.text,
        streamed.usage,
        streamed.finish_reason,
    )
    assert whole.tool_calls == streamed.tool_calls
