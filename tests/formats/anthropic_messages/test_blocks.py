"""Anthropic Messages: the starts, deltas and stops of blocks."""

from __future__ import annotations

from typing import Any

import pytest
from support.anthropic_messages import (
    PAGE,
    PING,
    STOP,
    WEB,
    Chunk,
    args,
    block_start,
    block_stop,
    calls,
    decode,
    delta,
    fold,
    in_message,
    message_delta,
    message_start,
    reply,
    text,
    tool_use,
    violations,
)

from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    ProviderEvent,
    TextDelta,
    ToolCallDelta,
)
from rxdelta.formats.anthropic_messages.decoder import AnthropicMessagesDecoder


def test_citations_in_the_start_come_before_those_of_deltas() -> None:
    start, added = in_message(
        block_start(0, "text", text="", citations=[WEB]), delta(0, "citations_delta", citation=PAGE)
    )
    first = {"cited_text": "said A", "title": "A", "url": "https://a.example", "raw": WEB}
    assert start == BlockStart(0, {"type": "text", "text": "", "citations": [first]})
    second = {"cited_text": "said B", "title": "Doc", "raw": PAGE}
    assert added == BlockDelta(0, {"citations": [first, second]})


def test_many_citations_are_told_in_linear_space() -> None:
    cited = [delta(0, "citations_delta", citation={**PAGE, "document_index": n}) for n in range(500)]
    begun = [message_start(), block_start(0, "text", text="")]
    ends: list[list[Chunk]] = [
        [block_stop(0)],
        [message_delta("end_turn"), STOP],
        [],
        [{"type": "error", "error": {"type": "api_error", "message": "Oh"}}],
    ]
    for end in ends:
        decoder = AnthropicMessagesDecoder()
        found = [event for chunk in [*begun, *cited, *end] for event in decoder.decode(chunk)]
        found += decoder.close()
        told = [event.fields["citations"] for event in found if isinstance(event, BlockDelta)]
        assert sum(map(len, told)) < 500 * 10
        assert len(told[-1]) == 500


def test_a_call_without_id_gets_one_that_is_stable_within_the_message() -> None:
    def ids(message_id: str) -> list[Any]:
        chunks = [
            message_start(id=message_id),
            tool_use(0, id=""),
            tool_use(1, id=None),
            tool_use(2, id="None"),
        ]
        return [event.content["id"] for event in decode(*chunks) if isinstance(event, BlockStart)]

    assert ids("msg_1") == ids("msg_1") == ["call-msg_1-0", "call-msg_1-1", "call-msg_1-2"]
    assert ids("") == ["call-0", "call-1", "call-2"]
    (start,) = in_message(tool_use(0, id=""))
    assert isinstance(start, BlockStart)
    assert start.content["synthetic_id"] is True


def test_another_block_at_an_open_index_finishes_the_old_one_and_gets_an_index_of_its_own() -> None:
    chunks = [
        block_start(0, "text", text=""),
        text(0, "a"),
        tool_use(0),
        args(0, '{"a": 1}'),
        block_start(1, "text", text=""),
        text(1, "b"),
        block_stop(0),
        block_stop(1),
        message_delta("tool_use"),
        STOP,
    ]
    decoded = decode(message_start(), *chunks)
    assert violations(decoded) == []
    assert decoded[3:6] == [
        BlockFinish(0),
        BlockStart(1, {"type": "tool_call_chunk", "id": "toolu_1", "name": "roll", "args": ""}),
        ToolCallDelta(1, '{"a": 1}'),
    ]
    snapshot = fold(decoded)
    assert [block.type for block in snapshot.blocks] == ["text", "tool_call", "text"]
    assert snapshot.text == "ab"


# -- deltas


def test_a_signature_is_set_not_appended() -> None:
    thinking = [
        block_start(0, "thinking", thinking="", signature=""),
        delta(0, "signature_delta", signature="s1"),
    ]
    assert in_message(*thinking)[1:] == [BlockDelta(0, {"signature": "s1", "signed_by": "anthropic"})]
    twice = fold(in_message(*thinking, delta(0, "signature_delta", signature="s2")))
    assert twice.blocks[0].options == {"signature": "s2", "signed_by": "anthropic"}


def test_a_compaction_is_set_not_appended() -> None:
    chunks = [
        block_start(0, "compaction", content=None),
        delta(0, "compaction_delta", content="Summary", encrypted_content="e"),
    ]
    assert in_message(*chunks)[1:] == [BlockDelta(0, {"content": "Summary", "encrypted_content": "e"})]
    (block,) = fold(in_message(*chunks)).blocks
    assert block.options == {"type": "compaction", "content": "Summary", "encrypted_content": "e"}


@pytest.mark.parametrize(
    ("type", "nothing"),
    [
        ("text", delta(0, "text_delta", text="")),
        ("text", delta(0, "text_delta", text=None)),
        ("thinking", delta(0, "thinking_delta", thinking="")),
        ("thinking", delta(0, "signature_delta", signature="")),
        ("tool_use", delta(0, "input_json_delta", partial_json="")),
        ("text", delta(0, "input_json_delta", partial_json="")),
    ],
)
def test_an_empty_delta_is_nothing(type: str, nothing: Chunk) -> None:
    assert len(in_message(block_start(0, type), nothing)) == 1


@pytest.mark.parametrize(
    ("type", "stray"),
    [
        pytest.param("text", delta(0, "new_delta", new=1), id="an unknown delta"),
        pytest.param(
            "redacted_thinking", delta(0, "", **{"": "a"}) | {"delta": {"type": "x", "": "a"}}, id="no name"
        ),
        pytest.param("future_tool_use", args(0, '{"a": 1}'), id="arguments for a kind to come"),
    ],
)
def test_a_delta_that_its_block_cannot_take_passes_through_whole(type: str, stray: Chunk) -> None:
    decoded = in_message(block_start(0, type), stray)
    assert decoded[1:] == [ProviderEvent("anthropic", "content_block_delta", stray)]


@pytest.mark.parametrize(
    ("type", "late"),
    [
        ("thinking", delta(0, "signature_delta", signature="s")),
        ("text", delta(0, "citations_delta", citation=WEB)),
        ("compaction", delta(0, "compaction_delta", content="c")),
    ],
)
def test_a_mark_after_its_block_has_ended_passes_through_whole(type: str, late: Chunk) -> None:
    decoded = in_message(block_start(0, type), block_stop(0), late)
    assert decoded[1:] == [BlockFinish(0), ProviderEvent("anthropic", "content_block_delta", late)]


def test_text_behind_arguments_that_came_whole_changes_nothing() -> None:
    decoded = decode(
        message_start(), tool_use(0, input={"a": 1}), args(0, ""), args(0, '{"b": 2}'), block_stop(0), STOP
    )
    assert not [event for event in decoded if isinstance(event, ToolCallDelta)]
    assert calls(fold(decoded)) == [("tool_call", "toolu_1", {"a": 1})]


# -- content_block_stop


def test_a_call_without_arguments_is_finished_before_what_shows_it() -> None:
    other = block_start(0, "text", text="")
    call = [other, tool_use(1), block_stop(1)]
    assert in_message(*call, text(0, "a"))[-2:] == [BlockFinish(1), TextDelta(0, "a")]
    assert in_message(*call, block_stop(0))[-2:] == [BlockFinish(1), BlockFinish(0)]
    started = in_message(*call, block_start(2, "text", text=""))
    assert [type(event) for event in started[-2:]] == [BlockFinish, BlockStart]


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded"])
@pytest.mark.parametrize(
    "call",
    [
        pytest.param([tool_use(0), block_stop(0), PING], id="stopped before its arguments"),
        pytest.param(
            [tool_use(0), block_stop(0), block_stop(0), tool_use(0), args(0, "{}")], id="… all of it again"
        ),
        pytest.param([tool_use(0)], id="open, before its arguments"),
        pytest.param([tool_use(0), args(0, '{"a": 1}')], id="open, within them"),
    ],
)
def test_a_call_cut_off_by_the_token_limit_never_looks_executable(reason: str, call: list[Chunk]) -> None:
    decoded = decode(message_start(), *call, message_delta(reason), STOP)
    assert violations(decoded) == []
    snapshot = fold(decoded)
    assert (snapshot.status, snapshot.finish_reason) == ("length", "length")
    assert snapshot.tool_calls == ()
    (invalid,) = snapshot.invalid_tool_calls
    assert invalid.error is not None
    assert invalid.error.startswith("cut off by the token limit")


def test_a_call_that_was_whole_before_the_token_limit_stays_whole() -> None:
    chunks = [tool_use(0), args(0, '{"a": 1}'), block_stop(0), message_delta("max_tokens"), STOP]
    assert calls(reply(message_start(), *chunks)) == [("tool_call", "toolu_1", {"a": 1})]
