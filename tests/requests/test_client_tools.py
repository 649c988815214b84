"""The tools in the body of a client's request, as definitions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"command": {"type": "string"}},
    "required": ["command"],
}
GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: LINE+"}
PATCH = {"type": "custom", "name": "apply_patch", "description": "Changes files.", "format": GRAMMAR}
SHELL = {"type": "function", "name": "exec", "description": "Runs.", "strict": False, "parameters": SCHEMA}
AGENTS = {"type": "namespace", "name": "agents", "description": "", "tools": [{**SHELL, "name": "spawn"}]}
OWN = [
    {"type": "web_search", "external_web_access": True},
    {"type": "tool_search", "execution": "client", "parameters": SCHEMA},
    {"type": "local_shell"},
    {"type": "mcp", "server_label": "bank"},
]
CODEX = {"model": "m", "input": "Hi", "tools": [SHELL, AGENTS, PATCH, *OWN]}

responses = rd.requests.tools_from_openai_responses
custom = rd.requests.custom_tools_from_openai_responses
chat = rd.requests.tools_from_openai_chat
anthropic = rd.requests.tools_from_anthropic_messages


def test_the_tools_of_codex_are_functions_for_any_provider() -> None:
    shell, spawn, patch = responses(CODEX)
    assert (shell.name, shell.description, shell.parameters) == ("exec", "Runs.", SCHEMA)
    assert spawn.name == "spawn"
    assert patch.name == "apply_patch"
    assert patch.parameters is not None
    assert [*patch.parameters["properties"]] == patch.parameters["required"] == ["input"]
    assert patch.description.startswith("Changes files.\n")
    assert "start: LINE+" in patch.description
    assert "lark" in patch.description
    assert len(rd.to_request("Hi", "anthropic-messages", tools=responses(CODEX))["tools"]) == 3


def test_a_call_of_a_custom_tool_comes_back_to_codex_as_one() -> None:
    call = rd.ToolCall(call_id="c1", name="apply_patch", arguments={"input": "*** Begin"}, status="complete")
    events = rx.from_iterable(rd.to_events(rd.Message(blocks=[call], finish_reason="tool_use")))
    frames = events.pipe(rd.to_openai_responses(custom=custom(CODEX)), ops.to_list()).run()
    (item,) = rd.wire.openai_response(frames)["output"]
    assert (item["type"], item["input"]) == ("custom_tool_call", "*** Begin")
    assert custom({"input": "Hi"}) == {}


@pytest.mark.parametrize("tools", [None, ()])
def test_a_call_of_a_tool_in_a_namespace_names_it_since_codex_finds_it_by_both_names(tools: Any) -> None:
    calls = [
        rd.ToolCall(call_id=f"c-{name}", name=name, arguments={"input": "x"}, status="complete")
        for name in ("spawn", "exec", "apply_patch")
    ]
    events = rx.from_iterable(rd.to_events(rd.Message(blocks=calls, finish_reason="tool_use")))
    encode = rd.to_openai_responses(tools=tools, custom=custom(CODEX))
    frames = events.pipe(encode, ops.to_list()).run()
    items = [frame["item"] for frame in frames if frame["type"].startswith("response.output_item.")]
    named = [(item["type"], item["name"], item.get("namespace")) for item in items]
    assert named[::2] == named[1::2]
    assert named[::2] == [
        ("function_call", "spawn", "agents"),
        ("function_call", "exec", None),
        ("custom_tool_call", "apply_patch", None),
    ]
    (_, back) = rd.requests.from_openai_responses(
        {"input": [{"role": "user", "content": "Hi"}, *items[1::2]]}
    )
    again = rd.to_request([back], "openai-responses")["input"]
    assert [item.get("namespace") for item in again] == ["agents", None, None]


def test_tools_among_the_items_count_too_and_the_later_of_one_name() -> None:
    functions = {
        "type": "namespace",
        "name": "functions",
        "tools": [{**PATCH, "name": "exec"}, {"type": "x"}],
    }
    items = [
        {"type": "additional_tools", "role": "developer", "tools": [functions]},
        {"role": "user", "content": "Hi"},
    ]
    body = {"input": items, "tools": [SHELL, PATCH]}
    assert [tool.name for tool in responses(body)] == ["exec", "apply_patch"]
    assert responses(body)[0].description.startswith("Changes files.")
    assert custom(body) == {"exec": {"type": "custom"}, "apply_patch": {"type": "custom"}}
    waits = [{**PATCH, "name": "wait"}, {**SHELL, "name": "wait"}]
    assert [*custom({"input": items, "tools": waits})] == ["exec"]


def test_the_tools_of_claude_code_stay_what_they_are() -> None:
    bash = {"name": "Bash", "description": "Runs.", "input_schema": SCHEMA}
    custom_bash = {**bash, "name": "Bash2", "type": "custom", "cache_control": {"type": "ephemeral"}}
    own = [{"type": "web_search_20250305", "name": "web_search"}, {"type": "bash_20250124", "name": "bash"}]
    body = {"messages": [], "tools": [bash, custom_bash, *own]}
    assert [tool.name for tool in anthropic(body)] == ["Bash", "Bash2"]
    assert rd.to_request("Hi", "anthropic-messages", tools=anthropic(body)[:1])["tools"] == [bash]
    assert rd.to_request("Hi", "anthropic-messages", tools=body["tools"])["tools"] == body["tools"]


def test_the_tools_of_a_chat_completion() -> None:
    inner = {
        "name": "edit",
        "format": {"type": "grammar", "grammar": {"syntax": "regex", "definition": "[a-z]+"}},
    }
    function = {"name": "now", "description": "The time."}
    body = {"tools": [{"type": "function", "function": function}, {"type": "custom", "custom": inner}]}
    now, edit = chat(body)
    assert (now.name, now.parameters) == ("now", {"type": "object", "properties": {}})
    assert "[a-z]+" in edit.description
    assert chat({"messages": []}) == []


@pytest.mark.parametrize(
    ("read", "body", "says"),
    [
        (responses, 5, r"body: must be the body"),
        (responses, {"tools": "x"}, r"body.tools: must be a list"),
        (responses, {"tools": ["x"]}, r"body.tools\[0\]: must be a tool"),
        (responses, {"tools": [{"type": "function"}]}, r"body.tools\[0\].name: must be a string"),
        (
            responses,
            {"tools": [{**SHELL, "parameters": {"type": "array"}}]},
            r"tools\[0\].parameters: must be a JSON",
        ),
        (
            responses,
            {"tools": [{**SHELL, "parameters": [1]}]},
            r"tools\[0\].parameters: must be a JSON Schema",
        ),
        (
            responses,
            {"tools": [{**SHELL, "description": 5}]},
            r"body.tools\[0\].description: must be a string",
        ),
        (responses, {"tools": [{"type": "namespace", "tools": 5}]}, r"body.tools\[0\].tools: must be a list"),
        (responses, {"input": [{"type": "additional_tools", "tools": [5]}]}, r"body.input\[0\].tools\[0\]"),
        (custom, {"tools": 5}, r"body.tools: must be a list"),
        (
            chat,
            {"tools": [{"type": "function", "function": "x"}]},
            r"body.tools\[0\].function: must be an object",
        ),
        (
            anthropic,
            {"tools": [{"name": "x", "input_schema": 5}]},
            r"body.tools\[0\].input_schema: must be a JSON",
        ),
    ],
)
def test_what_is_no_tool_is_refused_by_its_path(read: Callable[[Any], Any], body: Any, says: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=says):
        read(body)


def test_no_type_of_a_tool_is_anything_but_left_out() -> None:
    odd = [{"type": kind} for kind in (None, 5, ["function"], {}, "")]
    assert responses({"tools": odd}) == chat({"tools": odd}) == []
    assert custom({"tools": odd, "input": json.loads("[null, 5]")}) == {}
