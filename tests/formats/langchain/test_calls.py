"""Calls: fragments beside the content and calls in it."""

from __future__ import annotations

from typing import Any

import pytest
from formats.langchain.chunks import LAST, blocks, call, chunk, decoded, folded

import rxdelta as rd


def test_another_id_at_an_index_is_another_call_and_what_has_none_goes_on_with_the_open_one() -> None:
    reply = folded(
        chunk(tool_call_chunks=[call("", name="f", id="i")]),
        chunk(tool_call_chunks=[call('{"a": 1}')]),
        chunk(tool_call_chunks=[call("", name="g", id="j")]),
        chunk(tool_call_chunks=[call('{"b":')]),
        chunk(tool_call_chunks=[call(" 2}")]),
        LAST,
    )
    assert [(one.call_id, rd.core.thaw(one.arguments)) for one in reply.tool_calls] == [
        ("i", {"a": 1}),
        ("j", {"b": 2}),
    ]


def test_null_is_whole_so_fragments_go_on_with_the_next_call() -> None:
    reply = folded(
        chunk(tool_call_chunks=[call("null", name="f", id="i")]),
        chunk(tool_call_chunks=[call('{"b":', name="g", id="j")]),
        chunk(tool_call_chunks=[call(" 2}")]),
        LAST,
    )
    assert [(one.call_id, rd.core.thaw(one.arguments)) for one in reply.tool_calls] == [
        ("i", {}),
        ("j", {"b": 2}),
    ]


@pytest.mark.parametrize("index", [-1, -7, 0, "0", "-3"])
def test_indexes_of_calls(index: Any) -> None:
    parts = [
        chunk(tool_call_chunks=[call("{", index, name="f", id="i")]),
        chunk(tool_call_chunks=[call("}", index)]),
    ]
    assert len(folded(*parts, LAST).tool_calls) == 1


@pytest.mark.parametrize("index", [True, 1.5, "lc_0", "x", [], {}])
def test_what_is_no_index_of_a_call_is_malformed(index: Any) -> None:
    with pytest.raises(
        rd.errors.MalformedChunkError, match=r"langchain chunk: at tool_call_chunks\[0\]\.index"
    ):
        decoded(chunk(tool_call_chunks=[call("{}", index)]))


@pytest.mark.parametrize("index", [2**31, -(2**31), 10**400])
def test_an_absurd_index_is_refused(index: int) -> None:
    with pytest.raises(rd.errors.LimitExceededError):
        decoded(chunk(tool_call_chunks=[call("{}", index)]))
    with pytest.raises(rd.errors.LimitExceededError):
        decoded(chunk([{"type": "text", "text": "a", "index": index}]))


def test_a_call_cut_off_by_the_token_limit_is_never_run() -> None:
    (block,) = folded(
        chunk(tool_call_chunks=[call("{}", name="f", id="i")]),
        chunk("", response_metadata={"finish_reason": "length"}),
    ).blocks
    assert (block.type, getattr(block, "error", "")) == ("invalid_tool_call", "cut off by the token limit")


def test_a_name_that_is_repeated_counts_once_and_one_in_pieces_is_joined() -> None:
    pieces = [call("", name="get_", id="i"), call("{", name="weather"), call("}", name="get_weather")]
    (block,) = folded(*(chunk(tool_call_chunks=[piece]) for piece in pieces), LAST).tool_calls
    assert block.name == "get_weather"


def test_a_call_without_an_id_gets_one_that_a_later_one_replaces() -> None:
    first = chunk(tool_call_chunks=[call("{", name="f")], id="m")
    (block,) = folded(first, chunk(tool_call_chunks=[call("}")]), LAST).tool_calls
    assert (block.call_id, block.metadata["synthetic_id"]) == ("m-0", True)
    (block,) = folded(first, chunk(tool_call_chunks=[call("}", id="i")]), LAST).tool_calls
    assert (block.call_id, block.metadata["synthetic_id"]) == ("i", False)


def test_a_standard_call_in_the_content_has_its_own_index_and_what_the_provider_adds() -> None:
    told = blocks(
        chunk(
            [
                {
                    "type": "tool_call_chunk",
                    "id": "i",
                    "name": "f",
                    "args": "{",
                    "index": "lc_tc_0",
                    "extras": {"s": 1},
                }
            ],
            tool_call_chunks=[call("{", 0, name="f", id="i")],
        ),
        chunk(
            [{"type": "tool_call_chunk", "id": None, "name": None, "args": "}", "index": "lc_tc_0"}],
            tool_call_chunks=[call("}", 0)],
        ),
    )
    assert [(one["type"], one["arguments"], one["metadata"]) for one in told] == [
        ("tool_call", {}, {"extras": {"s": 1}})
    ]


def test_a_call_that_stands_in_the_content_alone_is_read() -> None:
    parts = [
        {"type": "tool_call_chunk", "id": "i", "name": "f", "args": "{", "index": "lc_0"},
        {"type": "tool_call_chunk", "args": "}", "index": "lc_0"},
    ]
    assert [one["arguments"] for one in blocks(*(chunk([part]) for part in parts))] == [{}]


def test_the_old_function_call_is_a_call() -> None:
    told = blocks(
        chunk(additional_kwargs={"function_call": {"name": "f", "arguments": '{"a"'}}),
        chunk(additional_kwargs={"function_call": {"arguments": ": 1}"}}),
    )
    assert [(one["type"], one["name"], one["arguments"]) for one in told] == [("tool_call", "f", {"a": 1})]


def test_an_openai_item_keeps_its_own_id() -> None:
    item = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1", "id": "fc_1"}
    (told,) = blocks({"type": "ai", "content": [item], "tool_calls": [{"name": "f", "args": {}, "id": "c1"}]})
    assert (told["call_id"], told["metadata"]) == ("c1", {"item_id": "fc_1"})
