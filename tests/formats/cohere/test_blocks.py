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
    violations,
)

from rxdelta.core import thaw
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    ToolCallDelta,
)

# Blocks.


def test_index_0_is_a_content_a_call_and_a_citation_at_once() -> None:
    chunks = [content_start(0), content(0, text="Twice"), citation(0), call_start(0), args(0, "{}")]
    snapshot = reply(start(), *chunks, call_end(0), content_end(0), end("TOOL_CALL"))
    assert [(block.key, block.type) for block in snapshot.blocks] == [(0, "text"), (1, "tool_call")]
    assert len(snapshot.to_message().blocks[0].citations) == 1  # type: ignore[union-attr]


def test_the_plan_for_the_calls_is_a_reasoning_and_ends_when_they_begin() -> None:
    assert in_message(plan("I "), plan("will"), call_start(0)) == [
        BlockStart(0, {"type": "reasoning", "reasoning": "", "provider_type": "tool_plan"}),
        ReasoningDelta(0, "I "),
        ReasoningDelta(0, "will"),
        BlockFinish(0),
        BlockStart(1, {"type": "tool_call_chunk", "id": "roll_1", "name": "roll", "args": ""}),
    ]
    assert in_message(plan("")) == []


def test_a_plan_without_calls_ends_with_the_message() -> None:
    decoded = decode(start(), plan("Hm"), end())
    assert violations(decoded) == []
    assert fold(decoded).reasoning == "Hm"


def test_a_thinking_is_a_reasoning_and_not_a_plan() -> None:
    snapshot = reply(start(), content_start(0, "thinking"), content(0, thinking="Hm"), content_end(0), end())
    assert snapshot.to_message().to_dict()["blocks"] == [{"type": "reasoning", "text": "Hm"}]


def test_a_content_may_begin_with_text_or_without_its_start() -> None:
    assert reply(start(), content_start(0, text="Hi"), content(0, text="!"), end()).text == "Hi!"
    assert reply(start(), content(0, text="Hi"), content(1, thinking="Hm"), end()).text == "Hi"


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


def test_a_call_without_arguments_is_finished_when_it_is_known_that_the_message_went_on() -> None:
    for behind in (call_start(1, "b"), content_start(0), content(0, text="x"), plan("x")):
        assert BlockFinish(0) not in in_message(call_start(0), call_end(0))
        assert in_message(call_start(0), call_end(0), behind)[1] == BlockFinish(0)
    assert calls(reply(start(), call_start(0), call_end(0), end("TOOL_CALL"))) == [
        ("tool_call", "roll_1", {})
    ]


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


def test_arguments_may_be_an_object_or_come_with_the_start() -> None:
    assert calls(reply(start(), call_start(0, arguments={"a": 1}), args(0, "x"), call_end(0), end()))[0][
        2
    ] == {"a": 1}
    assert calls(reply(start(), call_start(0, arguments='{"a"'), args(0, ":1}"), call_end(0), end()))[0][
        2
    ] == {"a": 1}


def test_a_call_without_an_id_gets_one_that_is_the_message_s() -> None:
    call = reply(start(), plan("x"), call_start(0, None), call_end(0), end()).tool_calls[0]
    assert (call.call_id, call.metadata) == ("call-m1-1", {"synthetic_id": True})


def test_a_call_in_whose_place_another_begins_is_no_call_to_run() -> None:
    found = calls(reply(start(), call_start(0, "a"), call_start(0, "b"), call_end(0), end()))
    assert [(kind, call_id) for kind, call_id, _ in found] == [("invalid_tool_call", "a"), ("tool_call", "b")]


def test_more_of_a_call_than_is_known_is_its_metadata() -> None:
    call = reply(start(), call_start(0, type="search", note="x"), call_end(0), end()).tool_calls[0]
    assert call.metadata == {"provider_type": "search", "note": "x"}


def test_arguments_of_no_call_are_passed_on() -> None:
    assert in_message(args(4, "{}")) == [ProviderEvent("cohere", "tool-call-delta", args(4, "{}"))]


# Citations.


def test_a_citation_comes_whole_and_says_where_in_the_reply_it_belongs() -> None:
    decoded = in_message(
        content_start(0), content(0, text="Twice"), citation(0), {"type": "citation-end", "index": 0}
    )
    (cited,) = fold(decoded).blocks[0].citations  # type: ignore[union-attr]
    assert (cited.cited_text, cited.start_index, cited.end_index) == ("Twice", 0, 5)
    assert (cited.title, cited.url, thaw(cited.raw)) == ("Tides", "https://a.example", CITED)
    assert len(decoded) == 3


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


def test_a_citation_of_a_thinking_is_not_the_plan_s() -> None:
    assert not any(
        isinstance(event, BlockDelta) for event in in_message(plan("x"), citation(0, type="THINKING_CONTENT"))
    )


def test_many_citations_are_told_in_steps_and_none_is_lost() -> None:
    decoded = in_message(content_start(0), *(citation(n, text=str(n)) for n in range(100)), content_end(0))
    assert sum(isinstance(event, BlockDelta) for event in decoded) < 50
    found = fold(decoded).blocks[0].citations  # type: ignore[union-attr]
    assert [citation.cited_text for citation in found] == [str(n) for n in range(100)]


@pytest.mark.parametrize("ends", [[], [{"type": "message-end", "delta": {"finish_reason": "ERROR"}}]])
def test_a_stream_that_breaks_off_loses_no_citation(ends: list[Chunk]) -> None:
    decoded = decode(start(), content_start(0), *(citation(n, text=str(n)) for n in range(100)), *ends)
    last = [event for event in decoded if isinstance(event, BlockDelta)][-1]
    assert len(last.fields["citations"]) == 100
