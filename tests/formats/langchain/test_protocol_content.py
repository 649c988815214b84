"""Contents of blocks and usage in LangChain's protocol, written and read back."""

from __future__ import annotations

from typing import Any

import pytest
from formats.langchain.frames import TEXT, data, folded, there_and_back

import rxdelta as rd
from rxdelta import events as ev


def test_citations_are_annotations() -> None:
    citation = {"title": "A", "url": "https://a.example", "start_index": 0, "raw": {"n": 1}}
    events = [ev.MessageStart("m"), ev.BlockStart(0, TEXT), ev.TextDelta(0, "x")]
    events += [ev.BlockDelta(0, {"citations": [citation]}), ev.BlockFinish(0), ev.MessageFinish()]
    told = data(*events)
    assert told[3]["delta"]["fields"] == {"type": "text", "annotations": [{"type": "citation", **citation}]}
    assert told[4]["content"]["annotations"] == [{"type": "citation", **citation}]
    assert there_and_back(*events) == folded(events)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"type": "made_up", "n": 1}, id="a type of the provider's"),
        pytest.param({"type": "image_url", "url": "u"}, id="a type that the protocol hasn't"),
        pytest.param({"type": "image", "url": 5}, id="a field that can't be so"),
        pytest.param({"type": "text", "text": "a", "annotations": [1]}, id="a name that is taken"),
        pytest.param({"type": "text", "text": 5}, id="a text that is none"),
        pytest.param({"type": "server_tool_result", "output": 1}, id="a result of no call"),
        pytest.param({"type": "server_tool_call", "name": "f", "args": "{"}, id="a call that does not parse"),
        pytest.param({"type": "server_tool_call", "id": "s", "args": {"a": 1}}, id="a call without a name"),
    ],
)
def test_what_the_protocol_has_no_block_for_is_not_standard_and_comes_back(content: dict[str, Any]) -> None:
    events: list[rd.Event] = [ev.MessageStart("m"), ev.BlockStart(0, content), ev.DataDelta(0, "AA")]
    events += [ev.BlockDelta(0, {"more": 1}), ev.BlockFinish(0), ev.MessageFinish()]
    finish = next(one for one in data(*events) if one.get("event") == "content-block-finish")
    assert finish["content"]["type"] == "non_standard"
    assert there_and_back(*events) == folded(events)


def test_a_result_that_says_no_status_was_a_success_to_others() -> None:
    content = {"type": "server_tool_result", "tool_call_id": "s", "output": 1}
    events = [ev.MessageStart("m"), ev.BlockStart(0, content), ev.BlockFinish(0), ev.MessageFinish()]
    assert data(*events)[2]["content"]["status"] == "success"
    assert there_and_back(*events) == folded(events)


def test_usage_is_in_the_protocols_counts_and_the_last_one_finishes_the_message() -> None:
    native = {
        "input_tokens": 3,
        "output_tokens": 2,
        "total_tokens": 5,
        "input_token_details": {"cache_read": 1},
    }
    other = {"prompt_tokens": 3, "total_tokens": 5}
    for usage, told in (
        (rd.TokenUsage(3, 2, native, cache_read_tokens=1), native),
        (
            rd.TokenUsage(3, 2, other, reasoning_tokens=1),
            {"input_tokens": 3, "output_tokens": 2, "reasoning_tokens": 1, "total_tokens": 5, "raw": other},
        ),
    ):
        events = [ev.MessageStart("m"), ev.UsageUpdate(usage), ev.MessageFinish("stop")]
        assert data(*events)[-1]["usage"] == told
        assert there_and_back(*events) == folded(events)
