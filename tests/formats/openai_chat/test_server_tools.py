"""Tools that the provider runs itself."""

from __future__ import annotations

from support.openai_chat import chunk, parts_of, reply, shape, text

from rxdelta.core import ToolCall


def test_a_tool_that_the_provider_ran_is_told_once_and_its_output_once() -> None:
    tool = {"index": 0, "type": "search", "arguments": '{"q": "x"}', "search_results": {"results": [1]}}
    other = {"type": "python", "arguments": "print(1)", "id": "p"}
    message = reply(
        chunk({"reasoning": "a", "executed_tools": [tool]}), chunk({"executed_tools": [other]}),
        chunk({"executed_tools": [tool | {"output": "found"}]}), chunk({"executed_tools": [tool | {"output": "found"}]}),
        chunk({"executed_tools": [other | {"output": {"out": 1}}]}), text("b", "stop"),
    )  # fmt: skip
    kinds = [kind for kind, _ in shape(message)]
    assert kinds == [
        "reasoning",
        "server_tool_call",
        "server_tool_call",
        "server_tool_result",
        "server_tool_result",
        "text",
    ]
    search, python = [block for block in message.blocks if isinstance(block, ToolCall)]
    assert (search.call_id, search.name, search.arguments) == ("c1-0-1", "search", {"q": "x"})
    assert (python.call_id, python.arguments) == ("p", "print(1)")
    assert parts_of(message)[1].options == {
        "tool_call_id": "c1-0-1", "output": "found", "search_results": {"results": [1]},
    }  # fmt: skip
    assert message.finish_reason == "stop"
    assert message.tool_calls == ()


def test_a_tool_of_the_provider_that_has_no_name_is_passed_on_whole() -> None:
    message = reply(chunk({"executed_tools": [{"output": "x"}]}, "stop"))
    assert [part.options for part in parts_of(message)] == [{"output": "x"}]
