"""Anthropic Messages: what a block's start becomes."""

from __future__ import annotations

import pytest
from support.anthropic_messages import Chunk, in_message

from rxdelta.core.events import BlockStart


@pytest.mark.parametrize(
    ("block", "content"),
    [
        pytest.param(
            {"type": "text", "text": "Hi", "citations": None},
            {"type": "text", "text": "Hi"},
            id="a text with text",
        ),
        pytest.param(
            {"type": "thinking", "thinking": "Hm", "signature": ""},
            {"type": "reasoning", "reasoning": "Hm"},
            id="no signature yet",
        ),
        pytest.param(
            {"type": "thinking", "thinking": "", "signature": "s"},
            {"type": "reasoning", "reasoning": "", "signature": "s", "signed_by": "anthropic"},
            id="a signature alone",
        ),
        pytest.param(
            {"type": "redacted_thinking", "data": "d"},
            {
                "type": "reasoning",
                "reasoning": "",
                "redacted": True,
                "data": "d",
                "signed_by": "anthropic-messages",
            },
            id="redacted",
        ),
        pytest.param(
            {"type": "tool_use", "id": "t", "name": "n", "input": {}, "caller": {"type": "direct"}},
            {"type": "tool_call_chunk", "id": "t", "name": "n", "args": "", "caller": {"type": "direct"}},
            id="a call",
        ),
        pytest.param(
            {"type": "tool_use", "id": "t", "name": "n"},
            {"type": "tool_call_chunk", "id": "t", "name": "n", "args": ""},
            id="a call without input",
        ),
        pytest.param(
            {"type": "tool_use", "id": "t", "name": "n", "input": {"a": 1}},
            {"type": "tool_call_chunk", "id": "t", "name": "n", "args": {"a": 1}},
            id="a call that is whole",
        ),
        pytest.param(
            {"type": "tool_use", "id": "t", "name": "n", "execution_status": "completed", "arguments": "{}"},
            {"type": "tool_call_chunk", "id": "t", "name": "n", "args": ""},
            id="fields that the protocol would misread",
        ),
        pytest.param(
            {"type": "mcp_tool_use", "id": "t", "name": "n", "input": {}, "server_name": "s"},
            {
                "type": "server_tool_call_chunk",
                "id": "t",
                "name": "n",
                "args": "",
                "provider_type": "mcp_tool_use",
                "server_name": "s",
            },
            id="a call to an MCP server",
        ),
        pytest.param(
            {"type": "mcp_tool_result", "tool_use_id": "t", "is_error": True, "content": "no"},
            {
                "type": "server_tool_result",
                "tool_call_id": "t",
                "output": "no",
                "provider_type": "mcp_tool_result",
                "is_error": True,
                "status": "error",
            },
            id="a result that is an error",
        ),
        pytest.param(
            {"type": "new_tool_result", "tool_use_id": "t", "content": {"type": "oh_error", "code": 1}},
            {
                "type": "server_tool_result",
                "tool_call_id": "t",
                "output": {"type": "oh_error", "code": 1},
                "provider_type": "new_tool_result",
                "status": "error",
            },
            id="a result that holds an error",
        ),
        pytest.param(
            {"type": "mcp_tool_result", "tool_use_id": "t", "is_error": False, "content": {"type": "x"}},
            {
                "type": "server_tool_result",
                "tool_call_id": "t",
                "output": {"type": "x"},
                "provider_type": "mcp_tool_result",
                "is_error": False,
                "status": "success",
            },
            id="a result",
        ),
        pytest.param(
            {"type": "container_upload", "file_id": "f", "x": None},
            {"type": "container_upload", "file_id": "f", "x": None},
            id="any other is kept whole",
        ),
        pytest.param(
            {"type": "invalid_tool_call", "id": "t"},
            {"type": "non_standard", "value": {"type": "invalid_tool_call", "id": "t"}},
            id="any other that the protocol would misread",
        ),
    ],
)
def test_a_block_begins_with_the_protocol_s_words_for_it(block: Chunk, content: Chunk) -> None:
    (start,) = in_message({"type": "content_block_start", "index": 0, "content_block": block})
    assert start == BlockStart(0, content)
