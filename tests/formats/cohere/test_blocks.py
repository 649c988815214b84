"""Cohere's chat API: the blocks of a message."""

from __future__ import annotations

import pytest
from support.cohere import (
    CITED,
    Chunk,
    args,
    call_end,
    call_start,
    calls,
    citation,
    content,
    content_end,
    content_start,
    decode,
    end,
    fold,
    in_message,
    plan,
    reply,
    start,
)

from rxdelta.core import thaw
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    MessageStart,
    ProviderEvent,
    ToolCallDelta,
)

# Blocks.


def test_a_content_of_a_type_that_isn_t_known_is_kept_whole() -> None:
    decoded = decode(start(), content_start(0, "image", image={"url": "u"}), content_end(0), end())
    assert fold(decoded).to_message().to_dict()["blocks"] == [
        {"type": "unsupported", "options": {"type": "image", "image": {"url": "u"}}}
    ]


def test_without_a_message_start_there_is_one_all_the_same() -> None:
    for chunk in (content(0, text="x"), call_start(0), plan("x"), citation(0), end()):
        assert decode(chunk)[0] == MessageStart()


def test_a_start_or_end_sent_twice_is_one() -> None:
    once = [
        start(),
        content_start(0),
        content(0, text="x"),
        content_end(0),
        call_start(0),
        args(0, "{}"),
        end(),
    ]
    twice = [start(), start(), content_start(0), content_start(0), content(0, text="x"), content_end(0)]
    twice += [content_end(0), call_start(0), call_start(0), args(0, "{}"), end()]
    assert decode(*twice) == decode(*once)


# Calls.


def test_a_call_with_arguments_is_finished_when_it_ends() -> None:
    assert in_message(call_start(0), args(0, ""), args(0, '{"a": 1}'), call_end(0))[1:] == [
        ToolCallDelta(0, '{"a": 1}'),
        BlockFinish(0),
    ]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([call_start(0)], id="before its arguments"),
        pytest.param([call_start(0), call_end(0)], id="before its arguments, and ended"),
        pytest.param([call_start(0), args(0, '{"a"')], id="amid them"),
        pytest.param([call_start(0), args(0, '{"a"'), call_end(0)], id="amid them, and ended"),
        pytest.param([call_start(0), args(0, "{}")], id="at what looks whole, but has not ended"),
    ],
)
def test_a_call_cut_off_by_the_token_limit_is_never_one_to_run(chunks: list[Chunk]) -> None:
    snapshot = reply(start(), *chunks, end("MAX_TOKENS"))
    assert [kind for kind, _, _ in calls(snapshot)] == ["invalid_tool_call"]
    assert snapshot.to_message().status == "length"


def test_a_call_in_whose_place_another_begins_is_no_call_to_run() -> None:
    found = calls(reply(start(), call_start(0, "a"), call_start(0, "b"), call_end(0), end()))
    assert [(kind, call_id) for kind, call_id, _ in found] == [("invalid_tool_call", "a"), ("tool_call", "b")]


def test_more_of_a_call_than_is_known_is_its_metadata() -> None:
    call = reply(start(), call_start(0, type="search", note="x"), call_end(0), end()).tool_calls[0]
    assert call.metadata == {"provider_type": "search", "note": "x"}


def test_arguments_of_no_call_are_passed_on() -> None:
    assert in_message(args(4, "{}")) == [ProviderEvent("cohere", "tool-call-delta", args(4, "{}"))]


# Citations.


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"type": "TEXT_CONTENT"}, 2),
        ({"type": "TEXT_CONTENT", "content_index": 1}, 2),
        ({"type": None}, 2),
        ({"type": "THINKING_CONTENT"}, 1),
        ({"type": "THINKING_CONTENT", "content_index": 0}, 1),
    ],
)
def test_a_citation_belongs_to_what_it_names(fields: Chunk, key: int) -> None:
    chunks = [plan("x"), content_start(0, "thinking"), content_start(1), citation(0, **fields)]
    (event,) = [event for event in in_message(*chunks) if isinstance(event, BlockDelta)]
    assert event.index == key


def test_a_citation_of_the_plan_is_the_plan_s() -> None:
    (event,) = [
        event for event in in_message(plan("x"), citation(0, type="PLAN")) if isinstance(event, BlockDelta)
    ]
    assert event.index == 0


def test_a_citation_whose_block_has_ended_is_the_message_s() -> None:
    chunks = [
        content_start(0),
        content(0, text="Twice"),
        content_end(0),
        citation(0),
        citation(1, type="PLAN"),
    ]
    metadata = reply(start(), *chunks, end()).to_message().metadata
    assert thaw(metadata) == {"citations": [CITED, {**CITED, "type": "PLAN"}]}
