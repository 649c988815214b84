"""Writers of a message and its blocks."""

from __future__ import annotations

from typing import Any

import pytest

from rxdelta.core import Event, TokenUsage
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    MessageFinish,
    MessageStart,
    ReasoningDelta,
    TextDelta,
    UsageUpdate,
)
from rxdelta.formats.block_writer import BlockWriter, MessageWriter, take_all


def writer(choice: int = 0, message_id: str | None = "m1") -> BlockWriter:
    return BlockWriter([], choice, message_id)


class TestTheCurrentBlock:
    def test_prose_of_one_type_is_one_block(self) -> None:
        blocks = writer(choice=2)
        for text in ("Hel", "lo"):
            blocks.write("text", text)
        assert blocks.out == [
            BlockStart(0, {"type": "text", "text": ""}, choice=2),
            TextDelta(0, "Hel", choice=2),
            TextDelta(0, "lo", choice=2),
        ]

    def test_prose_of_another_type_begins_a_block(self) -> None:
        blocks = writer()
        blocks.write("reasoning", "Hm.", {"sent_as": "reasoning"})
        blocks.write("refusal", "No.")
        assert blocks.out == [
            BlockStart(0, {"type": "reasoning", "reasoning": "", "sent_as": "reasoning"}),
            ReasoningDelta(0, "Hm."),
            BlockFinish(0),
            BlockStart(1, {"type": "refusal", "refusal": ""}),
            TextDelta(1, "No."),
        ]
        assert (blocks.type, blocks.current, blocks.count) == ("refusal", 1, 2)

    def test_a_block_that_starts_finishes_it(self) -> None:
        blocks = writer()
        blocks.write("text", "a")
        call = blocks.start({"type": "tool_call_chunk", "name": "f", "args": ""})
        blocks.write("text", "b")
        assert call == 1
        assert blocks.out[2] == BlockFinish(0)
        assert [event for event in blocks.out if isinstance(event, BlockFinish)] == [BlockFinish(0)]

    def test_a_block_beside_it_leaves_it_open(self) -> None:
        blocks = writer()
        blocks.write("text", "a")
        blocks.whole({"type": "reasoning", "reasoning": ""}, "AA==", beside=True)
        blocks.write("text", "b")
        assert blocks.out[2:] == [
            BlockStart(1, {"type": "reasoning", "reasoning": ""}),
            DataDelta(1, "AA=="),
            BlockFinish(1),
            TextDelta(0, "b"),
        ]

    def test_fields_change_only_where_they_are_new(self) -> None:
        blocks = writer()
        blocks.begin({"type": "reasoning", "reasoning": "", "format": "a"}, {"format": "a"})
        blocks.describe({"format": "a"})
        blocks.describe({"format": "a", "id": "r"})
        blocks.describe({"format": "b", "id": "r"})
        assert blocks.out[1:] == [BlockDelta(0, {"id": "r"}), BlockDelta(0, {"format": "b"})]

    @pytest.mark.parametrize(
        ("known", "fields", "expected"),
        [
            ({"signature": "a"}, {"signature": "b"}, True),
            ({"signature": "a"}, {"signature": "a"}, False),
            ({"signature": "a"}, {}, False),
            ({}, {"signature": "b"}, False),
        ],
    )
    def test_two_signatures_need_two_blocks(self, known: Any, fields: Any, expected: bool) -> None:
        blocks = writer()
        blocks.begin({"type": "text", "text": "", **known}, known)
        assert blocks.is_signed_otherwise(fields) is expected

    def test_nothing_is_known_of_the_next(self) -> None:
        blocks = writer()
        blocks.begin({"type": "text", "text": ""}, {"signature": "a"})
        blocks.cite([{"title": "a"}])
        blocks.end_current()
        blocks.end_current()
        blocks.write("text", "b")
        blocks.flush()
        assert not blocks.is_signed_otherwise({"signature": "b"})
        assert [event.index for event in blocks.out if isinstance(event, BlockFinish)] == [0]
        assert isinstance(blocks.out[-1], TextDelta)


class TestCitations:
    def test_they_are_emitted_whole_when_they_have_grown_by_an_eighth(self) -> None:
        blocks = writer()
        blocks.write("text", "a")
        for number in range(1_000):
            blocks.cite([{"title": str(number)}])
        blocks.end_current()
        lists = [event.fields["citations"] for event in blocks.out if isinstance(event, BlockDelta)]
        assert [citation["title"] for citation in lists[-1]] == [str(number) for number in range(1_000)]
        assert sum(map(len, lists)) < 10 * 1_000

    def test_several_at_once_are_emitted_once(self) -> None:
        blocks = writer()
        blocks.write("text", "a")
        blocks.cite({"title": title} for title in "abc")
        blocks.end_current()
        assert len([event for event in blocks.out if isinstance(event, BlockDelta)]) == 1


class TestIdentities:
    @pytest.mark.parametrize(("message_id", "expected"), [("m1", "m1-2-1"), (None, "call-2-1")])
    def test_a_made_up_id_names_message_choice_and_block(self, message_id: str | None, expected: str) -> None:
        blocks = writer(2, message_id)
        blocks.write("text", "a")
        assert blocks.made_up_id() == expected
        assert blocks.call_identity(None) == {"id": expected, "synthetic_id": True}
        assert blocks.call_identity("c1") == {"id": "c1"}

    def test_a_part_of_an_unknown_kind_is_passed_on(self) -> None:
        blocks = writer()
        blocks.pass_on({"type": "hologram", "beams": [1]})
        content = {"type": "non_standard", "value": {"type": "hologram", "beams": [1]}}
        assert blocks.out == [BlockStart(0, content), BlockFinish(0)]


class TestTheMessage:
    def message(self, usage: TokenUsage | None = None) -> tuple[MessageWriter, list[Event]]:
        out: list[Event] = []
        return MessageWriter(out, 1, "m1", None, usage), out

    def test_usage_is_emitted_where_it_has_changed(self) -> None:
        message, out = self.message(TokenUsage(1, 0))
        message.start({"created": 5})
        assert message.show_usage(TokenUsage(1, 0))
        assert message.show_usage(None)
        assert message.show_usage(TokenUsage(1, 2))
        start = MessageStart("m1", None, TokenUsage(1, 0), {"created": 5}, choice=1)
        assert out == [start, UsageUpdate(TokenUsage(1, 2), choice=1)]

    def test_usage_behind_the_finish_is_too_late(self) -> None:
        message, out = self.message()
        message.finish("stop", "stop", {}, None)
        assert message.finished
        assert message.show_usage(None)
        assert not message.show_usage(TokenUsage(1, 2))
        assert len(out) == 1

    def test_the_finish_has_what_the_start_had_not(self) -> None:
        message, out = self.message()
        message.metadata["native"] = "end"
        message.finish("stop", "end", {"created": 5}, "gpt", "m2")
        metadata = {"id": "m2", "model": "gpt", "created": 5, "native": "end"}
        assert out == [MessageFinish("stop", "end", None, metadata, choice=1)]

    def test_an_id_that_never_came_is_not_late(self) -> None:
        message, out = self.message()
        message.finish("stop", "stop", {}, None, None)
        assert out == [MessageFinish("stop", "stop", choice=1)]

    def test_lists_continue(self) -> None:
        message, out = self.message()
        for found in ([1], None, [], [2], 3):
            message.append("token_ids", found)
        for found in ({"content": [1], "refusal": None}, {"content": [2]}):
            message.append("logprobs", found)
        message.append("steps", [])
        message.finish("stop", "stop", {}, None)
        (finish,) = out
        assert isinstance(finish, MessageFinish)
        assert finish.metadata == {"token_ids": [1, 2, 3], "logprobs": {"content": [1, 2]}}


def test_taking_the_events_leaves_the_list_to_the_writers() -> None:
    out: list[Event] = []
    message, blocks = MessageWriter(out, 0, "m1", "m", None), BlockWriter(out, 0, "m1")
    message.start({})
    assert [event.event for event in take_all(out)] == ["message-start"]
    blocks.whole({"type": "image"})
    assert [event.event for event in take_all(out)] == ["content-block-start", "content-block-finish"]
    assert not out
