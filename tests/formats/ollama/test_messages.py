"""What a client of Ollama's API sends, as messages for the next request."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.conversations import call, reply, system, text, thought

import rxdelta as rd

read = rd.requests.from_ollama
PNG = "iVBORw0KGgo="
ASK = {"role": "user", "content": "Lisbon or Oslo?"}


def asked(*names: str) -> dict[str, Any]:
    calls = [{"function": {"name": name, "arguments": {"place": place}}} for place, name in enumerate(names)]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def result(content: str, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **more}


def results(message: rd.Message) -> list[Any]:
    return [one.result and one.result.content for one in message.tool_calls]


def test_what_a_request_to_ollama_says_is_read_back() -> None:
    conversation: list[Any] = [
        system(text("Be brief.")),
        rd.Message.of("user", rd.ContentPart("image", PNG, {"mime_type": "image/png"})),
        reply(thought("Hm."), text("I add."), call("a", "add", {"x": 2}), call("b", "now")),
        rd.ToolResult("a", "4"),
        rd.ToolResult("b", "noon"),
        reply(text("4")),
    ]
    written = rd.to_request(conversation, "ollama")["messages"]
    assert rd.to_request(read(written, system=True), "ollama")["messages"] == written


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({}, {}),
        ({"tool_name": "f"}, {"tool_name": "g"}),
        ({"tool_name": "g"}, {"tool_name": "f"}),
        ({"tool_name": "unknown"}, {"tool_name": "unknown"}),
    ],
    ids=["by their order", "by their names", "by their names in another order", "with names of no call"],
)
def test_results_without_ids_find_their_calls(first: Any, second: Any) -> None:
    (_, message) = read([ASK, asked("f", "g"), result("1", **first), result("2", **second)])
    in_order = first.get("tool_name") != "g"
    assert results(message) == (["1", "2"] if in_order else ["2", "1"])


def test_two_results_of_one_tool_stay_in_their_order() -> None:
    (_, message) = read([ASK, asked("f", "f"), *(result(one, tool_name="f") for one in "12")])
    assert results(message) == ["1", "2"]


def test_results_with_ids_find_their_calls_in_any_order() -> None:
    asking = asked("f", "f")
    for one, call_id in zip(asking["tool_calls"], "ab"):
        one["id"] = call_id
    (_, message) = read([ASK, asking, *(result(one, tool_call_id=one) for one in "ba")])
    assert [(one.call_id, one.result.content) for one in message.tool_calls if one.result] == [
        ("a", "a"),
        ("b", "b"),
    ]


@pytest.mark.parametrize(
    ("messages", "path"),
    [
        ("Hi", "messages"),
        (ASK, "messages"),
        (None, "messages"),
        (["Hi"], "messages[0]"),
        ([{"role": "developer", "content": "Hi"}], "messages[0].role"),
        ([{"role": "system", "content": "Hi"}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([{"role": "user", "content": ["Hi"]}], "messages[0].content"),
        ([{**ASK, "images": PNG}], "messages[0].images"),
        ([{**ASK, "images": [PNG, "s3://bucket/a.png"]}], "messages[0].images[1]"),
        ([{**ASK, "images": [{"url": "https://example.com/a.png"}]}], "messages[0].images[0]"),
        ([ASK, {"role": "assistant", "tool_calls": 1}], "messages[1]"),
        ([ASK, result("1")], "messages[1]"),
        ([ASK, asked("f"), result("1"), result("2")], "messages[3]"),
    ],
)
def test_what_is_no_message_of_ollamas_is_refused_by_its_path(messages: Any, path: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=rf"(?m)^\W*{re.escape(path)}(?![\w.\[])"):
        read(messages)
